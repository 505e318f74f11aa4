"""The examples that Ganeti's design documents give, by the name of the document."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gpolicy.allocator.cluster_data import Disk, DiskTemplate, FailReason, Group, InstanceStatus, Node, SpecPair
from gpolicy.allocator.cluster_score import COMPONENTS, cluster_score, component_values, statistics
from gpolicy.allocator.compiled_allocation import CompiledAllocator, memory_for_instances
from gpolicy.allocator.configured_resources import (
    NodeResources,
    configured_cluster,
)
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move, may_migrate
from gpolicy.allocator.merge import ClusterData, inconsistent_nodes, merge
from gpolicy.allocator.node_changes import add_primary
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import Wanted, allocate, allocation_vector, sample_instances
from gpolicy.htools.text_format import simulate
from tests.allocator.helpers import GIB, allocator, cluster, instance, law_of, node, policy, spec, start

VALUE = {component.name: place for place, component in enumerate(COMPONENTS)}


@pytest.mark.parametrize("reference", [False, True])
def test_allocation_efficiency_48_standard_instances_with_the_reserved_memory_component(
    reference: bool,
) -> None:
    where = merge(simulate(["p,6,204801,10241,21"]))
    wanted = instance(1024, 10240, 2, DiskTemplate.DRBD)
    result = allocator(where, 2, reference=reference).standard(start(where), wanted, None)
    assert len(result.placed) == 48


@pytest.mark.parametrize("reference", [False, True])
def test_allocation_efficiency_34_standard_instances_without_it(reference: bool) -> None:
    weights = tuple(0.0 if item.name == "reserved_mem_rtotal" else item.weight for item in COMPONENTS)
    where = merge(simulate(["p,6,204801,10241,21"]))
    candidates = candidate_nodes(where.groups, where.nodes, 2)
    made = CompiledAllocator(candidates, CapacityRules(weights=weights), capacity_checks=True)
    wanted = instance(1024, 10240, 2, DiskTemplate.DRBD)
    result = (law_of(made) if reference else made).standard(start(where), wanted, None)
    assert len(result.placed) == 34


def test_allocation_efficiency_violations_weigh_more() -> None:
    weights = {component.name: component.weight for component in COMPONENTS}
    assert weights["reserved_mem_rtotal"] == 0.25
    assert all(weights[name] > 0.25 for name in ("n1_cnt", "offline_all_cnt", "offline_pri_cnt", "pri_tags_score"))


# ---- dedicated allocation: full, half and quarter nodes. A node has a little more than four quarters
# of everything, since the allocator wants at least one MiB to be left.
QUARTER_MEMORY, QUARTER_DISK = 16 * GIB, 256 * GIB


def part(quarters: int) -> SpecPair:
    size = spec(quarters * QUARTER_MEMORY, quarters, quarters * QUARTER_DISK, spindles=1)
    return SpecPair(size, replace(size, disk_count=16))


def dedicated_node(filled: int, *sizes: int) -> Node:
    """Return a node of which `filled` quarters are in use, in a group with specs of `sizes` quarters."""
    free = 4 - filled
    data = node(
        0,
        4 * QUARTER_MEMORY + 1,
        4 * QUARTER_DISK + 1,
        cpus=16.0,
        free_memory=free * QUARTER_MEMORY + 1,
        node_memory=filled * QUARTER_MEMORY,
        free_disk=free * QUARTER_DISK + 1,
        spindles=8,
        free_spindles=8,
        exclusive=True,
        node_cpus=0,
    )
    where = cluster([data], group_policy=policy(*(part(size) for size in sizes)))
    return where.nodes[0]


def lost(filled: int, quarters: int, *sizes: int) -> tuple[int, ...]:
    before = dedicated_node(filled, *sizes)
    samples = sample_instances(before.facts.policy)
    wanted = instance(quarters * QUARTER_MEMORY, quarters * QUARTER_DISK, quarters, DiskTemplate.PLAIN)
    after = add_primary(before, wanted)
    assert isinstance(after, Node)
    pairs = zip(allocation_vector(before, samples), allocation_vector(after, samples), strict=True)
    return tuple(a - b for a, b in pairs)


@given(st.integers(0, 4), st.integers(0, 9), st.integers(0, 40), st.integers(1, 9), st.sampled_from([4.0, 0.5]))
def test_a_vector_counts_what_fits_one_after_the_other(
    filled: int, memory: int, disk: int, cpus: int, ratio: float
) -> None:
    where = dedicated_node(filled, 1)
    where = where.with_facts(replace(where.facts, vcpu_ratio=ratio))
    sample = instance(memory * GIB, disk * GIB, cpus, DiskTemplate.PLAIN)
    count, after = 0, add_primary(where, sample)
    while isinstance(after, Node):
        count, after = count + 1, add_primary(after, sample)
    assert allocation_vector(where, [sample]) == (count,)


@pytest.mark.parametrize(("filled", "vector"), [(3, (0, 0, 1)), (1, (0, 0, 1)), (2, (0, 1, 1)), (0, (1, 1, 1))])
def test_dedicated_allocation_what_a_quarter_costs(filled: int, vector: tuple[int, ...]) -> None:
    assert lost(filled, 1, 4, 2, 1) == vector


@pytest.mark.parametrize(("filled", "vector"), [(2, (0, 1, 2)), (1, (0, 1, 2)), (0, (1, 1, 2))])
def test_dedicated_allocation_what_a_half_costs(filled: int, vector: tuple[int, ...]) -> None:
    assert lost(filled, 2, 4, 2, 1) == vector


def test_dedicated_allocation_the_three_quarter_size_changes_the_preference_of_a_quarter() -> None:
    assert lost(2, 1, 4, 3, 2, 1) == (0, 0, 1, 1)
    assert lost(1, 1, 4, 3, 2, 1) == (0, 1, 0, 1)


@pytest.mark.parametrize(
    ("sizes", "quarters", "order"),
    [
        ((4, 2, 1), 1, [3, 1, 2, 0]),
        ((4, 2, 1), 2, [2, 1, 0]),
        ((4, 3, 2, 1), 1, [3, 2, 1, 0]),
    ],
)
def test_dedicated_allocation_hail_prefers_the_nodes_in_the_documents_order(
    sizes: tuple[int, ...], quarters: int, order: list[int]
) -> None:
    """`order` holds how full (in quarters) the nodes are that are chosen one after the other."""
    fillings = [0, 1, 2, 3]
    chosen: list[int] = []
    while len(chosen) < len(order):
        data = [
            node(
                place,
                4 * QUARTER_MEMORY + 1,
                4 * QUARTER_DISK + 1,
                free_memory=(4 - filled) * QUARTER_MEMORY + 1,
                node_memory=filled * QUARTER_MEMORY,
                free_disk=(4 - filled) * QUARTER_DISK + 1,
                spindles=8,
                free_spindles=8,
                exclusive=True,
                node_cpus=0,
            )
            for place, filled in enumerate(fillings)
        ]
        where = cluster(data, group_policy=policy(*(part(size) for size in sizes)))
        wanted = instance(quarters * QUARTER_MEMORY, quarters * QUARTER_DISK, quarters, DiskTemplate.PLAIN)
        answer = allocate(where, Wanted(wanted, 1), RequestOptions())
        assert answer.placement is not None
        chosen.append(fillings.pop(answer.placement.nodes[0]))
    assert chosen == order


def test_dedicated_allocation_intervals_are_ordered_by_their_least_disk() -> None:
    pairs = [
        SpecPair(spec(4 * GIB, 1, 20 * GIB), spec(4 * GIB, 1, 90 * GIB)),
        SpecPair(spec(GIB, 1, 40 * GIB), spec(GIB, 1, 50 * GIB)),
        SpecPair(spec(8 * GIB, 8, 10 * GIB), spec(8 * GIB, 8, 99 * GIB)),
    ]
    assert [sample.disk // GIB for sample in sample_instances(policy(*pairs))] == [40, 20, 10]


@pytest.mark.parametrize(("exclusive", "chosen"), [((True, True), 0), ((True, False), 1), ((False, False), 1)])
def test_dedicated_allocation_groups_that_are_not_exclusive_stay_balanced(
    exclusive: tuple[bool, bool], chosen: int
) -> None:
    """A half full and an empty node: the first loses nothing that is larger, the second gives the better balance."""
    data = [
        node(
            place,
            4 * QUARTER_MEMORY + 1,
            4 * QUARTER_DISK + 1,
            free_memory=free * QUARTER_MEMORY + 1,
            node_memory=(4 - free) * QUARTER_MEMORY,
            free_disk=free * QUARTER_DISK + 1,
            spindles=8,
            free_spindles=8,
            exclusive=exclusive[place],
            node_cpus=0,
        )
        for place, free in enumerate((2, 4))
    ]
    where = cluster(data, group_policy=policy(part(4), part(2), part(1)))
    wanted = Wanted(instance(QUARTER_MEMORY, QUARTER_DISK, 1, DiskTemplate.PLAIN), 1)
    answer = allocate(where, wanted, RequestOptions())
    assert answer.placement is not None
    assert answer.placement.nodes == (chosen,)


# ---- partitioned Ganeti: constrained instance sizes
TWO_BOXES = policy(
    SpecPair(spec(2 * GIB, 1, 10 * GIB), spec(2 * GIB, 2, 400 * GIB)),
    SpecPair(spec(4 * GIB, 4, 10 * GIB), spec(4 * GIB, 4, 800 * GIB)),
)


@pytest.mark.parametrize(
    ("cpus", "memory", "disk", "legal"),
    [(1, 2 * GIB, 50 * GIB, True), (4, 4 * GIB, 20 * GIB, True), (2, 4 * GIB, 40 * GIB, False)],
)
def test_partitioned_ganeti_two_boxes_make_the_third_instance_illegal(
    cpus: int, memory: int, disk: int, legal: bool
) -> None:
    wanted = instance(memory, disk, cpus, DiskTemplate.PLAIN)
    assert (check_ipolicy(TWO_BOXES, wanted, exclusive=False) is None) is legal


# Instances of which only the disk can shrink: 4 GiB and 4 CPUs, or 2 GiB and 1 to 2 CPUs.
BIG = SpecPair(spec(4 * GIB, 4, GIB), spec(4 * GIB, 4, 40 * GIB))
LITTLE = SpecPair(spec(2 * GIB, 1, GIB), spec(2 * GIB, 2, 20 * GIB))


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("pairs", "memory", "disk", "sizes"),
    [
        ((BIG,), 12, 60, [(4, 40), (4, 20)]),  # 40 of 60 GiB of disk, then what is left
        ((BIG, LITTLE), 7, 50, [(4, 40), (2, 10)]),  # no 4 GiB are left: the second pair, with the disk left
        ((LITTLE, BIG), 7, 50, [(2, 20), (2, 20), (2, 10)]),  # the order decides, not the size
    ],
)
def test_partitioned_ganeti_tiered_allocation_takes_pairs_in_order_and_shrinks_what_lacks(
    pairs: tuple[SpecPair, ...], memory: int, disk: int, sizes: list[tuple[int, int]], reference: bool
) -> None:
    where = cluster([node(0, memory * GIB + 1, disk * GIB + 1, node_cpus=0)], group_policy=policy(*pairs))
    run = allocator(where, 1, checks=False, reference=reference)
    state = start(where)
    for pair in pairs:
        largest = instance(pair.max.memory, pair.max.disk_size, pair.max.cpus, DiskTemplate.PLAIN)
        state = run.tiered(state, largest, None)
    assert [(item.memory // GIB, item.disk // GIB) for item in reversed(state.placed)] == sizes


@pytest.mark.parametrize("exclusive", [False, True])
def test_partitioned_ganeti_spindles_count_under_exclusive_storage_alone(exclusive: bool) -> None:
    """Two volumes free, and a disk on three; a spindle use of 40 where the ratio allows 32 on one spindle."""
    data = node(0, 8 * GIB, 100 * GIB, free_spindles=2, exclusive=exclusive)
    (here,) = cluster([data]).nodes.values()
    wanted = instance(GIB, GIB, 1, DiskTemplate.PLAIN)
    large = add_primary(here, replace(wanted, disks=(Disk(GIB, 3),)))
    busy = add_primary(here, replace(wanted, spindle_use=40))
    assert (large is FailReason.SPINDLES) is exclusive
    assert (busy is FailReason.DISK) is not exclusive


def test_partitioned_ganeti_the_policy_looks_at_spindles_under_exclusive_storage_alone() -> None:
    box = policy(SpecPair(spec(GIB, 1, GIB, spindles=1), spec(GIB, 1, GIB, spindles=2)))
    wanted = replace(instance(GIB, GIB, 1, DiskTemplate.PLAIN), disks=(Disk(GIB, 3),), spindle_use=1)
    assert check_ipolicy(box, wanted, exclusive=False) is None
    assert check_ipolicy(box, wanted, exclusive=True) is FailReason.SPINDLES
    assert check_ipolicy(box, replace(wanted, disks=(Disk(GIB, 2),), spindle_use=9), exclusive=True) is None


# ---- location awareness


def test_location_awareness_pairs_within_one_failure_domain_cost_one_each() -> None:
    domains = [("rack:a",), ("rack:a",), ("rack:b",)]
    nodes = [
        node(place, 8 * GIB, 100 * GIB, tags=tags, free_memory=7 * GIB if place == 0 else 8 * GIB)
        for place, tags in enumerate(domains)
    ]
    inside = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=0, primary=0, secondary=1)
    across = replace(inside, secondary=2)
    tags = ("htools:nlocation:rack",)
    for existing, pairs in ((inside, 1.0), (across, 0.0)):
        where = cluster(nodes, [existing], tags=tags)
        values = component_values(statistics(where.nodes.values()))
        assert values[VALUE["location_score"]] == pairs
    # without the cluster tag nothing is a failure domain
    plain = cluster(nodes, [inside])
    assert component_values(statistics(plain.nodes.values()))[VALUE["location_score"]] == 0.0


def test_location_awareness_weights() -> None:
    """Less than instances on offline nodes, more than any balance of memory, disk and CPUs; a disk load weighs 1."""
    weights = {component.name: component.weight for component in COMPONENTS}
    assert weights["location_score"] == weights["location_exclusion_score"] == 1.0
    assert min(weights["offline_all_cnt"], weights["offline_pri_cnt"]) > 1.0
    balance = ("free_mem_cv", "free_disk_cv", "vcpu_ratio_cv", "spindles_cv")
    assert all(weights[name] < 1.0 for name in balance)
    assert weights["disk_load_cv"] == 1.0


def test_location_awareness_location_dominates_the_number_of_disks() -> None:
    """Two disks apart or both on one node: a pair in one rack costs more than any uneven number of disks."""
    domains = [("rack:a",), ("rack:a",), ("rack:b",)]
    nodes = [node(place, 64 * GIB, 1000 * GIB, tags=tags) for place, tags in enumerate(domains)]
    mirrored = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)
    other = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=1, name="i1", primary=0, secondary=2)

    def score(secondary: int) -> float:
        state = cluster(nodes, [replace(mirrored, secondary=secondary), other], tags=("htools:nlocation:rack",))
        return cluster_score(state.nodes.values())

    assert score(2) < score(1)  # two disks on node 2 and none on node 1, and yet better


def test_location_awareness_hail_avoids_common_failures_but_does_not_insist() -> None:
    tags = ("htools:nlocation:rack",)
    wanted = Wanted(instance(GIB, GIB, 1, DiskTemplate.DRBD), 2)
    apart = cluster(
        [node(place, 8 * GIB, 100 * GIB, tags=(rack,)) for place, rack in enumerate(["rack:a", "rack:a", "rack:b"])],
        tags=tags,
    )
    answer = allocate(apart, wanted, RequestOptions())
    assert answer.placement is not None
    assert 2 in answer.placement.nodes
    together = cluster([node(place, 8 * GIB, 100 * GIB, tags=("rack:a",)) for place in range(2)], tags=tags)
    answer = allocate(together, wanted, RequestOptions())
    assert answer.placement is not None


def test_location_awareness_exclusion_tags_spread_over_failure_domains() -> None:
    nodes = [node(place, 8 * GIB, 100 * GIB, tags=(rack,)) for place, rack in enumerate(["rack:a", "rack:a", "rack:b"])]
    first = instance(GIB, GIB, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=0, tags=("dns:1",))
    tags = ("htools:nlocation:rack", "htools:iextags:dns")
    for where, shared in ((1, 1.0), (2, 0.0)):
        second = replace(first, index=1, name="i1", primary=where)
        state = cluster(nodes, [first, second], tags=tags)
        values = component_values(statistics(state.nodes.values()))
        assert values[VALUE["location_exclusion_score"]] == shared
        assert cluster_score(state.nodes.values()) > 0


def test_location_awareness_migration_goes_from_the_old_hypervisor_to_the_new_one_only() -> None:
    """The simple hypervisor upgrade: tagging the nodes that are upgraded already is enough."""
    where = cluster(
        [node(0, 8 * GIB, 100 * GIB), node(1, 8 * GIB, 100 * GIB, tags=("hypervisor:new",))],
        tags=("htools:migration:hypervisor",),
    )
    old, new = where.nodes[0], where.nodes[1]
    assert may_migrate(old, new)
    assert not may_migrate(new, old)
    existing = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=0, primary=1, secondary=0)
    assert apply_move(where.nodes, InstanceMove(MoveKind.FAILOVER, existing), force=True) is FailReason.MIG


def test_location_awareness_an_allowed_migration_is_unidirectional() -> None:
    where = cluster(
        [
            node(0, 8 * GIB, 100 * GIB, tags=("hypervisor:xen45",)),
            node(1, 8 * GIB, 100 * GIB, tags=("hypervisor:xen46",)),
        ],
        tags=("htools:migration:hypervisor", "htools:allowmigration:hypervisor:xen45::hypervisor:xen46"),
    )
    assert may_migrate(where.nodes[0], where.nodes[1])
    assert not may_migrate(where.nodes[1], where.nodes[0])


def test_each_of_several_disks_is_checked_against_the_policy() -> None:
    box = policy(SpecPair(spec(GIB, 1, 10 * GIB), spec(4 * GIB, 4, 20 * GIB, count=4)))
    wanted = replace(instance(2 * GIB, 40 * GIB, 2, DiskTemplate.PLAIN), disks=(Disk(20 * GIB), Disk(20 * GIB)))
    assert check_ipolicy(box, wanted, exclusive=False) is None
    assert check_ipolicy(box, replace(wanted, disks=(Disk(40 * GIB),)), exclusive=False) is FailReason.DISK


# ---- resource model: what htools tracks


def test_resource_model_memory_of_a_node_as_htools_tracks_it() -> None:
    """10 GiB, less 1 of the node, 3 of its instance and 5 free: 1 is not accounted for, and stays."""
    data = [
        node(0, 10 * GIB, 100 * GIB, node_memory=GIB, free_memory=5 * GIB),
        node(1, 10 * GIB, 100 * GIB, free_memory=10 * GIB),
    ]
    resident = instance(3 * GIB, 10 * GIB, 4, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)
    where = cluster(data, [resident])
    first, second = where.nodes.values()
    assert first.facts.unaccounted_memory == GIB
    assert (first.instance_memory, first.unallocated_memory) == (3 * GIB, 5 * GIB)
    assert (second.reserved_memory, second.facts.unaccounted_memory) == (3 * GIB, 0)
    more = add_primary(first, instance(2 * GIB, 10 * GIB, 2, DiskTemplate.PLAIN))
    assert isinstance(more, Node)
    assert (more.unallocated_memory, more.instance_memory, more.facts.unaccounted_memory) == (3 * GIB, 5 * GIB, GIB)
    assert more.free_disk == 90 * GIB
    assert more.ratio_cpu == pytest.approx((1 + 4 + 2) / 16)  # one of the node itself


def test_resource_model_each_instance_loads_its_nodes_with_one_of_everything() -> None:
    """CPU and memory on the primary, network too; the disk on both: so secondaries are spread."""
    nodes = [node(place, 8 * GIB, 100 * GIB, free_memory=7 * GIB if place == 0 else 8 * GIB) for place in range(2)]
    resident = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=0, primary=0, secondary=1)
    first, second = cluster(nodes, [resident]).nodes.values()
    assert first.load == (1.0, 1.0, 1.0, 1.0)
    assert second.load == (0.0, 0.0, 1.0, 0.0)


def test_resource_model_secondaries_are_spread() -> None:
    nodes = [node(place, 8 * GIB, 100 * GIB, free_memory=6 * GIB if place == 0 else 8 * GIB) for place in range(3)]
    first = instance(GIB, GIB, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)

    def deviation_of_disks(secondary: int) -> float:
        second = replace(first, index=1, name="i1", secondary=secondary)
        return component_values(statistics(cluster(nodes, [first, second]).nodes.values()))[VALUE["disk_load_cv"]]

    assert deviation_of_disks(2) < deviation_of_disks(1)


@pytest.mark.parametrize(("used", "told"), [(10, []), (12, [("node0", 0, 2 * GIB)])])
def test_resource_model_figures_that_do_not_add_up_are_told(used: int, told: list[tuple[str, int, int]]) -> None:
    """Disks of 10 GiB, and 10 or 12 of 100 in use."""
    data = node(0, 8 * GIB, 100 * GIB, free_memory=7 * GIB, free_disk=(100 - used) * GIB)
    resident = instance(GIB, 10 * GIB, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=0)
    found = inconsistent_nodes(cluster([data], [resident]))
    assert [(item.facts.name, memory, disk) for item, memory, disk in found] == told


def test_resource_model_an_offline_instance_keeps_its_disk() -> None:
    """Its memory of 3 GiB is free for others, its disk of 10 GiB is not."""
    resident = instance(3 * GIB, 10 * GIB, 2, DiskTemplate.PLAIN, index=0, name="i0", primary=0)
    resident = replace(resident, status=InstanceStatus.STATUS_OFFLINE)
    declared = NodeResources(
        {"mem_total": 8 * GIB, "mem_node": GIB, "mem_hv": 0, "cpu_total": 16, "cpu_node": 1},
        {"disk_total": 100 * GIB, "disk_reserved": 0, "disk_overhead": 0},
    )
    data = ClusterData((Group(0, "default", "uuid-0"),), (node(0, 8 * GIB, 100 * GIB),), (resident,))
    (found,) = configured_cluster(data, {"node0": declared}).nodes.values()
    assert (found.unallocated_memory, found.used_cpus, found.free_disk) == (7 * GIB, 1, 90 * GIB)


def test_resource_model_bursts_may_use_reserved_memory() -> None:
    """Of 10 GiB, 1 is the node's and 3 are reserved for an instance of another node: bursts may have 9."""
    nodes = [
        node(0, 10 * GIB, 100 * GIB, free_memory=7 * GIB),
        node(1, 10 * GIB, 100 * GIB, node_memory=GIB, free_memory=9 * GIB),
    ]
    resident = instance(3 * GIB, 10 * GIB, 1, DiskTemplate.DRBD, index=0, primary=0, secondary=1)
    second = cluster(nodes, [resident]).nodes[1]
    assert (second.reserved_memory, memory_for_instances(second)) == (3 * GIB, 9 * GIB)
