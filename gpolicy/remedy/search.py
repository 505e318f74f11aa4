"""The search for moves: as many cures as possible, then the fewest copied bytes, moves, and the best score.

Each step is the best single move: the least to copy for each unit that it ends, then what ends more, then the score.
Where no single move helps, another instance makes room first, or the same one goes by another node. hbal's own list,
as far as it is safe, is a second way; what it does not need is taken out of every list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import groupby
from typing import Final, NamedTuple

from gpolicy.allocator.balancing import Balanced, Goal, balance, engine_search
from gpolicy.allocator.cluster_data import NO_NODE, FailReason
from gpolicy.allocator.cluster_score import cluster_score, replaced, statistics, total_score
from gpolicy.allocator.instance_moves import InstanceMove, is_split
from gpolicy.allocator.native.library import ANY_MOVE
from gpolicy.analysis.losses import Homeless
from gpolicy.printable import count
from gpolicy.progress import Stop, Tell, until_stopped
from gpolicy.remedy.faults import RATIOS, Fault, Layout, lack
from gpolicy.remedy.moving import MoveKey, Movers, MoveTrial, MoveTrials, MovingPart, copied_by, key_of

MOST_TRIALS: Final = 20_000
"""How many second moves a search tries where no single one helps."""
MOST_SCORED: Final = 64
"""How many moves are compared by their scores at once, of those that are equal otherwise."""
MOST_LOSSES: Final = 300
"""How many moves a search tries, each with all losses of nodes, where only losses are left."""
MOST_BALANCING: Final = 400
"""How many of hbal's moves are looked at in each group."""


class _Waiting(NamedTuple):
    """Candidates of the offer `rank` from the `first` on, or `alone` the move at that place; `key` is of the best."""

    key: MoveKey
    rank: int
    first: int
    alone: bool = False


@dataclass(frozen=True, eq=False)
class Moves:
    """A list of moves, the layout after them, and what is wrong then."""

    steps: tuple[Balanced, ...]
    layout: Layout
    faults: tuple[Fault, ...]

    @property
    def copied(self) -> int:
        """The disk (MiB) that the moves copy."""
        return sum(copied_by(step.move) for step in self.steps)

    @cached_property
    def wrong(self) -> tuple[int, int]:
        """How much is wrong: nodes that exceed a ratio count after all else."""
        above = sum(fault.kind in RATIOS for fault in self.faults)
        return len(self.faults) - above, above

    @cached_property
    def rank(self) -> tuple[float, ...]:
        """What the list is judged by; less is better."""
        return *self.wrong, self.copied, len(self.steps), cluster_score(self.layout.nodes.values())


@dataclass
class RemedySearch:
    """One search; `exhaustive` says at the end whether it ended by itself.

    The work that `stop` counts are moves that are tried, nodes and instances that are looked at anew.
    """

    start: Layout
    movers: Movers
    stop: Stop
    tell: Tell
    exhaustive: bool = True
    _tried: int = field(default=0, init=False)
    _tried_losses: int = field(default=0, init=False)
    _trials: MoveTrials = field(init=False)

    def __post_init__(self) -> None:
        self._trials = MoveTrials(self.movers, self.stop)

    def find(self, best: Moves) -> Moves:
        """Return the best list of moves that is found; `best` is the one without a move."""
        with until_stopped():
            for way in (lambda _: self._improved((), self.start), self._as_hbal):
                if best.faults:
                    for found in way(best):
                        best = min(best, found, key=lambda moves: moves.rank)
            return best
        self.exhaustive = False
        return best

    def _judged_moves(self, steps: tuple[Balanced, ...], layout: Layout) -> Moves:
        self.stop.spend(len(layout.instances) // 16)
        return Moves(steps, layout, self.movers.places.faults(layout))

    def _improved(self, steps: tuple[Balanced, ...], layout: Layout) -> Iterator[Moves]:
        """Yield the list after each step, and at the end without what it does not need."""
        while chosen := self._single(layout) or self._best_pair(layout) or self._against_losses(layout):
            for trial in chosen:
                layout = layout.after(trial.moved)
                steps = (*steps, step_of(trial.move, layout))
            self.tell(f"{count(len(steps), 'move')} so far")
            yield self._judged_moves(steps, layout)
        yield self._shortened(self._judged_moves(steps, layout))

    def _single(self, layout: Layout) -> tuple[MoveTrial, ...]:
        """Return the best safe move that ends something; none if there is none.

        Candidates come in the order of the best that they can be judged by, and are tried until none can be better.
        """
        queue: list[_Waiting] = []
        offers = self._offers(layout)
        for rank, (_, part) in enumerate(offers):
            if candidates := self._trials.candidates(layout, part):
                heappush(queue, _Waiting(candidates[0].key, rank, 0))
            following = [least for least, _ in offers[rank + 1 : rank + 2]]
            while queue and all(queue[0].key[:2] < least for least in following):
                if (found := self._best_of_equal(layout, queue, offers)) is not None:
                    return (found,)
        return ()

    def _best_of_equal(
        self, layout: Layout, queue: list[_Waiting], offers: Sequence[tuple[MoveKey, MovingPart]]
    ) -> MoveTrial | None:
        """Take candidates of the least key from the queue; return the one with the best score that is safe."""
        key, equal = queue[0].key, list[tuple[int, int]]()
        while queue and queue[0].key == key and len(equal) < MOST_SCORED:
            _, rank, first, alone = heappop(queue)
            if alone:
                equal.append((rank, first))
                continue
            candidates = self._trials.candidates(layout, offers[rank][1])
            end = next((end for end in range(first, len(candidates)) if candidates[end].key != key), len(candidates))
            if end < len(candidates):
                heappush(queue, _Waiting(candidates[end].key, rank, end))
            equal += ((rank, candidate.place) for candidate in candidates[first:end])
        equal.sort()
        if len(equal) > MOST_SCORED:  # they are of few instances: their roomiest targets first

            def room(one: tuple[int, int]) -> tuple[int, float]:
                node = layout.nodes.get(self._trials.move(offers[one[0]][1], one[1]).target)
                return one[0], -(node.ratio_memory + node.ratio_disk) if node else 0.0

            equal.sort(key=room)
        for first in range(0, len(equal), MOST_SCORED):
            tried = []
            for rank, place in equal[first : first + MOST_SCORED]:
                found = self._trials.at(layout, offers[rank][1], place)
                if isinstance(found, MoveTrial) and found.gain.helps:
                    if _trial_key(found) == key:
                        tried.append(found)
                    else:  # it ends less than it could
                        heappush(queue, _Waiting(_trial_key(found), rank, place, alone=True))
            for trial in _by_score(layout, tried):
                if self._is_safe(layout, trial):
                    return trial
        return None

    def _offers(self, layout: Layout) -> list[tuple[MoveKey, MovingPart]]:
        """Return the moves of the instances concerned, with the least disk (MiB) that they copy for a unit they end."""
        found: list[tuple[MoveKey, MovingPart]] = []
        for number in self._concerned(layout):
            item = layout.instances[number]
            most = self.movers.most_units(layout, item)
            copied = sum(disk.size for disk in item.disks) / most if most else 0.0
            found.append(((not most, 0.0), (number, False)))
            found.append(((not most, copied), (number, True)))
        return sorted(found, key=lambda offer: offer[0])

    def _is_safe(self, layout: Layout, trial: MoveTrial) -> bool:
        self.stop.spend(len(layout.nodes) // 16)
        return self.movers.is_safe(layout, trial)

    def _concerned(self, layout: Layout) -> list[int]:
        """Return the instances that something is wrong with, or that are on a node with which something is."""
        found = {number for number, item in layout.instances.items() if self.movers.places.units(item, layout.nodes)}
        crowds = (numbers for places in layout.tagged.values() for numbers in places.values() if len(numbers) > 1)
        found.update(number for numbers in crowds for number in numbers)
        for node in layout.nodes.values():
            if lack(node):
                found.update((*node.primaries, *node.secondaries))
        return sorted(found - self.movers.fixed.keys())

    def _best_pair(self, layout: Layout) -> tuple[MoveTrial, ...]:
        """Return two safe moves that end something together: one that makes room or goes half-way, and one after it."""
        found: list[tuple[tuple[float, ...], MoveTrial, MoveTrial]] = []
        for number in self._concerned(layout):
            for first, second in self._pairs_of_moves(layout, number):
                units, less = first.gain.units + second.gain.units, first.gain.lack + second.gain.lack
                if (units, less) > (0, 0):
                    key = key_of(units, less, first.copied + second.copied)
                    found.append(((*key, len(found)), first, second))
        for _, first, second in sorted(found, key=lambda item: item[0]):
            if self._is_safe(layout, first) and self._is_safe(layout.after(first.moved), second):
                return first, second
        return ()

    def _pairs_of_moves(self, layout: Layout, number: int) -> Iterator[tuple[MoveTrial, MoveTrial]]:
        for first in self._trials.possible(layout, number):  # by another node
            if first.gain.units == 0:
                yield from ((first, second) for second in self._after(layout, first, number))
        for move, refused in self._trials.all(layout, number):
            if isinstance(refused, FailReason) and refused is not FailReason.MIG:
                for other in self._in_the_way(layout, move):
                    for first in self._trials.possible(layout, other):
                        if first.gain.units >= 0:
                            if not self._may_try():
                                return
                            second = self.movers.try_move(layout.after(first.moved), move)
                            if isinstance(second, MoveTrial):
                                yield first, second

    def _after(self, layout: Layout, first: MoveTrial, number: int) -> Iterator[MoveTrial]:
        there = layout.after(first.moved)
        for move in self.movers.moves(there, number):
            if not self._may_try():
                return
            if isinstance(trial := self.movers.try_move(there, move), MoveTrial):
                yield trial

    def _may_try(self) -> bool:
        self._tried += 1
        if not self._tried % 64:
            self.stop.spend()
        if self._tried > MOST_TRIALS:
            self.exhaustive = False
        return self._tried <= MOST_TRIALS

    def _in_the_way(self, layout: Layout, move: InstanceMove) -> list[int]:
        """Return the instances on the nodes that a refused move leads to, which may move themselves."""
        item = move.instance
        nodes = [layout.nodes[index] for index in sorted({move.target, item.secondary} - {NO_NODE})]
        there = (number for node in nodes for number in (*node.primaries, *node.secondaries))
        return [number for number in dict.fromkeys(there) if number not in {*self.movers.fixed, item.index}]

    def _against_losses(self, layout: Layout) -> tuple[MoveTrial, ...]:
        """Return a move after which fewer losses, or as many with fewer instances, cannot be absorbed; none if none."""
        homeless = layout.homeless
        if not homeless:
            return ()
        lost = {item.instance for items in homeless.values() for item in items}
        group = {layout.nodes[index].facts.group for index in homeless}
        near = [item for item in layout.instances.values() if layout.nodes[item.primary].facts.group in group]
        first = sorted(near, key=lambda item: (item.name not in lost, item.index))
        before = _weight(homeless)
        for item in first:
            if item.index in self.movers.fixed:
                continue
            trials = (trial for trial in self._trials.possible(layout, item.index) if trial.gain.units >= 0)
            alike = groupby(sorted(trials, key=_trial_key), _trial_key)  # only these are compared by their score
            for trial in (trial for _, equal in alike for trial in _by_score(layout, equal)):
                self.stop.spend()
                self._tried_losses += 1
                if self._tried_losses > MOST_LOSSES:
                    self.exhaustive = False
                    return ()
                after = _weight(layout.after(trial.moved).homeless)
                if after < before and self.movers.is_safe(layout, trial):
                    return (trial,)
        return ()

    def _as_hbal(self, best: Moves) -> Iterator[Moves]:
        """Yield lists that begin with hbal's moves in the groups where something is left."""
        names = {name for fault in best.faults for name in fault.instances}
        nodes = best.layout.nodes
        concerned = (item for item in best.layout.instances.values() if item.name in names)
        own = {index for item in concerned for index in (item.primary, item.secondary)} & nodes.keys()
        left = {nodes[index].facts.group for index in own}
        reached = self._judged_moves((), self.start)
        for group in sorted(left):
            for found in self._balanced(reached, group):
                reached = min(reached, found, key=lambda moves: (moves.wrong, len(moves.steps)))
        if reached.steps:
            yield self._shortened(reached)
            yield from self._improved(reached.steps, reached.layout)

    def _balanced(self, reached: Moves, group: int) -> Iterator[Moves]:
        layout, steps = reached.layout, reached.steps
        own = {index: node for index, node in layout.nodes.items() if node.facts.group == group}
        instances = {number: item for number, item in layout.instances.items() if item.primary in own}
        movable = [
            number
            for number, item in instances.items()
            if number not in self.movers.fixed and item.template.balanced and not is_split(item, layout.nodes)
        ]
        if any(item.secondary not in {NO_NODE, *own} for item in instances.values()):
            return  # hbal does not balance such a group with its own nodes alone
        goal = Goal(float("-inf"), MOST_BALANCING, min_gain=0.0)
        search = engine_search(own, instances, movable, ANY_MOVE)
        for done in balance(own, instances, ANY_MOVE, goal, search):
            self.stop.spend()
            trial = self.movers.try_move(layout, done.move)
            if not isinstance(trial, MoveTrial) or not self.movers.is_safe(layout, trial):
                return
            layout = layout.after(trial.moved)
            steps = (*steps, step_of(trial.move, layout))
            self.tell(f"{count(len(steps), 'move')} as hbal balances")
            yield self._judged_moves(steps, layout)

    def _shortened(self, moves: Moves) -> Moves:
        """Return the moves without those that cure nothing, as far as the rest stays possible and safe."""
        kept, layout, idle = list(moves.steps), self.start, []
        for place, step in enumerate(kept):
            trial = self.movers.try_move(layout, step.move)
            if not isinstance(trial, MoveTrial) or trial.gain.units <= 0:
                idle.append(place)
            layout = layout.reached(step.nodes, step.instances)
        for place in reversed(idle):
            self.stop.spend()
            shorter = self._replayed([*kept[:place], *kept[place + 1 :]], checked=False)
            if shorter is not None and shorter.wrong <= moves.wrong:
                kept = list(shorter.steps)
        if len(kept) == len(moves.steps):
            return moves
        found = self._replayed(kept, checked=True)
        return moves if found is None or found.rank > moves.rank else found

    def _replayed(self, steps: Sequence[Balanced], *, checked: bool) -> Moves | None:
        """Return the same moves from the start; None if one is not possible, or not safe where that is `checked`."""
        layout = self.start
        made: tuple[Balanced, ...] = ()
        for step in steps:
            move = InstanceMove(step.move.kind, layout.instances[step.move.instance.index], step.move.target)
            own = {move.instance.primary, move.instance.secondary}
            trial = FailReason.INTERNAL if move.target in own - {NO_NODE} else self.movers.try_move(layout, move)
            if not isinstance(trial, MoveTrial) or (checked and not self._is_safe(layout, trial)):
                return None
            layout = layout.after(trial.moved)
            made = (*made, step_of(move, layout))
        return self._judged_moves(made, layout)


def _trial_key(trial: MoveTrial) -> MoveKey:
    return key_of(trial.gain.units, trial.gain.lack, trial.copied)


def _by_score(layout: Layout, trials: Iterable[MoveTrial]) -> list[MoveTrial]:
    stats = statistics(layout.nodes.values())

    def score(trial: MoveTrial) -> float:
        after = stats
        for index, node in trial.moved.changed.items():
            after = replaced(after, layout.nodes[index], node)
        return total_score(after)

    return sorted(trials, key=score)


def _weight(homeless: Mapping[int, tuple[Homeless, ...]]) -> tuple[int, int]:
    return sum(map(len, homeless.values())), len(homeless)


def step_of(move: InstanceMove, layout: Layout) -> Balanced:
    """Return the step whose move led to `layout`."""
    score = cluster_score(layout.nodes.values())
    return Balanced(move, score, layout.instances[move.instance.index], layout.nodes, layout.instances)
