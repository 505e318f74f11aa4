"""Nodes of one colour in groups that can be emptied together, and where their instances go meanwhile.

Nodes join a group as long as the first nodes outside of it that have room take their instances; the others form the
next groups, each from the initial state. Only memory, disk and spindles count, no policies, tags or N+1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.instance_moves import node_at
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Change = tuple[dict[int, Any], int, Any]

_NONE = float("-inf")
"""Less than the least room: no need at all."""


@dataclass(frozen=True, slots=True)
class RebootGroup:
    """The nodes of a group, and the new primary and secondary node of each instance that moves (NO_NODE: not shown)."""

    nodes: Sequence[int]
    moves: Mapping[int, tuple[int, int]]


def is_redundant(instance: Instance) -> bool:
    """Return whether hroller takes the instance as one with two copies of its disks."""
    return instance.template is DiskTemplate.DRBD


def split_groups(
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    groups: Sequence[Sequence[int]],
    *,
    ignore_non_redundant: bool,
    full_evacuation: bool,
) -> list[RebootGroup]:
    """Return the groups in parts that can be emptied. Raises InputError if one node cannot."""
    state = _State(nodes, instances)
    parts: list[tuple[Sequence[int], list[Change]]] = [(group, []) for group in groups]
    if not ignore_non_redundant:
        message = "Not enough capacity to move non-redundant instances"
        parts = [part for group in groups for part in state.split(group, state.move_primaries, message)]
    if not full_evacuation:
        return [state.reboot_group(*part) for part in parts]
    migrated = [(part, state.migrated(*part)) for part in parts]
    return [group for (part, _), changes in migrated for group in state.evacuated(part, changes)]


def _primary_need(instance: Instance) -> tuple[float, float]:
    """Return the memory and disk (MiB) of which a new primary node must have more."""
    return instance.memory if instance.uses_memory else 0, instance.disk if instance.template.local else _NONE


class _State:
    """Nodes and instances while they change, and the changes so far, which can be taken back."""

    def __init__(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
        self.initial = instances
        self.nodes, self.instances = dict(nodes), dict(instances)
        self.rooms = {index: node.unallocated_memory for index, node in nodes.items()}
        self.disks = {index: node.free_disk for index, node in nodes.items()}
        self.shown: dict[int, int] = {}  # the primary node that hroller prints, where it is another one
        self.changes: list[Change] = []
        self.targets: dict[int, list[int]] = {}
        for index, node in nodes.items():
            if not node.facts.offline:
                self.targets.setdefault(node.facts.group, []).append(index)

    def _set(self, table: dict[int, Any], key: int, value: object) -> None:
        self.changes.append((table, key, table.get(key)))
        table[key] = value

    def _set_node(self, node: Node) -> None:
        self._set(self.nodes, node.index, node)
        self._set(self.rooms, node.index, node.unallocated_memory)
        self._set(self.disks, node.index, node.free_disk)

    def _undo(self, length: int = 0) -> None:
        """Take back the changes behind the first `length`."""
        for table, key, value in reversed(self.changes[length:]):
            if value is None:
                del table[key]
            else:
                table[key] = value
        del self.changes[length:]

    def _redo(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._set(*change)

    def _done(self) -> list[Change]:
        """Return the last value of all that changed."""
        keys = {(id(table), key): (table, key) for table, key, _ in self.changes}
        return [(table, key, table[key]) for table, key in keys.values()]

    def split(
        self, group: Sequence[int], clear: Callable[[int, set[int]], bool], message: str
    ) -> Iterator[tuple[list[int], list[Change]]]:
        """Yield the parts of a group whose nodes `clear` empties, and all changes. Raises InputError with `message`."""
        start = len(self.changes)
        while group:
            chosen: dict[int, None] = {}
            for index in group:
                length = len(self.changes)
                if clear(index, {*chosen, index}):
                    chosen[index] = None
                else:
                    self._undo(length)
            if not chosen:
                raise InputError(message)
            yield list(chosen), self._done()
            self._undo(start)
            group = [index for index in group if index not in chosen]

    def move_primaries(self, index: int, leaving: set[int]) -> bool:
        """Move the non-redundant instances off a node to the first others with room, none of those that are `leaving`.

        Return whether all of them found a place.
        """
        records = map(self.instances.__getitem__, self.nodes[index].primaries)
        needs = {instance.index: _primary_need(instance) for instance in records if not is_redundant(instance)}
        targets = self._targets(index, needs.values(), leaving)
        # an instance of an iallocator document is there twice, and then leaves the node to which it went
        for number in self.nodes[index].primaries:
            if number not in needs:
                continue
            instance, (memory, disk) = self.instances[number], needs[number]
            left = remove_primary(self.nodes[instance.primary], instance)
            for target in targets:
                if self.rooms[target] > memory and self.disks[target] > disk:
                    new = add_primary(self.nodes[target], instance, force=True)
                    if not isinstance(new, FailReason):
                        break
            else:
                return False
            self._set_node(new)
            self._set_node(left)
            self._set(self.instances, number, replace(instance, primary=target))
        return True

    def move_secondaries(self, index: int, leaving: set[int]) -> bool:
        """Move the secondaries off a node to the first others with room, as `move_primaries` does.

        With each of them, hroller prints its primary node for the redundant primaries of the node, too.
        """
        secondaries = [self.instances[number] for number in self.nodes[index].secondaries]
        if not all(map(is_redundant, secondaries)):
            return False
        targets = self._targets(index, [(_NONE, instance.disk) for instance in secondaries], leaving)
        for instance in secondaries:
            for target in targets:
                if self.disks[target] > instance.disk and target != instance.primary:
                    new = add_secondary(self.nodes[target], instance, instance.primary, force=True)
                    if not isinstance(new, FailReason):
                        break
            else:
                return False
            self._set_node(remove_secondary(self.nodes[index], instance))
            self._set_node(new)
            self._set(self.instances, instance.index, replace(instance, secondary=target))
            for other in self.nodes[index].primaries:
                if is_redundant(self.instances[other]):
                    self._set(self.shown, other, self.shown.get(instance.index, instance.primary))
        return True

    def _targets(self, index: int, needs: Collection[tuple[float, float]], leaving: set[int]) -> list[int]:
        """Return the nodes of the same group that have room for the least of these needs of memory and disk."""
        others = self.targets.get(self.nodes[index].facts.group, ()) if needs else ()
        memory, disk = (min(column) for column in zip(*needs, strict=True)) if needs else (_NONE, _NONE)
        return [
            other
            for other in others
            if self.rooms[other] > memory and self.disks[other] > disk and other not in leaving
        ]

    def migrated(self, group: Sequence[int], changes: Sequence[Change]) -> list[Change]:
        """Return the `changes` and those of a migration off all nodes of the group. Raises InputError if it fails."""
        self._redo(changes)
        for number in [number for index in group for number in self.nodes[index].primaries]:
            instance = self.instances[number]
            if is_redundant(instance):
                old, new = node_at(self.nodes, instance.primary), node_at(self.nodes, instance.secondary)
                primary = add_primary(remove_secondary(new, instance), instance, force=True)
                secondary = add_secondary(remove_primary(old, instance), instance, instance.secondary, force=True)
                if isinstance(primary, FailReason) or isinstance(secondary, FailReason):
                    raise InputError("Failed to migrate instances off nodes")
                self._set_node(primary)
                self._set_node(secondary)
                swapped = replace(instance, primary=instance.secondary, secondary=instance.primary)
                self._set(self.instances, number, swapped)
        done = self._done()
        self._undo()
        return done

    def evacuated(self, group: Sequence[int], changes: Sequence[Change]) -> list[RebootGroup]:
        """Return the parts of a group, after the `changes` so far, that secondaries can leave, too."""
        self._redo(changes)
        migrated = {key: value.secondary for table, key, value in changes if table is self.instances}
        message = "Not enough capacity to move secondaries"
        parts = self.split(group, self.move_secondaries, message)
        found = [self.reboot_group(*part, migrated=migrated) for part in parts]
        self._undo()
        return found

    def reboot_group(
        self, group: Sequence[int], changes: Sequence[Change], *, migrated: Mapping[int, int] | None = None
    ) -> RebootGroup:
        """Return a group with its moves. A redundant instance is shown if it left one of the nodes itself."""
        moves = {}
        for number, instance in sorted((key, value) for table, key, value in changes if table is self.instances):
            before = self.initial[number]
            if not is_redundant(instance):
                if instance.primary != before.primary:
                    moves[number] = (instance.primary, NO_NODE)
            elif migrated is not None:
                kept = migrated.get(number, before.secondary)
                after = (self.shown.get(number, instance.primary), instance.secondary)
                if (before.primary in group or instance.secondary != kept) and after != (
                    before.primary,
                    before.secondary,
                ):
                    moves[number] = after
        return RebootGroup(group, moves)
