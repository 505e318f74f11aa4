"""What a plan asks of the policy and the cluster, it asks once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import gpolicy
from gpolicy.analysis import allocator_input, loaded_state
from gpolicy.checking import context
from gpolicy.cluster.terms import limited
from gpolicy.drift import comparing
from gpolicy.impact import comparison
from gpolicy.impact.declared_guards import verdicts_on
from gpolicy.plan import diff, plan, sides
from gpolicy.plan.sides import planned_sides
from gpolicy.report.answer import Picture
from gpolicy.report.plan_answer import plan_answer
from gpolicy.resolve import desired
from gpolicy.use_cases import changes
from tests.cli.command_line import ROOT

POLICY = """\
gpolicy: v1
kind: Cluster
name: ganeti.example.org
ipolicy: {vcpu-ratio: 2}
---
gpolicy: v1
kind: NodeGroup
name: shared
"""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def count(name: str, work: Callable[..., Any], *modules: Any) -> None:
        def counting(*given: Any, **named: Any) -> Any:
            found[name] += 1
            return work(*given, **named)

        for module in modules:
            monkeypatch.setattr(module, name, counting)

    count("resolve", desired.resolve, context, diff)
    count("diff", diff.diff, diff, plan, sides, comparing)
    count("project", sides.project, sides, changes)
    count("load_state", loaded_state.load_state, loaded_state, comparison)
    count("cluster_data", allocator_input.cluster_data, allocator_input)
    return found


def test_a_plan_resolves_compares_and_projects_once(counted: Counter[str], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path / "policy.yaml"), state, today=date(2026, 1, 1))
    planned = gpolicy.plan_change(checked, state)
    assert planned.plan.changes
    assert planned.impact is not None
    parts = (part for section in plan_answer(planned.plan, impact=planned.impact, sides=planned.sides).sections
             for part in section.parts)  # fmt: skip
    assert [part.draw() for part in parts if isinstance(part, Picture)]
    assert counted == {"resolve": 1, "diff": 1, "project": 1, "load_state": 2, "cluster_data": 2}  # each side once


def test_drift_resolves_and_compares_once(counted: Counter[str], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path / "policy.yaml"), state, today=date(2026, 1, 1))
    assert gpolicy.find_drift(checked, state, today=date(2026, 1, 1)).drift
    assert counted == {"resolve": 1, "diff": 1}


def test_the_guards_of_a_policy_and_the_built_in_one_count_each_side_once(counted: Counter[str]) -> None:
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    policy = gpolicy.load_policy(ROOT / "policies" / "two-groups")
    assert policy.guards
    sides = planned_sides(policy, state)
    assert sides.changes
    verdicts_on(policy, sides)
    assert counted == {"resolve": 1, "diff": 1, "project": 1, "load_state": 2, "cluster_data": 2}


def test_an_instance_that_fits_nowhere_and_the_moves_for_it_convert_the_cluster_once(counted: Counter[str]) -> None:
    cluster = gpolicy.open_cluster(gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json"))
    size = "memory=1G disk=900T"
    assert not gpolicy.place_instance(cluster, size.split()).ok
    assert gpolicy.find_remedy(cluster, want=f"1x {size}").room is not None
    assert counted == {"cluster_data": 1}


def test_what_fits_what_fits_after_moves_and_when_it_is_full_convert_the_cluster_once(
    counted: Counter[str], tmp_path: Path
) -> None:
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    cluster = gpolicy.open_cluster(state, limits=gpolicy.Limits(max_node_failures=0))
    report = gpolicy.count_capacity(cluster, after_moves=True)
    assert any(spec.at_most for group in report.groups for spec in group.specs)
    assert counted["cluster_data"] == 1
    gpolicy.forecast_capacity(cluster, report, tmp_path, state=state, at="2026-01-01T00:00:00Z")
    assert counted["cluster_data"] == 2  # the second time for what instances use today


def test_what_is_known_of_a_cluster_counts_under_the_limits_of_the_question() -> None:
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    limits = gpolicy.Limits(max_node_failures=0)
    cluster = gpolicy.open_cluster(state, limits=limits)
    found = gpolicy.count_capacity(cluster, after_moves=True)
    assert found.groups == gpolicy.count_capacity(gpolicy.open_cluster(limited(state, limits)), after_moves=True).groups
    assert found.groups != gpolicy.count_capacity(gpolicy.open_cluster(state), after_moves=True).groups
    assert all(group.limits == limits for group in found.groups)


def test_limits_of_the_question_are_not_those_of_the_moves() -> None:
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    limits = gpolicy.Limits(max_node_failures=0)
    cluster = gpolicy.open_cluster(state, limits=limits)
    assert gpolicy.place_instance(cluster, ["memory=1G", "disk=1G"]).limits[0].limits == limits
    assert gpolicy.find_remedy(cluster).limits == gpolicy.find_remedy(gpolicy.open_cluster(state)).limits


def test_limits_of_the_request_stay_with_the_plan(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path / "policy.yaml"), state, today=date(2026, 1, 1))
    limits = gpolicy.Limits(max_node_failures=0)
    planned = gpolicy.plan_change(checked, state, gpolicy.PlanRequest(limits=limits))
    assert planned.plan.terms.others.limits == limits  # for the guards that apply judges again
    assert {planned.sides.after.terms_of(name).limits for name in planned.sides.after.groups} == {limits}
