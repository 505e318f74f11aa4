"""Single moves: which ones an instance may make, what they end and copy, and whether N+1 holds while they run.

The moves are hbal's (`gpolicy.allocator.balancing`), and for plain instances Ganeti's own `gnt-instance move`. None is
forced, except that what is on an unusable node may leave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from gpolicy.allocator.balancing import possible_moves
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, FailReason
from gpolicy.allocator.extended import ExtendedRules, memory_left
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind, apply_move, failover, replace_secondary
from gpolicy.allocator.native.library import MoveRules
from gpolicy.allocator.policy_check import check_policy
from gpolicy.remedy.faults import Fault, Gain, Layout, Places, find_faults, gain_of, shortage, tag_places

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance

ANY_MOVE = MoveRules(0)
_FROM_PRIMARY = (MoveKind.REPLACE_SECONDARY, MoveKind.REPLACE_AND_FAILOVER)
"""The moves that begin with a copy of the disks on the primary node."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A move that its nodes take: what it ends, and the disk (MiB) that it copies."""

    move: InstanceMove
    moved: Moved
    gain: Gain
    copied: int


@dataclass(frozen=True, slots=True)
class Movers:
    """The instances of a cluster and where they may go.

    `fixed` says of instances that nothing moves why. `silent` are the nodes that do not answer: nothing is copied from
    them, and what is on them is down. `shared` are the rules of groups whose memory may be over-subscribed.
    """

    places: Places
    fixed: Mapping[int, str]
    silent: frozenset[int] = frozenset()
    shared: Mapping[int, ExtendedRules] = field(default_factory=dict)

    def faults(self, layout: Layout) -> tuple[Fault, ...]:
        """Return all that is wrong with a layout."""
        return find_faults(layout, self.places)

    def moves(self, layout: Layout, number: int) -> Iterator[InstanceMove]:
        """Yield the possible moves of an instance within its group; of one in two groups, into either."""
        item = layout.instances[number]
        if number in self.fixed or item.primary not in layout.nodes:
            return
        own = [layout.nodes[index] for index in (item.primary, item.secondary) if index in layout.nodes]
        groups = {node.facts.group for node in own}
        near = {index: node for index, node in layout.nodes.items() if node.facts.group in groups}
        if item.template is DiskTemplate.PLAIN:
            exclusive = own[0].facts.exclusive
            targets = (
                index
                for index, node in near.items()
                if index != item.primary and not node.facts.offline and node.facts.exclusive is exclusive
            )
            yield from (InstanceMove(MoveKind.FAILOVER_TO, item, index) for index in targets)
        else:
            yield from possible_moves(near, item, ANY_MOVE)

    def try_move(self, layout: Layout, move: InstanceMove) -> Trial | FailReason:
        """Return what a move does, or why its nodes do not take the instance."""
        old = move.instance
        if old.primary in self.silent and move.kind in _FROM_PRIMARY:
            return FailReason.INTERNAL  # Ganeti refuses it, hbal does not
        moved = apply_move(layout.nodes, move, force=False)
        if isinstance(moved, FailReason):
            return moved
        primary = layout.nodes[moved.instance.primary]
        rules = None if moved.instance.primary == old.primary else self.shared.get(primary.facts.group)
        if rules is not None and old.burst > memory_left(primary, layout.instances, rules):
            return FailReason.MEM
        for index in {moved.instance.primary, moved.instance.secondary} - {old.primary, old.secondary, NO_NODE}:
            facts = layout.nodes[index].facts
            if facts.exclusive and move.kind is not MoveKind.FAILOVER_TO:
                return FailReason.SPINDLES
            elsewhere = facts.group != layout.nodes[old.primary].facts.group
            if elsewhere and check_policy(facts.policy, old, exclusive=facts.exclusive) is not None:
                return FailReason.DISK_COUNT  # stands for any reason of the policy
        return Trial(move, moved, gain_of(layout, self.places, old, moved), copied_by(move))

    def most_units(self, layout: Layout, item: Instance) -> int:
        """Return how many units a move of an instance can end at most."""
        own = [layout.nodes[index] for index in (item.primary, item.secondary) if index in layout.nodes]
        places = tag_places(item, layout.nodes)
        tags = sum(len(layout.tagged[tag][place]) > 1 for tag in {*item.exclusion_tags} for place in places)
        return self.places.units(item, layout.nodes) + tags + sum(shortage(node) > 0 for node in own)

    def is_safe(self, layout: Layout, trial: Trial, *, alone: bool = False) -> bool:
        """Whether N+1 is no worse than before after each part of a move: no node newly lacks memory for its mirrored
        instances or lacks more, and no more losses of nodes, with no more instances, cannot be absorbed.

        On the way, that is not asked of an instance that is down with its node: it starts, and is mirrored later; nor
        of one that leaves a node above its vcpu-ratio, where it ran: it would go back there.
        `alone`: no instance may newly find no node, even if others find one then."""
        before = _losses(layout)
        item = trial.move.instance
        leaves = item.primary in self.silent or layout.nodes[item.primary].exceeds_vcpu_ratio
        apart = item.name if leaves else None
        touched = {item.primary, item.secondary, trial.move.target} & layout.nodes.keys()
        *parts, last = states_during(layout, trial)
        for state in (*parts, last):
            if state is None or any(shortage(state.nodes[index]) > shortage(layout.nodes[index]) for index in touched):
                return False
            after = _losses(state, None if state is last else apart)
            if after[0] > before[0] or after[1] > before[1]:
                return False
            if alone and not _who(state) <= _who(layout):
                return False
        return True


def _who(layout: Layout) -> set[tuple[int, str]]:
    return {(index, item.instance) for index, items in layout.homeless.items() for item in items}


def _losses(layout: Layout, without: str | None = None) -> tuple[int, int]:
    """Return how many losses of nodes cannot be absorbed, and for how many instances but for `without`."""
    found = [sum(item.instance != without for item in items) for items in layout.homeless.values()]
    return sum(map(bool, found)), sum(found)


def copied_by(move: InstanceMove) -> int:
    """Return the disk (MiB) that a move copies: all of the instance's, onto its new node."""
    if move.target == NO_NODE or not move.instance.template.local:
        return 0
    return sum(disk.size for disk in move.instance.disks)


def states_during(layout: Layout, trial: Trial) -> Iterator[Layout | None]:
    """Yield the layout after each job that the move is made of, the last one included; None where one cannot be."""
    target = trial.move.target
    replaced = partial(replace_secondary, target=target, force=True)
    swapped = partial(failover, force=True)
    parts = {
        MoveKind.REPLACE_AND_FAILOVER: (replaced,),
        MoveKind.REPLACE_PRIMARY: (swapped, replaced),
        MoveKind.FAILOVER_AND_REPLACE: (swapped,),
    }.get(trial.move.kind, ())
    here, item = layout, trial.move.instance
    for part in parts:
        moved = part(here.nodes, item)
        if isinstance(moved, FailReason):
            yield None
            return
        here, item = here.after(moved), moved.instance
        yield here
    yield layout.after(trial.moved)


def why_fixed(item: Instance) -> str:
    """Return why nothing moves an instance, by its own properties; empty if something may."""
    if item.forthcoming:
        return "it is only planned"
    if not item.auto_balance:
        return "its auto_balance is off, so nothing may move it by itself"
    if not (item.template.balanced or item.template is DiskTemplate.PLAIN):
        return f"Ganeti does not move {item.template.value} instances by itself"
    return ""
