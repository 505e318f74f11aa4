"""Moving an existing instance: fail-over, fail-over to any node, replacement of the secondary, and both combined.

A move returns the changed nodes and the changed record of the instance, or the first reason against it. All removals
are computed before the additions (htools, Cluster/Moves: `IMove`, `applyMoveEx`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from gpolicy.allocator.enumerations import NO_NODE, FailReason
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
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


def apply_move(nodes: Nodes, move: InstanceMove, *, force: bool) -> Moved | FailReason:
    """Return the changed nodes and the instance after a move, or the first reason against it."""
    if move.kind is MoveKind.FAILOVER:
        return failover(nodes, move.instance, force=force)
    return _MOVES[move.kind](nodes, move.instance, move.target, force=force)


def node_at(nodes: Nodes, index: int) -> Node:
    """Return the node `index`, which must be among `nodes`.

    Raises InputError if it is not: a mirrored instance has no secondary, or has one outside the nodes of the request.
    The original program ends with an error here.
    """
    node = nodes.get(index)
    if node is not None:
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


def failover(nodes: Nodes, instance: Instance, *, force: bool) -> Moved | FailReason:
    """Swap primary and secondary. An offline primary forces the move."""
    old_primary = node_at(nodes, instance.primary)
    old_secondary = node_at(nodes, instance.secondary)
    offline = old_primary.facts.offline
    without_primary = remove_primary(old_primary, instance)
    without_secondary = remove_secondary(old_secondary, instance)
    if not may_migrate(old_primary, old_secondary):
        return FailReason.MIG
    new_primary = add_primary(without_secondary, instance, force=force or offline)
    if isinstance(new_primary, FailReason):
        return new_primary
    new_secondary = add_secondary(
        without_primary, instance, instance.secondary, force=force or offline, ignore_disk=offline
    )
    if isinstance(new_secondary, FailReason):
        return new_secondary
    swapped = replace(instance, primary=instance.secondary, secondary=instance.primary)
    return Moved({instance.secondary: new_primary, instance.primary: new_secondary}, swapped)


def failover_to(nodes: Nodes, instance: Instance, target: int, *, force: bool) -> Moved | FailReason:
    """Start the instance (on external storage) on `target` instead. An offline source forces the move."""
    source = node_at(nodes, instance.primary)
    if not may_migrate(source, node_at(nodes, target)):
        return FailReason.MIG
    new = add_primary(nodes[target], instance, force=force or source.facts.offline)
    if isinstance(new, FailReason):
        return new
    left = remove_primary(source, instance)
    return Moved({target: new, instance.primary: left}, replace(instance, primary=target))


def replace_secondary(nodes: Nodes, instance: Instance, target: int, *, force: bool) -> Moved | FailReason:
    """Replace the secondary by `target`. An offline old secondary forces the move."""
    primary, old = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    moved = _on(nodes, instance, instance.primary, target)
    new = add_secondary(nodes[target], moved, instance.primary, force=force or old.facts.offline)
    if isinstance(new, FailReason):
        return new
    again = add_primary(remove_primary(primary, instance), moved, force=True)
    if isinstance(again, FailReason):
        return again
    left = remove_secondary(old, instance)
    # if two of the three are the same node, the later one counts
    return Moved({instance.secondary: left, target: new, instance.primary: again}, moved)


def replace_and_failover(nodes: Nodes, instance: Instance, target: int, *, force: bool) -> Moved | FailReason:
    """Replace the secondary by `target` and fail over to it; the old primary becomes the secondary."""
    old, left = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    if not may_migrate(old, node_at(nodes, target)):
        return FailReason.MIG
    moved = _on(nodes, instance, target, instance.primary)
    new_primary = add_primary(nodes[target], moved, force=force)
    if isinstance(new_primary, FailReason):
        return new_primary
    new_secondary = add_secondary(remove_primary(old, instance), moved, target, force=force or left.facts.offline)
    if isinstance(new_secondary, FailReason):
        return new_secondary
    changed = {
        target: new_primary,
        instance.primary: new_secondary,
        instance.secondary: remove_secondary(left, instance),
    }
    return Moved(changed, moved)


def replace_primary(nodes: Nodes, instance: Instance, target: int, *, force: bool) -> Moved | FailReason:
    """Replace the primary by `target`: fail over, replace the new secondary, fail over again.

    The secondary must be able to run the instance for a moment.
    """
    old, kept = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    if not may_migrate(old, kept) or not may_migrate(kept, node_at(nodes, target)):
        return FailReason.MIG
    force = force or old.facts.offline
    moved = _on(nodes, instance, target, instance.secondary)
    running = add_primary(remove_secondary(kept, instance), moved, force=force)
    if isinstance(running, FailReason):
        return running
    new_primary = add_primary(nodes[target], moved, force=force)
    if isinstance(new_primary, FailReason):
        return new_primary
    again = add_secondary(remove_primary(running, moved), moved, target, force=force)
    if isinstance(again, FailReason):
        return again
    changed = {instance.primary: remove_primary(old, instance), target: new_primary, instance.secondary: again}
    return Moved(changed, moved)


def failover_and_replace(nodes: Nodes, instance: Instance, target: int, *, force: bool) -> Moved | FailReason:
    """Fail over, and replace the new secondary by `target`."""
    old, kept = node_at(nodes, instance.primary), node_at(nodes, instance.secondary)
    if not may_migrate(old, kept):
        return FailReason.MIG
    force = force or old.facts.offline
    moved = _on(nodes, instance, instance.secondary, target)
    new_primary = add_primary(remove_secondary(kept, instance), moved, force=force)
    if isinstance(new_primary, FailReason):
        return new_primary
    new_secondary = add_secondary(nodes[target], moved, instance.secondary, force=force)
    if isinstance(new_secondary, FailReason):
        return new_secondary
    changed = {instance.primary: remove_primary(old, instance), instance.secondary: new_primary, target: new_secondary}
    return Moved(changed, moved)


def _on(nodes: Nodes, instance: Instance, primary: int, secondary: int) -> Instance:
    """Return the record on other nodes, with the location score there."""
    common = nodes[primary].facts.location_tags & nodes[secondary].facts.location_tags
    return replace(instance, primary=primary, secondary=secondary, location_score=len(common))


_MOVES: Mapping[MoveKind, Callable[..., Moved | FailReason]] = {
    MoveKind.FAILOVER_TO: failover_to,
    MoveKind.REPLACE_SECONDARY: replace_secondary,
    MoveKind.REPLACE_AND_FAILOVER: replace_and_failover,
    MoveKind.REPLACE_PRIMARY: replace_primary,
    MoveKind.FAILOVER_AND_REPLACE: failover_and_replace,
}
