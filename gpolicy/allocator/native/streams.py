"""A cluster as two streams of numbers for the compiled engine; source/input.c reads them in the same order.

Nodes become rows in index order. Tags and sets of tags become numbers, and the relations of two sets that the engine
needs (common locations, allowed migrations, missed desired locations) become tables.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from gpolicy.allocator.cluster_data import DiskTemplate, Instance, InstancePolicy, InstanceStatus, Node, Spec
from gpolicy.allocator.cluster_score import node_values
from gpolicy.allocator.placement import Candidates, SingleCandidates
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


ALL_NODES = CapacityRules()
MOST = 2**41
"""The greatest number, such as MiB of memory, that the engine accepts (input.c)."""
LEAST = 2**-20
"""The smallest number other than 0 that the engine accepts."""
MOST_TAGS = 4096
"""The most exclusion tags of an instance that the engine accepts: Ganeti allows an object no more tags (input.c)."""
_TEMPLATES = {template: number for number, template in enumerate(DiskTemplate)}
_STATES = {status: (status is not InstanceStatus.STATUS_OFFLINE, status.running) for status in InstanceStatus}
"""Whether an instance in a state is online, and whether it occupies memory."""


class UnfitError(Exception):
    """The compiled engine cannot represent this; the law can."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Two streams, which must live as long as their addresses are in use."""

    integers: array[int]
    reals: array[float]

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        """Address and length of both streams."""
        return *self.integers.buffer_info(), *self.reals.buffer_info()


class Numbering:
    """Numbers for items, from 0 on in the order of their appearance."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}

    def of(self, item: Hashable) -> int:
        """Return the number of `item`, a new number for a new item."""
        return self.number.setdefault(item, len(self.number))


class ClusterNumbers:
    """The streams of a cluster, and of instances that are placed or moved.

    Without `instances` the lists of nodes are empty; their resources still count all instances.
    """

    def __init__(
        self,
        nodes: Mapping[int, Node],
        instances: Mapping[int, Instance] | None,
        candidates: Candidates,
        rules: CapacityRules = ALL_NODES,
        *,
        wanted: Instance | None = None,
        capacity_checks: bool = False,
        each: bool = False,
        placed_before: int = 0,
    ) -> None:
        """Raise UnfitError if the engine could not answer."""
        self.indices = list(nodes)
        self.rows = {index: row for row, index in enumerate(self.indices)}
        self._slots = None if instances is None else {number: slot for slot, number in enumerate(instances)}
        self._numbers = list(instances or ())
        if self.indices != sorted(self.indices):
            raise UnfitError("nodes are not in the order of their indices")
        self._tags, self._places, self._locations = Numbering(), Numbering(), Numbering()
        self._migrations, self._desired, self._groups = Numbering(), Numbering(), Numbering()
        self._policies: dict[int, tuple[int, InstancePolicy]] = {}
        self._desired.of(frozenset())
        if wanted is not None:
            self._desired.of(wanted.desired_tags)
            for tag in wanted.exclusion_tags:
                self._tags.of(tag)
        self._primary_lists, self._secondary_lists, lists = candidate_lists(candidates)
        self._reals: list[float] = [*rules.weights]
        node_integers: list[int] = []
        for index, node in nodes.items():
            self._add_node(index, node, rules, node_integers)
        instance_integers: list[int] = []
        for number, instance in (instances or {}).items():
            instance_integers.append(number)
            self._add_instance(instance, instance_integers, self._reals)
        head = [
            len(nodes),
            len(instances or ()),
            len(self._groups.number),
            lists,
            len(self._places.number),
            len(self._tags.number),
            not isinstance(candidates, SingleCandidates),
            rules.force,
            capacity_checks,
            max(1, rules.failures),
            rules.cpus,
            each,
            placed_before,
            *self._policy_integers(),
            *self._tables(),
        ]
        self.numbers = _numbers(head + node_integers + instance_integers, self._reals)

    def knows(self, wanted: Instance) -> bool:
        """Whether all tags of `wanted` have a number here."""
        return wanted.desired_tags in self._desired.number and self._tags.number.keys() >= {*wanted.exclusion_tags}

    def slots(self, numbers: Iterable[int]) -> list[int]:
        """Return the places of instances in the table. Raises UnfitError for one that is not there."""
        try:
            return [(self._slots or {})[number] for number in numbers]
        except KeyError:
            raise UnfitError("an instance is not in the table") from None

    def number(self, slot: int) -> int:
        """Return the number of the instance at a place in the table."""
        return self._numbers[slot]

    def instance(self, instance: Instance, candidates: Sequence[int] | None = None) -> Numbers:
        """Return the streams of an instance that is placed, or moved to one of `candidates` (ascending).

        Raises UnfitError.
        """
        integers: list[int] = []
        reals: list[float] = []
        self._add_instance(instance, integers, reals)
        if candidates is not None:
            integers += (len(candidates), *(self.rows[index] for index in candidates))
        return _numbers(integers, reals)

    def _add_node(self, index: int, node: Node, rules: CapacityRules, integers: list[int]) -> None:
        facts = node.facts
        policy, _ = self._policies.setdefault(id(facts.policy), (len(self._policies), facts.policy))
        locations = sorted(facts.location_tags)
        integers += (
            self._groups.of(facts.group),
            policy,
            self._locations.of(facts.location_tags),
            self._migrations.of((facts.migration_tags, facts.receivable_tags)),
            facts.low_disk,
            facts.spindles,
            facts.exclusive,
            facts.offline,
            not (rules.skip_offline and facts.offline) and facts.group not in rules.ignored_groups,
            self._primary_lists.get(index, -1),
            self._secondary_lists.get(index, -1),
            len(locations),
        )
        integers += [self._places.of(tag) for tag in locations]
        integers += (
            node.unallocated_memory,
            node.reserved_memory,
            node.forth_free_memory,
            node.free_disk,
            node.forth_free_disk,
            node.free_spindles,
            node.forth_free_spindles,
            node.used_cpus,
            node.forth_used_cpus,
            len(node.secondaries),
            node.location_score,
            node.fails_n1,
            0 if self._slots is None else len(node.primaries),
        )
        if self._slots is not None:
            try:
                integers += [self._slots[number] for number in reversed(node.primaries)]
            except KeyError:
                raise UnfitError("a node has a primary that is not among the instances") from None
        integers.append(len(node.peers))
        for peer, memory in node.peers.items():
            integers += (self.rows.get(peer, -1), memory)
        if any(tag not in node.exclusion_tags for _, tag in node.location_exclusions):
            raise UnfitError("a node counts a tag in its failure domains that it does not count itself")
        integers.append(len(node.exclusion_tags))
        for tag, count in node.exclusion_tags.items():
            located = node.location_exclusions.get((locations[0], tag), 0) if locations else 0
            integers += (self._tags.of(tag), count, located)
        self._reals += (
            facts.total_memory,
            facts.total_disk,
            facts.total_cpus,
            facts.cpu_speed,
            facts.vcpu_ratio,
            facts.high_spindles,
            node.instance_spindles,
            node.forth_instance_spindles,
        )
        self._reals += node_values(node)

    def _add_instance(self, instance: Instance, integers: list[int], reals: list[float]) -> None:
        online, occupying = _STATES[instance.status]
        spindles: int | None = 0
        sizes = []
        for disk in instance.disks:
            spindles = None if spindles is None or disk.spindles is None else spindles + disk.spindles
            sizes.append(disk.size)
        if spindles is not None and spindles < 0:  # the engine would take -1 for an unknown number
            raise UnfitError(f"instance {instance.name}: its disks have {spindles} spindles")
        tags = instance.exclusion_tags
        integers += (
            instance.index,
            instance.memory,
            instance.disk,
            instance.vcpus,
            instance.spindle_use,
            -1 if spindles is None else spindles,
            len(sizes),
            min(sizes, default=0),
            max(sizes, default=0),
            self.rows.get(instance.primary, -1),
            self.rows.get(instance.secondary, -1),
            instance.secondary,
            instance.location_score,
            self._desired.of(instance.desired_tags),
            _TEMPLATES[instance.template],
            online,
            occupying and not instance.forthcoming,
            online and instance.auto_balance,
            instance.ignores_policy,
            instance.forthcoming,
            len(tags),
        )
        if tags:
            integers += [self._tags.of(tag) for tag in tags]
        reals += instance.load

    def _policy_integers(self) -> list[int]:
        policies = [policy for _, policy in self._policies.values()]
        integers = [sum(len(policy.minmax) for policy in policies), len(policies)]
        for policy in policies:
            integers += (sum(1 << _TEMPLATES[template] for template in set(policy.templates)), len(policy.minmax))
            for pair in policy.minmax:
                # no instance is beyond MOST, so an upper bound of MOST bounds nothing more
                integers += (*_spec_numbers(pair.min), *(min(bound, MOST) for bound in _spec_numbers(pair.max)))
        return integers

    def _tables(self) -> list[int]:
        """Return the tables of common locations, of allowed migrations, and of desired locations that lack."""
        places, moves, desired = (one.number for one in (self._locations, self._migrations, self._desired))
        return [
            max(1, len(places)),
            max(1, len(moves)),
            len(desired),
            *([number for one in places for number in map(len, map(one.__and__, places))] or [0]),
            *([int(sent <= received) for sent, _ in moves for _, received in moves] or [1]),
            *([number for wanted in desired for number in map(len, map(wanted.__sub__, places))] or [0] * len(desired)),
        ]


def refuse_absurd_numbers(nodes: Iterable[Node], instances: Iterable[Instance]) -> None:
    """Raise InputError for an impossible number (of tags, too), with which the law would compute for hours."""
    for node in nodes:
        facts = node.facts
        for name, number in (
            ("memory", facts.total_memory),
            ("free memory", node.unallocated_memory),
            ("memory that nobody accounts for", facts.unaccounted_memory),
            ("disk space", facts.total_disk),
            ("free disk space", node.free_disk),
            ("number of CPUs", facts.total_cpus),
            ("number of spindles", facts.spindles),
            ("number of free spindles", node.free_spindles),
            ("number of used virtual CPUs", node.used_cpus),
            ("sum of spindle use", node.instance_spindles),
            ("CPU speed", facts.cpu_speed),
        ):
            _refuse_absurd(f"node {facts.name}", name, number)
    for instance in instances:
        for name, number in (
            ("memory", instance.memory),
            ("disk space", instance.disk),
            ("number of virtual CPUs", instance.vcpus),
            ("spindle use", instance.spindle_use),
            *(("number of spindles of a disk", disk.spindles or 0) for disk in instance.disks),
        ):
            _refuse_absurd(f"instance {instance.name}", name, number)
        if len(instance.exclusion_tags) > MOST_TAGS:
            tags = f"it has {len(instance.exclusion_tags)} exclusion tags"
            raise InputError(f"instance {instance.name}: {tags}: Ganeti allows an object {MOST_TAGS} tags")


def _refuse_absurd(owner: str, name: str, number: float) -> None:
    if not abs(number) <= MOST:  # also false for NaN
        raise InputError(f"{owner}: its {name} is {number:.3g}: no cluster has more than {MOST}")
    if 0 < abs(number) < LEAST:
        raise InputError(f"{owner}: its {name} is {number:.3g}: no cluster has so little")


def candidate_lists(candidates: Candidates) -> tuple[dict[int, int], dict[int, int], int]:
    """Return the number of the list of each possible primary and secondary (by index), and the number of lists.

    Raises UnfitError if a node is in two lists.
    """
    if isinstance(candidates, SingleCandidates):
        _ascending(candidates.nodes)
        return dict.fromkeys(candidates.nodes, 0), {}, int(bool(candidates.nodes))
    numbers: dict[tuple[int, ...], int] = {}
    known: dict[int, int] = {}
    primaries: dict[int, int] = {}
    secondaries: dict[int, int] = {}
    for primary, members in candidates.members:
        number = known.get(id(members))
        if number is None:
            number = known[id(members)] = numbers.setdefault(members, len(numbers))
        primaries[primary] = number
    _ascending(tuple(primaries))
    for members, number in numbers.items():
        _ascending(members)
        for member in members:
            if secondaries.setdefault(member, number) != number:
                raise UnfitError("a node is in two lists of secondaries")
    return primaries, secondaries, len(numbers)


def _ascending(indices: tuple[int, ...]) -> None:
    if any(a >= b for a, b in pairwise(indices)):
        raise UnfitError("candidates are not in the order of their indices")


def _spec_numbers(spec: Spec) -> tuple[int, ...]:
    return spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.spindle_use


def _numbers(integers: list[int], reals: list[float]) -> Numbers:
    try:
        return Numbers(array("q", integers), array("d", reals))
    except OverflowError:
        raise UnfitError("a number does not fit into 64 bits") from None
