"""Moving an existing instance: fail-over, fail-over to any node, replacement of the secondary, and both combined.

A move returns the changed nodes and the changed record of the instance, or the first reason against it. All removals
are computed before the additions (htools, Cluster/Moves: `IMove`, `applyMoveEx`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from gpolicy.allocator.cluster_data import NO_NODE, FailReason, Instance, Node
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpolicy.allocator.placement import Nodes


class MoveKind(IntEnum):
    """The kinds of moves (`enum move_kind` of moves.h)."""

    FAILOVER = 0
    FAILOVER_TO = 1
    REPLACE_SECONDARY = 2
    REPLACE_AND_FAILOVER = 3
    REPLACE_PRIMARY = 4
    FAILOVER_AND_REPLACE = 5


@dataclass(frozen=True, slots=True)
class InstanceMove:
    """One move of one instance (its record before the move); `target` is the new node, NO_NODE for a fail-over."""

    kind: MoveKind
    instance: Instance
    target: int = NO_NODE


@dataclass(frozen=True, slots=True)
class Moved:
    """The changed nodes after a move (by index) and the instance's new record."""

    changed: Mapping[int, Node]
    instance: Instance


def is_split(instance: Instance, nodes: Nodes) -> bool:
    """Whether the two nodes of the instance are in two groups; such an instance stays where it is."""
    primary, secondary = nodes.get(instance.primary), nodes.get(instance.secondary)
    return primary is not None and secondary is not None and primary.facts.group != secondary.facts.group


class _NotTakenError(Exception):
    """A node does not take the instance."""

    def __init__(self, reason: FailReason) -> None:
        super().__init__(reason)
        self.reason = reason


def apply_move(nodes: Nodes, move: InstanceMove, *, force: bool) -> Moved | FailReason:
    """Return the changed nodes and the instance after a move, or the first reason against it."""
    try:
        return _MOVES[move.kind](nodes, move.instance, move.target, force)
    except _NotTakenError as refused:
        return refused.reason


def node_at(nodes: Nodes, index: int) -> Node:
    """Return the node `index`, which must be among `nodes`.

    Raises InputError if it is not: a mirrored instance has no secondary, or has one outside the nodes of the request.
    The original program ends with an error here.
    """
    if (node := nodes.get(index)) is not None:
        return node
    if index == NO_NODE:
        raise InputError("an instance of type drbd has no secondary node, so it cannot be failed over")
    raise InputError(
        f"an instance has its secondary on a node (index {index}) outside of the group that is looked at",
        hint="leave out the group name, or do without capacity checks (--no-capacity-checks)",
    )


def may_migrate(source: Node, target: Node) -> bool:
    """Whether migration tags let an instance go from `source` to `target`."""
    return source.facts.migration_tags <= target.facts.receivable_tags


def _failover(nodes: Nodes, instance: Instance, _target: int, force: bool) -> Moved:  # noqa: FBT001
    """Swap primary and secondary. An offline primary forces the move."""
    old_primary = node_at(nodes, instance.primary)
    old_secondary = node_at(nodes, instance.secondary)
    _check_migration(old_primary, old_secondary)
    offline = old_primary.facts.offline
    force = force or offline
    new_primary = _taken(add_primary(remove_secondary(old_secondary, instance), instance, force=force))
    left = remove_primary(old_primary, instance)
    new_secondary = _taken(add_secondary(left, instance, instance.secondary, force=force, ignore_disk=offline))
    swapped = replace(instance, primary=instance.secondary, secondary=instance.primary)
    return Moved({instance.secondary: new_primary, instance.primary: new_secondary}, swapped)


def _failover_to(nodes: Nodes, instance: Instance, target: int, force: bool) -> Moved:  # noqa: FBT001
    """Start the instance (on external storage) on `target` instead. An offline source forces the move."""
    source = node_at(nodes, instance.primary)
    _check_migration(source, node_at(nodes, target))
    new = _taken(add_primary(nodes[target], instance, force=force or source.facts.offline))
    left = remove_primary(source, instance)
    return Moved({target: new, instance.primary: left}, replace(instance, primary=target))


def _replace_secondary(nodes: Nodes, instance: Instance, target: int, force: bool) -> Moved:  # noqa: FBT001
    """Replace the secondary by `target`. An offline old secondary forces the move."""
    primary, old = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    moved = _on(nodes, instance, instance.primary, target)
    new = _taken(add_secondary(nodes[target], moved, instance.primary, force=force or old.facts.offline))
    again = _taken(add_primary(remove_primary(primary, instance), moved, force=True))
    left = remove_secondary(old, instance)
    # if two of the three are the same node, the later one counts
    return Moved({instance.secondary: left, target: new, instance.primary: again}, moved)


def _replace_and_failover(nodes: Nodes, instance: Instance, target: int, force: bool) -> Moved:  # noqa: FBT001
    """Replace the secondary by `target` and fail over to it; the old primary becomes the secondary."""
    old, left = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    _check_migration(old, node_at(nodes, target))
    moved = _on(nodes, instance, target, instance.primary)
    new_primary = _taken(add_primary(nodes[target], moved, force=force))
    freed = remove_primary(old, instance)
    new_secondary = _taken(add_secondary(freed, moved, target, force=force or left.facts.offline))
    left = remove_secondary(left, instance)
    return Moved({target: new_primary, instance.primary: new_secondary, instance.secondary: left}, moved)


def _replace_primary(nodes: Nodes, instance: Instance, target: int, force: bool) -> Moved:  # noqa: FBT001
    """Replace the primary by `target`: fail over, replace the new secondary, fail over again.

    The secondary must be able to run the instance for a moment.
    """
    old, kept = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    _check_migration(old, kept)
    _check_migration(kept, node_at(nodes, target))
    force = force or old.facts.offline
    moved = _on(nodes, instance, target, instance.secondary)
    running = _taken(add_primary(remove_secondary(kept, instance), moved, force=force))
    new_primary = _taken(add_primary(nodes[target], moved, force=force))
    again = _taken(add_secondary(remove_primary(running, moved), moved, target, force=force))
    left = remove_primary(old, instance)
    return Moved({instance.primary: left, target: new_primary, instance.secondary: again}, moved)


def _failover_and_replace(nodes: Nodes, instance: Instance, target: int, force: bool) -> Moved:  # noqa: FBT001
    """Fail over, and replace the new secondary by `target`."""
    old, kept = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    _check_migration(old, kept)
    force = force or old.facts.offline
    moved = _on(nodes, instance, instance.secondary, target)
    new_primary = _taken(add_primary(remove_secondary(kept, instance), moved, force=force))
    new_secondary = _taken(add_secondary(nodes[target], moved, instance.secondary, force=force))
    left = remove_primary(old, instance)
    return Moved({instance.primary: left, instance.secondary: new_primary, target: new_secondary}, moved)


def _check_migration(source: Node, target: Node) -> None:
    if not may_migrate(source, target):
        raise _NotTakenError(FailReason.MIG)


def _taken(result: Node | FailReason) -> Node:
    if isinstance(result, FailReason):
        raise _NotTakenError(result)
    return result


def _on(nodes: Nodes, instance: Instance, primary: int, secondary: int) -> Instance:
    """Return the record on other nodes, with the location score there."""
    common = nodes[primary].facts.location_tags & nodes[secondary].facts.location_tags
    return replace(instance, primary=primary, secondary=secondary, location_score=len(common))


_MOVES: Mapping[MoveKind, Callable[[Nodes, Instance, int, bool], Moved]] = {
    MoveKind.FAILOVER: _failover,
    MoveKind.FAILOVER_TO: _failover_to,
    MoveKind.REPLACE_SECONDARY: _replace_secondary,
    MoveKind.REPLACE_AND_FAILOVER: _replace_and_failover,
    MoveKind.REPLACE_PRIMARY: _replace_primary,
    MoveKind.FAILOVER_AND_REPLACE: _failover_and_replace,
}
