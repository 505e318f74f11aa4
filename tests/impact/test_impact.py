"""The parts of an impact, and what they are computed from."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.impact import Impact, measure_impact
from gpolicy.plan.sides import Sides
from tests.impact.test_capacity_change import cluster


def _declaring(memory: int) -> ClusterState:
    """Return the cluster with another memory declared for each node than the 16 GiB that are measured."""
    state = cluster()
    own: Values = {("hv_state", "kvm", "mem_total"): memory}
    nodes = {name: replace(node, own={**node.own, **own}) for name, node in state.nodes.items()}
    hypervisors: Values = {**state.cluster.own, ("enabled_hypervisors",): ["kvm"]}
    return replace(state, nodes=nodes, cluster=replace(state.cluster, own=hypervisors), unreadable=())


def _impact(before: ClusterState, after: ClusterState, part: str) -> Impact:
    return measure_impact(Sides(before, after), parts=[part])


def test_declared_resources_are_the_other_model() -> None:
    found = _impact(cluster(), _declaring(8192), "resource_model")
    assert found.declares
    assert found.resource_model is not None
    node = found.resource_model.after.nodes[2]
    assert node.measured is not None
    assert node.measured.free_memory - node.configured.free_memory == 16384 - 8192
    assert found.resource_model.before.groups == ()


def test_where_nothing_is_declared_both_models_are_the_same() -> None:
    found = _impact(cluster(), cluster(), "resource_model")
    assert not found.declares
    assert not Impact().declares
    assert found.resource_model is not None
    assert all(node.measured == node.configured for node in found.resource_model.after.nodes)


def test_one_node_may_fail_unless_more_are_asked_for() -> None:
    found = _impact(cluster(), cluster(), "redundancy")
    assert found.redundancy is not None
    assert found.redundancy.failures == 1
    assert found.unavailable == {}
