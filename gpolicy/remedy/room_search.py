"""The search for the cheapest safe moves after which hail accepts wanted instances.

It goes by what wanted instances lack on the nodes that are nearest to taking them. Each layout on the way is reached by
moves that are safe (`Movers.is_safe`) and bring no fault, or by the cure of the cluster where nothing fits before it;
hail says how many wanted instances it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush, nsmallest
from itertools import combinations, starmap
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, FailReason, Instance, Node
from gpolicy.allocator.instance_moves import InstanceMove
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.loaded_state import LoadedState
from gpolicy.cluster.terms import PairNames
from gpolicy.printable import count
from gpolicy.progress import until_stopped
from gpolicy.remedy.faults import Layout
from gpolicy.remedy.moving import MoveTrial, copied_by
from gpolicy.remedy.room import PLENTY, Hail, MadeRoom, Want, free_on, most_that_fit, use_of
from gpolicy.remedy.search import Moves, RemedySearch, step_of

MOST_NEAR: Final = 4
"""How many nodes, of those that are nearest to taking a wanted instance, lose instances in one step."""
MOST_TARGETS: Final = 4
"""How many nodes an instance may move to in one step, where there are more."""
FEW_MOVES: Final = 400
"""Where there are no more moves than these, each one is tried in each step."""
MOST_MISSING: Final = 4
"""How many missing instances a step makes room for at once."""
MOST_WORK: Final = 12_000
"""How many moves are tried in a minute, twice as many where each one is; a layout counts for some more."""
LONGER: Final = 4
"""How many times as many, as long as no list of moves is found."""


_MoveSequence = tuple[InstanceMove, ...]


@dataclass(frozen=True, slots=True)
class _Reached:
    """A layout on the way, the moves that lead to it with the layout after each, and the disk (MiB) that they copy."""

    layout: Layout
    steps: tuple[tuple[InstanceMove, Layout], ...] = ()
    copied: int = 0

    @property
    def cost(self) -> tuple[int, int]:
        return self.copied, len(self.steps)

    @property
    def moves(self) -> _MoveSequence:
        return tuple(move for move, _ in self.steps)

    def after(self, trial: MoveTrial) -> _Reached:
        layout = self.layout.after(trial.moved)
        return _Reached(layout, (*self.steps, (trial.move, layout)), self.copied + trial.copied)


@dataclass
class RoomSearch:
    """One search for moves that make room. Its `search` says at the end whether all was tried (`exhaustive`).

    It goes on from the layout that seems nearest: by what is copied, and what the missing instances lack.
    """

    search: RemedySearch
    before: Moves
    hail: Hail
    wanted: int
    now: int
    _most: int = field(default=0, init=False)
    _seen: dict[tuple[tuple[int, int], ...], tuple[int, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.start, self.movers, self.stop = self.search.start, self.search.movers, self.search.stop
        self._known, down = set(self.before.faults), self.movers.silent
        free = ((no, item) for no, item in self.start.instances.items() if no not in self.movers.fixed)
        self._movable = [no for no, item in free if item.primary not in down]
        self._usable = {index for members in self.hail.usable.values() for index in members}
        disks = [item.disk for item in self.start.instances.values() if item.disk] or [1024]
        self._worth = 2 * sum(disks) / len(disks)
        online = sum(not node.facts.offline for node in self.start.nodes.values())
        simulated = 16 if self.hail.instance.template.externally_mirrored else 2
        self._all = len(self._movable) * online * 4 <= FEW_MOVES
        many = min(640, simulated * len(self.start.nodes)) if self.start.unmirrored else 0
        self._effort = 5 if self._all else 50 + many

    def find(self) -> Moves:
        """Return the cheapest moves that were found; `before`, which is without moves, if there are none."""
        best: _Reached | None = None
        ended = False
        with until_stopped():
            for best in self._found():
                self.search.tell(f"{count(len(best.steps), 'move')} so far")
            best, ended = best and self._shortened(best), True
        self.search.exhaustive = self.search.exhaustive and ended
        if best is None:
            return self.before
        return Moves(tuple(starmap(step_of, best.steps)), best.layout, self.movers.places.faults(best.layout))

    def most_reached(self) -> int:
        """Return how many of the wanted instances hail accepts after moves, all of them or as many as were reached."""
        with until_stopped():
            next(self._found(), None)
        return self._most

    def _found(self) -> Iterator[_Reached]:
        """Yield lists of moves that make room, each cheaper than the one before."""
        queue: list[tuple[float, int, _Reached, MoveTrial | None]] = [(0.0, 0, _Reached(self.start), None)]
        number = 1
        if not self.now and self.before.faults:
            cured = _Reached(self.start)  # hail may take nothing before what is wrong is cured
            for step in self.search.find(self.before).steps:
                layout = cured.layout.reached(step.nodes, step.instances)
                cured = _Reached(layout, (*cured.steps, (step.move, layout)), cured.copied + copied_by(step.move))
            left = self.movers.places.faults(cured.layout)
            if len(left) < len(self.before.faults):
                self._known.update(left)  # what the cure itself brings
                queue.append((1.0, 1, cured, None))
        best = (float("inf"), float("inf"))
        while queue:
            _, _, reached, trial = heappop(queue)
            moves = len(reached.steps) + (trial is not None)
            if (reached.copied + (trial.copied if trial else 0), moves) >= best:
                continue
            if trial is not None:
                longer = (2 if self._all else 1) * (1 if best[0] < float("inf") else LONGER) * self.stop.patience
                if number > MOST_WORK * longer:
                    self.search.exhaustive = False
                    return
                number += self._effort
                after = self._safely(reached, trial)
                if after is None or not self._is_new(after):
                    continue
                reached = after
            placed = self.hail.place(reached.layout, self.wanted)
            self._most = max(self._most, len(placed.placed))
            self.stop.spend(len(reached.layout.nodes) + len(placed.placed))
            missing = self.wanted - len(placed.placed)
            if not missing:
                best = reached.cost
                yield reached
            else:
                lacks = _Lacks(self.hail, placed, reached.layout, self._usable, missing)
                for lack, child in self._steps(reached, lacks):
                    number += 1
                    cost = reached.copied + child.copied + self._worth * (lack + 0.01 * len(reached.steps))
                    heappush(queue, (cost, number, reached, child))

    def _is_new(self, reached: _Reached) -> bool:
        """Whether no cheaper list was seen that leads to the same layout."""
        places = tuple((item.primary, item.secondary) for item in reached.layout.instances.values())
        if self._seen.get(places, (float("inf"), 0)) <= reached.cost:
            return False
        self._seen[places] = reached.cost
        return True

    def _steps(self, reached: _Reached, lacks: _Lacks) -> Iterator[tuple[float, MoveTrial]]:
        """Yield the next moves that bring no fault, each with what is lacking after it."""
        for number, targets in self._offers(reached.layout, lacks):
            for move in self.movers.moves(reached.layout, number):
                if targets is None or move.target in targets:
                    self.stop.spend(1)
                    trial = self.movers.try_move(reached.layout, move)
                    if isinstance(trial, MoveTrial) and trial.gain.units >= 0:
                        yield lacks.after(trial), trial

    def _offers(self, layout: Layout, lacks: _Lacks) -> Iterator[tuple[int, set[int] | None]]:
        """Yield the instances that may move, and where to; None: to any node."""
        if self._all:
            yield from ((number, None) for number in self._movable)
            return
        self.search.exhaustive = False
        movable, asked = set(self._movable), dict[int, set[int]]()
        nodes = lacks.nearest(MOST_NEAR)
        for place, index in enumerate(nodes):  # it grows
            node = layout.nodes[index]
            for number in ({*node.primaries, *node.secondaries} & movable) - asked.keys():
                near = lacks.takers(layout.instances[number])
                asked[number] = {NO_NODE, *(other for _, other in near)}
                # others make room for what leaves the nearest nodes
                if place < MOST_NEAR and len(nodes) < 2 * MOST_NEAR:
                    nodes += (other for lack, other in near[:2] if lack > 0 and other not in nodes)
        yield from sorted(asked.items())

    def _shortened(self, found: _Reached) -> _Reached:
        """Return the moves without those that are not needed, and with one for two of an instance where that does."""
        moves = found.moves
        without_one = ((*moves[:place], *moves[place + 1 :]) for place in reversed(range(len(moves))))
        for chosen in (*without_one, *self._with_one_for_two(moves)):
            fewer = self._again(chosen)
            if fewer is None or fewer.cost >= found.cost:
                continue
            if len(self.hail.place(fewer.layout, self.wanted).placed) == self.wanted:
                return self._shortened(fewer)
        return found

    def _with_one_for_two(self, moves: _MoveSequence) -> Iterator[_MoveSequence]:
        for first, second in combinations(range(len(moves)), 2):
            number = moves[first].instance.index
            if moves[second].instance.index == number:
                others = [*moves[:first], *moves[first + 1 : second], *moves[second + 1 :]]
                for move in self.movers.moves(self.start, number):
                    if move.target in {moves[first].target, moves[second].target}:
                        yield from ((*others[:place], move, *others[place:]) for place in (first, second - 1))

    def _again(self, moves: _MoveSequence) -> _Reached | None:
        """Return what the moves reach from the start; None if one is not possible, does harm, or is not safe."""
        reached = _Reached(self.start)
        for move in moves:
            again = replace(move, instance=reached.layout.instances[move.instance.index])
            if move.target in {again.instance.primary, again.instance.secondary} - {NO_NODE}:
                return None
            self.stop.spend(len(self.start.nodes))
            trial = self.movers.try_move(reached.layout, again)
            after = self._safely(reached, trial) if isinstance(trial, MoveTrial) and trial.gain.units >= 0 else None
            if after is None:
                return None
            reached = after
        return reached

    def _safely(self, reached: _Reached, trial: MoveTrial) -> _Reached | None:
        """Return what a move reaches; None if it is not safe, or brings a fault that was not there at the start."""
        self.stop.spend(1 + len(reached.layout.nodes) // 16)
        if not self.movers.is_safe(reached.layout, trial):
            return None
        after = reached.after(trial)
        return after if self._known.issuperset(self.movers.places.faults(after.layout)) else None


_Amounts = tuple[float, ...]


class _Lacks:
    """What the nodes of a layout lack for wanted instances that are `missing`, beside those that fit (`placed`).

    What a node has left and an instance needs, in this order: memory, without the reserved and with it, disk (MiB),
    virtual CPUs, spindles, and whether an exclusion tag has a place.
    """

    def __init__(self, hail: Hail, placed: AllocationState, layout: Layout, usable: set[int], missing: int) -> None:
        spare = bool(hail.rules.failures and not hail.mirrored)  # for the wanted ones of a node that is lost
        self._hail, self._layout, self._missing = hail, layout, min(missing, MOST_MISSING) + spare
        self._online = [index for index, node in layout.nodes.items() if not node.facts.offline]
        self._usable = usable
        self._taken = {  # by the wanted instances that fit
            index: _less(self._kept(layout.nodes[index]), self._kept(node))
            for index, node in placed.nodes.items()
            if len(node.primaries) + len(node.secondaries)
            > len(layout.nodes[index].primaries) + len(layout.nodes[index].secondaries)
        }
        self._left = {index: self._left_on(layout.nodes[index]) for index in self._online}
        memory, disk, cpus, spindles = use_of(hail.instance, exclusive=hail.exclusive)
        self._needs: list[_Amounts] = [(memory, 0, disk, cpus, spindles, bool(hail.instance.exclusion_tags))]
        if hail.mirrored:
            self._needs.append((0, memory, disk, 0, spindles, 0))
        lacks = [{index: _short(self._left[index], need) for index in usable} for need in self._needs]
        self._best = [nsmallest(self._missing + 6, lack, key=lack.__getitem__) for lack in lacks]
        pool = {index for best in self._best for index in best}
        self._lacks = [{index: lack[index] for index in pool} for lack in lacks]
        crowded = placed.failures[FailReason.N1] > 0  # a lost node that is less full finds homes more easily
        self._fullest = sorted(self._online, key=lambda index: -layout.nodes[index].instance_memory)[: 4 * crowded]

    def _kept(self, node: Node) -> _Amounts:
        force, tags = self._hail.rules.force, self._hail.instance.exclusion_tags
        memory, *others = free_on(node, force=force)
        held = 0 if force else sum(node.exclusion_tags.get(tag, 0) for tag in tags)
        return memory - (0 if force else node.reserved_memory), memory, *others, 1 - held

    def _left_on(self, node: Node) -> _Amounts:
        left, taken = self._kept(node), self._taken.get(node.index)
        return left if taken is None else _less(left, taken)

    def nearest(self, number: int) -> list[int]:
        """Return so many nodes that lack least."""
        near = (index for best in zip(*self._best, strict=True) for index in best)
        return list(dict.fromkeys((*self._fullest[:2], *near)))[:number]

    def takers(self, item: Instance) -> list[tuple[float, int]]:
        """Return the nodes that lack least for an instance, with how much: of equals the fullest."""
        group, own = self._layout.nodes[item.primary].facts.group, {item.primary, item.secondary}
        need = (0, *use_of(item, exclusive=self._layout.nodes[item.primary].facts.exclusive), 0)
        others = [i for i in self._online if i not in own and self._layout.nodes[i].facts.group == group]
        lacks = [(_short(self._left[i], need), i in self._best[0], self._left[i][1], i) for i in others]
        return [(lack, index) for lack, _, _, index in nsmallest(MOST_TARGETS, lacks)]

    def after(self, trial: MoveTrial) -> float:
        """Return what the missing instances lack after a move, as shares of what they need."""
        changed = {index: self._left_on(node) for index, node in trial.moved.changed.items() if index in self._usable}
        left = self._left | changed if changed else dict(self._left)
        lacks = [dict(one) for one in self._lacks]
        for index in changed:
            self._look(index, left, lacks)
        total = 0.0
        for _ in range(self._missing):
            lack, pair, reserved = self._least_lack(left, lacks, trial.moved.changed)
            total += lack
            for index, taken in zip(pair, self._needs, strict=False):
                kept, memory, *others = left[index]
                left[index] = _less((kept, memory, *others), (taken[0], taken[0], *taken[2:]))
                if index != pair[0]:
                    left[index] = (min(kept, memory - reserved), *left[index][1:])
                self._look(index, left, lacks)
        if self._fullest:
            used = {i: self._layout.nodes[i].instance_memory for i in self._fullest}
            after = used | {i: node.instance_memory for i, node in trial.moved.changed.items()}
            total += max(after.values()) / max(1, *used.values()) - 1
        return total

    def _look(self, index: int, left: Mapping[int, _Amounts], lacks: list[dict[int, float]]) -> None:
        for need, lack in zip(self._needs, lacks, strict=True):
            lack[index] = _short(left[index], need)

    def _least_lack(
        self, left: Mapping[int, _Amounts], lacks: list[dict[int, float]], changed: Mapping[int, Node]
    ) -> tuple[float, tuple[int, ...], int]:
        """Return what lacks least: how much, the node, or the two of a group, and what the second reserves then."""
        firsts, *others = ([(lack[i], i) for i in nsmallest(4, lack, key=lack.__getitem__)] for lack in lacks)
        if not others:
            return firsts[0][0], (firsts[0][1],), 0
        best: tuple[float, tuple[int, ...], int] = (PLENTY, (), 0)
        memory, nodes = self._hail.instance.memory, self._layout.nodes
        for second, there in others[0]:
            node = changed.get(there, nodes[there])
            for first, here in firsts:
                if here != there and first + second < best[0] and nodes[here].facts.group == node.facts.group:
                    reserved = node.peers.get(here, 0) + memory  # for the loss of the first
                    lack = first + second + max(0.0, reserved - max(memory, left[there][1])) / memory
                    best = min(best, (lack, (here, there), reserved))
        return best


def _less(these: _Amounts, those: _Amounts) -> _Amounts:
    return tuple(one - other for one, other in zip(these, those, strict=True))


def _short(left: _Amounts, need: _Amounts) -> float:
    """Return how much is missing, as shares of what is needed."""
    return sum((much - there) / much for there, much in zip(left, need, strict=True) if there < much and much)


def make_room(
    search: RemedySearch, before: Moves, loaded: LoadedState, want: Want, names: PairNames
) -> tuple[Moves, MadeRoom]:
    """Return the cheapest moves that make room for what is wanted, and how much room; `names` are those of sizes.

    The search says whether it ended by itself. Raise RequestError and GpolicyError as `Hail` does.
    """
    start, movers = search.start, search.movers
    hail = Hail(loaded, want.words.on(loaded.settled.state, names), start)
    now = len(hail.place(start, want.count).placed)
    most = max(now, most_that_fit(start, hail, movers.fixed))
    found = RoomSearch(search, before, hail, want.count, now).find() if now < want.count <= most else before
    after = want.count if found.steps else now
    return found, MadeRoom(wanted=want.text, count=want.count, now=now, after=after, most=most)
