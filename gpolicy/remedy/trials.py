"""The moves of instances, each tried as late as possible, and again only when a node that it touches has changed.

What a move ends follows from where it leads, unless a node that it touches lacks something: then it is known at
most. So most moves need no trial: only those do that can be the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, NamedTuple

from gpolicy.allocator.enumerations import NO_NODE, FailReason
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.remedy.faults import Layout, lack, shortage, tag_units
from gpolicy.remedy.moving import Movers, Trial, copied_by
from gpolicy.stopping import Stop

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Nodes

Key = tuple[float, ...]
"""What a move is judged by, less is better: the disk (MiB) to copy for each unit that it ends, units, lack."""


def key_of(units: int, less: int, copied: int) -> Key:
    """Return what a move is judged by: it ends so many units of what is wrong, and nodes lack so much less."""
    return (units <= 0, copied / max(units, 1), -units, -less)


class PossibleMove(NamedTuple):
    """A move that may help: the best that it can be judged by, and its place among the moves of its instance."""

    key: Key
    place: int


@dataclass(slots=True)
class _Known:
    """Moves of one instance, as its own nodes are, and where others with its tags are.

    `found` is what each move does, as far as it was tried. `places` are those of the moves to each node.
    """

    item: Instance
    own: tuple[Node | None, ...]
    crowds: tuple[Mapping[str, frozenset[int]], ...]
    moves: tuple[InstanceMove, ...]
    found: list[Trial | FailReason | None]
    places: dict[int, list[int]]
    candidates: list[PossibleMove] | None = None


Part = tuple[int, bool]
"""Moves of one instance, by its number: those that copy disks (true), or the others."""


@dataclass(slots=True)
class Trials:
    """What is known of the moves of instances in the layout that was asked for last. `stop` counts each trial."""

    movers: Movers
    stop: Stop
    _known: dict[Part, _Known] = field(default_factory=dict)
    _nodes: Nodes = field(default_factory=dict)

    def candidates(self, layout: Layout, part: Part) -> list[PossibleMove]:
        """Return the moves that may help, the best first."""
        known = self._of(layout, part)
        if known.candidates is None:
            self.stop.spend()  # it may be time to end
            known.candidates = self._judged(layout, known)
        return known.candidates

    def move(self, part: Part, place: int) -> InstanceMove:
        """Return a move by its place."""
        return self._known[part].moves[place]

    def at(self, layout: Layout, part: Part, place: int) -> Trial | FailReason:
        """Return what the move at a place does, or why its nodes do not take the instance."""
        known = self._known[part]
        found = known.found[place]
        if found is None:
            self.stop.spend(1)
            found = known.found[place] = self.movers.try_move(layout, known.moves[place])
        return found

    def all(self, layout: Layout, number: int) -> Iterator[tuple[InstanceMove, Trial | FailReason]]:
        """Yield each move of an instance and what it does, or why its nodes do not take the instance."""
        for part in ((number, False), (number, True)):
            for place, move in enumerate(self._of(layout, part).moves):
                yield move, self.at(layout, part, place)

    def possible(self, layout: Layout, number: int) -> Iterator[Trial]:
        """Yield the moves of an instance that its nodes take."""
        return (found for _, found in self.all(layout, number) if isinstance(found, Trial))

    def _of(self, layout: Layout, part: Part) -> _Known:
        self._follow(layout)
        number, copying = part
        item = layout.instances[number]
        own = tuple(layout.nodes.get(index) for index in (item.primary, item.secondary))
        crowds = tuple(layout.tagged[tag] for tag in item.exclusion_tags)
        known = self._known.get(part)
        if known is None or known.item is not item:
            chosen = (dropwhile if copying else takewhile)(_copies_nothing, self.movers.moves(layout, number))
            known = self._known[part] = _begin(item, own, crowds, tuple(chosen))
        elif not _same(known.own, own) or not _same(known.crowds, crowds):
            known.found = [None] * len(known.moves)
            if not _same(known.crowds, crowds) or any(lack(node) for node in (*known.own, *own) if node):
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

    def _judged(self, layout: Layout, known: _Known) -> list[PossibleMove]:
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


def _copies_nothing(move: InstanceMove) -> bool:
    return not copied_by(move)


def _begin(
    item: Instance,
    own: tuple[Node | None, ...],
    crowds: tuple[Mapping[str, frozenset[int]], ...],
    moves: tuple[InstanceMove, ...],
) -> _Known:
    places: dict[int, list[int]] = {}
    for place, move in enumerate(moves):
        places.setdefault(move.target, []).append(place)
    return _Known(item, own, crowds, moves, [None] * len(moves), places)


def _same(these: tuple[object, ...], those: tuple[object, ...]) -> bool:
    return all(this is that for this, that in zip(these, those, strict=True))


def _after(move: InstanceMove) -> tuple[int, int]:
    """Return the primary and the secondary after a move."""
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
