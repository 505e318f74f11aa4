"""Capacity beyond what htools can express: several node failures, over-subscription of memory.

Source: Ganeti design document "Resource model". Both extend htools' node model, checks and score: a limit only removes
candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.compiled_allocation import Budget, CompiledAllocator
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.placement import NO_FAILURES, Candidates, FailCounts, Nodes, add_counts
from gpolicy.allocator.redundancy import CapacityRules, Instances
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.errors import InputError

_STEPS_OF_NODE: Final = 100
"""What it takes to open an engine anew, of each node."""


def limited_allocator(candidates: Candidates, rules: CapacityRules, budget: Budget | None = None) -> Allocator:
    """Return an allocator that tests each placement against `rules`, as hail does against one failure."""
    if rules.oversubscription is not None:
        return _OversubscribedAllocator(candidates, rules, budget)
    return CompiledAllocator(candidates, rules, capacity_checks=rules.failures > 0, each=True, budget=budget)


class _OversubscribedAllocator(Allocator):
    """Places as many at a time as fit on any one node, on nodes with memory left for the burst of the instance."""

    def __init__(self, candidates: Candidates, rules: CapacityRules, budget: Budget | None) -> None:
        super().__init__(ReferenceEngine(candidates, rules))
        self._candidates, self._rules, self._budget = candidates, rules, budget

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`)."""
        first, most = len(state.placed), self._rules.oversubscription
        rules = replace(self._rules, oversubscription=None)
        budget = self._budget or Budget()
        before = budget.left
        while True:
            budget.spend(_STEPS_OF_NODE * len(state.nodes), before)
            left = {index: memory_left(node, state.instances, most) for index, node in state.nodes.items()}
            fewer, refused = _with_left(self._candidates, left, instance.burst)
            count = len(state.placed)
            steps = [] if limit is None else [limit - (count - first)]
            if instance.burst > 0:
                steps += [int(left[index] // instance.burst) for index in fewer.nodes]
            step = min(steps, default=None)
            state = limited_allocator(fewer, rules, budget).standard(state, instance, step)
            placed = len(state.placed) - count
            if not step or placed < step or len(state.placed) - first == limit:
                return replace(state, failures=add_counts(state.failures, refused))

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance`, which ballooning shrinks."""
        return self.standard(state, instance, limit)


def _with_left(candidates: Candidates, left: Mapping[int, float], needed: int) -> tuple[Candidates, FailCounts]:
    """Return the candidates whose primary has enough left, and the others as failures."""
    failures = list(NO_FAILURES)
    failures[FailReason.MEM] = sum(number for index, number in candidates.counts if needed > left[index])
    return candidates.kept(lambda index: needed <= left[index]), tuple(failures)


def refuse_minutes(nodes: Nodes, instances: Instances, instance: Instance, rules: CapacityRules) -> None:
    """Raise InputError if counting under `rules` takes minutes."""
    count, failures = len(nodes), rules.failures
    if failures == 0 or (failures == 1 and not rules.cpus):
        return  # no set of nodes is simulated
    lost = f"the loss of any {failures} nodes" if failures > 1 else "the loss of any node"
    if count > MOST_NODES:
        raise InputError(
            f"{lost} would be tested for every instance that is placed, on at most {MOST_NODES} nodes; there are"
            f" {count}",
            hint="ask about a smaller group",
        )
    if all(item.template is DiskTemplate.DRBD for item in (instance, *instances.values())):
        return
    most = next(number for number in range(count, -1, -1) if sets_of(number, failures) * number**2 <= MOST_WORK)
    if count > most:
        raise InputError(
            f"{lost} would be simulated for every instance that is placed, as not all are mirrored: that takes minutes"
            f" for more than {most} nodes; there are {count}",
            hint="ask for fewer failures, or about a smaller group",
        )


def memory_left(node: Node, instances: Mapping[int, Instance], oversubscription: float | None) -> float:
    """Return the maximum memory of further primaries that `node` may take (MiB).

    An instance that is offline takes none (design document "Resource model").
    """
    if oversubscription is None:
        return math.inf
    used = sum(instances[number].burst for number in node.primaries if instances[number].online)
    return memory_for_instances(node) * oversubscription - used


def memory_for_instances(node: Node) -> int:
    """Return the memory of a node for instances (MiB): all but that of the node itself and of its hypervisor."""
    facts = node.facts
    return max(0, truncate(facts.total_memory) - facts.node_memory - max(0, facts.unaccounted_memory))


MOST_NODES: Final = 100
"""The greatest number of nodes on which sets of lost nodes are tested for each instance."""
MOST_WORK: Final = 300_000
"""The greatest number of sets of lost nodes, each times the square of the nodes, that a run may simulate for each
instance."""


def sets_of(nodes: int, failures: int) -> int:
    """Return the number of sets of at most `failures` of `nodes`."""
    return sum(math.comb(nodes, size) for size in range(1, failures + 1))
