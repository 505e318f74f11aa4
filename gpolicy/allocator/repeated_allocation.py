"""Standard and tiered allocation: how many instances of one size fit, or of shrinking sizes.

This is the law: short, and step by step as in htools. `gpolicy.allocator.engines` gives the same answers with less
work.
"""

from __future__ import annotations

from collections.abc import Callable

from gpolicy.allocator import placement
from gpolicy.allocator.cluster_data import Disk, DiskTemplate, FailReason, Instance
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.redundancy import CapacityRules, Instances, is_redundant, redundancy_predicate
from gpolicy.light_dataclasses import dataclass, replace

HUGE_STEP_FLOOR = 20
SMALL_STEP = 10
"""The number of instances between two N+1 tests after a huge step has failed."""

_STEPS = 10
"""What it takes to try one node, for each node that the score is made of."""


@dataclass(frozen=True, slots=True)
class AllocationState:
    """The state of a run of allocations: nodes, all instances, the placed ones, the last failures.

    `refused`: in some attempt the N+1 test kept an instance off a candidate that would have taken it. The engine also
    says so where that candidate may have been worse than the one chosen.
    """

    nodes: placement.Nodes
    instances: Instances
    placed: tuple[Instance, ...] = ()
    failures: placement.FailCounts = placement.NO_FAILURES
    attempted: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceEngine:
    """The engine of the law, which repeats every computation.

    `spend` is told of the steps before each computation, and ends the work by an error.
    """

    candidates: placement.Candidates
    rules: CapacityRules
    spend: Callable[[int], None] = lambda _: None

    def attempt(
        self, nodes: placement.Nodes, instances: Instances, instance: Instance, *, checked: bool
    ) -> placement.Attempt:
        """Try every candidate; with `checked` only a placement that passes the N+1 test counts."""
        tries = self.candidates.nodes if isinstance(self.candidates, placement.SingleCandidates) else nodes
        self.spend(_STEPS * len(tries) * len(nodes))
        test = redundancy_predicate(nodes, instances, self.rules)

        def predicate(tried: placement.Placement) -> bool:
            self._spend_on_test(nodes, instances)
            return test(tried)

        judged, weights = predicate if checked else None, self.rules.weights
        return placement.try_allocate(
            nodes, instance, self.candidates, force=self.rules.force, predicate=judged, weights=weights
        )

    def redundant(self, nodes: placement.Nodes, instances: Instances) -> bool:
        """Whether every examined node can be evacuated."""
        self._spend_on_test(nodes, instances)
        return is_redundant(nodes, instances, self.rules)

    def _spend_on_test(self, nodes: placement.Nodes, instances: Instances) -> None:
        placed_anew = sum(item.template is not DiskTemplate.DRBD for item in instances.values())
        self.spend(_STEPS * (len(instances) + placed_anew * len(nodes) ** 2))


@dataclass(frozen=True, slots=True)
class Allocator:
    """Standard and tiered allocation on top of an engine.

    `capacity_checks`: global N+1 tests; with `each` of every placement, which htools skips for mirrored instances.
    """

    engine: ReferenceEngine
    capacity_checks: bool = True
    each: bool = False

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` until none fits or `limit` new ones are placed."""
        if not self.capacity_checks or self.each:
            return self._small(state, instance, limit, checked=self.capacity_checks)
        huge = True
        while True:
            step = SMALL_STEP
            if huge:
                if instance.memory == 0:
                    raise DivisionError("divide by zero")
                available = sum(node.available_memory for node in state.nodes.values())
                step = max(HUGE_STEP_FLOOR, available // instance.memory - len(state.nodes))
            now = step if limit is None else min(step, limit)
            rest = None if limit is None else max(0, limit - step)
            after = self._small(state, instance, now, checked=False)
            if self.engine.redundant(after.nodes, after.instances):
                if rest == 0 or len(after.placed) == len(state.placed):
                    return after
                state, limit = after, rest
            elif huge:
                huge = False
            else:
                return self._small(state, instance, limit, checked=True)

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place `instance` until none fits, shrink it by the most frequent reason of failure, and repeat.

        Each level first tries all sizes below the instance that is one unit smaller; only if that places nothing, it
        shrinks other resources. As in htools (Cluster: `tieredAlloc`), each level reduces `limit` by the number of all
        instances placed so far.
        """
        pending: list[tuple[AllocationState, Instance, int | None]] = []
        while True:
            reached = self.standard(state, instance, limit)
            count = len(reached.placed)
            if limit is None or limit > count:
                below = None if limit is None else limit - count
                if (smaller := shrink(instance, most_frequent_first(reached.failures)[0])) is not None:
                    pending.append((reached, instance, below))
                    state, instance, limit = reached, smaller, below
                    continue
                probed = self._probe(reached, instance)
                if probed is not None:
                    state, instance, limit = reached, probed, below
                    continue
            result = reached
            while pending:
                upper, upper_instance, upper_limit = pending.pop()
                if len(result.placed) > len(upper.placed):
                    continue
                probed = self._probe(upper, upper_instance)
                if probed is not None:
                    state, instance, limit = upper, probed, upper_limit
                    break
                result = upper
            else:
                return result

    def _small(
        self, state: AllocationState, instance: Instance, limit: int | None, *, checked: bool
    ) -> AllocationState:
        checked = checked and (self.each or instance.template is not DiskTemplate.DRBD)
        while True:
            number = len(state.instances)
            new = replace(instance, name=f"new-{len(state.placed)}", index=number)
            attempt = self.engine.attempt(state.nodes, state.instances, new, checked=checked)
            refused = state.refused or attempt.failures[FailReason.N1] > 0
            state = replace(state, failures=attempt.failures, attempted=True, refused=refused)
            if attempt.solution is None or limit == 0:
                return state
            nodes = {**state.nodes, **{node.index: node for node in attempt.solution.changed}}
            instances = {**state.instances, number: attempt.solution.instance}
            state = replace(state, nodes=nodes, instances=instances, placed=(attempt.solution.instance, *state.placed))
            limit = None if limit is None else limit - 1

    def _probe(self, state: AllocationState, instance: Instance) -> Instance | None:
        """Find a smaller instance that fits, shrinking one resource at a time."""
        for reason in most_frequent_first(state.failures):
            current = instance
            while True:
                smaller = shrink(current, reason)
                if smaller is None:
                    break
                attempt = self.engine.attempt(state.nodes, state.instances, current, checked=self.capacity_checks)
                if attempt.solution is not None:
                    return current
                if attempt.failures[reason] == 0:
                    break
                current = smaller
        return None


def most_frequent_first(failures: placement.FailCounts) -> list[FailReason]:
    """Return all reasons, that to shrink by first: the one with most failures, of equals the last one."""
    return sorted(FailReason, key=lambda reason: (failures[reason], reason), reverse=True)


MEMORY_UNIT = 64
"""MiB by which memory shrinks, and its minimum."""
DISK_UNIT = 256
"""MiB by which each disk shrinks, and its minimum."""


def shrink(instance: Instance, reason: FailReason) -> Instance | None:
    """Return `instance` one unit smaller in the resource of `reason`, None if that is not possible."""
    if reason is FailReason.MEM:
        memory = instance.memory - MEMORY_UNIT
        return replace(instance, memory=memory) if memory >= MEMORY_UNIT else None
    if reason is FailReason.DISK:
        if any(disk.size - DISK_UNIT < DISK_UNIT for disk in instance.disks):
            return None
        disks = tuple(Disk(disk.size - DISK_UNIT, disk.spindles) for disk in instance.disks)
        return replace(instance, disks=disks, disk=instance.disk - DISK_UNIT * len(disks))
    if reason is FailReason.CPU:
        return replace(instance, vcpus=instance.vcpus - 1) if instance.vcpus > 1 else None
    if reason is FailReason.SPINDLES:
        if len(instance.disks) != 1 or instance.disks[0].spindles is None or instance.disks[0].spindles <= 1:
            return None
        return replace(instance, disks=(Disk(instance.disks[0].size, instance.disks[0].spindles - 1),))
    return None
