"""Nodes cleared of what runs there, so that they can be rebooted together: where each instance goes meanwhile.

A mirrored instance migrates to its secondary node, one on shared storage to another node of its group. Where it has no
place, another one makes room first; in an upgrade, it gets another secondary node. Else it is halted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance
from gpolicy.allocator.compiled_allocation import memory_left
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind, apply_move
from gpolicy.allocator.node_changes import lacks_memory
from gpolicy.analysis.binding import of_move
from gpolicy.analysis.health import LocationFacts
from gpolicy.analysis.losses import Homeless
from gpolicy.printable import count
from gpolicy.progress import Stop
from gpolicy.remedy.faults import Layout, shortage
from gpolicy.remedy.moving import Movers, copied_by

_MOST_HELPERS: Final = (0, 1_000, 200)
"""How many others are asked to make room, times the nodes, which each looks at.

The last number is for one that must leave, the number before for those that make room for it.
"""


@dataclass(frozen=True, slots=True)
class Cleared:
    """The nodes `closed` without what runs there: the `layout` after the moves `moved` of instances, in this order.

    `halted` are the instances that must be shut down meanwhile, and why.
    """

    layout: Layout
    closed: frozenset[int] = frozenset()
    moved: Mapping[int, InstanceMove] = field(default_factory=dict)
    halted: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an instance cannot leave its node, or why a node cannot be cleared as well, as a report says it."""

    reason: str


@dataclass(frozen=True)
class Clearing:
    """A cluster whose nodes are to be cleared, as `start` is: there without migration tags, as N+1 does not ask for
    them (a lost instance starts anew), and without drained nodes.

    `tags` are those of the nodes. `running` are the instances that run; of those in `pinned`, nothing moves any live,
    and why. `shut` are the nodes that Ganeti moves nothing to, with the word for it. `old` are the nodes that an
    upgrade makes new: what leaves them need not come back, and may get another secondary node. `force`: against soft
    errors, too. After a `stop` no more instances make room.
    """

    start: Layout
    movers: Movers
    tags: LocationFacts
    running: frozenset[int]
    pinned: Mapping[int, str]
    shut: Mapping[int, str]
    old: frozenset[int]
    force: bool
    stop: Stop
    _alone: dict[int, Cleared] = field(default_factory=dict, init=False)
    _allowed: dict[tuple[int, bool], frozenset[str]] = field(default_factory=dict, init=False)
    _refused: dict[int, Refused] = field(default_factory=dict, init=False)
    _near: dict[int, list[int]] = field(default_factory=dict, init=False)

    def name(self, index: int) -> str:
        """Return the name of a node."""
        return self.start.nodes[index].facts.name

    def cost(self, index: int) -> tuple[int, int]:
        """Return how many instances a node alone halts that something moves, and the disk that is copied for it."""
        here = self.clear_alone(index)
        return len(here.halted.keys() - self.pinned.keys()), sum(map(copied_by, here.moved.values()))

    def clear_alone(self, index: int) -> Cleared:
        """Return one node cleared, and no other, with as few instances halted as possible and N+1 no worse."""
        if index not in self._alone:
            found = self._clear(index, careful=False)
            if self.judge_redundancy(found) is not None:  # then N+1 is looked at after each move
                found = self._clear(index)
            if self.old and not found.halted.keys() <= self.pinned.keys():
                copied = self._clear(index, copies=True)
                found = min(found, copied, key=lambda item: len(item.halted))
            self._alone[index] = found
        return self._alone[index]

    def join(self, here: Cleared, index: int, *, careful: bool) -> Cleared | Refused:
        """Return `here` with one more node cleared, and no more halted than if it goes alone; or why it cannot be.

        `careful`: and N+1 no worse.
        """
        is_untouched = self._is_untouched(here, index)
        if is_untouched and index in self._refused:  # as it was before, beside other nodes
            return self._refused[index]
        there = replace(here, closed=here.closed | {index})
        for number in self._leaving(here.layout, index):
            found = self._leave(there, number, copies=False, careful=False, depth=0)
            if isinstance(found, Refused):
                # in an upgrade none but a pinned one: in a later wave there are more new nodes for the others
                may_halt = self.pinned if number in self.pinned or self.old else self.clear_alone(index).halted
                if number not in may_halt:
                    refused = Refused(f"{self.start.instances[number].name}: {found.reason}")
                    if is_untouched:
                        self._refused[index] = refused
                    return refused
                found = replace(there, halted={**there.halted, number: may_halt[number]})
            there = found
        worse = self.judge_redundancy(there) if careful else None
        return there if worse is None else worse

    def _is_untouched(self, here: Cleared, index: int) -> bool:
        """Whether a node, and all nodes that its instances may go to, are as they were at the start."""
        own = (self.start.instances[number] for number in self.start.nodes[index].primaries)
        around = {index, *(item.secondary for item in own)}  # without a mirror: to any node
        apart = NO_NODE not in around and around.isdisjoint(here.closed)
        return apart and all(here.layout.nodes.get(near) is self.start.nodes.get(near) for near in around)

    def _clear(self, index: int, *, copies: bool = False, careful: bool = True) -> Cleared:
        """Return one node cleared, where others may make room. `careful`: N+1 is no worse after each move."""
        here = Cleared(self.start, frozenset({index}))
        for number in self._leaving(self.start, index):
            found = self._leave(here, number, copies=copies, careful=careful, depth=len(_MOST_HELPERS) - 1)
            if isinstance(found, Refused):
                found = replace(here, halted={**here.halted, number: found.reason})
            here = found
        return here

    def _leaving(self, layout: Layout, index: int) -> list[int]:
        """Return the instances that run on a node, in the order in which they leave it."""
        own = [layout.instances[number] for number in layout.nodes[index].primaries if number in self.running]
        return [item.index for item in sorted(own, key=lambda item: (item.secondary == NO_NODE, -item.memory))]

    def _leave(self, here: Cleared, number: int, *, copies: bool, careful: bool, depth: int) -> Cleared | Refused:
        """Return `here` after an instance left its node, or why it cannot.

        Where nothing takes it, another instance leaves first, with one less of `depth`: at 0 nobody makes room.
        """
        item, home = here.layout.instances[number], self.start.instances[number].primary
        if number in self.pinned:
            return Refused(self.pinned[number])
        if item.primary != home and (item.secondary != NO_NODE or home not in here.closed):
            return Refused(f"it goes to {self.name(item.primary)} in the wave before")
        found = self._move(here, item, copies=copies, careful=careful)
        if isinstance(found, Cleared) or depth == 0:
            return found
        for helper in self._helpers(here, list(self._moves_of_instance(here, item, copies=copies)), depth):
            there = self._leave(here, helper, copies=False, careful=False, depth=depth - 1)
            if isinstance(there, Cleared):
                after = self._leave(there, number, copies=copies, careful=careful, depth=0)
                if isinstance(after, Cleared):
                    return after
        return found

    def _move(self, here: Cleared, item: Instance, *, copies: bool, careful: bool) -> Cleared | Refused:
        """Return `here` after the first move of an instance that nothing forbids, or why there is none."""
        first: Refused | None = None  # the reason that is told; of the other moves only their number
        others = 0
        for move in self._moves_of_instance(here, item, copies=copies):
            if first and move.target != NO_NODE and lacks_memory(here.layout.nodes[move.target], item):
                others += 1  # refused for sure, and nobody asks for its reason
                continue
            found = self._try(here, move)
            if careful and isinstance(found, Cleared):
                found = self.judge_redundancy(found) or found
            if isinstance(found, Cleared):
                return found
            if first is None:
                first = found
            else:
                others += 1
        if first is None:
            return Refused("its group has no other node that takes instances")
        more = f"; {count(others, 'other node')} {'refuse' if others > 1 else 'refuses'} it, too" if others else ""
        return Refused(f"{first.reason}{more}")

    def _moves_of_instance(self, here: Cleared, item: Instance, *, copies: bool) -> Iterator[InstanceMove]:
        """Yield the moves of an instance: to new nodes first, and then to the last ones, whose turn comes late."""
        mirrored = item.template is DiskTemplate.DRBD
        if mirrored:
            yield InstanceMove(MoveKind.FAILOVER, item)
        if not mirrored or copies:
            kind = MoveKind.REPLACE_AND_FAILOVER if mirrored else MoveKind.FAILOVER_TO
            for target in self._targets_in_group(self.start.nodes[item.primary].facts.group):
                if target not in here.closed and target not in {item.primary, item.secondary}:
                    yield InstanceMove(kind, item, target)

    def _targets_in_group(self, group: int) -> list[int]:
        """Return the nodes of a group to which Ganeti moves something, those of an upgrade that are new first."""
        if group not in self._near:
            near = (index for index, node in self.start.nodes.items() if node.facts.group == group)
            order = sorted(near, key=lambda index: (index in self.old, -index))
            self._near[group] = [index for index in order if index not in self.shut]
        return self._near[group]

    def _helpers(self, here: Cleared, moves: list[InstanceMove], depth: int) -> Iterator[int]:
        """Return running instances on the nodes that the moves go to."""
        targets = {move.instance.secondary if move.target == NO_NODE else move.target for move in moves}
        found = (
            number
            for target in sorted((targets & here.layout.nodes.keys()) - here.closed - self.shut.keys())
            for number in here.layout.nodes[target].primaries
            if number in self.running and number not in self.pinned and number not in here.moved
        )
        most = 0 if self.stop.is_over() else -(-_MOST_HELPERS[depth] // len(self.start.nodes))
        return islice(found, most)

    def _try(self, here: Cleared, move: InstanceMove) -> Cleared | Refused:
        """Return `here` after a move, or why Ganeti or hail would refuse it."""
        item, nodes = move.instance, here.layout.nodes
        target = item.secondary if move.target == NO_NODE else move.target
        if reason := self._forbidden(item, target):
            return Refused(reason)
        if target in here.closed:
            return Refused(f"its other node {self.name(target)} is in the wave before")
        moved = apply_move(nodes, move, force=True)
        failed = self._soft_error(here.layout, moved, item, target) if isinstance(moved, Moved) else moved
        if failed is not None:
            why = of_move(nodes, move, failed, force=failed is moved)  # a hard error is the answer of the move itself
            return Refused(f"{why.cause.key}: {why.detail}")
        assert isinstance(moved, Moved)  # noqa: S101 (else it failed)
        made = {number: move for number, move in here.moved.items() if number != item.index}  # a guest moves on
        made[item.index] = replace(move, instance=self.start.instances[item.index])
        return replace(here, layout=here.layout.after(moved), moved=made)

    def _forbidden(self, item: Instance, target: int) -> str:
        """Return why an instance may not go to a node, whatever else is there, or would not come back."""
        if target not in self.start.nodes:
            return "its secondary node is in a group that is left out"
        if target in self.shut:
            return f"its other node {self.name(target)} is {self.shut[target]}"
        home = self.start.instances[item.index].primary
        ways = [(home, target), (item.primary, target), (target, home)][: 2 if home in self.old else 3]
        for source, goal in (map(self.name, way) for way in ways):
            if not self.tags.migration[source] <= self.tags.receivable[goal]:
                return f"migration tags do not let it go from {source} to {goal}"
        return ""

    def _soft_error(self, layout: Layout, moved: Moved, item: Instance, target: int) -> FailReason | None:
        """Return what a move breaks on its new node, or makes worse there than it was at the start."""
        before, node = self.start.nodes[target], moved.changed[target]
        if self.force:
            return None
        if node.exceeds_vcpu_ratio and node.ratio_cpu > before.ratio_cpu:
            return FailReason.CPU
        if node.exceeds_spindle_ratio and node.instance_spindles > before.instance_spindles:
            return FailReason.DISK
        if any(tag in layout.nodes[target].exclusion_tags for tag in item.exclusion_tags):
            return FailReason.TAGS
        most = self.movers.shared.get(node.facts.group)
        over = item.burst > memory_left(layout.nodes[target], layout.instances, most)
        short = shortage(node) > shortage(before) and node.facts.group not in self.start.unprotected
        return FailReason.MEM if over or short else None

    def judge_redundancy(self, here: Cleared) -> Refused | None:
        """Return which loss of one more node leaves which instance without a node, and did not before; None if none.

        What cannot be helped does not count. Of one node: what its absence does anyway, and what leaves it, since that
        would be down otherwise. Of several: what is so if one of them goes alone.
        """
        if self.force:
            return None
        known = {item.instance for items in self.start.homeless.values() for item in items}
        allowed: frozenset[str] | None = None  # it takes long, and mostly nobody asks
        for index, items in self._losses(here):
            for item in items:
                if item.instance in known:
                    continue
                if allowed is None:
                    alone = len(here.closed) == 1
                    allowed = frozenset[str]().union(*(self._allows(each, alone=alone) for each in here.closed))
                if item.instance not in allowed:
                    name = self.name(index)
                    return Refused(f"N+1: if {name} is lost as well, {item.instance} has no node ({item.key})")
        return None

    def _allows(self, index: int, *, alone: bool) -> frozenset[str]:
        """Return the instances that may be without a node while this one is cleared: `alone`, or beside others."""
        if (index, alone) not in self._allowed:
            found = set[str]()
            if alone:
                found = {self.start.instances[number].name for number in self.start.nodes[index].primaries}
            here = Cleared(self.start, frozenset({index})) if alone else self.clear_alone(index)
            found |= {item.instance for _, items in self._losses(here) for item in items}
            self._allowed[index, alone] = frozenset(found)
        return self._allowed[index, alone]

    def _losses(self, here: Cleared) -> Iterator[tuple[int, tuple[Homeless, ...]]]:
        """Yield the instances that find no node if one more is lost while the cleared nodes are down, by that node.

        Mirrored instances whose other node is down are left out: nothing helps them.
        """
        down, items, nodes = {}, here.layout.instances, here.layout.nodes
        changed = {index for index, node in nodes.items() if node is not self.start.nodes[index]} | here.closed
        for index in changed.union(*({items[number].primary for number in nodes[i].secondaries} for i in here.closed)):
            node, left = nodes[index], list[int]()
            if index in here.closed:
                node = node.with_facts(replace(node.facts, offline=True, total_memory=0.0))
            else:
                left = [number for number in node.primaries if items[number].secondary not in here.closed]
            down[index] = node.copy()
            down[index].primaries = tuple(sorted(left, reverse=True))  # htools places them in this order
        return here.layout.reached(down, {}).each_homeless()

    def moves_back(self, here: Cleared, tags: LocationFacts) -> list[InstanceMove]:
        """Return the moves back to the cleared nodes, which have other `tags` after an upgrade.

        One stays where nothing lets it back: migration tags, a drained node, or memory that others still take.
        """
        again, layout, back, some_stay = replace(self, tags=tags), here.layout, list[InstanceMove](), False
        for number in reversed([*here.moved]):
            item, home = layout.instances[number], self.start.instances[number].primary
            mirrored = item.secondary != NO_NODE
            move = InstanceMove(MoveKind.FAILOVER, item) if mirrored else InstanceMove(MoveKind.FAILOVER_TO, item, home)
            moved = apply_move(layout.nodes, move, force=True)
            if again._forbidden(item, home) or (some_stay and isinstance(moved, FailReason)):
                some_stay = True
                continue
            back.append(move)  # where all came back so far, it fits as before, whatever htools says
            layout = layout.after(moved) if isinstance(moved, Moved) else layout
        return back
