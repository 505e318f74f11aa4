"""What is wrong with where instances are, and how much of it a move ends.

The facts are those of `gpolicy.analysis.location` and `gpolicy.analysis.node_losses`, read from the allocator's nodes:
a search looks at many layouts, and a move changes two or three nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate
from gpolicy.analysis.losses import Homeless, lose
from gpolicy.ganeti.units import compared_sizes
from gpolicy.printable import some

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.instance_moves import Moved
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Nodes


class FaultKind(StrEnum):
    """What is wrong. Conflicts of tags have the names that `gpolicy.analysis.health` gives them."""

    NODE = "node"
    TWO_GROUPS = "two-groups"
    STORAGE = "exclusive-storage"
    DOMAIN = "failure-domain"
    MIGRATION = "migration"
    EXCLUSION = "exclusion"
    EXCLUSION_DOMAIN = "exclusion-domain"
    RESERVE = "n1-reserve"
    LOSS = "n1-loss"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `key` tells it from others of its kind; `instances` are those that it is about."""

    kind: FaultKind
    key: tuple[str, ...]
    instances: tuple[str, ...] = field(compare=False)
    sentence: str = field(compare=False)


@dataclass(frozen=True, eq=False)
class Layout:
    """All nodes and instances, with each instance where it is.

    `cpus` says of groups whether nodes that take over must keep their vcpu-ratio. `since` is the layout before the last
    move, and the nodes that it changed.
    """

    nodes: Nodes
    instances: Mapping[int, Instance]
    cpus: Mapping[int, bool]
    since: tuple[Layout, frozenset[int]] | None = None

    def after(self, moved: Moved) -> Layout:
        """Return the layout after a move."""
        nodes, instances = {**self.nodes, **moved.changed}, {**self.instances, moved.instance.index: moved.instance}
        return Layout(nodes, instances, self.cpus, (self, frozenset(moved.changed)))

    def reached(self, nodes: Nodes, instances: Mapping[int, Instance]) -> Layout:
        """Return the layout with `nodes` and `instances`, some of which are other ones than here."""
        changed = frozenset(index for index, node in nodes.items() if node is not self.nodes[index])
        return Layout(nodes, instances, self.cpus, (self, changed))

    @cached_property
    def tagged(self) -> Mapping[tuple[str, str], list[int]]:
        """The instances with an exclusion tag in each place: a node (`node NAME`) or a failure domain."""
        found: dict[tuple[str, str], list[int]] = {}
        for item in self.instances.values():
            for key in tag_keys(item, self.nodes):
                found.setdefault(key, []).append(item.index)
        return found

    @cached_property
    def homeless(self) -> Mapping[int, tuple[Homeless, ...]]:
        """The instances that find no new node if one node is lost, by that node."""
        engine, found = None, dict[int, tuple[Homeless, ...]]()
        known, changed = self._known
        groups = {self.nodes[index].facts.group for index in changed}
        for index, node in self.nodes.items():
            residents = [self.instances[number] for number in node.primaries]
            mirrored = all(item.template is DiskTemplate.DRBD for item in residents)
            touched = index in changed or any(item.secondary in changed for item in residents)
            if known is not None and not touched and (mirrored or node.facts.group not in groups):
                homeless = known.get(index, ())  # the nodes that they could go to are as they were
            else:
                engine = engine or (None if mirrored else engine_cluster(self.nodes, self.instances))
                cpus = self.cpus.get(node.facts.group, True)
                homeless = lose(self.nodes, self.instances, (index,), None if mirrored else engine, cpus=cpus).homeless
            if homeless:
                found[index] = homeless
        return found

    @property
    def _known(self) -> tuple[Mapping[int, tuple[Homeless, ...]] | None, frozenset[int]]:
        """What `homeless` was when it was asked last, and the nodes that have changed since."""
        layout, changed = self, frozenset[int]()
        while layout.since is not None:
            layout, nodes = layout.since
            changed |= nodes
            if "homeless" in layout.__dict__:
                return layout.homeless, changed
        return None, changed


def tag_keys(item: Instance, nodes: Nodes) -> list[tuple[str, str]]:
    """Return the exclusion tags of an instance with each place where it counts."""
    if not item.exclusion_tags or item.primary not in nodes:
        return []
    facts = nodes[item.primary].facts
    places = [f"node {facts.name}", *sorted(facts.location_tags)]
    return [(tag, place) for tag in dict.fromkeys(item.exclusion_tags) for place in places]


def shortage(node: Node) -> int:
    """Return the memory (MiB) that a node lacks to take over the instances that it mirrors; 0 if it lacks none."""
    return node.reserved_memory - node.unallocated_memory + 1 if node.fails_n1 and not node.facts.offline else 0


_WITHOUT_FAULT = (DiskTemplate.PLAIN, DiskTemplate.DISKLESS)
"""The templates of instances that may be on nodes with exclusive storage."""


class Places:
    """Where instances must not be, by facts of nodes that no move changes."""

    def __init__(self, nodes: Nodes) -> None:
        self._without_target = {
            index: bool(targets) and not any(node.facts.migration_tags <= tags for tags in targets)
            for index, node in nodes.items()
            if node.facts.migration_tags
            for targets in [[other.facts.receivable_tags for other in _others(node, nodes)]]
        }

    def wrong(self, item: Instance, nodes: Nodes) -> Iterator[tuple[FaultKind, int]]:
        """Yield what is wrong with the nodes of an instance, and with how many of them."""
        primary, secondary = nodes.get(item.primary), nodes.get(item.secondary)
        own = [node for node in (primary, secondary) if node is not None]
        if unusable := sum(node.facts.offline for node in own):
            yield FaultKind.NODE, unusable
        exclusive = sum(node.facts.exclusive for node in own)
        if exclusive and item.template not in _WITHOUT_FAULT:
            yield FaultKind.STORAGE, exclusive
        if primary is None:
            return
        if secondary is not None:
            if primary.facts.group != secondary.facts.group:
                yield FaultKind.TWO_GROUPS, 1
            if primary.facts.location_tags & secondary.facts.location_tags:
                yield FaultKind.DOMAIN, 1
            if not secondary.facts.offline and not primary.facts.migration_tags <= secondary.facts.receivable_tags:
                yield FaultKind.MIGRATION, 1
        elif item.template.externally_mirrored and self._without_target.get(item.primary):
            yield FaultKind.MIGRATION, 1

    def units(self, item: Instance, nodes: Nodes) -> int:
        """Return how much is wrong with the nodes of an instance."""
        return sum(number for _, number in self.wrong(item, nodes))


def _others(node: Node, nodes: Nodes) -> Iterator[Node]:
    return (
        other
        for other in nodes.values()
        if other is not node and other.facts.group == node.facts.group and not other.facts.offline
    )


def find_faults(layout: Layout, places: Places) -> tuple[Fault, ...]:
    """Return all that is wrong."""
    nodes, instances = layout.nodes, layout.instances
    found = [_of_instance(kind, item, nodes) for item in instances.values() for kind, _ in places.wrong(item, nodes)]
    for (tag, place), numbers in sorted(layout.tagged.items()):
        if len(numbers) > 1:
            names = tuple(sorted(instances[number].name for number in numbers))
            kind = FaultKind.EXCLUSION if place.startswith("node ") else FaultKind.EXCLUSION_DOMAIN
            where = place.removeprefix("node ") if kind is FaultKind.EXCLUSION else f"failure domain {place}"
            found.append(Fault(kind, (tag, place), names, f"{some(names)} have the exclusion tag {tag} on {where}"))
    for node in nodes.values():
        if shortage(node):
            name = node.facts.name
            needed, free = compared_sizes(node.reserved_memory, max(0, node.unallocated_memory))
            words = f"{name} has {free} of memory left, and needs more than {needed} to take over what it mirrors"
            mirrored = tuple(instances[number].name for number in node.secondaries)
            found.append(Fault(FaultKind.RESERVE, (name,), mirrored, words))
    for index, homeless in layout.homeless.items():
        name, first = nodes[index].facts.name, homeless[0]
        names = tuple(item.instance for item in homeless)
        why = f"{first.key}: {first.detail}"
        words = f"the loss of {name} cannot be absorbed: {some(names)} would find no node; {why}"
        found.append(Fault(FaultKind.LOSS, (name,), names, words))
    return tuple(found)


def _of_instance(kind: FaultKind, item: Instance, nodes: Nodes) -> Fault:
    own = [nodes[index].facts for index in (item.primary, item.secondary) if index != NO_NODE and index in nodes]
    names = " and ".join(facts.name for facts in own)
    match kind:
        case FaultKind.NODE:
            words = f"is on {' and '.join(facts.name for facts in own if facts.offline)}, which may hold no instance"
        case FaultKind.TWO_GROUPS:
            words = f"has its nodes {names} in two groups"
        case FaultKind.STORAGE:
            exclusive = [facts.name for facts in own if facts.exclusive]
            verb = "has" if len(exclusive) == 1 else "have"
            words = f"has {item.template.value} disks on {' and '.join(exclusive)}, which {verb} exclusive storage"
        case FaultKind.DOMAIN:
            shared = ", ".join(sorted(own[0].location_tags & own[1].location_tags))
            words = f"has both nodes, {names}, in failure domain {shared}"
        case _:
            words = f"cannot migrate away from {own[0].name}: no node may receive it, by migration tags"
    return Fault(kind, (item.name,), (item.name,), f"{item.name} {words}")


@dataclass(frozen=True, slots=True)
class Gain:
    """What a move ends: units of what is wrong, and memory (MiB) that nodes lack for N+1. Negative: it does harm."""

    units: int
    memory: int


def gain_of(layout: Layout, places: Places, old: Instance, moved: Moved) -> Gain:
    """Return what a move of `old` ends, but for losses that cannot be absorbed."""
    nodes, changed = layout.nodes, moved.changed
    units = places.units(old, nodes) - places.units(moved.instance, nodes)
    if old.exclusion_tags and old.primary != moved.instance.primary:
        before, after = Counter(tag_keys(old, nodes)), Counter(tag_keys(moved.instance, nodes))
        units += sum(len(layout.tagged.get(key, ())) > 1 for key in before - after)
        units -= sum(bool(layout.tagged.get(key)) for key in after - before)
    memory = 0
    for index, node in changed.items():
        was, now = shortage(nodes[index]), shortage(node)
        units, memory = units + bool(was) - bool(now), memory + was - now
    return Gain(units, memory)
