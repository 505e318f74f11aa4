"""Where what is declared equals what is measured, every number is the same on both bases.

The clusters are random ones with recorded answers of hspace, in which all instances run and what nodes report adds up:
a stopped instance keeps its resources by declaration, and a node may report less than nothing.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.analysis.basis import BasisKind
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.node_losses import group_redundancy
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import ClusterState, LiveNode, Resources
from gpolicy.cluster.terms import Limits
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Values
from tests.analysis.hspace_cases import from_text, recorded_cases

HYPERVISOR = "xen-pvm"


def summed(state: ClusterState) -> ClusterState:
    """Return the cluster with all instances running, and free memory and disk that add up with them."""
    instances = {
        name: replace(item, status="running", admin_state="up", oper_ram=None) for name, item in state.instances.items()
    }
    chosen = random.Random(len(instances))  # noqa: S311
    state = replace(state, instances=instances)
    data = load_state(state).settled.data
    nodes = {}
    for item in data.nodes:
        node, had = state.nodes[item.name], state.nodes[item.name].resources
        used = sum(each.memory for each in data.instances if each.primary == item.index and each.uses_memory)
        disk = sum(
            each.disk for each in data.instances if item.index in {each.primary, each.secondary} and each.template.local
        )
        hypervisor, overhead = chosen.randrange(500), chosen.randrange(5000)
        free = (had.memory_total or 0) - (had.memory_node or 0) - hypervisor - used
        room = (had.disk_total or 0) - overhead - disk
        nodes[item.name] = replace(node, resources=replace(had, memory_free=free, disk_free=room))
    return replace(state, nodes=nodes)


def declared(state: ClusterState) -> ClusterState:
    """Return the cluster with what its nodes report as node values of hv_state and disk_state."""
    own: Values = {**state.cluster.own, ("enabled_hypervisors",): [HYPERVISOR], ("volume_group_name",): "xenvg"}
    state = replace(state, cluster=replace(state.cluster, own=own), unreadable=())
    loaded = load_state(state)
    nodes: dict[str, LiveNode] = {}
    for item in loaded.settled.data.nodes:
        node, facts = state.nodes[item.name], loaded.whole.cluster.nodes[item.index]
        used = sum(
            loaded.whole.cluster.instances[index].disk
            for index in {*facts.primaries, *facts.secondaries}
            if loaded.whole.cluster.instances[index].template.local
        )
        figures = {
            "mem_total": truncate(item.total_memory),
            "mem_node": item.node_memory,
            "mem_hv": facts.facts.unaccounted_memory,
            "cpu_total": truncate(item.total_cpus),
            "cpu_node": item.node_cpus,
        }
        values: Values = {("hv_state", HYPERVISOR, name): value for name, value in figures.items()}
        disk = truncate(item.total_disk)
        values["disk_state", "plain", "xenvg", "disk_total"] = disk
        values["disk_state", "plain", "xenvg", "disk_overhead"] = disk - item.free_disk - used
        nodes[item.name] = replace(node, own={**node.own, **values})
    return replace(state, nodes=nodes)


def silenced(state: ClusterState) -> ClusterState:
    """Return the cluster without measured memory, CPUs and disk; physical volumes stay."""
    nodes = {}
    for name, node in state.nodes.items():
        had = node.resources
        kept = Resources(spindles_total=had.spindles_total, spindles_free=had.spindles_free)
        nodes[name] = replace(node, resources=kept) if node.is_measured else node
    instances = {name: replace(item, status=None) for name, item in state.instances.items()}
    return replace(state, nodes=nodes, instances=instances)


def numbers(state: ClusterState, *, by_declaration: bool) -> dict[str, Any]:
    """Return all that is counted of a cluster."""
    report = capacity(state, resource_model=by_declaration, limits=Limits(oversubscription=1.5))
    loaded = load_state(state, resource_model=by_declaration)
    placed: dict[str, Any] = {}
    for disk in ("plain", "drbd"):
        try:
            found = place(state, PlaceRequest(name="new", template=disk), resource_model=by_declaration)
            placed[disk] = (found.ok, found.group, found.nodes, found.candidates, found.info)
        except GpolicyError as error:
            placed[disk] = error.message
    return {
        "groups": report.groups,
        "cluster": report.cluster,
        "losses": {name: group_redundancy(group, 1) for name, group in loaded.groups.items()},
        "placed": placed,
    }


CASES = [case["data"] for case in recorded_cases()]


@pytest.mark.parametrize("place_of_case", range(0, len(CASES), 8))
def test_declared_values_equal_to_the_measured_ones_change_no_number(place_of_case: int) -> None:
    try:
        measured = summed(from_text(CASES[place_of_case]))
    except GpolicyError:
        pytest.skip("a cluster that cannot be counted")
    own: Values = {**measured.cluster.own, ("enabled_hypervisors",): [HYPERVISOR], ("volume_group_name",): "xenvg"}
    measured = replace(measured, cluster=replace(measured.cluster, own=own))
    stated = declared(measured)
    expected = numbers(measured, by_declaration=False)
    assert numbers(stated, by_declaration=True) == expected
    assert load_state(stated, resource_model=True).basis().kind in (BasisKind.DECLARED, BasisKind.MEASURED)
    assert numbers(silenced(stated), by_declaration=False) == expected
    assert load_state(silenced(stated)).basis().kind in (BasisKind.DECLARED, BasisKind.MEASURED)
