"""The verdict on a plan in a few words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.findings import Finding, Severity
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.report.plan_answer import verdict
from gpolicy.resolve.desired import UNKNOWN_NODE
from tests.plan.planned import cluster, plan_for

PLAN = plan_for(cluster(), "Cluster\nname: cluster.example.org\nmax_running_jobs: 3")
NOTHING = plan_for(cluster(), "Cluster\nname: cluster.example.org")
FINE, FAILS = GuardResult("disks-stay", True, "fine"), GuardResult("right-cluster", False, "another")
ALLOWED = replace(FINE, allowed=True)
ERROR = UNKNOWN_NODE.finding("the cluster has no node 'x'", None)
WARNING = replace(ERROR, severity=Severity.WARNING)
NO_PLAN = "No plan: the policy has 1 error for this cluster"


@pytest.mark.parametrize(
    ("guards", "findings", "expected"),
    [
        ((FINE,), (), "Can be applied"),
        ((FINE, ALLOWED), (WARNING,), "Can be applied, 1 guard overridden"),
        ((FINE, FAILS), (), "Not to be applied: 1 guard of 2 fails"),
        ((FAILS, FAILS), (WARNING,), "Not to be applied: 2 guards of 2 fail"),
        ((FAILS,), (ERROR, WARNING), NO_PLAN),
        ((FINE,), (ERROR,), NO_PLAN),
    ],
)
def test_errors_go_before_guards(guards: tuple[GuardResult, ...], findings: tuple[Finding, ...], expected: str) -> None:
    assert verdict(replace(PLAN, guards=guards, findings=findings)) == expected


def test_no_changes() -> None:
    assert verdict(NOTHING) == "No changes: the cluster is what the policy declares"
