"""What the rules know of hail is what hail knows."""

from __future__ import annotations

from gpolicy.ganeti.vocabulary import HAIL_PARAMETERS
from gpolicy.htools.program_options import HAIL_OPTIONS


def test_the_parameters_of_hail_are_its_options() -> None:
    assert {option.long for option in HAIL_OPTIONS} == HAIL_PARAMETERS
