"""Single moves: which ones an instance may make, what they end and copy, and whether N+1 holds while they run.

The moves are hbal's (`gpolicy.allocator.balancing`), and for plain instances Ganeti's own `gnt-instance move`. None is
forced, except that what is on an unusable node may leave it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import NamedTuple

from gpolicy.allocator.balancing import possible_moves
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.compiled_allocation import memory_left
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind, apply_move
from gpolicy.allocator.native.library import ANY_MOVE
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.progress import Stop
from gpolicy.remedy.faults import Gain, Layout, Places, gain_of, lack, shortage, tag_places, tag_units

_FROM_PRIMARY = (MoveKind.REPLACE_SECONDARY, MoveKind.REPLACE_AND_FAILOVER)
"""The moves that begin with a copy of the disks on the primary node."""


@dataclass(frozen=True, slots=True)
class MoveTrial:
    """A move that its nodes take: what it ends, and the disk (MiB) that it copies."""

    move: InstanceMove
    moved: Moved
    gain: Gain
    copied: int


@dataclass(frozen=True, slots=True)
class Movers:
    """The instances of a cluster and where they may go.

    `fixed` says of instances that nothing moves why. `silent` are the nodes that do not answer: nothing is copied from
    them, and what is on them is down. `shared` is how many times the memory of groups may be over-subscribed.
    """

    places: Places
    fixed: Mapping[int, str]
    silent: frozenset[int] = frozenset()
    shared: Mapping[int, float] = field(default_factory=dict)

    def moves(self, layout: Layout, number: int) -> Iterator[InstanceMove]:
        """Yield the possible moves of an instance within its group; of one in two groups, into either."""
        item = layout.instances[number]
        if number in self.fixed:
            return
        own = [layout.nodes[index] for index in (item.primary, item.secondary) if index in layout.nodes]
        groups = {node.facts.group for node in own}
        near = {index: node for index, node in layout.nodes.items() if node.facts.group in groups}
        if item.template is DiskTemplate.PLAIN:
            for index, node in near.items():
                if index != item.primary and not node.facts.offline and node.facts.exclusive is own[0].facts.exclusive:
                    yield InstanceMove(MoveKind.FAILOVER_TO, item, index)
        else:
            yield from possible_moves(near, item, ANY_MOVE)

    def try_move(self, layout: Layout, move: InstanceMove) -> MoveTrial | FailReason:
        """Return what a move does, or why its nodes do not take the instance."""
        old = move.instance
        if old.primary in self.silent and move.kind in _FROM_PRIMARY:
            return FailReason.INTERNAL  # Ganeti refuses it, hbal does not
        moved = apply_move(layout.nodes, move, force=False)
        if isinstance(moved, FailReason):
            return moved
        primary = layout.nodes[moved.instance.primary]
        most = None if moved.instance.primary == old.primary else self.shared.get(primary.facts.group)
        if old.burst > memory_left(primary, layout.instances, most):
            return FailReason.MEM
        for index in {moved.instance.primary, moved.instance.secondary} - {old.primary, old.secondary, NO_NODE}:
            facts = layout.nodes[index].facts
            if facts.exclusive and move.kind is not MoveKind.FAILOVER_TO:
                return FailReason.SPINDLES
            elsewhere = facts.group != layout.nodes[old.primary].facts.group
            if elsewhere and check_ipolicy(facts.policy, old, exclusive=facts.exclusive) is not None:
                return FailReason.DISK_COUNT  # stands for any reason of the policy
        return MoveTrial(move, moved, gain_of(layout, self.places, old, moved), copied_by(move))

    def most_units(self, layout: Layout, item: Instance) -> int:
        """Return how many units a move of an instance can end at most."""
        own = [layout.nodes[index] for index in (item.primary, item.secondary) if index in layout.nodes]
        places = tag_places(item, layout.nodes)
        tags = sum(len(layout.tagged[tag][place]) > 1 for tag in {*item.exclusion_tags} for place in places)
        return self.places.units(item, layout.nodes) + tags + sum(shortage(node) > 0 for node in own)

    def is_safe(self, layout: Layout, trial: MoveTrial) -> bool:
        """Whether N+1 is no worse than before after each part of a move: no node newly lacks memory for its mirrored
        instances or lacks more, and no more losses of nodes, with no more instances, cannot be absorbed.

        On the way, that is not asked of an instance that is down with its node: it starts, and is mirrored later; nor
        of one that leaves a node above its vcpu-ratio, where it ran: it would go back there."""
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
        return True


def _losses(layout: Layout, without: str | None = None) -> tuple[int, int]:
    """Return how many losses of nodes cannot be absorbed, and for how many instances but for `without`."""
    found = [sum(item.instance != without for item in items) for items in layout.homeless.values()]
    return sum(map(bool, found)), sum(found)


def copied_by(move: InstanceMove) -> int:
    """Return the disk (MiB) that a move copies: all of the instance's, onto its new node, unless it is not made yet."""
    if move.target == NO_NODE or not move.instance.template.local or move.instance.forthcoming:
        return 0
    return sum(disk.size for disk in move.instance.disks)


def states_during(layout: Layout, trial: MoveTrial) -> Iterator[Layout | None]:
    """Yield the layout after each job that the move is made of, the last one included; None where one cannot be."""
    parts = {
        MoveKind.REPLACE_AND_FAILOVER: (MoveKind.REPLACE_SECONDARY,),
        MoveKind.REPLACE_PRIMARY: (MoveKind.FAILOVER, MoveKind.REPLACE_SECONDARY),
        MoveKind.FAILOVER_AND_REPLACE: (MoveKind.FAILOVER,),
    }.get(trial.move.kind, ())
    here, item = layout, trial.move.instance
    for part in parts:
        moved = apply_move(here.nodes, InstanceMove(part, item, trial.move.target), force=True)
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


MoveKey = tuple[float, ...]
"""What a move is judged by, less is better: the disk (MiB) to copy for each unit that it ends, units, lack."""


def key_of(units: int, less: int, copied: int) -> MoveKey:
    """Return what a move is judged by: it ends so many units of what is wrong, and nodes lack so much less."""
    return (units <= 0, copied / max(units, 1), -units, -less)


class PossibleMove(NamedTuple):
    """A move that may help: the best that it can be judged by, and its place among the moves of its instance."""

    key: MoveKey
    place: int


@dataclass(slots=True)
class _KnownMoves:
    """Moves of one instance, as its own nodes are, and where others with its tags are.

    `found` is what each move does, as far as it was tried. `places` are those of the moves to each node.
    """

    item: Instance
    own: tuple[Node | None, ...]
    crowds: tuple[Mapping[str, frozenset[int]], ...]
    moves: tuple[InstanceMove, ...]
    found: list[MoveTrial | FailReason | None]
    places: dict[int, list[int]]
    candidates: list[PossibleMove] | None = None


MovingPart = tuple[int, bool]
"""Moves of one instance, by its number: those that copy disks (true), or the others."""


@dataclass(slots=True)
class MoveTrials:
    """What is known of the moves of instances in the layout that was asked for last. `stop` counts each trial."""

    movers: Movers
    stop: Stop
    _known: dict[MovingPart, _KnownMoves] = field(default_factory=dict)
    _nodes: Mapping[int, Node] = field(default_factory=dict)

    def candidates(self, layout: Layout, part: MovingPart) -> list[PossibleMove]:
        """Return the moves that may help, the best first."""
        known = self._of(layout, part)
        if known.candidates is None:
            self.stop.spend()  # it may be time to end
            known.candidates = self._judged(layout, known)
        return known.candidates

    def move(self, part: MovingPart, place: int) -> InstanceMove:
        """Return a move by its place."""
        return self._known[part].moves[place]

    def at(self, layout: Layout, part: MovingPart, place: int) -> MoveTrial | FailReason:
        """Return what the move at a place does, or why its nodes do not take the instance."""
        known = self._known[part]
        found = known.found[place]
        if found is None:
            self.stop.spend(1)
            found = known.found[place] = self.movers.try_move(layout, known.moves[place])
        return found

    def all(self, layout: Layout, number: int) -> Iterator[tuple[InstanceMove, MoveTrial | FailReason]]:
        """Yield each move of an instance and what it does, or why its nodes do not take the instance."""
        for part in ((number, False), (number, True)):
            for place, move in enumerate(self._of(layout, part).moves):
                yield move, self.at(layout, part, place)

    def possible(self, layout: Layout, number: int) -> Iterator[MoveTrial]:
        """Yield the moves of an instance that its nodes take."""
        return (found for _, found in self.all(layout, number) if isinstance(found, MoveTrial))

    def _of(self, layout: Layout, part: MovingPart) -> _KnownMoves:
        self._follow(layout)
        number, copying = part
        item = layout.instances[number]
        own = tuple(layout.nodes.get(index) for index in (item.primary, item.secondary))
        crowds = tuple(layout.tagged[tag] for tag in item.exclusion_tags)
        known = self._known.get(part)
        if known is None or known.item is not item:
            chosen = dropwhile if copying else takewhile
            found = chosen(lambda move: not copied_by(move), self.movers.moves(layout, number))
            moves, places = tuple(found), dict[int, list[int]]()
            for place, move in enumerate(moves):
                places.setdefault(move.target, []).append(place)
            known = self._known[part] = _KnownMoves(item, own, crowds, moves, [None] * len(moves), places)
        elif not _all_same(known.own, own) or not _all_same(known.crowds, crowds):
            known.found = [None] * len(known.moves)
            if not _all_same(known.crowds, crowds) or any(lack(node) for node in (*known.own, *own) if node):
                known.candidates = None
            known.own, known.crowds = own, crowds
        return known

    def _follow(self, layout: Layout) -> None:
        """Forget the moves to nodes that are not as they were."""
        before, self._nodes = self._nodes, layout.nodes
        if before is self._nodes:
            return
        for index in [index for index, node in layout.nodes.items() if before.get(index) is not node]:
            lacks = any(lack(node) for node in (before.get(index), layout.nodes[index]) if node)
            for known in self._known.values():
                for place in known.places.get(index, ()):
                    known.found[place] = None
                if lacks and index in known.places:
                    known.candidates = None

    def _judged(self, layout: Layout, known: _KnownMoves) -> list[PossibleMove]:
        item, places = known.item, self.movers.places
        now = places.units(item, layout.nodes)
        own = [node for node in known.own if node is not None]
        short, lacking = sum(shortage(node) > 0 for node in own), sum(map(lack, own))
        targets = {index: layout.nodes[index] for index in known.places if index != NO_NODE}
        lacks_at = {index: much for index, node in targets.items() if (much := lack(node))}
        short_at = {index for index in lacks_at if shortage(targets[index])}
        of_tags: dict[int, int] = {item.primary: 0}
        found = []
        for place, move in enumerate(known.moves):
            primary, secondary = _after(move)
            wrong = places.wrong_at(primary, secondary, item.template, layout.nodes)
            units = now - sum(number for _, number in wrong) if wrong else now
            if item.exclusion_tags:
                if primary not in of_tags:
                    of_tags[primary] = tag_units(layout, item, primary)
                units += of_tags[primary]
            units, less = units + short + (move.target in short_at), lacking + lacks_at.get(move.target, 0)
            if (units, less) > (0, 0):
                found.append(PossibleMove(key_of(units, less, copied_by(move)), place))
        return sorted(found)


def _all_same(these: tuple[object, ...], those: tuple[object, ...]) -> bool:
    return all(this is that for this, that in zip(these, those, strict=True))


def _after(move: InstanceMove) -> tuple[int, int]:
    item, target = move.instance, move.target
    match move.kind:
        case MoveKind.FAILOVER:
            return item.secondary, item.primary
        case MoveKind.REPLACE_SECONDARY:
            return item.primary, target
        case MoveKind.REPLACE_AND_FAILOVER:
            return target, item.primary
        case MoveKind.FAILOVER_AND_REPLACE:
            return item.secondary, target
    return target, item.secondary  # FAILOVER_TO, REPLACE_PRIMARY
