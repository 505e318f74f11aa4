"""What would make a group accept instances again: sizes, values of the policy and moves, each with what then fits."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import event, given, strategies as st

from gpolicy.allocator.cluster_data import DiskTemplate, Group, Instance, InstanceStatus, SpecPair
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.policy_limits import Cure, find_cure
from tests.allocator.helpers import instance, node, policy, spec

GIB = 1024


def group_of(memory: list[int], *residents: Instance, largest: int = 8 * GIB, disk: int = 900 * GIB) -> CountedCluster:
    """Return a group of nodes with so much memory, of which 1 GiB is their own; the policy allows up to `largest`."""
    allowed = policy(SpecPair(spec(GIB, 1, GIB), spec(largest, 4, 100 * GIB)))
    allowed = replace(allowed, std=spec(2 * GIB, 1, GIB))
    numbered = [replace(item, index=place, name=f"i{place}") for place, item in enumerate(residents)]
    nodes = []
    for place, total in enumerate(memory):
        here = [item for item in numbered if item.primary == place]
        disks = [item.disk for item in numbered if item.template.local and place in (item.primary, item.secondary)]
        used = GIB + sum(item.memory for item in here if item.uses_memory)
        nodes.append(
            node(
                place, total, disk, 64.0, node_memory=GIB, free_memory=total - used, free_disk=disk - sum(disks),
                spindles=64, node_cpus=0,
            )
        )  # fmt: skip
    data = ClusterData((Group(0, "g", "u", policy=allowed),), tuple(nodes), tuple(numbered), policy=allowed)
    return CountedCluster(data, DiskTemplate.DRBD)


def drbd(memory: int, primary: int, secondary: int) -> Instance:
    return instance(memory, 10 * GIB, 1, DiskTemplate.DRBD, primary=primary, secondary=secondary)


def plain(memory: int, primary: int, disk: int = 10 * GIB) -> Instance:
    return instance(memory, disk, 1, DiskTemplate.PLAIN, primary=primary)


def cure_of(counted: CountedCluster) -> Cure:
    found = find_cure(counted)
    assert found is not None
    assert found.standard > 0
    return found


def test_a_size_that_the_policy_allows() -> None:
    assert cure_of(group_of([32 * GIB] * 3, plain(12 * GIB, 0))).changes == ("i0 at memory=8G",)


def test_the_policy_is_to_allow_the_size_where_no_size_is_legal() -> None:
    """Ganeti does not shrink a disk."""
    found = cure_of(group_of([32 * GIB] * 3, plain(8 * GIB, 0, disk=200 * GIB)))
    assert found.changes == ("a size for 8G · 1 CPU · 200G in ipolicy.minmax",)


def test_a_fail_over_makes_room() -> None:
    """The first node has room for one of them only."""
    counted = group_of([10 * GIB, 32 * GIB, 32 * GIB], drbd(6 * GIB, 0, 1), drbd(6 * GIB, 2, 0))
    assert cure_of(counted).changes == ("i0 on node1 + node0",)


def test_another_secondary_makes_room() -> None:
    counted = group_of([32 * GIB, 4 * GIB, 32 * GIB], drbd(6 * GIB, 0, 1))
    assert cure_of(counted).changes == ("i0 on node0 + node2",)


def test_nothing_is_said_where_nothing_helps() -> None:
    assert find_cure(group_of([32 * GIB, 4 * GIB, 4 * GIB], plain(6 * GIB, 0))) is None
    assert find_cure(group_of([32 * GIB] * 3, plain(6 * GIB, 0))) is None  # nothing is wrong


@given(st.integers(0, 2**32))
def test_the_cured_cluster_absorbs_every_loss_and_counts_what_is_said(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    count = rng.randrange(2, 6)
    residents = []
    for _ in range(rng.randrange(1, 9)):
        primary, secondary = rng.sample(range(count), 2)
        own = rng.choice([1, 2, 4, 6, 9, 12]) * GIB
        made = rng.choice([plain(own, primary), drbd(own, primary, secondary)])
        residents.append(replace(made, status=rng.choice([*[InstanceStatus.RUNNING] * 5, InstanceStatus.STATUS_DOWN])))
    memory = [
        GIB + rng.choice([4, 8, 16, 40]) * GIB + sum(item.memory for item in residents if item.primary == place)
        for place in range(count)
    ]
    counted = group_of(memory, *residents)
    found = find_cure(counted)
    event("nothing is wrong" if counted.loss is None else "cured" if found else "no cure")
    if found is None:
        return
    event(found.changes[-1].split()[1])
    moved = {item.name: item for item in counted.data.instances}
    sizes = counted.policy.minmax
    for words in found.changes:
        name, how, where = words.split(" ")[:3]
        if how == "on":
            places = [int(one.removeprefix("node")) for one in words.split(" on ")[1].split(" + ")]
            moved[name] = replace(moved[name], primary=places[0], secondary=places[1] if len(places) > 1 else -1)
        elif how == "at":
            moved[name] = replace(moved[name], memory=int(where.removeprefix("memory=").removesuffix("G")) * GIB)
    if all(" at " in words or " on " in words for words in found.changes):
        again = group_of(memory, *moved.values())
        assert again.loss is None
        assert tuple(again.fit_pair(pair).fits for pair in sizes) == found.fits
