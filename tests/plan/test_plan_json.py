"""The JSON of what a plan was judged by, and what its steps move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.plan.changes import NODES
from gpolicy.plan.effects import Effect
from gpolicy.plan.plan_json import plan_as_json
from gpolicy.plan.step import PlannedCommand
from tests.plan.planned import cluster, plan_for, policy_of

GOLD = "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 3, spindle-ratio: 9}"


def test_a_declared_guard_names_its_group_and_spec_where_it_has_them() -> None:
    guards = policy_of(
        "Guards\nguards:\n- {name: a, at_least: 1, group: gold, spec: l}\n- {name: b, max_changes: 3}"
    ).guards
    plan = replace(plan_for(cluster(groups={"gold": {}}), GOLD), declared_guards=guards)
    found = plan_as_json(plan, {})["declared_guards"]
    assert [(item["name"], item["group"], item["spec"]) for item in found] == [("a", "gold", "l"), ("b", None, None)]


@pytest.mark.parametrize("number", [0, 1])
def test_one_step_that_moves_an_instance_is_enough(number: int) -> None:
    plan = plan_for(cluster(groups={"gold": {}, "silver": {}}), GOLD, GOLD.replace("gold", "silver"))
    assert len(plan.steps) == 2
    assert not plan.moves_instances
    steps = list(plan.steps)
    effects = (*steps[number].command.effects, Effect("instance/i", NODES, ["a"], ["b"]))
    steps[number] = replace(steps[number], command=PlannedCommand(argv=("true",), effects=effects))
    assert replace(plan, steps=tuple(steps)).moves_instances
