"""Capacity beyond what htools can express: several node failures, over-subscription of memory.

Source: Ganeti design document "Resource model". Both extend htools' node model, checks and score: a limit only removes
candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.placement import NO_FAILURES, Attempt, PairCandidates, SingleCandidates, add_counts, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, can_evacuate, settled
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Candidates, Nodes, Placement
    from gpolicy.allocator.redundancy import Instances

Left = Mapping[int, float]
"""By node, the maximum memory of further primaries that it may take (MiB)."""


@dataclass(frozen=True, slots=True)
class ExtendedRules:
    """The extra limits.

    `max_node_failures`: how many nodes of a group may fail at once. `oversubscription`: the sum of the
    maximum memories of a node's primaries may be this many times its memory for instances (total less
    node memory); None: no limit. `maximum_memory`: of existing instances by name (MiB), by default their own memory; an
    instance's `memory` is its guaranteed minimum.
    """

    max_node_failures: int = 1
    oversubscription: float | None = None
    maximum_memory: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_node_failures < 0:
            raise InputError(f"max_node_failures is {self.max_node_failures}, which is less than 0")
        if self.oversubscription is not None and self.oversubscription <= 0:
            raise InputError(f"the over-subscription ratio is {self.oversubscription:g}, it must be above 0")


def fill(
    cluster: Cluster,
    candidates: Candidates,
    instance: Instance,
    rules: ExtendedRules,
    *,
    maximum_memory: int | None = None,
    limit: int | None = None,
) -> AllocationState:
    """Place copies of `instance` one by one until none fits under all limits, or `limit` are placed.

    `maximum_memory` (MiB) is its memory at most, by default its own memory. Every placement is tested against
    `max_node_failures`. Raises InputError if the numbers contradict one another.
    """
    needed = instance.memory if maximum_memory is None else maximum_memory
    if needed < instance.memory:
        raise InputError(f"the maximum memory {needed} is below the memory {instance.memory}")
    left = {index: memory_left(node, cluster.instances, rules) for index, node in cluster.nodes.items()}
    state = AllocationState(cluster.nodes, cluster.instances)
    while limit is None or len(state.placed) < limit:
        number = len(state.instances)
        wanted = replace(instance, index=number, name=f"new-{len(state.placed)}")
        attempt = _attempt(state, candidates, wanted, needed, rules, left)
        state = replace(state, failures=attempt.failures, attempted=True)
        if attempt.solution is None:
            break
        placed = attempt.solution.instance
        left[placed.primary] -= needed
        state = replace(
            state,
            nodes={**state.nodes, **{node.index: node for node in attempt.solution.changed}},
            instances={**state.instances, number: placed},
            placed=(placed, *state.placed),
        )
    return state


def _attempt(
    state: AllocationState, candidates: Candidates, wanted: Instance, needed: int, rules: ExtendedRules, left: Left
) -> Attempt:
    """Try the candidates whose primary has enough left; the others fail for their memory."""

    def satisfied(placement: Placement) -> bool:
        number = len(state.instances)
        nodes = {**state.nodes, **{node.index: settled(node, number) for node in placement.changed}}
        table = {**state.instances, number: placement.instance}
        return survives(nodes, table, CapacityRules(), rules.max_node_failures)

    fewer: Candidates
    if isinstance(candidates, SingleCandidates):
        fewer = SingleCandidates(tuple(index for index in candidates.nodes if needed <= left[index]))
    else:
        fewer = PairCandidates(tuple((index, others) for index, others in candidates.pairs if needed <= left[index]))
    attempt = try_allocate(state.nodes, wanted, fewer, predicate=satisfied)
    failures = list(NO_FAILURES)
    failures[FailReason.MEM] = refused_for_memory(candidates, left, needed)
    return replace(attempt, failures=add_counts(attempt.failures, tuple(failures)))


def refused_for_memory(candidates: Candidates, left: Left, needed: int) -> int:
    """Return how many candidates have a primary with less than `needed` (MiB) left."""
    if isinstance(candidates, SingleCandidates):
        return sum(needed > left[index] for index in candidates.nodes)
    return sum(len(others) for index, others in candidates.pairs if needed > left[index])


def memory_left(node: Node, instances: Mapping[int, Instance], rules: ExtendedRules) -> float:
    """Return the maximum memory of further primaries that `node` may take (MiB)."""
    if rules.oversubscription is None:
        return math.inf
    used = sum(rules.maximum_memory.get(instances[number].name, instances[number].memory) for number in node.primaries)
    return memory_for_instances(node) * rules.oversubscription - used


def memory_for_instances(node: Node) -> int:
    """Return the memory of a node for instances (MiB): all but that of the node itself and of its hypervisor."""
    facts = node.facts
    return max(0, truncate(facts.total_memory) - facts.node_memory - max(0, facts.unaccounted_memory))


MOST_SIMULATED: Final = 20_000
"""The greatest number of sets of lost nodes that one question may simulate."""


def survives(nodes: Nodes, instances: Instances, rules: CapacityRules, failures: int, *, cpus: bool = False) -> bool:
    """Whether any `failures` nodes of one group, and any fewer, can fail at the same time.

    htools asks this of one node at a time (`redundancy.is_redundant`). A mirrored instance is not counted if both of
    its nodes fail: no free room can save it. With `cpus` the nodes that take over must keep their vcpu-ratio.

    Raises InputError for a negative number, or if there are too many sets of nodes.
    """
    if failures < 0:
        raise InputError(f"the number of node failures to survive is {failures}, which is less than 0")
    groups: dict[int, list[int]] = {}
    for index, node in nodes.items():
        skipped = rules.skip_offline and node.facts.offline
        if not skipped and node.facts.group not in rules.ignored_groups:
            groups.setdefault(node.facts.group, []).append(index)
    cases = sum(math.comb(len(members), size) for members in groups.values() for size in range(1, failures + 1))
    if cases > MOST_SIMULATED:
        raise InputError(
            f"surviving {failures} failures means {cases} sets of nodes to examine; the limit is {MOST_SIMULATED}",
            hint="ask for fewer failures, or for one group at a time",
        )
    return all(
        can_evacuate(nodes, instances, lost, cpus=cpus)
        for members in groups.values()
        for size in range(1, failures + 1)
        for lost in combinations(members, size)
    )
