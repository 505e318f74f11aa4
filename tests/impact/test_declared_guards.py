"""Declared guards: every verdict with its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.losses import Homeless, Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.analysis.shown_score import Score
from gpolicy.analysis.violations import PolicyViolation, RatioBreach, Verdict
from gpolicy.impact.capacity_change import CapacityChange, FitChange, GroupCapacityChange
from gpolicy.impact.comparison import (
    InstanceViolation,
    NodeViolation,
    UnknownNodeViolation,
    UnknownViolation,
    ViolationChange,
)
from gpolicy.impact.declared_guards import TAKES_INSTANCES, declared_verdicts, failures_asked
from gpolicy.impact.impact import GroupRedundancyChange, Impact, RedundancyChange
from gpolicy.plan.built_in_guards import GUARDS, GuardResult
from gpolicy.policy.kinds import BUILT_IN
from gpolicy.policy.loading import load_policy

SCORE = Score(0.0, ())


def judged(
    tmp_path: Path, guard: str, impact: Impact | None, *allowed: str, changes: tuple[object, ...] = (None,)
) -> GuardResult:
    file = tmp_path / "policy.yaml"
    file.write_text(f"gpolicy: v1\nkind: Guards\nguards:\n  - {{name: g, {guard}}}\n", encoding="utf-8")
    policy = load_policy(file)
    assert policy.findings == ()
    (result,) = declared_verdicts(policy.guards, changes, impact, allowed=frozenset(allowed))  # type: ignore[arg-type]
    return result


def fit(fits: int) -> Fit:
    return Fit(fits, Binding(Cause.MEMORY))


def row(name: str, before: int | None, after: int | None, old_size: int | None = None) -> FitChange:
    now, then, old = (None if fits is None else fit(fits) for fits in (before, after, old_size))
    return FitChange(name, now, then, old)


def group(name: str, *rows: FitChange) -> GroupCapacityChange:
    return GroupCapacityChange(name, None, None, rows, row("tiered", 0, 0), row("standard", 0, 0))


def with_capacity(*groups: GroupCapacityChange, **unavailable: str) -> Impact:
    return Impact(capacity=CapacityChange(groups, None, unavailable=unavailable))


CAPACITY = with_capacity(
    group("shared", row("half", 12, 9), row("small", 40, 41)),
    group("dedicated", row("full", 3, 2), row("new", None, 5), row("half", 0, 0)),
)


@pytest.mark.parametrize(
    ("guard", "ok", "message"),
    [
        (
            'group: shared, capacity_loss: {at_most: "5%"}',
            False,
            "group shared, size half at its largest: 12 fit today, 9 after, a loss of 25 %, more than 5 %",
        ),
        (
            'group: shared, spec: half, capacity_loss: {at_most: "25%"}',
            True,
            "group shared, size half at its largest: 12 fit today, 9 after, a loss of 25 %, at most 25 %",
        ),
        (
            "spec: full, capacity_loss: {at_most: 0}",
            False,
            "group dedicated, size full at its largest: 3 fit today, 2 after, a loss of 1, more than 0",
        ),
        (
            "spec: half, capacity_loss: {at_most: 3}",
            True,
            (
                "group shared, size half at its largest: 12 fit today, 9 after, a loss of 3, at most 3; "
                "group dedicated, size half at its largest: 0 fit today, 0 after, nothing is lost"
            ),
        ),
        (
            "group: dedicated, spec: full, at_least: 2",
            True,
            "group dedicated, size full at its largest: 2 fit after, at least 2",
        ),
        (
            "group: dedicated, spec: full, at_least: 3",
            False,
            "group dedicated, size full at its largest: 2 fit after, fewer than 3 (bound by memory)",
        ),
        (
            "group: dedicated, spec: quarter, at_least: 3",
            False,
            "cannot be measured: group dedicated has no size quarter",
        ),
        ("spec: quarter, at_least: 3", False, "cannot be measured: no group has a size quarter"),
        ("group: gold, at_least: 3", False, "cannot be measured: there is no group gold"),
    ],
)
def test_capacity(guard: str, ok: bool, message: str, tmp_path: Path) -> None:
    result = judged(tmp_path, guard, CAPACITY)
    assert (result.ok, result.message) == (ok, message)


def test_a_spec_that_is_removed_is_lost_but_for_what_still_fits_of_its_size(tmp_path: Path) -> None:
    gone = with_capacity(group("shared", row("half", 4, None, 1)))
    result = judged(tmp_path, "capacity_loss: {at_most: 2}", gone)
    assert (result.ok, result.message) == (
        False,
        "group shared, size half at its largest: 4 fit today, 1 after (the size is removed), a loss of 3, more than 2",
    )
    assert not judged(tmp_path, "spec: half, at_least: 1", gone).ok


@pytest.mark.parametrize(
    ("guard", "old_fits", "said"),
    [
        ("capacity_loss: {at_most: 0}", 4, True),
        ("at_least: 3", 4, True),
        ("at_least: 3", 3, False),  # of the old size less fits as well
        ("capacity_loss: {at_most: 2}", 4, False),  # it holds
    ],
)
def test_a_raised_maximum_is_no_loss_of_the_size_of_today(
    guard: str, old_fits: int, said: bool, tmp_path: Path
) -> None:
    small, large = (Spec(size, 1, 1024, 1, 1, 1) for size in (1024, 2048))
    before, after, old = replace(fit(4), spec=small), replace(fit(2), spec=large), replace(fit(old_fits), spec=small)
    raised = with_capacity(group("shared", FitChange("half", before, after, old)))
    words = "; the size that is counted changed: of today's size 4 fit after"
    assert (words in judged(tmp_path, guard, raised).message) is said


def test_a_failed_guard_lists_only_some_of_the_failures(tmp_path: Path) -> None:
    many = with_capacity(group("g", *[row(f"s{n}", 10, 5) for n in range(9)], row("fine", 5, 5)))
    result = judged(tmp_path, "capacity_loss: {at_most: 1}", many)
    assert result.message.startswith(
        "group g, size s0 at its largest: 10 fit today, 5 after, a loss of 5, more than 1; "
    )
    assert result.message.endswith("; and 5 more")
    assert "fine" not in result.message


def test_a_measure_that_is_not_known_fails_with_the_reason_and_can_be_allowed(tmp_path: Path) -> None:
    impact = Impact(unavailable={"capacity": "config:x: not known: memory of node1"})
    result = judged(tmp_path, "at_least: 1", impact)
    assert result == GuardResult("g", ok=False, message="cannot be measured: config:x: not known: memory of node1")
    assert judged(tmp_path, "at_least: 1", impact, "other") == result
    allowed = judged(tmp_path, "at_least: 1", impact, "g")
    assert (allowed.ok, allowed.allowed, allowed.message) == (True, True, result.message)
    assert not judged(tmp_path, "at_least: 1", None).ok
    one = with_capacity(group("a", row("s", 5, 5)), b="node2 shows no disk")
    result = judged(tmp_path, "at_least: 1", one)
    assert (result.ok, result.message) == (False, "group b: cannot be measured: node2 shows no disk")
    assert judged(tmp_path, "group: a, at_least: 1", one).ok


def test_a_guard_that_passes_is_not_marked_as_allowed(tmp_path: Path) -> None:
    assert not judged(tmp_path, "spec: full, at_least: 2", CAPACITY, "g").allowed


def violation(name: str, group: str) -> InstanceViolation:
    after = PolicyViolation(group=group, pair=1, breaches=())
    return InstanceViolation(instance=name, primary_node="node1", before=None, after=after)


def test_newly_violating_instances(tmp_path: Path) -> None:
    impact = Impact(violations=ViolationChange(newly=(violation("web1", "a"), violation("web2", "b"))))
    result = judged(tmp_path, "newly_violating: 1", impact)
    assert (result.ok, result.message) == (False, "2 instances newly violate the policy (web1, web2), more than 1")
    assert judged(tmp_path, "newly_violating: 2", impact).ok
    result = judged(tmp_path, "group: b, newly_violating: 0", impact)
    assert result.message == "group b: 1 instance newly violates the policy (web2), more than 0"


def test_nodes_above_a_ratio_count_too(tmp_path: Path) -> None:
    breach = RatioBreach(parameter="vcpu-ratio", used=25, own=8, ratio=2.0)
    node = NodeViolation(node="node1", group="a", before=(), after=(breach,))
    impact = Impact(violations=ViolationChange(newly=(violation("web1", "b"),), nodes_newly=(node,)))
    result = judged(tmp_path, "newly_violating: 1", impact)
    said = "1 instance and 1 node newly violate the policy (web1, node1), more than 1"
    assert (result.ok, result.message) == (False, said)
    result = judged(tmp_path, "group: a, newly_violating: 0", impact)
    assert result.message == "group a: 1 node newly violates the policy (node1), more than 0"
    result = judged(tmp_path, "group: c, newly_violating: 0", impact)
    assert (result.ok, result.message) == (
        True,
        "group c: no instance and no node newly violates the policy, at most 0",
    )


def test_a_node_that_nobody_can_judge_counts_as_one_that_violates(tmp_path: Path) -> None:
    unknown = UnknownNodeViolation(node="node1", group="a", parameters=("vcpu-ratio",), reason="its CPUs are not known")
    impact = Impact(violations=ViolationChange(nodes_unknown=(unknown,)))
    result = judged(tmp_path, "newly_violating: 0", impact)
    said = "cannot be measured: whether node1 violates the policy is unknown: its CPUs are not known"
    assert (result.ok, result.message) == (False, said)
    assert judged(tmp_path, "group: b, newly_violating: 0", impact).ok


def test_an_instance_that_nobody_can_judge_counts_as_one_that_violates(tmp_path: Path) -> None:
    verdict = Verdict(unknown=("nic-count",))
    unknown = UnknownViolation(
        instance="web1", primary_node="node1", parameters=("nic-count",), before=verdict, after=verdict
    )
    impact = Impact(violations=ViolationChange(unknown=(unknown,)))
    result = judged(tmp_path, "newly_violating: 0", impact)
    assert (result.ok, result.message) == (
        False,
        "cannot be measured: whether web1 violates the policy is unknown: without nic-count",
    )
    assert judged(tmp_path, "newly_violating: 1", impact).ok


def redundancy(survives: int, *, asked: int = 2, nodes: int = 4, now: int = 1, reason: str | None = None) -> Impact:
    homeless = Homeless("web1", "memory", "", "")
    losses = (Loss(("node1",), (homeless,)),) if survives < asked else ()
    after = GroupRedundancy("shared", nodes, asked, survives, losses, (), 4, reason)
    before = GroupRedundancy("shared", nodes, asked, now, (), (), 4)
    change = GroupRedundancyChange("shared", before, after)
    return Impact(redundancy=RedundancyChange(asked, (change,), SCORE, SCORE))


def test_a_group_that_is_not_there_is_not_excused_by_another_that_is_not_known(tmp_path: Path) -> None:
    known = Impact(redundancy=RedundancyChange(1, (), SCORE, SCORE, unavailable={"b": "node2 does not answer"}))
    result = judged(tmp_path, "group: a, node_failures: 1", known)
    assert (result.ok, result.message) == (False, "cannot be measured: there is no group a")
    for guard in ("group: b, node_failures: 1", "node_failures: 1"):
        result = judged(tmp_path, guard, known)
        assert (result.ok, result.message) == (False, "group b: cannot be measured: node2 does not answer")


def test_node_failures(tmp_path: Path) -> None:
    assert judged(tmp_path, "group: shared, node_failures: 2", redundancy(2)).ok
    result = judged(tmp_path, "node_failures: 1", redundancy(0))
    assert (result.ok, result.message) == (
        False,
        "group shared: survives 1 node failure today, 0 after, fewer than 1: without node1 web1 has no place (memory)",
    )
    assert (
        "survives 0 node failures today, 0 after, "
        in judged(tmp_path, "node_failures: 1", redundancy(0, now=0)).message
    )
    no_nodes = judged(tmp_path, "node_failures: 1", redundancy(0, nodes=0))
    assert (no_nodes.ok, no_nodes.message) == (True, "nothing to measure")


def test_more_failures_than_examined_do_not_count_as_survived(tmp_path: Path) -> None:
    result = judged(tmp_path, "node_failures: 3", redundancy(2, asked=2))
    assert (result.ok, result.message) == (
        False,
        "group shared: cannot be measured: only 2 failures at once were examined",
    )
    result = judged(tmp_path, "node_failures: 2", redundancy(1, reason="too many sets of nodes"))
    assert result.message == "group shared: cannot be measured: too many sets of nodes"


def test_changes_are_counted_without_any_impact(tmp_path: Path) -> None:
    assert judged(tmp_path, "max_changes: 2", None, changes=(1, 2)).ok
    result = judged(tmp_path, "max_changes: 2", None, changes=(1, 2, 3))
    assert (result.ok, result.message) == (False, "3 changes, more than 2")


def test_redundancy_is_examined_for_as_many_failures_as_a_guard_asks_for(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "gpolicy: v1\nkind: Guards\nguards:\n  - {name: a, node_failures: 3}\n  - {name: b, node_failures: 2}\n"
    )
    assert failures_asked(load_policy(tmp_path).guards) == 3
    (tmp_path / "a.yaml").write_text("gpolicy: v1\nkind: Guards\nguards:\n  - {name: a, max_changes: 3}\n")
    assert failures_asked(load_policy(tmp_path).guards) == 1


def test_reserved_names_are_those_of_the_built_in_guards() -> None:
    assert [*GUARDS, TAKES_INSTANCES] == list(BUILT_IN)


@pytest.mark.parametrize("guard", ["capacity_loss: {at_most: 0}", "node_failures: 1", "newly_violating: 0"])
def test_without_a_change_nothing_has_to_be_worked_out(tmp_path: Path, guard: str) -> None:
    assert judged(tmp_path, guard, None, changes=()) == GuardResult("g", True, "nothing changes")
    assert not judged(tmp_path, guard, None).ok
