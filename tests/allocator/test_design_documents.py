"""The examples that Ganeti's design documents give, by the name of the document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.allocator import cluster_score as scoring
from gpolicy.allocator.cluster_data import Disk, SpecPair
from gpolicy.allocator.cluster_score import COMPONENTS, cluster_score, component_values, statistics
from gpolicy.allocator.dedicated_nodes import allocation_vector, sample_instances
from gpolicy.allocator.enumerations import DiskTemplate, FailReason
from gpolicy.allocator.group_choice import RequestOptions, Wanted
from gpolicy.allocator.instance_moves import failover, may_migrate
from gpolicy.allocator.merge import merge
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import add_primary
from gpolicy.allocator.policy_check import check_policy
from gpolicy.allocator.requests import allocate
from gpolicy.htools.simulation import simulate

from .helpers import GIB, allocator, cluster, instance, node, policy, spec, start

VALUE = {component.name: place for place, component in enumerate(COMPONENTS)}


@pytest.mark.parametrize("reference", [False, True])
def test_allocation_efficiency_48_standard_instances_with_the_reserved_memory_component(
    reference: bool,
) -> None:
    where = merge(simulate(["p,6,204801,10241,21"]))
    wanted = instance(1024, 10240, 2, DiskTemplate.DRBD)
    result = allocator(where, 2, reference=reference).standard(start(where), wanted, None)
    assert len(result.placed) == 48


def test_allocation_efficiency_34_standard_instances_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without = tuple(
        replace(component, weight=0.0) if component.name == "reserved_mem_rtotal" else component
        for component in COMPONENTS
    )
    monkeypatch.setattr(scoring, "COMPONENTS", without)
    where = merge(simulate(["p,6,204801,10241,21"]))
    wanted = instance(1024, 10240, 2, DiskTemplate.DRBD)
    result = allocator(where, 2, reference=True).standard(start(where), wanted, None)
    assert len(result.placed) == 34


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
        exclusive_storage=True,
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
                exclusive_storage=True,
                node_cpus=0,
            )
            for place, filled in enumerate(fillings)
        ]
        where = cluster(data, group_policy=policy(*(part(size) for size in sizes)))
        wanted = instance(quarters * QUARTER_MEMORY, quarters * QUARTER_DISK, quarters, DiskTemplate.PLAIN)
        answer = allocate(where.groups, where.nodes, where.instances, Wanted(wanted, 1), RequestOptions())
        assert answer.placement is not None
        chosen.append(fillings.pop(answer.placement.nodes[0]))
    assert chosen == order


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
    assert (check_policy(TWO_BOXES, wanted, exclusive=False) is None) is legal


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


def test_location_awareness_hail_avoids_common_failures_but_does_not_insist() -> None:
    tags = ("htools:nlocation:rack",)
    wanted = Wanted(instance(GIB, GIB, 1, DiskTemplate.DRBD), 2)
    apart = cluster(
        [node(place, 8 * GIB, 100 * GIB, tags=(rack,)) for place, rack in enumerate(["rack:a", "rack:a", "rack:b"])],
        tags=tags,
    )
    answer = allocate(apart.groups, apart.nodes, apart.instances, wanted, RequestOptions())
    assert answer.placement is not None
    assert 2 in answer.placement.nodes
    together = cluster([node(place, 8 * GIB, 100 * GIB, tags=("rack:a",)) for place in range(2)], tags=tags)
    answer = allocate(together.groups, together.nodes, together.instances, wanted, RequestOptions())
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
    assert failover(where.nodes, existing, force=True) is FailReason.MIG


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
    assert check_policy(box, wanted, exclusive=False) is None
    assert check_policy(box, replace(wanted, disks=(Disk(40 * GIB),)), exclusive=False) is FailReason.DISK
