"""The guards of the worked example, judged by the impact of its real plan: each figure found again the slow way."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.basis import BasisKind
from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.impact.declared_guards import declared_verdicts, failures_asked, guard_impact, judge_declared_again
from gpolicy.impact.impact import Impact, measure_impact
from gpolicy.plan.diff import diff
from gpolicy.plan.plan import sides_of_plan
from gpolicy.plan.sides import Sides, project, undo
from gpolicy.policy.loading import load_policy
from gpolicy.resolve.desired import pair_names
from tests.plan.planned import make_plan

POLICIES = Path(__file__).resolve().parents[2] / "policies"
POLICY = load_policy(POLICIES / "two-groups")
STATE = read_snapshot(POLICIES / "two-groups.snapshot.json")
CHANGES = diff(POLICY, STATE).changes
AFTER = project(STATE, CHANGES)
NAMES = pair_names(POLICY, AFTER)
IMPACT: Impact = measure_impact(Sides(STATE, AFTER, NAMES), failures=failures_asked(POLICY.guards))


def test_every_declared_guard_has_a_verdict_with_figures() -> None:
    results = declared_verdicts(POLICY.guards, CHANGES, IMPACT)
    assert [result.name for result in results] == [guard.name.value for guard in POLICY.guards]
    assert all(re.search(r"[0-9]", result.message) for result in results)
    assert not any("cannot be measured" in result.message for result in results)


def test_the_capacity_that_a_guard_names_is_counted_again() -> None:
    report = capacity(AFTER, names=NAMES)
    fits = {(group.group, spec.name): spec.fits for group in report.groups for spec in group.specs}
    named = 0
    for result in declared_verdicts(POLICY.guards, CHANGES, IMPACT):
        for group, spec, now, then in re.findall(
            r"group (\S+), size (\S+) at its largest: (?:(\d+).*? fit today, )?(\d+).*? after",
            result.message,
        ):
            assert fits[group, spec] == int(then), (now, result.message)
            named += 1
    assert named >= 2


def test_a_guard_is_overridden_alone_and_by_name() -> None:
    failing = {result.name for result in declared_verdicts(POLICY.guards, CHANGES, IMPACT) if not result.ok}
    assert failing
    name = min(failing)
    results = {
        result.name: result for result in declared_verdicts(POLICY.guards, CHANGES, IMPACT, allowed=frozenset({name}))
    }
    assert (results[name].ok, results[name].allowed) == (True, True)
    assert {item.name for item in results.values() if not item.ok} == failing - {name}


def test_judged_again_on_the_same_cluster_the_verdicts_are_the_same() -> None:
    plan = replace(make_plan(POLICY, STATE), declared_guards=POLICY.guards, pair_names=NAMES.by_object)
    again = judge_declared_again(plan, sides_of_plan(plan, STATE), frozenset())
    assert again == declared_verdicts(POLICY.guards, CHANGES, guard_impact(Sides(STATE, AFTER, NAMES), POLICY.guards))


@pytest.mark.parametrize("done", range(0, len(CHANGES) + 1, 4))
def test_a_resumed_plan_is_judged_as_it_was_at_first(done: int) -> None:
    """Guards compare with the cluster before the first step: else a plan could not be resumed, or would lose little."""
    plan = replace(make_plan(POLICY, STATE), declared_guards=POLICY.guards, pair_names=NAMES.by_object)
    half = project(STATE, CHANGES[:done])
    first, begun = sides_of_plan(plan, STATE), sides_of_plan(plan, undo(half, plan.changes))
    assert judge_declared_again(plan, begun, frozenset()) == judge_declared_again(plan, first, frozenset())


def test_guards_count_on_the_basis_of_the_report() -> None:
    known = guard_impact(Sides(STATE, AFTER, NAMES), POLICY.guards)
    assert (IMPACT.declares, IMPACT.basis and IMPACT.basis.kind) == (True, BasisKind.MEASURED)
    assert set(known.group_basis.values()) == {BasisKind.MEASURED}
    verdict = declared_verdicts(POLICY.guards, CHANGES, known)[0]
    assert verdict.message.startswith("group dedicated, size quarter at its largest: ")


def test_without_changes_nothing_is_lost() -> None:
    nothing = measure_impact(Sides(STATE, STATE, NAMES))
    lost = {guard.name.value for guard in POLICY.guards if guard.measure in ("capacity_loss", "newly_violating")}
    assert {result.name for result in declared_verdicts(POLICY.guards, [], nothing) if result.ok} >= lost
