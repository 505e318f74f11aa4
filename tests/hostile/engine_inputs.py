"""Inputs for the compiled engine, by seed: clusters and wanted instances as values and as streams, and questions.

Sound ones, odd ones (huge, negative, not finite), and streams that lie about what they hold.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from gpolicy.allocator.cluster_data import (
    NO_NODE,
    Disk,
    DiskTemplate,
    Instance,
    InstancePolicy,
    InstanceStatus,
    Node,
    Spec,
    SpecPair,
)
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.allocator.native.streams import Numbers
from gpolicy.allocator.node_changes import remove_primary
from gpolicy.allocator.placement import Candidates, PairCandidates, SingleCandidates
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_clusters import TEMPLATES, random_cluster

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

INTEGERS = (
    -(2**63), -(2**62), -(2**50) - 1, -(2**31), -129, -2, -1, 0, 1, 2, 3, 7, 127, 4095, 65536, 2**20, 2**30, 2**31 - 1,
    2**31, 2**32, 2**40, 2**50, 2**50 + 1, 2**53 + 1, 2**62, 2**63 - 1,
)  # fmt: skip
REALS = (
    float("nan"), float("inf"), -float("inf"), -1e308, -1.0, -0.0, 0.0, 5e-324, 1e-300, 1e-9, 0.1, 1.0, 3.5, 1e6,
    2.0**53, 2.0**63, 1e20, 1e100, 1e308,
)  # fmt: skip
MOST_PAIRS = 10_000  # of a policy that is made longer again and again


@dataclass(frozen=True, slots=True)
class Values:
    """A cluster and what is asked of it, as Python's values."""

    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]
    candidates: Candidates
    rules: CapacityRules
    wanted: Instance
    force: bool
    checked: bool


@cache
def _sound(number: int) -> ClusterData:
    rng = random.Random(number)
    return parse_cluster(random_cluster(rng, rng.choice([*TEMPLATES, "drbd", "drbd", "plain"]), 6).text)


def some_values(rng: random.Random) -> Values:
    """Return a cluster, in half of the cases with odd numbers, and any instance on any candidates."""
    data = _sound(rng.randrange(300))
    if rng.random() < 0.5:
        data = _odd_cluster(rng, data)
    if rng.random() < 0.3:
        data = replace(data, instances=tuple(_sometimes_forthcoming(rng, item) for item in data.instances))
    cluster = merge(data, twice=rng.random() < 0.2)  # as -I of hspace and hbal
    nodes = {
        index: node.with_facts(replace(node.facts, offline=True)) if rng.random() < 0.1 else node
        for index, node in cluster.nodes.items()
    }
    instances = dict(cluster.instances)
    if rng.random() < 0.1:  # a group without its nodes, or nothing at all
        group = rng.randrange(2)
        nodes = {index: node for index, node in nodes.items() if node.facts.group != group}
    if rng.random() < 0.1:
        instances = {key: item for key, item in instances.items() if item.primary in nodes}
    wanted = _wanted(rng, cluster)
    if wanted.primary in nodes and rng.random() < 0.5:  # as allocate-secondary
        nodes[wanted.primary] = remove_primary(nodes[wanted.primary], wanted)
    return Values(
        nodes,
        instances,
        _candidates(rng, nodes, wanted),
        CapacityRules(
            skip_offline=rng.random() < 0.5,
            ignored_groups=frozenset({0} if rng.random() < 0.1 else ()),
            failures=rng.choice([1, 1, 2]),
            cpus=rng.random() < 0.3,
        ),
        wanted,
        force=rng.random() < 0.4,
        checked=rng.random() < 0.6,
    )


def _sometimes_forthcoming(rng: random.Random, item: Instance) -> Instance:
    return replace(item, forthcoming=rng.random() < 0.5)


def _odd_cluster(rng: random.Random, data: ClusterData) -> ClusterData:
    nodes, instances, groups = list(data.nodes), list(data.instances), list(data.groups)
    for _ in range(rng.choice([1, 1, 2, 5])):
        match rng.randrange(3):
            case 0:
                place = rng.randrange(len(nodes))
                nodes[place] = _odd(rng, nodes[place], {"index", "group"})
            case 1 if instances:
                place = rng.randrange(len(instances))
                instances[place] = _elsewhere(rng, _odd(rng, instances[place], _PLACES), len(nodes))
            case _:
                place = rng.randrange(len(groups))
                groups[place] = replace(groups[place], policy=_odd_policy(rng, groups[place].policy))
    return replace(data, nodes=tuple(nodes), instances=tuple(instances), groups=tuple(groups))


_PLACES = {"index", "primary", "secondary"}


def _odd(rng: random.Random, value: Any, but: set[str]) -> Any:
    """Return a dataclass with one of its numbers changed."""
    numbers = [
        field.name
        for field in fields(value)
        if field.name not in but and isinstance(getattr(value, field.name), int | float)
    ]
    name = rng.choice(numbers)
    old = getattr(value, name)
    if isinstance(old, bool):
        return replace(value, **{name: not old})
    return replace(value, **{name: rng.choice(INTEGERS) if isinstance(old, int) else rng.choice(REALS)})


def _elsewhere(rng: random.Random, item: Instance, nodes: int) -> Instance:
    """Put an instance anywhere at times: on one node twice, or a mirrored one without a second node."""
    if rng.random() < 0.3:
        item = replace(item, secondary=rng.choice([item.primary, NO_NODE, rng.randrange(nodes)]))
    if rng.random() < 0.1:
        item = replace(item, primary=rng.randrange(nodes))
    if rng.random() < 0.2:
        item = replace(item, disks=_disks(rng), forthcoming=rng.random() < 0.3, template=rng.choice(list(DiskTemplate)))
    return item


def _disks(rng: random.Random) -> tuple[Disk, ...]:
    count = rng.choice([0, 1, 1, 2, 40])
    return tuple(Disk(rng.choice([0, 1, 512, *INTEGERS]), rng.choice([None, 0, 1, 1, *INTEGERS])) for _ in range(count))


def _odd_policy(rng: random.Random, policy: InstancePolicy) -> InstancePolicy:
    pairs = list(policy.minmax)
    match rng.randrange(4):
        case 0:
            pairs = [] if rng.random() < 0.5 else (pairs * rng.choice([2, 50]))[:MOST_PAIRS]
        case 1:
            return _odd(rng, policy, set())  # type: ignore[no-any-return]
        case 2:
            pairs = [SpecPair(_spec(rng), _spec(rng))]
        case _:
            return replace(policy, templates=())
    return replace(policy, minmax=tuple(pairs))


def _spec(rng: random.Random) -> Spec:
    memory, cpus, size, disks, nics, spindles = (rng.choice([0, 1, 64, *INTEGERS]) for _ in range(6))
    return Spec(memory, cpus, size, disks, nics, spindles)


def _wanted(rng: random.Random, cluster: Cluster) -> Instance:
    """Return an instance wished for: a new one, or one that is there already."""
    if cluster.instances and rng.random() < 0.3:
        item = rng.choice(list(cluster.instances.values()))
        item = replace(item, template=DiskTemplate.DRBD) if rng.random() < 0.5 else item
    else:
        size = rng.choice([0, 1, 256, 512, 1000])
        item = Instance(
            index=rng.choice([-1, -1, len(cluster.instances)]),
            name="new-0",
            memory=rng.choice([0, 1, 64, 300, 2000]),
            disk=size,
            disks=(Disk(size, rng.choice([None, 0, 1])),) * rng.choice([0, 1, 1, 1, 2, 40]),
            vcpus=rng.choice([0, 1, 2, 30]),
            status=rng.choice([InstanceStatus.RUNNING, *InstanceStatus]),
            template=rng.choice([DiskTemplate.DRBD, DiskTemplate.PLAIN, *DiskTemplate]),
            auto_balance=rng.random() < 0.8,
            spindle_use=rng.choice([0, 1, 3]),
            forthcoming=rng.random() < 0.1,
            exclusion_tags=("svc:a", "svc:b", "svc:c")[: rng.randrange(4)],
            desired_tags=frozenset(("power:a", "power:z")[: rng.randrange(3)]),
        )
    while rng.random() < 0.3:
        item = _odd(rng, item, _PLACES)
    return item


def _candidates(rng: random.Random, nodes: Mapping[int, Node], wanted: Instance) -> Candidates:
    """Return some nodes or pairs, most often as many nodes as the template wants; or as allocate-secondary does."""
    some = tuple(index for index in nodes if rng.random() < 0.85)
    pairs = wanted.template is DiskTemplate.DRBD
    if pairs is (rng.random() < 0.15):
        return SingleCandidates(some)
    if wanted.primary in nodes and rng.random() < 0.5:
        return PairCandidates(((wanted.primary, tuple(index for index in nodes if index != wanted.primary)),))
    list_of = {index: rng.randrange(2) if rng.random() < 0.1 else nodes[index].facts.group for index in nodes}
    lists = {number: tuple(index for index in some if list_of[index] == number) for number in set(list_of.values())}
    return PairCandidates(tuple((index, lists[list_of[index]]) for index in nodes if rng.random() < 0.9))


def damaged(rng: random.Random, numbers: Numbers, other: Numbers) -> Numbers:
    """Return streams with a few numbers changed, cut, doubled, or taken from another cluster."""
    integers, reals = array("q", numbers.integers), array("d", numbers.reals)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 10])):
        match rng.randrange(12):
            case 0:
                _cut(rng, integers)
            case 1:
                _cut(rng, reals)
            case 2 | 3 if reals:
                reals[rng.randrange(len(reals))] = rng.choice(REALS)
            case 4 if integers and other.integers:
                begin, end = sorted(rng.randrange(len(integers) + 1) for _ in range(2))
                start = rng.randrange(len(other.integers))
                integers[begin:end] = other.integers[start : start + end - begin]
            case 5 | 6 | 7 if integers:  # what stands at the front counts what follows
                place = rng.randrange(min(len(integers), 24))
                integers[place] = _near(rng, integers[place])
            case _ if integers:
                place = rng.randrange(len(integers))
                integers[place] = _near(rng, integers[place])
            case _:
                pass
    return Numbers(integers, reals)


def _near(rng: random.Random, value: int) -> int:
    if rng.random() < 0.5:
        return rng.choice(INTEGERS)
    return max(-(2**63), min(2**63 - 1, rng.choice([value - 1, value + 1, value + 2, -value, 2 * value])))


def _cut(rng: random.Random, numbers: array[Any]) -> None:
    begin = rng.randrange(len(numbers) + 1)
    end = begin + rng.choice([1, 1, 2, 10, len(numbers)])
    if rng.random() < 0.5:
        del numbers[begin:end]
    else:
        numbers[begin:begin] = numbers[begin:end]
