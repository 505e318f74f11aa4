"""The own value of an object in JSON: what its document says, `inherit`, or nothing."""

from __future__ import annotations

import pytest

from gpolicy.report.show_answer import _VALUE
from gpolicy.show.effective_policy import Declaration, EffectiveValue


@pytest.mark.parametrize(
    ("state", "own"),
    [(state, "inherit" if state is Declaration.INHERIT else None) for state in Declaration],
)
def test_a_value_that_is_inherited_says_so(state: Declaration, own: str | None) -> None:
    found = _VALUE(EffectiveValue(path=("ipolicy", "vcpu-ratio"), state=state, origin=None))
    assert (found["path"], found["state"], found["own"]) == ("ipolicy.vcpu-ratio", state.value, own)
