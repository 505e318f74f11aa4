"""What the rules know of hail is what hail knows."""

from __future__ import annotations

from gpolicy.ganeti.vocabulary import HAIL_FLAGS, HAIL_PARAMETERS, HAIL_VALUES
from gpolicy.htools.getopt import Takes
from gpolicy.htools.program_options import HAIL_OPTIONS


def test_the_parameters_of_hail_are_its_options() -> None:
    known = {option.long: option.takes for option in HAIL_OPTIONS}
    assert known.keys() == HAIL_PARAMETERS - {"mond", "mond-xen"}
    assert {name for name, takes in known.items() if takes is Takes.NOTHING} == HAIL_FLAGS - {"mond-xen"}
    assert {name for name, takes in known.items() if takes is Takes.REQUIRED} == HAIL_VALUES
