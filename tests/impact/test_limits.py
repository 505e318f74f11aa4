"""Limits that a policy declares, in the impact of a plan and its guards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import GroupTerms, Limits, PairNames, Terms, with_limits
from gpolicy.impact.declared_guards import declared_verdicts, guard_impact
from gpolicy.plan.sides import Sides
from gpolicy.policy.loading import load_policy
from tests.analysis.hspace_cases import from_text, text_of


def cluster(most: int, limits: Limits | None = None, nodes: int = 4) -> ClusterState:
    """Return nodes of 16 GiB on which memory is all that can run out, for instances of up to `most` MiB."""
    rows = [f"n{number}|16384|0|16384|999999|999999|64|N|u|9||N|0|0|1.0" for number in range(nodes)]
    sizes = f"2048,1,4096,1,1,1;{most},1,4096,1,1,1"
    policy = f"2048,1,4096,1,1,1|{sizes}|plain|99.0|99.0"
    state = from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"]))
    return replace(state, terms={"g": GroupTerms(limits=limits)} if limits else {})


def verdict(tmp_path: Path, guard: str, before: ClusterState, after: ClusterState) -> tuple[bool, str]:
    file = tmp_path / "policy.yaml"
    file.write_text(f"gpolicy: v1\nkind: Guards\nguards:\n  - {{name: g, {guard}}}\n", encoding="utf-8")
    guards = load_policy(file).guards
    names = PairNames(("only",), {"g": ("only",)})
    (found,) = declared_verdicts(guards, (), guard_impact(Sides(before, after, names), guards))
    return found.ok, found.message


@pytest.mark.parametrize(
    ("limits", "now", "then"),
    [
        (None, 9, 3),  # hspace: three nodes are left with three of 4 GiB each, or one of 8
        (Limits(max_node_failures=2), 6, 2),  # two nodes are left
        (Limits(max_node_failures=0), 12, 4),
    ],
)
def test_guards_of_capacity_count_under_the_limits(limits: Limits | None, now: int, then: int, tmp_path: Path) -> None:
    before, after = cluster(4096, limits), cluster(8192, limits)
    under = ", under its limits" if limits else ""
    ok, message = verdict(tmp_path, "capacity_loss: {at_most: 1}", before, after)
    assert not ok
    sizes = f"{now} of 4G · 1 CPU · 4G fit today, {then} of 8G · 1 CPU · 4G after"
    lost = f"{sizes}, a loss of {now - then}, more than 1"
    lost += f"; the size that is counted changed: of today's size {now} fit after"
    assert message == f"group g, size only at its largest{under}: {lost}"
    ok, message = verdict(tmp_path, f"spec: only, at_least: {then}", before, after)
    assert ok
    assert message == f"group g, size only at its largest{under}: {then} fit after, at least {then}"


@pytest.mark.parametrize(("limits", "now", "then"), [(None, 3, 9), (Limits(max_node_failures=2), 2, 6)])
def test_a_size_that_no_spec_allows_any_more_is_a_loss(
    limits: Limits | None, now: int, then: int, tmp_path: Path
) -> None:
    before, after = cluster(8192, limits), cluster(4096, limits)
    under = ", under its limits" if limits else ""
    ok, message = verdict(tmp_path, 'capacity_loss: {at_most: "10%"}', before, after)
    assert not ok
    assert message == (
        f"group g, size only at its largest, today 8G · 1 CPU · 4G{under}: {now} fit today, 0 after"
        " (bound by ipolicy.minmax), a loss of 100 %, more than 10 %"
    )
    ok, message = verdict(tmp_path, 'capacity_loss: {at_most: "100%"}', before, after)
    assert ok
    sizes = f"{now} of 8G · 1 CPU · 4G fit today, {then} of 4G · 1 CPU · 4G after"
    assert message.startswith(f"group g, size only at its largest{under}: {sizes}")


def test_a_group_too_large_to_count_fails_the_guard(tmp_path: Path) -> None:
    limits = Limits(max_node_failures=2)
    ok, message = verdict(tmp_path, "capacity_loss: {at_most: 1}", cluster(4096, limits, 40), cluster(8192, limits, 40))
    assert not ok
    assert message.startswith(
        "group g: cannot be measured: under its limits the loss of any 2 nodes would be simulated"
    )


def test_redundancy_is_examined_for_as_many_failures_as_the_limits_allow(tmp_path: Path) -> None:
    limits = Limits(max_node_failures=3)
    state = cluster(4096, limits)
    ok, message = verdict(tmp_path, "node_failures: 1", state, state)
    assert ok
    assert message == "group g: survives 3 node failures today, 3 after, at least 1"


def test_options_of_a_plan_go_before_declared_limits() -> None:
    terms = Terms(groups={"g": GroupTerms(limits=Limits(max_node_failures=2))})
    changed = with_limits(terms, Limits(max_node_failures=3, cpus_after_failure=False))
    assert changed.groups["g"].limits == Limits(max_node_failures=3, cpus_after_failure=False)
    assert changed.others.limits == Limits(max_node_failures=3, cpus_after_failure=False)
