"""Laws of sizes on any hardware: they tile it, pass check, and have the promised capacity."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from gpolicy.allocator.cluster_data import FailReason, Node
from gpolicy.allocator.merge import merge
from gpolicy.allocator.node_changes import add_primary
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import group_data
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import VolumeSize
from gpolicy.errors import GpolicyError
from gpolicy.ganeti import parameters
from gpolicy.ganeti.vocabulary import Level, Values
from gpolicy.plan.sides import project
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import Size, Suggestion, SuggestRequest
from tests.mistakes import find_mistakes
from tests.plan.planned import make_plan
from tests.suggest.groups_of_nodes import Hardware, group, hardware

WRITTEN = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def one(state: ClusterState, **wanted: object) -> Suggestion:
    (found,) = suggest(state, SuggestRequest(**wanted)).groups  # type: ignore[arg-type]
    return found


def load(found: Suggestion, directory: Path) -> Policy:
    file = directory / "group.yaml"
    file.write_text(found.document)
    return load_policy(file)


def with_values(state: ClusterState, name: str, values: Values) -> ClusterState:
    """Return `state` with `values` as own values of a group."""
    own = {**state.groups[name].own, **values}
    effective = parameters.fill(own, state.cluster.own, Level.GROUP)
    return replace(state, groups={**state.groups, name: replace(state.groups[name], own=own, effective=effective)})


def fill(node: Node, size: Size, state: ClusterState, found: Suggestion) -> tuple[int, Node]:
    """Put as many of `size` on the empty `node` as the allocator's own law lets on it."""
    instance = CountedCluster(cluster_data(state), found.template).largest(size.pair)
    assert check_ipolicy(node.facts.policy, instance, exclusive=node.facts.exclusive) is None
    count = 0
    while not isinstance(after := add_primary(node, instance), FailReason):
        node, count = after, count + 1
    return count, node


@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.75, 2.0])
def test_the_spindle_ratio_limits_how_many_fill_a_node(ratio: float) -> None:
    state = group(*[Hardware()] * 4, spindle_ratio=ratio)
    found = one(state, template="plain", divisors=(1, 4, 8))
    assert found.sizes[-1].a_node == (min(8, int(ratio * 12)),)
    nodes = merge(cluster_data(with_values(state, "g", found.values))).nodes
    for size in found.sizes:
        count, full = fill(nodes[0], size, state, found)
        assert (count,) == size.a_node
        left = next(item for item in found.stranded if item.name == size.name)
        assert left.count == count
        assert nodes[0].free_disk - full.free_disk == (found.kinds[0].room.disk or 0) - (left.left.disk or 0)


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_with_a_mirror_both_nodes_count_in_the_spindle_ratio(ratio: float) -> None:
    found = one(group(*[Hardware(kept=0)] * 4, spindle_ratio=ratio), template="drbd", divisors=(8,))
    (size,) = found.sizes
    assert size.a_node == (int(ratio * 12 / 2),)
    assert size.empty.fits == 4 * size.a_node[0]


@given(node=hardware(), nodes=st.integers(1, 4), exclusive=st.booleans())
def test_sizes_tile_an_empty_node_within_the_stated_waste(node: Hardware, nodes: int, exclusive: bool) -> None:
    state = group(*[node] * nodes, exclusive=exclusive)
    try:
        found = one(state, template="plain")
    except GpolicyError:
        return
    after = with_values(state, "g", found.values)
    for place, size in enumerate(found.sizes):
        for empty in merge(cluster_data(after)).nodes.values():
            count, full = fill(empty, size, after, found)
            assert count == size.a_node[0] == size.divisor
            left = next(item.left for item in found.stranded if item.name == size.name)
            room = found.kinds[0].room
            assert empty.unallocated_memory - full.unallocated_memory == room.memory - left.memory
            assert full.used_cpus - empty.used_cpus == room.cpus - left.cpus
            if exclusive:
                assert full.free_spindles == left.volumes
        if place:
            assert size.pair.max.memory < found.sizes[place - 1].pair.min.memory
    assert all(item.share <= 0.5 for item in found.stranded if item.name == "full")


MADE_UP = {"GP152", "GP222", "GP224"}
"""Rules that doubt the machines: those here have any memory beside any number of CPUs."""


@given(nodes=st.lists(hardware(), min_size=1, max_size=3), exclusive=st.booleans(), mirrored=st.booleans())
@WRITTEN
def test_the_document_passes_check_and_its_plan_gives_the_promised_capacity(
    nodes: list[Hardware], exclusive: bool, mirrored: bool, tmp_path: Path
) -> None:
    assume(not mirrored or (len(nodes) > 1 and not exclusive))
    state = group(*nodes, exclusive=exclusive)
    try:
        found = one(state, template="drbd" if mirrored else "plain")
    except GpolicyError:
        return
    policy = load(found, tmp_path)
    wrong = [
        item
        for item in find_mistakes(policy, state=state, today=date(2030, 1, 1))
        if item.severity in ("error", "warning") and item.code not in MADE_UP
    ]
    assert not wrong
    data = group_data(cluster_data(project(state, make_plan(policy, state).changes)), 0)
    assert [size.pair for size in found.sizes] == list(data.policy.minmax)
    counted = CountedCluster(data, found.template)
    for size in found.sizes:
        again = counted.fit(counted.largest(size.pair))
        assert again == size.then


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("template", ["plain", "drbd"])
def test_capacity_says_the_same_of_the_planned_cluster(exclusive: bool, template: str, tmp_path: Path) -> None:
    if exclusive and template == "drbd":
        template = "plain"
    state = group(*[Hardware(memory=16384, cpus=17)] * 4, Hardware(memory=24576, cpus=25), exclusive=exclusive)
    found = one(state, template=template)
    after = project(state, make_plan(load(found, tmp_path), state).changes)
    counted = capacity(after, group="g", template=template).groups[0]
    assert [(spec.pair, spec.fits, spec.binding) for spec in counted.specs] == [
        (size.pair, size.then.fits, size.then.binding) for size in found.sizes
    ]
    today = capacity(state, group="g", template=template).groups[0]
    assert [(spec.pair, spec.fits) for spec in today.specs] == [(pair.pair, pair.now.fits) for pair in found.today]


@given(node=hardware(), nodes=st.integers(1, 4))
def test_disks_take_the_volumes_of_their_size_and_no_more(node: Hardware, nodes: int) -> None:
    try:
        found = one(group(*[node] * nodes, exclusive=True))
    except GpolicyError:
        return
    assert found.volume == node.disk // node.volumes
    for size in found.sizes:
        low, high = size.pair.min, size.pair.max
        assert low.spindle_use == high.spindle_use == size.size.volumes
        assert VolumeSize(found.volume).needed(low.disk_size) == high.spindle_use
        assert VolumeSize(found.volume).needed(high.disk_size) == high.spindle_use
        assert high.spindle_use * size.divisor <= node.volumes


@given(nodes=st.lists(hardware(), min_size=2, max_size=6), exclusive=st.booleans())
def test_without_n1_the_group_takes_the_sum_of_what_its_nodes_take(nodes: list[Hardware], exclusive: bool) -> None:
    try:
        # hspace keeps no margin: with one, a node may take an instance more than suggest promises
        found = one(group(*nodes, exclusive=exclusive), template="plain", mix={1: 1}, margin=0.0)
    except GpolicyError:
        return
    (size,) = found.sizes
    assert size.empty.fits <= sum(len(kind.nodes) * count for kind, count in zip(found.kinds, size.a_node, strict=True))
    assert found.mix is not None
    assert found.mix.placed == {"full": found.mix.mixes}
    assert found.mix.more == {"full": 0}
    assert found.mix.mixes == size.then.fits


@pytest.mark.parametrize("parts", [(1, 2, 4), (1, 3), (2, 6, 12), (1, 2, 3, 4, 5, 6)])
def test_requested_sizes_are_used(parts: tuple[int, ...]) -> None:
    found = one(group(*[Hardware(cpus=61, own_cpus=1, volumes=60)] * 3, exclusive=True), divisors=parts)
    assert tuple(size.divisor for size in found.sizes) == parts
    assert [size.a_node for size in found.sizes] == [(part,) for part in parts]
    assert [size.size.volumes for size in found.sizes] == [60 // part for part in parts]
