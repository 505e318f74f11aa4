"""Replaying placements of the engine with the law: many at once give the same nodes as one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.repeated_allocation import AllocationState
from tests.allocator.helpers import GIB, allocator, cluster, instance, node, start


def some_cluster(template: DiskTemplate, *, disk: int = 400, **more: object) -> Cluster:
    """Four nodes in two racks, with one instance each, for which the next node keeps more memory than for new ones."""
    racks = ("rack:a", "rack:a", "rack:a", "rack:b")
    nodes = [node(index, 64 * GIB, disk * GIB, 40.0, spindles=40, tags=(rack,)) for index, rack in enumerate(racks)]
    given = [
        instance(
            16 * GIB, 20 * GIB, 1, template, index=index, name=f"given{index}", primary=index,
            secondary=(index + 1) % 4 if template is DiskTemplate.DRBD else -1, **more,
        )
        for index in range(4)
    ]  # fmt: skip
    return cluster(nodes, given, tags=("htools:nlocation:rack",))


def both_ways(where: Cluster, template: DiskTemplate, *, tiered: bool) -> tuple[AllocationState, AllocationState]:
    """Return the state after a run of the engine, and of the law."""
    wanted = instance(5 * GIB, 30 * GIB, 3, template)
    count = 2 if template is DiskTemplate.DRBD else 1
    engine, law = (allocator(where, count, checks=False, reference=reference) for reference in (False, True))
    if tiered:
        return engine.tiered(start(where), wanted, None), law.tiered(start(where), wanted, None)
    return engine.standard(start(where), wanted, None), law.standard(start(where), wanted, None)


@pytest.mark.parametrize("tiered", [False, True])
@pytest.mark.parametrize("template", [DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.RBD])
def test_nodes_equal_those_of_the_law(template: DiskTemplate, tiered: bool) -> None:
    engine, law = both_ways(some_cluster(template), template, tiered=tiered)
    assert engine == law
    assert len(engine.placed) >= 10


@pytest.mark.parametrize("load", [0.03, 0.06, 0.61, 2.0**53])
@pytest.mark.parametrize("template", [DiskTemplate.DRBD, DiskTemplate.PLAIN])
def test_sums_are_rounded_step_by_step(template: DiskTemplate, load: float) -> None:
    engine, law = both_ways(some_cluster(template, load=(load,) * 4), template, tiered=False)
    assert engine == law


def test_nodes_that_break_n1_already_are_filled_beyond_what_they_keep_for_secondaries() -> None:
    where = some_cluster(DiskTemplate.DRBD, disk=2000)
    broken = {
        index: replace(item, reserved_memory=70 * GIB, peers={**item.peers, (index + 2) % 4: 70 * GIB}, fails_n1=True)
        for index, item in where.nodes.items()
    }
    engine, law = both_ways(replace(where, nodes=broken), DiskTemplate.DRBD, tiered=False)
    assert engine == law
    assert any(len(node.secondaries) > 2 and node.unallocated_memory < 5 * GIB for node in engine.nodes.values())
