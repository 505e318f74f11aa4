"""Nodes that newly exceed a ratio by a plan, still do, or no longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.comparison import ViolationChange
from tests.analysis.full_nodes import instances, node, state
from tests.impact.changes import violation_change

VCPU, SPINDLE = ("ipolicy", "vcpu-ratio"), ("ipolicy", "spindle-ratio")
KINDS = ("nodes_newly", "nodes_still", "nodes_no_longer", "nodes_unknown")
TODAY = state([node("n1"), node("n2")], instances(20))  # 21 virtual CPUs and 20 spindles on n1


def with_policy(observed: ClusterState, values: Values) -> ClusterState:
    groups = {name: replace(item, effective={**item.effective, **values}) for name, item in observed.groups.items()}
    return replace(observed, groups=groups)


def with_node(observed: ClusterState, values: Values) -> ClusterState:
    n1 = observed.nodes["n1"]
    return replace(observed, nodes={**observed.nodes, "n1": replace(n1, own={**n1.own, **values})})


def silent(observed: ClusterState) -> ClusterState:
    nodes = {name: replace(item, resources=Resources()) for name, item in observed.nodes.items()}
    return replace(observed, nodes=nodes)


def kinds(change: ViolationChange) -> dict[str, list[str]]:
    found = {kind: [item.node for item in getattr(change, kind)] for kind in KINDS}
    return {kind: names for kind, names in found.items() if names}


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({}, {}, {}),
        ({}, {VCPU: 2.0}, {"nodes_newly": ["n1"]}),
        ({}, {VCPU: 2.625}, {}),  # exactly 21 of 8 CPUs
        ({}, {SPINDLE: 19.0}, {"nodes_newly": ["n1"]}),
        ({VCPU: 2.0}, {VCPU: 2.5}, {"nodes_still": ["n1"]}),
        ({VCPU: 2.0}, {SPINDLE: 19.0}, {"nodes_still": ["n1"]}),
        ({VCPU: 2.0}, {}, {"nodes_no_longer": ["n1"]}),
    ],
)
def test_each_node_is_of_one_kind(before: Values, after: Values, wanted: dict[str, list[str]]) -> None:
    assert kinds(violation_change(with_policy(TODAY, before), with_policy(TODAY, after))) == wanted


def test_parameters_of_nodes_count() -> None:
    few = with_node(with_policy(TODAY, {SPINDLE: 10.0}), {("ndparams", "spindle_count"): 2})
    assert kinds(violation_change(few, with_policy(TODAY, {SPINDLE: 10.0}))) == {"nodes_newly": ["n1"]}
    exclusive = with_node(few, {("ndparams", "exclusive_storage"): True, ("ndparams", "spindle_count"): 1})
    assert kinds(violation_change(few, exclusive)) == {}


def test_a_node_that_moves_is_judged_by_its_new_group() -> None:
    default = TODAY.groups["default"]
    strict = replace(default, name="strict", effective={**default.effective, VCPU: 1.0})
    before = replace(TODAY, groups={"default": default, "strict": strict})
    n1 = replace(before.nodes["n1"], group="strict")
    (found,) = violation_change(before, replace(before, nodes={**before.nodes, "n1": n1})).nodes_newly
    assert (found.group, [breach.ratio for breach in found.after]) == ("strict", [1.0])


@pytest.mark.parametrize(
    ("after", "names"), [({VCPU: 3.0}, ["n1", "n2"]), ({VCPU: 5.0}, []), ({}, []), ({SPINDLE: 25.0}, [])]
)
def test_without_cpus_only_a_stricter_ratio_makes_nodes_unknown(after: Values, names: list[str]) -> None:
    before = silent(TODAY)
    change = violation_change(before, with_policy(before, after))
    assert kinds(change) == ({"nodes_unknown": names} if names else {})
    assert {(item.parameters, item.reason) for item in change.nodes_unknown} <= {
        (("vcpu-ratio",), "its CPUs are not known")
    }


def test_the_spindle_ratio_needs_no_measurement() -> None:
    before = silent(TODAY)
    assert kinds(violation_change(before, with_policy(before, {SPINDLE: 5.0}))) == {"nodes_newly": ["n1"]}


def test_an_instance_that_cannot_be_counted_does_not_hide_the_others() -> None:
    mixed = replace(TODAY.instances["vm0"], disk_template="mixed")
    before = replace(TODAY, instances={**TODAY.instances, "vm0": mixed})
    assert kinds(violation_change(before, with_policy(before, {VCPU: 5.0}))) == {}
    change = violation_change(before, with_policy(before, {SPINDLE: 5.0}))
    assert kinds(change) == {"nodes_unknown": ["n1", "n2"]}
    assert {item.parameters for item in change.nodes_unknown} == {("spindle-ratio",)}
