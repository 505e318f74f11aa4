"""Room for wanted instances: what is wanted, how many hail accepts on a layout, and how many could ever fit."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gpolicy.allocator.cluster_data import NO_NODE, AllocPolicy, DiskTemplate, Instance, Node
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.allocator.requests import connected
from gpolicy.analysis.allocator_input import require
from gpolicy.analysis.hail import as_reported
from gpolicy.analysis.loaded_state import LoadedState
from gpolicy.analysis.size_words import SizeWords, read_words, split_count
from gpolicy.analysis.wanted_instance import PlaceRequest, wanted_group, wanted_instance
from gpolicy.cluster.terms import shared_limits
from gpolicy.errors import ArgumentError, GpolicyError
from gpolicy.remedy.faults import Layout

MOST_WANTED: Final = 1000
"""Instances that one question may want."""


@dataclass(frozen=True, slots=True)
class Want:
    """What must fit: so many instances, in the words of `gpolicy place`."""

    count: int
    words: SizeWords
    text: str


def read_want(text: str) -> Want:
    """Return what `--want` says: `3x large`, or `2x memory=64G disk=200G`. Raise RequestError."""
    count, words = split_count(text.split())
    if not words or any(re.fullmatch("[0-9]*[xX]|[0-9]+", word, re.ASCII) for word in words):
        raise ArgumentError(f"want {text!r} cannot be read", hint="write 3x SIZE, or 3x memory=4G vcpus=2 disk=20G")
    if not 1 <= count <= MOST_WANTED:
        raise ArgumentError(f"want {text!r}: {count} instances", hint=f"write 1 to {MOST_WANTED:,}")
    return Want(count, read_words(words), " ".join(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRoom:
    """Room for `count` wanted instances, called `wanted`: how many of them hail takes `now`, and `after` the moves.

    No moves of the instances that may move can make it more than `most` (`most_that_fit`); it may be more than are
    wanted.
    """

    wanted: str
    count: int
    now: int
    after: int
    most: int

    @property
    def enough(self) -> bool:
        """Whether all wanted instances fit in the end."""
        return self.after >= self.count


class Hail:
    """hail, which accepts one wanted instance after the other on any layout of a cluster.

    `usable` are the nodes that may take the wanted `instance`, by group. Raise RequestError for a request that is
    impossible on this cluster, GpolicyError where hail refuses every request.
    """

    def __init__(self, loaded: LoadedState, request: PlaceRequest, start: Layout) -> None:
        state, data, hail = loaded.settled.state, loaded.settled.data, loaded.settled.hail
        group = wanted_group(request, data)
        name = None if group is None else group.name
        require(state, loaded.settled.unknown, {name})
        if hail.failure:
            raise GpolicyError(f"hail refuses every request: {hail.failure}")
        self.instance = wanted_instance(request, group, state, data)
        self.mirrored = self.instance.template is DiskTemplate.DRBD
        self.group = None if group is None else group.index
        asked = data.groups if group is None else [replace(group, alloc_policy=AllocPolicy.PREFERRED)]
        named = None if request.nodes is None else frozenset(request.nodes)
        self._counted = replace(
            loaded.whole,
            template=self.instance.template,
            limits=shared_limits(state, name),
            hail=replace(hail, restriction=named if hail.restriction is None else hail.restriction),
        )
        groups = {item.index: item for item in asked if connected(item, self.instance)}
        self._counted.cluster = replace(loaded.whole.cluster, groups=groups)
        self.rules = self._counted.rules
        self.usable: dict[int, list[int]] = {}
        only = self._counted.hail.restriction
        for index, facts in ((index, node.facts) for index, node in start.nodes.items() if not node.facts.offline):
            is_open = facts.group in groups and groups[facts.group].alloc_policy is not AllocPolicy.UNALLOCABLE
            made = self._counted.is_made(replace(self.instance, primary=index)) and (only is None or facts.name in only)
            if is_open and made and check_ipolicy(facts.policy, self.instance, exclusive=facts.exclusive) is None:
                self.usable.setdefault(facts.group, []).append(index)
        self.exclusive = any(start.nodes[index].facts.exclusive for here in self.usable.values() for index in here)
        own = loaded.whole.cluster.instances
        self._status = {no: own[no].status for no, item in start.instances.items() if item.status is not own[no].status}

    def place(self, layout: Layout, limit: int) -> AllocationState:
        """Return the layout with as many wanted instances as hail accepts, at most `limit`."""
        nodes, instances = layout.nodes, layout.instances
        if self._status:  # hail takes what is down with its node as running
            instances = {**instances, **{no: replace(instances[no], status=own) for no, own in self._status.items()}}
        nodes = as_reported(nodes, self.instance.template)
        if self.group is not None:
            nodes, instances = _only(self.group, nodes, instances)
        return self._counted.place(AllocationState(nodes, instances), self.instance, limit)


def _only(
    group: int, nodes: Mapping[int, Node], instances: Mapping[int, Instance]
) -> tuple[dict[int, Node], dict[int, Instance]]:
    """Return the nodes of a group and the instances that run on them, numbered anew: hail sees no others then."""
    here = {index: node.copy() for index, node in nodes.items() if node.facts.group == group}
    residents = [number for number, item in instances.items() if item.primary in here]
    places = {number: place for place, number in enumerate(residents)}
    for node in here.values():
        node.primaries = tuple(places[number] for number in node.primaries if number in places)
        node.secondaries = tuple(places[number] for number in node.secondaries if number in places)
    return here, {place: replace(instances[number], index=place) for number, place in places.items()}


class ResourceAmounts(NamedTuple):
    """Amounts by their names: memory and disk in MiB."""

    memory: float = 0.0
    disk: float = 0.0
    vcpus: float = 0.0
    spindles: float = 0.0


PLENTY: Final = 2.0**50


def use_of(item: Instance, *, exclusive: bool, primary: bool = True) -> ResourceAmounts:
    """Return what an instance takes of its primary node, or of its secondary."""
    spindles = 0.0
    if item.template.local:
        spindles = (item.total_spindles or 0) if exclusive else item.spindle_use
    return ResourceAmounts(
        item.memory if item.uses_memory and primary else 0,
        item.disk if item.template.local else 0,
        item.vcpus if item.online and primary else 0,
        spindles,
    )


def free_on(node: Node, *, force: bool) -> ResourceAmounts:
    """Return what a node has left for a primary instance; without reserved memory, and soft limits, with `force`."""
    facts = node.facts
    limited = facts.vcpu_ratio >= 0 and not force
    spindles = facts.high_spindles - node.instance_spindles if not force else PLENTY
    return ResourceAmounts(
        node.unallocated_memory - 1,
        node.free_disk - max(1, 0 if force else facts.low_disk),
        facts.vcpu_ratio * facts.total_cpus - node.used_cpus if limited else PLENTY,
        node.free_spindles if facts.exclusive else spindles,
    )


def most_that_fit(layout: Layout, hail: Hail, fixed: Iterable[int]) -> int:
    """Return a number of wanted instances that no arrangement of the instances of a layout exceeds, nor hail on it.

    It is a bound since each of these holds after any moves, in each group: a node holds no more of any resource than
    its own amount, or than it holds now, if that is more; what may move and does not fit on other nodes is on the
    usable ones; each node holds whole instances; a mirrored one has its disks on two nodes; all that runs has memory
    without the greatest node, where N+1 is kept; an exclusion tag is on as many nodes as before, or more. What only the
    instances `fixed` take stays taken. An instance that is not made, or has a node elsewhere or one that may hold none,
    may leave: it takes no room.
    """
    return sum(_most_in_group(layout, hail, group, {*fixed}) for group in hail.usable)


def _most_in_group(layout: Layout, hail: Hail, group: int, fixed: set[int]) -> int:
    online = {i: node for i, node in layout.nodes.items() if node.facts.group == group and not node.facts.offline}
    usable, force = set(hail.usable[group]), hail.rules.force
    free = {index: free_on(node, force=force) for index, node in online.items()}
    moving = dict.fromkeys(online, ResourceAmounts())  # what instances that may move take of each node
    demand, memory = (
        ResourceAmounts(),
        0,
    )  # what those of them that stay in the group take together; memory of all that run
    tagged: dict[str, set[int]] = {tag: set() for tag in hail.instance.exclusion_tags if not force}
    for number, item in layout.instances.items():
        own = [index for index in (item.primary, item.secondary) if index != NO_NODE]
        stays = not item.forthcoming and all(index in online for index in own)
        memory += item.memory if item.uses_memory and stays else 0
        for tag in tagged.keys() & item.exclusion_tags if stays else ():
            tagged[tag].add(item.primary)
        for index in own if number not in fixed else ():
            if index in online:
                used = use_of(item, exclusive=online[index].facts.exclusive, primary=index == item.primary)
                moving[index] = _sum(moving[index], used)
                demand = _sum(demand, used) if stays else demand
    holds = {index: _sum(moving[index], ResourceAmounts(*(max(0.0, each) for each in free[index]))) for index in online}
    kinds = {online[index].facts.exclusive for index in usable}
    need = use_of(hail.instance, exclusive=True in kinds)
    if len(kinds) > 1:  # spindles count on some nodes only
        need = need._replace(spindles=0)
    whole = [_whole_instances(holds[index], need) for index in usable]
    here, elsewhere = (_sum(*(holds[index] for index in nodes)) for nodes in (usable, online.keys() - usable))
    bounds = [sum(map(min, whole)), *_by_amounts(here, elsewhere, demand, need, mirrored=hail.mirrored)]
    if hail.mirrored:  # each has its disks on two nodes
        disks = [one.disk for one in whole]
        bounds += [sum(disks) // 2, sum(disks) - max(disks)]
    if hail.rules.failures and need.memory:
        most = [node.instance_memory + max(0.0, free[index].memory) for index, node in online.items()]
        stays_here = memory - (_shut_memory(layout, group) if group in layout.unmirrored or not hail.mirrored else 0)
        bounds.append((sum(most) - max(most) - stays_here) // need.memory)
    others = len(online) - len(usable)
    bounds += [len(usable) - max(0, len(nodes) - others) for nodes in tagged.values()]
    return max(0, int(min(bounds)))


def _whole_instances(holds: ResourceAmounts, need: ResourceAmounts) -> ResourceAmounts:
    """Return how many whole instances a node holds, by each resource."""
    return ResourceAmounts(*(amount // each if each else MOST_WANTED for amount, each in zip(holds, need, strict=True)))


def _by_amounts(
    here: ResourceAmounts, elsewhere: ResourceAmounts, demand: ResourceAmounts, need: ResourceAmounts, *, mirrored: bool
) -> Iterator[float]:
    """Yield the bounds by each resource: what may move and does not fit on other nodes is on the usable ones."""
    nodes = ResourceAmounts(1, 2, 1, 2) if mirrored else ResourceAmounts(1, 1, 1, 1)
    for has, other, asked, each, times in zip(here, elsewhere, demand, need, nodes, strict=True):
        if each:
            yield (has - max(0.0, asked - other)) // (each * times)


def _shut_memory(layout: Layout, group: int) -> int:
    """Return the memory of the drained nodes of a group: what a lost node held may go there."""
    shut = (node for node in layout.nodes.values() if node.facts.group == group and node.facts.offline)
    return sum(node.instance_memory + max(0, node.unallocated_memory) for node in shut)


def _sum(*amounts: ResourceAmounts) -> ResourceAmounts:
    return ResourceAmounts(*map(sum, zip(ResourceAmounts(), *amounts, strict=True)))
