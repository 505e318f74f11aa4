"""Standard and tiered allocation that skips what is known already; the law is `capacity.Allocator`.

Most of a tiered run consists of instances that fit nowhere. As long as they are shrunk by one resource,
the outcome on every node changes only where the demand passes certain numbers; between two of them all
steps are alike and are taken at once. The same holds for the probes on the way back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.capacity import Allocator, ReferenceEngine, State, ascending, most_frequent
from gpolicy.allocator.kinds import DiskTemplate, FailReason
from gpolicy.allocator.model import Disk
from gpolicy.allocator.shrink import DISK_UNIT, MEMORY_UNIT, shrink

if TYPE_CHECKING:
    from gpolicy.allocator.fast_engine import FastEngine
    from gpolicy.allocator.model import Instance

_UNITS = {FailReason.MEM: MEMORY_UNIT, FailReason.DISK: DISK_UNIT}


@dataclass(frozen=True, slots=True)
class Levels:
    """A run of unsuccessful levels: `first`, then `count` - 1 instances each one unit smaller."""

    state: State
    first: Instance
    reason: FailReason
    count: int
    limit: int | None
    alike: bool

    def level(self, place: int) -> Instance:
        """Return the instance of one level."""
        return shrink_by(self.first, self.reason, place)


class FastAllocator(Allocator):
    """The allocation loops on a `FastEngine`, with equal results."""

    __slots__ = ()
    engine: FastEngine

    def standard(self, state: State, instance: Instance, limit: int | None) -> State:
        """Place copies of `instance` (`capacity.Allocator.standard`)."""
        if not self.engine.handles(instance):
            return self._reference().standard(state, instance, limit)
        if self.capacity_checks and instance.memory > 0:
            self.engine.follow(state.nodes, state.instances)
            fits, failures = self.engine.fits(self._numbered(state, instance))
            if not fits:
                # nothing is placed whichever way it is tried, so N+1 does not matter
                return replace(state, failures=failures, attempted=True)
            if limit != 0 and self._hopeless(state, instance):
                return self._small(state, instance, limit, checked=True)
        return super().standard(state, instance, limit)

    def tiered(self, state: State, instance: Instance, limit: int | None) -> State:
        """Place shrinking instances (`capacity.Allocator.tiered`)."""
        if not self.engine.handles(instance):
            return self._reference().tiered(state, instance, limit)
        pending: list[Levels] = []
        while True:
            reached = self.standard(state, instance, limit)
            placed = len(reached.placed)
            result = reached
            if limit is None or limit > placed:
                below = None if limit is None else limit - placed
                levels = self._levels(state, reached, instance, below)
                if levels is not None:
                    pending.append(levels)
                    state, instance, limit = reached, levels.level(levels.count), below
                    continue
                probed = self._probe(reached, instance)
                if probed is not None:
                    state, instance, limit = reached, probed, below
                    continue
            while pending:
                upper = pending.pop()
                if len(result.placed) > len(upper.state.placed):
                    continue
                probed = self._probe_levels(upper)
                if probed is not None:
                    state, instance, limit = upper.state, probed, upper.limit
                    break
                result = upper.state
            else:
                return result

    def _reference(self) -> Allocator:
        engine = ReferenceEngine(self.engine.candidates, self.engine.rules)
        return Allocator(engine, capacity_checks=self.capacity_checks)

    def _levels(self, before: State, reached: State, instance: Instance, below: int | None) -> Levels | None:
        """Return the levels that end like this one and shrink by the same reason."""
        reason = most_frequent(reached.failures)
        if shrink(instance, reason) is None:
            return None
        count = 1
        alike = False
        unit = _UNITS.get(reason)
        if reached.nodes is before.nodes and unit is not None and instance.memory > 0:
            self.engine.follow(reached.nodes, reached.instances)
            fits, _ = self.engine.fits(self._numbered(reached, instance))
            if not fits:
                alike = True
                if below is None or not reached.placed:
                    steps = self.engine.steps_until_change(instance, reason, unit)
                    value = instance.memory if reason is FailReason.MEM else instance.disk
                    count = max(1, min(steps, (value - unit) // unit))
        return Levels(reached, instance, reason, count, below, alike)

    def _probe_levels(self, levels: Levels) -> Instance | None:
        """Probe the levels of a run, the smallest first; None if nothing is found at any."""
        if not levels.alike:
            return self._probe(levels.state, levels.first)
        self.engine.follow(levels.state.nodes, levels.state.instances)
        deepest = levels.level(levels.count - 1)
        reasons = [
            reason
            for reason in reversed(ascending(levels.state.failures))
            if levels.state.failures[reason] and self._may_fit(deepest, {reason, levels.reason}, reason)
        ]
        if not reasons:
            return None
        for place in reversed(range(self._first_that_may(levels, reasons), levels.count)):
            instance = levels.level(place)
            for reason in reasons:
                if reason is levels.reason and place < levels.count - 1:
                    # all levels of the run end alike, so this walk goes where that of the last one went
                    continue
                if self._may_fit(instance, {reason}, reason):
                    found = self._walk(levels.state, instance, reason)
                    if found is not None:
                        return found
        return None

    def _first_that_may(self, levels: Levels, reasons: list[FailReason]) -> int:
        """Return the first level of a run at which a probe may find something; the later ones all may."""
        low, high = 0, levels.count - 1
        while low < high:
            middle = (low + high) // 2
            instance = levels.level(middle)
            if any(
                self._may_fit(instance, {reason, levels.reason}, reason)
                for reason in reasons
                if reason is not levels.reason
            ):
                high = middle
            else:
                low = middle + 1
        return low

    def _probe(self, state: State, instance: Instance) -> Instance | None:
        """Find a smaller instance that fits (`capacity.Allocator._probe`)."""
        for reason in reversed(ascending(state.failures)):
            found = self._walk(state, instance, reason)
            if found is not None:
                return found
        return None

    def _walk(self, state: State, instance: Instance, reason: FailReason) -> Instance | None:
        """Shrink by one reason until an instance fits, or until that reason is no longer the trouble."""
        current = instance
        while True:
            smaller = shrink(current, reason)
            if smaller is None:
                return None
            attempt = self.engine.attempt(state.nodes, state.instances, current, checked=self.capacity_checks)
            if attempt.solution is not None:
                return current
            if attempt.failures[reason] == 0:
                return None
            unit = _UNITS.get(reason)
            if unit is None or self.engine.fits(current)[0]:
                current = smaller
                continue
            value = current.memory if reason is FailReason.MEM else current.disk
            steps = self.engine.steps_until_change(current, reason, unit)
            if (value - unit) // unit < steps:
                # all smaller ones end alike, and the smallest is not tried
                return None
            current = shrink_by(current, reason, steps)

    def _may_fit(self, instance: Instance, free: set[FailReason], reason: FailReason) -> bool:
        """Whether some candidate might take the instance if it were as small as possible in `reason`.

        Policies are not asked about the resources in `free`. Never wrongly False.
        """
        if shrink(instance, reason) is None:
            return False
        least = smallest(instance, reason)
        return self.engine.may_fit(least, frozenset(free))

    def _small(self, state: State, instance: Instance, limit: int | None, *, checked: bool) -> State:
        checked = checked and instance.template is not DiskTemplate.DRBD
        nodes, instances = dict(state.nodes), dict(state.instances)
        placed = list(reversed(state.placed))
        first = len(placed)
        while True:
            number = len(instances)
            new = replace(instance, name=f"new-{len(placed)}", index=number)
            attempt = self.engine.attempt(nodes, instances, new, checked=checked)
            if attempt.solution is None or limit == 0:
                break
            for node in attempt.solution.changed:
                nodes[node.index] = node
            instances[number] = attempt.solution.instance
            placed.append(attempt.solution.instance)
            self.engine.placed(nodes, attempt.solution)
            limit = None if limit is None else limit - 1
        if len(placed) == first:
            return replace(state, failures=attempt.failures, attempted=True)
        return State(nodes, instances, tuple(reversed(placed)), attempt.failures, attempted=True)

    def _hopeless(self, state: State, instance: Instance) -> bool:
        """Whether every possible first placement surely breaks N+1 for good.

        Then no run of unchecked placements ends redundant, and only the checked way is left.
        """
        if instance.template is DiskTemplate.DRBD:
            return False
        return self.engine.surely_breaks(state.nodes, state.instances, self._numbered(state, instance))

    @staticmethod
    def _numbered(state: State, instance: Instance) -> Instance:
        return replace(instance, name=f"new-{len(state.placed)}", index=len(state.instances))


def shrink_by(instance: Instance, reason: FailReason, steps: int) -> Instance:
    """Return `instance` several units smaller in memory or disk; the steps must be possible."""
    if steps == 0:
        return instance
    if reason is FailReason.MEM:
        return replace(instance, memory=instance.memory - MEMORY_UNIT * steps)
    if reason is FailReason.DISK:
        disks = tuple(Disk(disk.size - DISK_UNIT * steps, disk.spindles) for disk in instance.disks)
        return replace(instance, disks=disks, disk=instance.disk - DISK_UNIT * steps * len(disks))
    for _ in range(steps):
        instance = shrink(instance, reason) or instance
    return instance


def smallest(instance: Instance, reason: FailReason) -> Instance:
    """Return the smallest instance that shrinking by `reason` leads to."""
    if reason is FailReason.MEM:
        return shrink_by(instance, reason, (instance.memory - MEMORY_UNIT) // MEMORY_UNIT)
    if reason is FailReason.DISK:
        least = min((disk.size for disk in instance.disks), default=0)
        return shrink_by(instance, reason, max(0, (least - DISK_UNIT) // DISK_UNIT))
    current = instance
    while True:
        smaller = shrink(current, reason)
        if smaller is None:
            return current
        current = smaller
