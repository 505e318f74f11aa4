"""Who violates the policy, in a sentence."""

from __future__ import annotations

import pytest

from gpolicy.impact.comparison import InstanceViolation, ViolationChange
from gpolicy.report.violations_section import violations_section
from tests.report.impact_samples import violations

ONE, TWO = violations().newly


def _named(name: str) -> InstanceViolation:
    return InstanceViolation(instance=name, primary_node="n", before=ONE.before, after=ONE.after)


@pytest.mark.parametrize(
    ("change", "worse", "summary"),
    [
        (ViolationChange(), "", "no instance and no node begins or ceases to violate the policy"),
        (ViolationChange(newly=(ONE,)), "web newly violates the policy", "1 instance newly violates the policy"),
        (
            ViolationChange(newly=(ONE, TWO, _named("x")), no_longer=(TWO,)),
            "web and 2 more newly violate the policy",
            "3 instances newly violate the policy; 1 instance no longer violates it",
        ),
        (
            ViolationChange(minmem_newly=(TWO,)),
            "db newly violates the policy with minmem",
            "the minmem of 1 instance is newly outside",
        ),
        (ViolationChange(still=(ONE, TWO)), "", "2 instances violate the policy as before"),
    ],
)
def test_the_words(change: ViolationChange, worse: str, summary: str) -> None:
    section = violations_section(change)
    assert (section.worse, section.summary) == (worse, summary)
