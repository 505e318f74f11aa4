"""Capacity beyond what htools can express: several node failures, over-subscription of memory.

Source: Ganeti design document "Resource model". Both extend htools' node model, checks and score: a limit only removes
candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.compiled_allocation import make_allocator
from gpolicy.allocator.enumerations import DiskTemplate, FailReason
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.placement import NO_FAILURES, PairCandidates, SingleCandidates, add_counts
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Candidates

Left = Mapping[int, float]
"""By node, the maximum memory of further primaries that it may take (MiB)."""


@dataclass(frozen=True, slots=True)
class ExtendedRules:
    """The extra limits.

    `max_node_failures`: how many nodes of a group may fail at once; with `cpus` those that take over must keep their
    vcpu-ratio. `oversubscription`: the sum of the
    maximum memories of a node's primaries may be this many times its memory for instances (total less
    node memory); None: no limit. `maximum_memory`: of existing instances by name (MiB), by default their own memory; an
    instance's `memory` is its guaranteed minimum.
    `weights` are those of the score.
    """

    max_node_failures: int = 1
    cpus: bool = False
    oversubscription: float | None = None
    maximum_memory: Mapping[str, int] = field(default_factory=dict)
    weights: Weights = WEIGHTS

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
) -> AllocationState:
    """Place copies of `instance` one by one until none fits under all limits.

    `maximum_memory` (MiB) is its memory at most, by default its own memory. Every placement is tested against
    `max_node_failures`. Raises InputError if the numbers contradict one another, or if it would take minutes.
    """
    needed = instance.memory if maximum_memory is None else maximum_memory
    if needed < instance.memory:
        raise InputError(f"the maximum memory {needed} is below the memory {instance.memory}")
    _refuse_hours(cluster, instance, rules)
    strict = CapacityRules(failures=max(1, rules.max_node_failures), cpus=rules.cpus, weights=rules.weights)
    left = {index: memory_left(node, cluster.instances, rules) for index, node in cluster.nodes.items()}
    state = AllocationState(cluster.nodes, cluster.instances)
    fewer, allocator = None, None
    while True:
        remaining = _with_left(candidates, left, needed)
        if allocator is None or remaining != fewer:
            fewer, checks = remaining, rules.max_node_failures > 0
            allocator = make_allocator(fewer, strict, capacity_checks=checks, each=True)
        count, step = len(state.placed), None
        if rules.oversubscription is not None and needed > 0:  # so many fit on any one node
            least = min((left[index] for index in _primaries(fewer)), default=0.0)
            step = int(least // needed)
        state = allocator.standard(state, instance, step)
        for placed in state.placed[: len(state.placed) - count]:
            left[placed.primary] -= needed
        if not step or len(state.placed) < count + step:
            break
    failures = list(NO_FAILURES)
    failures[FailReason.MEM] = refused_for_memory(candidates, left, needed)
    return replace(state, failures=add_counts(state.failures, tuple(failures)))


def _refuse_hours(cluster: Cluster, instance: Instance, rules: ExtendedRules) -> None:
    count, failures = len(cluster.nodes), rules.max_node_failures
    if count > MOST_NODES:
        raise InputError(
            f"under such limits instances are placed one by one, on at most {MOST_NODES} nodes; there are {count}",
            hint="ask about a smaller group",
        )
    table = cluster.instances.values()
    mirrored = all(item.template is DiskTemplate.DRBD for item in (instance, *table))
    if mirrored or failures == 0 or (failures == 1 and not rules.cpus):
        return  # no set of nodes is simulated
    most = next(number for number in range(count, -1, -1) if sets_of(number, failures) * number**2 <= MOST_WORK)
    if count > most:
        lost = f"the loss of any {failures} nodes" if failures > 1 else "the loss of any node"
        raise InputError(
            f"{lost} would be simulated for every instance that is placed, as not all are mirrored: that takes minutes"
            f" for more than {most} nodes; there are {count}",
            hint="ask for fewer failures, or about a smaller group",
        )


def _with_left(candidates: Candidates, left: Left, needed: int) -> Candidates:
    """Return the candidates whose primary has enough left."""
    if isinstance(candidates, SingleCandidates):
        return SingleCandidates(tuple(index for index in candidates.nodes if needed <= left[index]))
    return PairCandidates(tuple(member for member in candidates.members if needed <= left[member[0]]))


def _primaries(candidates: Candidates) -> tuple[int, ...]:
    if isinstance(candidates, SingleCandidates):
        return candidates.nodes
    return tuple(index for index, _ in candidates.members)


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


MOST_NODES: Final = 100
"""The greatest number of nodes on which instances are placed one by one."""
MOST_WORK: Final = 300_000
"""The greatest number of sets of lost nodes, each times the square of the nodes, that a run may simulate for each
instance."""


def sets_of(nodes: int, failures: int) -> int:
    """Return the number of sets of at most `failures` of `nodes`."""
    return sum(math.comb(nodes, size) for size in range(1, failures + 1))
