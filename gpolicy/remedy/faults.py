"""What is wrong with where instances are, and how much of it a move ends.

The facts are those of `gpolicy.analysis.health`, `gpolicy.analysis.node_losses` and `gpolicy.analysis.violations`,
read from the allocator's nodes: a search looks at many layouts, and a move changes two or three nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Instance, Node
from gpolicy.allocator.engines import EngineCluster, engine_cluster
from gpolicy.allocator.instance_moves import Moved
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.losses import Homeless, SureLosses, lose
from gpolicy.analysis.violations import SPINDLE_RATIO, VCPU_RATIO, RatioBreach, ratio_breaches
from gpolicy.ganeti.amounts import compared_sizes
from gpolicy.printable import some


class FaultKind(StrEnum):
    """What is wrong, and in `words` what a number of such faults counts.

    Conflicts of tags have the names that `gpolicy.analysis.health` gives them.
    """

    words: str

    NODE = "node", "instances on nodes that may hold none"
    TWO_GROUPS = "two-groups", "mirrored instances with nodes in two groups"
    STORAGE = "exclusive-storage", "disks that exclusive storage forbids"
    DOMAIN = "failure-domain", "mirrored instances in one failure domain"
    MIGRATION = "migration", "instances stranded by migration tags"
    EXCLUSION = "exclusion", "exclusion conflicts on one node"
    EXCLUSION_DOMAIN = "exclusion-domain", "exclusion conflicts in one failure domain"
    VCPU_RATIO = VCPU_RATIO, "policy-violating nodes by vcpu-ratio"
    SPINDLE_RATIO = SPINDLE_RATIO, "policy-violating nodes by spindle-ratio"
    RESERVE = "n1-reserve", "nodes that keep too little memory for N+1"
    LOSS = "n1-loss", "losses of one node that cannot be absorbed"

    def __new__(cls, value: str, words: str = "") -> Self:
        """Return the kind that has this value; its words are given only above."""
        kind = str.__new__(cls, value)
        kind._value_, kind.words = value, words
        return kind


RATIOS: Final = frozenset({FaultKind.VCPU_RATIO, FaultKind.SPINDLE_RATIO})
"""Nodes that have too much: less bad than all else, which no move makes worse for their sake."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    kind: FaultKind
    """What is wrong: on a node that may hold no instance; nodes in two groups; disks that exclusive storage forbids;
    both nodes in one failure domain; stranded by migration tags; instances with one exclusion tag on one node, or in
    one failure domain; a node above its vcpu-ratio or spindle-ratio; a node that keeps too little memory for the
    instances that it mirrors; a loss of one node that cannot be absorbed.
    """
    key: tuple[str, ...]
    """What tells it from others of its kind: an instance, a node, or an exclusion tag and a place."""
    instances: tuple[str, ...] = field(compare=False)
    """The instances that it is about."""
    sentence: str = field(compare=False)
    """The same in words."""


class Layout:
    """All nodes and instances, with each instance where it is.

    `cpus` says of groups whether nodes that take over must keep their vcpu-ratio; N+1 is not asked for in the groups
    `unprotected`, of whose nodes none may fail by their limits. `unmirrored` are the groups with instances that are not
    mirrored, which no move changes. `tagged` are the instances with an exclusion tag in each place: a node (`node
    NAME`) or a failure domain. After a move only what it changes is worked out anew.
    """

    def __init__(
        self, nodes: Nodes, instances: Mapping[int, Instance], cpus: Mapping[int, bool], unprotected: frozenset[int]
    ) -> None:
        self.nodes, self.instances, self.cpus, self.unprotected = nodes, instances, cpus, unprotected
        unmirrored = (item for item in instances.values() if item.template is not DiskTemplate.DRBD)
        self.unmirrored = frozenset(nodes[item.primary].facts.group for item in unmirrored)
        members: dict[str, set[int]] = {}
        for item in instances.values():
            for tag in item.exclusion_tags:
                members.setdefault(tag, set()).add(item.index)
        self.tagged = {tag: self._places_of(numbers) for tag, numbers in members.items()}
        self._before: Layout | None = None
        self._changed = frozenset(nodes)

    def after(self, moved: Moved) -> Layout:
        """Return the layout after a move."""
        return self._with_changes(moved.changed, {moved.instance.index: moved.instance})

    def reached(self, nodes: Nodes, instances: Mapping[int, Instance]) -> Layout:
        """Return the layout with `nodes` and `instances`, some of which are other ones than here."""
        changed = {index: node for index, node in nodes.items() if node is not self.nodes[index]}
        moved = {number: item for number, item in instances.items() if item is not self.instances[number]}
        return self._with_changes(changed, moved)

    def _with_changes(self, nodes: Nodes, instances: Mapping[int, Instance]) -> Layout:
        made = copy(self)
        made.nodes, made.instances = {**self.nodes, **nodes}, {**self.instances, **instances}
        if tags := {tag for item in instances.values() for tag in item.exclusion_tags}:
            places = {tag: made._places_of(set().union(*self.tagged[tag].values())) for tag in tags}
            made.tagged = {**self.tagged, **places}
        made.__dict__.pop("homeless", None)
        made._before, made._changed = self, frozenset(nodes)
        return made

    def _places_of(self, numbers: set[int]) -> Mapping[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for number in numbers:
            for place in tag_places(self.instances[number], self.nodes):
                found.setdefault(place, set()).add(number)
        return {place: frozenset(here) for place, here in found.items()}

    @cached_property
    def homeless(self) -> Mapping[int, tuple[Homeless, ...]]:
        """The instances that find no new node if one node is lost, by that node."""
        return dict(self.each_homeless())

    def each_homeless(self) -> Iterator[tuple[int, tuple[Homeless, ...]]]:
        """Yield the same node by node, for those who need only the first."""
        layout, changed = self, self._changed
        known: Mapping[int, tuple[Homeless, ...]] = {}
        while layout._before is not None:
            layout = layout._before
            if "homeless" in layout.__dict__:
                known = layout.homeless
                break
            changed |= layout._changed
        lost = self._concerned_by(changed)
        groups: dict[int, _GroupLosses] = {}
        for index in sorted(lost | known.keys()):
            group = self.nodes[index].facts.group
            if index not in lost:
                yield index, known[index]
            elif group not in self.unprotected:
                if group not in groups:
                    groups[group] = _GroupLosses(self, group)
                if homeless := groups[group].lose(index):
                    yield index, homeless

    def _concerned_by(self, changed: frozenset[int]) -> set[int]:
        """Return the nodes whose loss asks for the changed nodes: mirrored instances have one new node, others all."""
        found = set(changed)
        found.update(self.instances[number].primary for index in changed for number in self.nodes[index].secondaries)
        groups = self.unmirrored & {self.nodes[index].facts.group for index in changed}
        for index, node in self.nodes.items() if groups else ():
            if node.facts.group in groups and index not in found:
                templates = (self.instances[number].template for number in node.primaries)
                if any(template is not DiskTemplate.DRBD for template in templates):
                    found.add(index)
        return found & self.nodes.keys()


class _GroupLosses:
    """The losses of the nodes of one group: most are surely absorbed, the others are simulated."""

    def __init__(self, layout: Layout, group: int) -> None:
        self._layout, self._cpus = layout, layout.cpus.get(group, True)
        self._own = {index: node for index, node in layout.nodes.items() if node.facts.group == group}
        self._sure = SureLosses(self._own, layout.instances, 1, cpus=self._cpus)

    def lose(self, index: int) -> tuple[Homeless, ...]:
        if self._sure.absorb((index,)):
            return ()
        nodes, instances = self._layout.nodes, self._layout.instances
        residents = (instances[number] for number in nodes[index].primaries)
        engine = None if all(item.template is DiskTemplate.DRBD for item in residents) else self._engine
        return lose(nodes, instances, (index,), engine, cpus=self._cpus).homeless

    @cached_property
    def _engine(self) -> EngineCluster | None:
        instances = {number: item for number, item in self._layout.instances.items() if item.primary in self._own}
        if any(item.secondary not in {NO_NODE, *self._own} for item in instances.values()):
            return engine_cluster(self._layout.nodes, self._layout.instances)
        return engine_cluster(self._own, instances)


def tag_places(item: Instance, nodes: Nodes) -> tuple[str, ...]:
    """Return the places where the exclusion tags of an instance count."""
    return _places_at(nodes[item.primary]) if item.exclusion_tags else ()


def _places_at(node: Node) -> tuple[str, ...]:
    return (f"node {node.facts.name}", *sorted(node.facts.location_tags))


def shortage(node: Node) -> int:
    """Return the memory (MiB) that a node lacks to take over the instances that it mirrors; 0 if it lacks none."""
    return node.reserved_memory - node.unallocated_memory + 1 if node.fails_n1 and not node.facts.offline else 0


def lack(node: Node) -> int:
    """Return what a node lacks: `shortage` of memory (MiB), and CPUs and spindles for its ratios; 0 if nothing."""
    if node.exceeds_vcpu_ratio or node.exceeds_spindle_ratio:
        return shortage(node) + sum(breach.beyond for breach in _too_much(node))
    return shortage(node)


def _too_much(node: Node) -> tuple[RatioBreach, ...]:
    """Return the ratios that a node exceeds. Of one that is offline each instance is wrong anyway."""
    return () if node.facts.offline else ratio_breaches(node)


_WITHOUT_FAULT = (DiskTemplate.PLAIN, DiskTemplate.DISKLESS)
"""The templates of instances that may be on nodes with exclusive storage."""


class Places:
    """Where instances must not be, by facts of nodes that no move changes."""

    def __init__(self, nodes: Nodes) -> None:
        online = [node.facts for node in nodes.values() if not node.facts.offline]
        self._without_target: dict[int, bool] = {}
        for index, node in nodes.items():
            if tags := node.facts.migration_tags:
                others = [item for item in online if item.group == node.facts.group and item is not node.facts]
                self._without_target[index] = bool(others) and not any(tags <= one.receivable_tags for one in others)
        self._known: dict[tuple[int, int, DiskTemplate], tuple[tuple[FaultKind, int], ...]] = {}

    def wrong(self, item: Instance, nodes: Nodes) -> tuple[tuple[FaultKind, int], ...]:
        """Return what is wrong with the nodes of an instance, and with how many of them."""
        return self.wrong_at(item.primary, item.secondary, item.template, nodes)

    def wrong_at(
        self, primary: int, secondary: int, template: DiskTemplate, nodes: Nodes
    ) -> tuple[tuple[FaultKind, int], ...]:
        """Return what is wrong with these nodes for an instance of `template`."""
        key = (primary, secondary, template)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._wrong(nodes[primary], nodes.get(secondary), template))
        return found

    def _wrong(self, primary: Node, secondary: Node | None, template: DiskTemplate) -> Iterator[tuple[FaultKind, int]]:
        own = [primary] if secondary is None else [primary, secondary]
        if unusable := sum(node.facts.offline for node in own):
            yield FaultKind.NODE, unusable
        exclusive = sum(node.facts.exclusive for node in own)
        if exclusive and template not in _WITHOUT_FAULT:
            yield FaultKind.STORAGE, exclusive
        if secondary is not None:
            if primary.facts.group != secondary.facts.group:
                yield FaultKind.TWO_GROUPS, 1
            if primary.facts.location_tags & secondary.facts.location_tags:
                yield FaultKind.DOMAIN, 1
            if not secondary.facts.offline and not primary.facts.migration_tags <= secondary.facts.receivable_tags:
                yield FaultKind.MIGRATION, 1
        elif template.externally_mirrored and self._without_target.get(primary.facts.index):
            yield FaultKind.MIGRATION, 1

    def units(self, item: Instance, nodes: Nodes) -> int:
        """Return how much is wrong with the nodes of an instance."""
        return sum(number for _, number in self.wrong(item, nodes))

    def faults(self, layout: Layout) -> tuple[Fault, ...]:
        """Return all that is wrong with a layout."""
        nodes, instances = layout.nodes, layout.instances
        found = [_of_instance(kind, item, nodes) for item in instances.values() for kind, _ in self.wrong(item, nodes)]
        tagged = ((tag, place, here) for tag, places in layout.tagged.items() for place, here in places.items())
        crowds = (crowd for crowd in tagged if len(crowd[2]) > 1)
        for tag, place, numbers in sorted(crowds, key=lambda crowd: crowd[:2]):
            names = tuple(sorted(instances[number].name for number in numbers))
            kind = FaultKind.EXCLUSION if place.startswith("node ") else FaultKind.EXCLUSION_DOMAIN
            where = place.removeprefix("node ") if kind is FaultKind.EXCLUSION else f"failure domain {place}"
            found.append(Fault(kind, (tag, place), names, f"{some(names)} have the exclusion tag {tag} on {where}"))
        for node in nodes.values():
            if shortage(node) and node.facts.group not in layout.unprotected:
                name = node.facts.name
                needed, free = compared_sizes(node.reserved_memory, max(0, node.unallocated_memory))
                words = f"{name} has {free} of memory left, and needs more than {needed} to take over what it mirrors"
                mirrored = tuple(instances[number].name for number in node.secondaries)
                found.append(Fault(FaultKind.RESERVE, (name,), mirrored, words))
            for breach in _too_much(node):
                secondaries = node.secondaries if breach.parameter == SPINDLE_RATIO else ()
                there = tuple(instances[number].name for number in (*node.primaries, *secondaries))
                kind, name = FaultKind(breach.parameter), node.facts.name
                found.append(Fault(kind, (name,), there, f"{name} has {breach.sentence}"))
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


def tag_units(layout: Layout, item: Instance, primary: int) -> int:
    """Return how many conflicts of exclusion tags an instance ends, less those that it makes, on another primary."""
    before, after = ({*_places_at(layout.nodes[index])} for index in (item.primary, primary))
    units = 0
    for tag in {*item.exclusion_tags}:
        here = layout.tagged[tag]
        units += sum(len(here[place]) > 1 for place in before - after)
        units -= sum(place in here for place in after - before)
    return units


@dataclass(frozen=True, slots=True)
class Gain:
    """What a move ends: units of what is wrong, and what nodes lack (`lack`). Negative: it does harm."""

    units: int
    lack: int

    @property
    def helps(self) -> bool:
        """Whether it ends something, or makes it less."""
        return (self.units, self.lack) > (0, 0)


def gain_of(layout: Layout, places: Places, old: Instance, moved: Moved) -> Gain:
    """Return what a move of `old` ends, but for losses that cannot be absorbed."""
    nodes, changed = layout.nodes, moved.changed
    units = places.units(old, nodes) - places.units(moved.instance, nodes)
    if old.exclusion_tags and old.primary != moved.instance.primary:
        units += tag_units(layout, old, moved.instance.primary)
    less = 0
    for index, node in changed.items():
        was, now = lack(nodes[index]), lack(node)
        if was or now:
            units, less = units + bool(shortage(nodes[index])) - bool(shortage(node)), less + was - now
    return Gain(units, less)
