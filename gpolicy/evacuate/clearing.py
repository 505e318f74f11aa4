"""Nodes cleared of what runs there, so that they can be rebooted together: where each instance goes meanwhile.

A mirrored instance migrates to its secondary node, an externally mirrored one to another node of its group. None is
forced; for N+1 a lost instance starts anew, so migration tags do not count there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, NodeData
from gpolicy.allocator.compiled_allocation import memory_left
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind, apply_move
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.binding import Cause, of_move
from gpolicy.printable import count
from gpolicy.remedy.faults import Layout, shortage
from gpolicy.remedy.moving import Movers

SOFT: Final = {Cause.TAGS, Cause.RESERVE, Cause.REDUNDANCY, Cause.VCPU_RATIO, Cause.SPINDLE_RATIO}
"""What `gnt-node evacuate --ignore-soft-errors` ignores."""
_MOST_WORK: Final = 1_000
"""How many other instances are asked to make room for those of one node, times the nodes, which each looks at."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an instance does not leave its node live. `fixed`: with whichever nodes; `soft`: by soft errors alone."""

    reason: str
    fixed: bool = False
    soft: bool = False


@dataclass(frozen=True, slots=True)
class Cleared:
    """The nodes `closed` without what runs there, after moves of the instances `moved`, in this order.

    `halted` are the instances that nothing moves: they must be shut down meanwhile.
    """

    nodes: Nodes
    instances: Mapping[int, Instance]
    closed: frozenset[int] = frozenset()
    moved: tuple[int, ...] = ()
    halted: Mapping[int, Refused] = field(default_factory=dict)

    @property
    def is_best(self) -> bool:
        """Whether all are halted that nothing moves, and no others."""
        return all(why.fixed for why in self.halted.values())


@dataclass(frozen=True)
class Clearing:
    """A cluster whose nodes are to be cleared, as `start` is: its nodes have no migration tags there.

    `facts` are the nodes with their tags, and `after` as they are when they come back. `running` are the instances that
    run; of those in `pinned`, nothing moves any live, and why. `closed_to_all` are the nodes that Ganeti moves nothing
    to, with the word for it. `force`: against soft errors, too. `copies`: mirrored ones may get another secondary.
    """

    start: Layout
    movers: Movers
    facts: Mapping[int, NodeData]
    after: Mapping[int, NodeData]
    running: frozenset[int]
    pinned: Mapping[int, str]
    closed_to_all: Mapping[int, str]
    force: bool = False
    copies: bool = False
    _alone: dict[int, Cleared] = field(default_factory=dict)
    _first: dict[int, Cleared] = field(default_factory=dict)
    _known: dict[tuple[int, bool], frozenset[str]] = field(default_factory=dict)

    @property
    def nothing(self) -> Cleared:
        """No node cleared."""
        return Cleared(self.start.nodes, self.start.instances)

    @cached_property
    def _homeless(self) -> frozenset[str]:
        return frozenset(item.instance for items in self.start.homeless.values() for item in items)

    @cached_property
    def _members(self) -> Mapping[int, list[int]]:
        """The nodes of each group that take instances: new ones first, then the last, as they wait longest."""
        found: dict[int, list[int]] = {}
        usable = self.facts.keys() - self.closed_to_all.keys()
        for index in sorted(usable, key=lambda index: (self.after[index] is not self.facts[index], -index)):
            found.setdefault(self.facts[index].group, []).append(index)
        return found

    def clear_alone(self, index: int) -> Cleared:
        """Return one node cleared, and no other, with as few instances halted as possible; N+1 is not looked at."""
        if index not in self._alone:
            found = [self._close(self.nothing, index, smallest_first=False, alone=True)]
            if any(item.soft for item in found[0].halted.values()):
                found.append(self._close(self.nothing, index, smallest_first=True, alone=True))
            self._alone[index] = min(found, key=lambda item: len(item.halted))
        return self._alone[index]

    def clear_first(self, index: int) -> Cleared:
        """Return one node cleared, and no other, with N+1 no worse: for that, too, instances may be halted.

        Where that keeps more of them running, others make room first, or disks are copied if that is allowed.
        """
        if index not in self._first:
            found = self.clear_alone(index)
            if self.newly_homeless(found):
                found = self._close(self.nothing, index, smallest_first=False, alone=True, each=True)
            found = self._with_help(found, index)
            if self.copies and not found.is_best:
                copied = self._close(self.nothing, index, smallest_first=False, alone=True, each=True, copies=True)
                found = min(found, copied, key=lambda item: len(item.halted))
            self._first[index] = found
        return self._first[index]

    def _with_help(self, best: Cleared, index: int) -> Cleared:
        """Return a node cleared after moves of other instances that make room, if fewer are halted then."""
        helped = self.nothing
        while not best.is_best:
            for number in islice(self._helpers(best, index), max(1, _MOST_WORK // len(self.facts))):
                there = self._moved(helped, number, index)
                found = there and self._close(there, index, smallest_first=False, alone=True)
                if there and found and len(found.halted) < len(best.halted) and not self.newly_homeless(found):
                    best, helped = found, there
                    break
            else:
                break
        return best

    def _helpers(self, here: Cleared, index: int) -> list[int]:
        """Return the running instances on the nodes that the halted ones could go to."""
        stuck = [self.start.instances[number] for number, why in here.halted.items() if not why.fixed]
        group = self._members.get(self.facts[index].group, ())
        others = sorted(({item.secondary for item in stuck} - {NO_NODE} or {*group}) - {index})
        found = (number for other in others for number in self.start.nodes[other].primaries)
        return [number for number in found if number in self.running and number not in here.moved]

    def _moved(self, here: Cleared, number: int, index: int) -> Cleared | None:
        """Return `here` after a move of one instance to a node other than `index`; None if N+1 is worse then."""
        layout = copy(self.start)
        layout.nodes, layout.instances = here.nodes, here.instances
        found = self._leave(layout, here.instances[number], frozenset({index}), copies=False)
        if isinstance(found, Refused):
            return None
        nodes, instances = {**here.nodes, **found.changed}, {**here.instances, number: found.instance}
        there = Cleared(nodes, instances, moved=(*here.moved, number))
        return None if self.newly_homeless(there) else there

    def join(self, here: Cleared, index: int) -> Cleared | Refused:
        """Return `here` with one more node cleared; why not, if an instance would be halted for it that need not."""
        for number in here.nodes[index].primaries:
            if number in self.running and number not in self.pinned and here.instances[number].secondary in here.closed:
                other = self.facts[here.instances[number].secondary].name
                return Refused(f"{self.facts[index].name} and {other} are both nodes of {here.instances[number].name}")
        try:
            return self._close(here, index, smallest_first=False)
        except _HaltedError as halted:
            return halted.why

    def _close(
        self,
        here: Cleared,
        index: int,
        *,
        smallest_first: bool,
        alone: bool = False,
        each: bool = False,
        copies: bool = False,
    ) -> Cleared:
        """Return `here` with one more node cleared. `each`: N+1 is looked at after each move, not by the caller."""
        layout = copy(self.start)  # `try_move` reads its nodes and instances, which change here
        nodes, instances = layout.nodes, layout.instances = {**here.nodes}, {**here.instances}
        moved, halted = dict.fromkeys(here.moved), dict(here.halted)
        closed = here.closed | {index}
        own = [number for number in layout.nodes[index].primaries if number in self.running]
        sign = 1 if smallest_first else -1
        for number in sorted(own, key=lambda one: (instances[one].secondary == NO_NODE, sign * instances[one].memory)):
            found = self._leave(layout, instances[number], closed, copies=copies)
            if isinstance(found, Moved) and each:
                there = Cleared({**nodes, **found.changed}, {**instances, number: found.instance}, closed)
                if reason := self.newly_homeless(there):
                    found = Refused(reason, soft=True)
            if isinstance(found, Refused):
                guest = self.start.instances[number].primary != index
                if not alone and (guest or not (found.fixed or self._must_halt(number, index))):
                    raise _HaltedError(found)
                halted[number] = found
                continue
            nodes.update(found.changed)
            instances[number] = found.instance
            moved.pop(number, None)  # a guest moves on
            moved[number] = None
        return Cleared(nodes, instances, closed, tuple(moved), halted)

    def _must_halt(self, number: int, index: int) -> bool:
        if self.copies or number not in self.clear_alone(index).halted:
            return False
        return number in self.clear_first(index).halted

    def _leave(self, layout: Layout, item: Instance, closed: frozenset[int], *, copies: bool) -> Moved | Refused:
        """Return how an instance leaves its node for one that is not `closed`, or why it cannot."""
        if item.index in self.pinned:
            return Refused(self.pinned[item.index], fixed=True)
        if item.secondary != NO_NODE and item.primary != self.start.instances[item.index].primary:
            return Refused(f"{item.name} came to {self.facts[item.primary].name} for the sake of others")
        refused: list[Refused] = []
        causes: Counter[str] = Counter()
        for move in self._moves(item, closed, copies=copies):
            if refused and move.target != NO_NODE and layout.nodes[move.target].unallocated_memory <= item.memory:
                causes["lack memory"] += 1
                continue
            found = self._try(layout, move, closed)
            if isinstance(found, Moved):
                return found
            refused.append(found)
            causes[found.reason] += 1
        if not refused:
            return Refused("its group has no other node that takes instances", fixed=len(closed) == 1)
        soft = any(one.soft for one in refused)
        if causes.total() == 1:
            return replace(refused[0], fixed=refused[0].fixed and (item.secondary != NO_NODE or len(closed) == 1))
        more = f"; {count(causes.total() - 1, 'other node')} refuse it, too"
        return replace(refused[0], reason=f"{refused[0].reason}{more}", soft=soft, fixed=False)

    def _moves(self, item: Instance, closed: frozenset[int], *, copies: bool) -> Iterator[InstanceMove]:
        mirrored = item.template is DiskTemplate.DRBD
        if mirrored:
            yield InstanceMove(MoveKind.FAILOVER, item)
        if not mirrored or copies:
            kind = MoveKind.REPLACE_AND_FAILOVER if mirrored else MoveKind.FAILOVER_TO
            for target in self._members.get(self.facts[item.primary].group, ()):
                if target not in closed and target not in {item.primary, item.secondary}:
                    yield InstanceMove(kind, item, target)

    def _try(self, layout: Layout, move: InstanceMove, closed: frozenset[int]) -> Moved | Refused:
        item = move.instance
        target = item.secondary if move.target == NO_NODE else move.target
        if target not in layout.nodes:
            return Refused("its secondary node is in a group that is left out", fixed=True)
        name, home = self.facts[target].name, self.start.instances[item.index].primary
        if target in closed:
            return Refused(f"{item.name} has both of its nodes among them")
        if target in self.closed_to_all:
            return Refused(f"its secondary node {name} is {self.closed_to_all[target]}", fixed=True)
        back = [(self.facts[target], self.after[home])] if self.after[home] is self.facts[home] else []
        for source, goal in ((self.facts[home], self.facts[target]), *back):
            if not source.migration_tags <= goal.receivable_tags:
                return Refused(f"migration tags do not let it go from {source.name} to {goal.name}", fixed=True)
        moved = apply_move(layout.nodes, move, force=True)
        reason = moved if isinstance(moved, FailReason) else self._soft_error(layout, moved, item, target)
        if reason is not None:
            why = of_move(layout.nodes, move, reason, force=isinstance(moved, FailReason))
            return Refused(f"{why.cause.key}: {why.detail}", soft=isinstance(moved, Moved))
        assert isinstance(moved, Moved)  # noqa: S101 (else there is a reason)
        return moved

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

    def newly_homeless(self, here: Cleared) -> str:
        """Return which loss of one more node cannot be absorbed while the cleared nodes are down, and could before.

        What cannot be helped does not count: mirrored instances whose other node is down, what each node's absence
        alone does, and what leaves it even if it goes alone, for that would be down otherwise.
        """
        lost = {} if self.force else {name: why for name, why in self._lost(here).items() if name not in self._homeless}
        alone = len(here.closed) == 1
        inherent = {name for index in here.closed if lost for name in self._inherent(index, alone=alone)}
        return next((why for name, why in lost.items() if name not in inherent), "")

    def _inherent(self, index: int, *, alone: bool) -> frozenset[str]:
        if (index, alone) not in self._known:
            own = {self.start.instances[number].name for number in self.start.nodes[index].primaries}
            own = own if alone else own & self._lost(self.clear_first(index)).keys()
            away = Cleared(self.start.nodes, self.start.instances, frozenset({index}))
            self._known[index, alone] = frozenset({*self._lost(away), *own})
        return self._known[index, alone]

    def _lost(self, here: Cleared) -> dict[str, str]:
        """Return the instances that find no node if one more is lost while the cleared nodes are down, and why."""
        down = dict(here.nodes)
        for index, node in here.nodes.items():
            left = tuple(number for number in node.primaries if here.instances[number].secondary not in here.closed)
            if index in here.closed:
                down[index] = node.with_facts(replace(node.facts, offline=True, total_memory=0.0))
                left = ()
            if len(left) < len(node.primaries):
                down[index] = down[index].copy()
                down[index].primaries = left
        return {
            item.instance: f"N+1: if {self.facts[index].name} is lost as well, {item.instance} has no node ({item.key})"
            for index, items in self.start.reached(down, here.instances).homeless.items()
            for item in items
        }

    def moves_out(self, here: Cleared) -> list[InstanceMove]:
        """Return the moves that clear the nodes, each of one instance."""
        found = []
        for number in here.moved:
            before, now = self.start.instances[number], here.instances[number]
            kind = MoveKind.FAILOVER_TO if before.secondary == NO_NODE else MoveKind.REPLACE_AND_FAILOVER
            swapped = now.primary == before.secondary
            found.append(InstanceMove(*((MoveKind.FAILOVER, before) if swapped else (kind, before, now.primary))))
        return found

    def fill_again(self, here: Cleared) -> tuple[list[InstanceMove], Clearing]:
        """Return the moves back to the cleared nodes, and what is to be cleared after them.

        An instance stays where nothing lets it back: its node is drained, or migration tags forbid it after an upgrade.
        """
        nodes, instances, back = {**here.nodes}, {**here.instances}, []
        facts = {**self.facts, **{index: self.after[index] for index in here.closed}}
        for number in reversed(here.moved):
            item, home = instances[number], self.start.instances[number].primary
            mirrored = item.secondary != NO_NODE
            move = InstanceMove(MoveKind.FAILOVER, item) if mirrored else InstanceMove(MoveKind.FAILOVER_TO, item, home)
            moved = apply_move(nodes, move, force=True)
            ours = self.facts[item.primary].migration_tags <= facts[home].receivable_tags
            if home not in self.closed_to_all and ours:
                back.append(move)
                if isinstance(moved, Moved):
                    nodes.update(moved.changed)
                    instances[number] = moved.instance
        secondaries = all(
            instances[number].secondary == self.start.instances[number].secondary for number in here.moved
        )
        start = self.start if len(back) == len(here.moved) and secondaries else self.start.reached(nodes, instances)
        same = start is self.start and all(facts[index] is self.facts[index] for index in here.closed)
        alone, known = (self._alone, self._known) if start is self.start else ({}, {})  # they depend on no others' tags
        following = replace(self, start=start, facts=facts, _alone=alone, _first={}, _known=known)
        return back, self if same else following


class _HaltedError(Exception):
    """A node cannot be cleared beside others."""

    def __init__(self, why: Refused) -> None:
        super().__init__(why.reason)
        self.why = why
