"""Every placement tested for N+1: the engine against the law on clusters with room, of mixed templates."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings, strategies as st

from gpolicy.allocator.cluster_data import (
    AllocPolicy,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    InstanceStatus,
    NodeData,
    SpecPair,
)
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.allocator.placement import Candidates, NoCandidatesError, candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.errors import InputError
from tests.allocator.helpers import instance, law_of, node, policy, spec
from tests.laws import examples

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

MIXES = [
    *([kind] for kind in (DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.RBD)),
    [DiskTemplate.DRBD] * 4 + [DiskTemplate.PLAIN],
    [DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.EXT, DiskTemplate.FILE],
    [DiskTemplate.PLAIN] * 3 + [DiskTemplate.DRBD, DiskTemplate.DISKLESS],
]
CLUSTER_TAGS = ("htools:nlocation:rack", "htools:iextags:svc", "htools:migration:hv")
STATUSES = [InstanceStatus.RUNNING] * 8 + [InstanceStatus.STATUS_DOWN, InstanceStatus.STATUS_OFFLINE]
SIZES = [[1024, 2048, 4096], [2048], [1000, 1500, 2222, 3333], [1000, 5000]]


def some_of(rng: random.Random, *tags: str) -> tuple[str, ...]:
    return tuple(tag for tag in tags if rng.random() < 0.4)


def some_instance(rng: random.Random, kinds: list[DiskTemplate], sizes: list[int]) -> Instance:
    memory, kind = rng.choice(sizes), rng.choice(kinds)
    disk = 0 if kind is DiskTemplate.DISKLESS else memory * rng.choice([2, 4, 4, 9])
    made = instance(memory, disk, rng.choice([0, 1, 1, 2]), kind, tags=some_of(rng, "svc:a", "svc:b"))
    disks = (Disk(disk, rng.choice([1, 1, 1, 2, 0, None])),) if disk else ()
    return replace(made, disks=disks, status=rng.choice(STATUSES), auto_balance=rng.random() < 0.9)


def some_cluster(rng: random.Random, most_nodes: int) -> tuple[Cluster, Instance]:
    """Return a cluster and an instance to place on it; instances are placed blindly, so N+1 is broken on some."""
    kinds, sizes, groups = rng.choice(MIXES), rng.choice(SIZES), rng.choice([1, 1, 2])
    odd, equal, exclusive = rng.random() < 0.2, rng.random() < 0.5, rng.random() < 0.1
    count = rng.randrange(2, most_nodes + 1)
    memory = [rng.choice([8192, 16384]) if equal else rng.choice([6000, 8192, 16384, 20000]) for _ in range(count)]
    memory = memory[:1] * count if equal else memory
    free, disk = memory[:], [rng.choice([20_000, 90_000, 90_000])] * count
    spindles = [rng.choice([8, 30])] * count
    room, instances = disk[:], list[Instance]()
    for _ in range(int(count * rng.choice([0, 1, 2, 4]))):
        made, primary = some_instance(rng, kinds, sizes), rng.randrange(count)
        mates = [other for other in range(count) if other % groups == primary % groups and other != primary]
        mirrored = made.template is DiskTemplate.DRBD
        if (mirrored and not mates) or free[primary] <= made.memory or room[primary] <= made.disk:
            continue
        secondary = rng.choice(mates) if mirrored else -1
        free[primary] -= made.memory if made.uses_memory else 0
        for place in (primary, secondary) if mirrored else (primary,) if made.template.local else ():
            room[place] -= made.disk
            spindles[place] -= made.total_spindles or 0
        number = len(instances)
        instances.append(replace(made, index=number, name=f"i{number}", primary=primary, secondary=secondary))
    nodes: list[NodeData] = [
        node(
            place, memory[place], disk[place], 64.0, free_memory=free[place], free_disk=max(0, room[place]),
            group=place % groups, offline=rng.random() < 0.05, spindles=30, free_spindles=max(0, spindles[place]),
            exclusive=exclusive, tags=some_of(rng, "rack:1", "rack:2", "hv:a") if odd else (),
        )
        for place in range(count)
    ]  # fmt: skip
    sizes_allowed = policy(SpecPair(spec(1, 0, 0, spindles=0, count=0), spec(90_000, 9, 90_000, spindles=9, count=9)))
    if rng.random() < 0.1:  # some instances may not start again
        sizes_allowed = replace(sizes_allowed, templates=(kinds[0],))
    known = tuple(
        Group(index, f"g{index}", f"u{index}", policy=sizes_allowed, alloc_policy=rng.choice(list(AllocPolicy)))
        if index
        else Group(index, f"g{index}", f"u{index}", policy=sizes_allowed)
        for index in range(groups)
    )
    wanted = replace(some_instance(rng, kinds[:1], sizes), tags=() if rng.random() < 0.8 else ("svc:a",))
    tags = tuple(tag for tag in CLUSTER_TAGS if odd and rng.random() < 0.5)
    return merge(ClusterData(known, tuple(nodes), tuple(instances), tags=tags)), wanted


def outcome(run: object, where: Cluster, wanted: Instance, limit: int | None) -> object:
    """Return all that a run tells, or its error."""
    try:
        found = run(AllocationState(where.nodes, where.instances), wanted, limit)  # type: ignore[operator]
    except InputError as error:
        return str(error)
    return repr(found.placed), found.failures, found.attempted, repr(dict(found.nodes)), dict(found.instances)


def candidates_for(where: Cluster, wanted: Instance) -> Candidates | None:
    try:
        return candidate_nodes(where.groups, where.nodes, 2 if wanted.template is DiskTemplate.DRBD else 1)
    except NoCandidatesError:
        return None


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 2**32), tiered=st.sampled_from([False] * 6 + [True]))
def test_each_placement_is_that_of_the_law(seed: int, *, tiered: bool) -> None:
    rng = random.Random(seed)
    where, wanted = some_cluster(rng, 4)
    candidates = candidates_for(where, wanted)
    if candidates is None:
        return
    rules = CapacityRules(skip_offline=rng.random() < 0.1, failures=rng.choice([1] * 9 + [2]), cpus=rng.random() < 0.1)
    limit = rng.choice([None, None, None, 4])
    made = CompiledAllocator(candidates, rules, capacity_checks=True, each=True)
    law = law_of(made)
    found, expected = (
        outcome(allocator.tiered if tiered else allocator.standard, where, wanted, limit) for allocator in (made, law)
    )
    assert found == expected
