"""A state ready for counting: groups as clusters of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.state import ClusterState, LiveDisk, Resources
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Values
from tests.analysis.hspace_cases import FULL, from_text

MOVED = FULL.replace("|inst2", "").replace("|node2|node3|drbd|", "|node2|node4|drbd|")


def with_disks(state: ClusterState) -> ClusterState:
    """Return the state with two disks of inst2, which text only knows the sum of."""
    disks = tuple(LiveDisk(size=size, template="drbd", spindles=None) for size in (1000, 500))
    split = replace(state.instances["inst2"], disks=disks, summed_disk=None)
    return replace(state, instances={**state.instances, "inst2": split})


def without_numbers(state: ClusterState, *names: str) -> ClusterState:
    nodes = {name: replace(state.nodes[name], resources=Resources()) for name in names}
    return replace(state, nodes={**state.nodes, **nodes})


def test_a_split_instance_counts_the_same_without_its_other_group() -> None:
    """Each disk of a DRBD instance has 128 MiB of metadata on its primary, too (`disk_usage`, which hspace loads)."""
    state = with_disks(from_text(MOVED))
    group = state.nodes["node2"].group
    known = load_state(state).groups[group]
    part = load_state(without_numbers(state, "node4"))
    assert part.settled.unknown.keys() == {state.nodes["node4"].group}
    assert part.notes == ("instance inst2: its nodes are in two groups; counted on its primary only",)
    for cluster in (known, part.groups[group]):
        (split,) = (item for item in cluster.data.instances if item.name == "inst2")
        assert (split.disk, split.template.value, split.secondary) == (1000 + 128 + 500 + 128, "plain", -1)


def test_clusters_with_different_resources_differ() -> None:
    state = from_text(FULL)
    loaded = load_state(state)
    again = load_state(state, like=loaded.clusters)
    assert again.clusters == loaded.clusters
    own: Values = {**state.cluster.own, ("enabled_hypervisors",): ["kvm"], ("hv_state", "kvm", "mem_total"): 1}
    declared = load_state(replace(state, cluster=replace(state.cluster, own=own)), resource_model=True)
    assert not set(load_state(state, like=declared.clusters).clusters) & set(declared.clusters)


def test_without_any_known_node_all_are_named() -> None:
    state = without_numbers(from_text(FULL), *from_text(FULL).nodes)
    with pytest.raises(
        GpolicyError, match="node1, node2, node3 show no memory, CPUs, disk; not known for group gold: node4 shows"
    ):
        load_state(state)
