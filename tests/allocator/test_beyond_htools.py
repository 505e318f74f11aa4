"""Laws of the options that go beyond htools."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gpolicy.allocator.cluster_data import DiskTemplate, Group, Instance, InstanceStatus
from gpolicy.allocator.compiled_allocation import limited_allocator, refuse_minutes
from gpolicy.allocator.configured_resources import (
    NodeResources,
    configured_cluster,
    with_configured_resources,
)
from gpolicy.allocator.merge import Cluster, ClusterData
from gpolicy.allocator.placement import Candidates, candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules, is_redundant
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.errors import InputError
from tests.allocator.helpers import cluster, instance, node
from tests.htools.three_ways import by_the_law

MEMORY, DISK = 4096, 20000
TEMPLATE = st.sampled_from([DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.EXT])


@st.composite
def clusters(draw: st.DrawFn, template: DiskTemplate | None = None) -> tuple[Cluster, DiskTemplate]:
    kind = template or draw(TEMPLATE)
    count = draw(st.integers(3, 5))
    existing = []
    used = [0] * count
    for number in range(draw(st.integers(0, 4))):
        primary = draw(st.integers(0, count - 1))
        memory = draw(st.sampled_from([128, 256, 700]))
        used[primary] += memory
        secondary = (primary + 1) % count if kind is DiskTemplate.DRBD else -1
        existing.append(
            instance(memory, 512, 1, kind, index=number, name=f"i{number}", primary=primary, secondary=secondary)
        )
    nodes = []
    for place in range(count):
        disks = sum(item.disk for item in existing if place in {item.primary, item.secondary} and kind.local)
        nodes.append(node(place, MEMORY, DISK, free_memory=MEMORY - used[place], free_disk=DISK - disks))
    return cluster(nodes, existing), kind


def fill(
    where: Cluster, candidates: Candidates, wanted: Instance, rules: CapacityRules, maximum_memory: int | None = None
) -> AllocationState:
    refuse_minutes(where.nodes, where.instances, wanted, rules)
    state = AllocationState(where.nodes, where.instances)
    return limited_allocator(candidates, rules).standard(state, replace(wanted, maximum_memory=maximum_memory), None)


def run(where: Cluster, kind: DiskTemplate, rules: CapacityRules, most: int | None = None) -> AllocationState:
    count = 2 if kind is DiskTemplate.DRBD else 1
    candidates = candidate_nodes(where.groups, where.nodes, count)
    wanted = instance(900, 1500, 1, kind)
    return fill(where, candidates, wanted, rules, maximum_memory=most)


@given(found=clusters())
def test_surviving_more_failures_never_gives_more_room(found: tuple[Cluster, DiskTemplate]) -> None:
    where, kind = found
    counts = [len(run(where, kind, CapacityRules(failures=k)).placed) for k in range(4)]
    assert counts == sorted(counts, reverse=True)


@given(
    found=clusters(),
    failures=st.integers(0, 3),
    cpus=st.booleans(),
    on_nodes=st.sampled_from([1.0, 2.0, 64.0]),
    ratio=st.sampled_from([None, 0.7, 1.4]),
)
def test_the_engine_fills_as_the_law_does(
    found: tuple[Cluster, DiskTemplate], *, failures: int, cpus: bool, on_nodes: float, ratio: float | None
) -> None:
    where, kind = found
    nodes = {
        index: replace(node_, facts=replace(node_.facts, total_cpus=on_nodes)) for index, node_ in where.nodes.items()
    }
    where = replace(where, nodes=nodes)
    candidates = candidate_nodes(where.groups, where.nodes, 2 if kind is DiskTemplate.DRBD else 1)
    wanted = instance(500, 900, 2, kind)
    rules = CapacityRules(failures=failures, cpus=cpus, oversubscription=ratio)
    with by_the_law():
        law = fill(where, candidates, wanted, rules, maximum_memory=800)
    ours = fill(where, candidates, wanted, rules, maximum_memory=800)
    assert (ours.placed, ours.failures) == (law.placed, law.failures)
    if failures and law.placed:
        assert is_redundant(law.nodes, law.instances, CapacityRules(failures=failures, cpus=cpus))


def test_what_takes_minutes_is_refused() -> None:
    many = cluster([node(place, MEMORY, DISK) for place in range(101)])
    singles = candidate_nodes(many.groups, many.nodes, 1)
    with pytest.raises(InputError, match="on at most 100 nodes; there are 101"):
        fill(many, singles, instance(900, 1500, 1, DiskTemplate.PLAIN), CapacityRules(failures=2))
    some = cluster([node(place, MEMORY, DISK) for place in range(30)])
    plain = instance(900, 1500, 1, DiskTemplate.PLAIN)
    with pytest.raises(
        InputError, match=r"the loss of any 2 nodes would be simulated.*more than 27 nodes; there are 30"
    ):
        fill(some, candidate_nodes(some.groups, some.nodes, 1), plain, CapacityRules(failures=2))
    mirrored = fill(
        some,
        candidate_nodes(some.groups, some.nodes, 2),
        replace(plain, template=DiskTemplate.DRBD),
        CapacityRules(failures=2),
    )
    assert len(mirrored.placed) > 3


@given(found=clusters())
def test_without_extra_limits_it_is_the_exact_allocation(found: tuple[Cluster, DiskTemplate]) -> None:
    where, kind = found
    count = 2 if kind is DiskTemplate.DRBD else 1
    candidates = candidate_nodes(where.groups, where.nodes, count)
    exact = Allocator(ReferenceEngine(candidates, CapacityRules()), capacity_checks=False)
    law = exact.standard(AllocationState(where.nodes, where.instances), instance(900, 1500, 1, kind), None)
    ours = run(where, kind, CapacityRules(failures=0))
    assert ours.placed == law.placed


@given(found=clusters(), ratio=st.sampled_from([0.3, 0.5, 1.0, 1.5]))
def test_the_sum_of_maximum_memories_stays_below_the_over_subscribed_memory(
    found: tuple[Cluster, DiskTemplate], ratio: float
) -> None:
    where, kind = found
    result = run(where, kind, CapacityRules(failures=0, oversubscription=ratio), 1800)
    names = {item.name for item in result.placed}
    for state in result.nodes.values():
        placed = [result.instances[number] for number in state.primaries]
        if any(item.name in names for item in placed):
            most = sum(1800 if item.name in names else item.memory for item in placed)
            assert most <= MEMORY * ratio
    free = run(where, kind, CapacityRules(failures=0, oversubscription=100.0), 1800)
    assert len(result.placed) <= len(free.placed)
    assert free.placed == run(where, kind, CapacityRules(failures=0), 1800).placed


def data(*instances: Instance) -> ClusterData:
    used = [sum(item.memory for item in instances if item.primary == place) for place in range(2)]
    disk = [sum(item.disk for item in instances if item.primary == place) for place in range(2)]
    nodes = tuple(
        node(
            place,
            MEMORY,
            DISK,
            free_memory=MEMORY - 100 - used[place],
            free_disk=DISK - disk[place],
            node_memory=100,
        )
        for place in range(2)
    )
    return ClusterData((Group(0, "default", "uuid-0"),), nodes, instances)


def resources(**more: int) -> NodeResources:
    values = {"mem_total": MEMORY, "mem_node": 100, "mem_hv": 0, "cpu_total": 16, "cpu_node": 1} | more
    disk = {"disk_total": DISK, "disk_reserved": 0, "disk_overhead": 0}
    disk |= {name: values.pop(name) for name in ("disk_reserved", "disk_overhead") if name in values}
    return NodeResources(values, disk)


def test_configured_resources_equal_to_the_measured_ones_change_nothing() -> None:
    existing = instance(500, 1000, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=0)
    read = data(existing)
    assert {item.node_cpus for item in read.nodes} == {1}
    configured = with_configured_resources(read, {name: resources() for name in ("node0", "node1")})
    assert configured == read


def test_a_stopped_instance_keeps_its_memory_but_an_offline_one_does_not() -> None:
    for status, free in (
        (InstanceStatus.STATUS_DOWN, MEMORY - 600),
        (InstanceStatus.STATUS_OFFLINE, MEMORY - 100),
    ):
        existing = instance(500, 1000, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=0, status=status)
        where = configured_cluster(data(existing), {"node0": resources()})
        state = where.nodes[0]
        assert state.unallocated_memory == state.forth_free_memory == free
        assert state.forth_ratio_memory == free / MEMORY
        assert where.instances[0].memory == 500  # its size is what it was, as for whoever asks what it would need


@given(cores=st.integers(0, 15), reserved=st.integers(0, 15000), overhead=st.integers(0, 3000))
def test_reserved_cores_and_disk_only_reduce_room(cores: int, reserved: int, overhead: int) -> None:
    counts = []
    for own in (resources(), resources(cpu_node=cores, disk_reserved=reserved, disk_overhead=overhead)):
        names = dict.fromkeys(("node0", "node1"), own)
        where = configured_cluster(data(), names)
        result = run(where, DiskTemplate.PLAIN, CapacityRules(failures=0))
        counts.append(len(result.placed))
        for state in result.nodes.values():
            if state.primaries:
                assert own.hypervisor is not None
                assert own.disk is not None
                assert (
                    sum(result.instances[index].vcpus for index in state.primaries)
                    <= 4.0 * 16 - own.hypervisor["cpu_node"]
                )
                assert state.free_disk >= own.disk["disk_reserved"]
    assert counts[1] <= counts[0]
