"""How often a complete mix of sizes fits, tried by the allocator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpolicy.allocator.cluster_data import ClusterData, Instance, InstancePolicy
from gpolicy.allocator.dedicated_nodes import search_dedicated
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.group_choice import RequestOptions, Wanted
from gpolicy.allocator.node import Node
from gpolicy.allocator.placement import NO_FAILURES, Attempt, Candidates, Nodes, Placement, SingleCandidates, add_counts
from gpolicy.allocator.redundancy import CapacityRules, Instances
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.suggest.suggestion import Mix
from gpolicy.suggest.tiling import Amounts


def under_policy(data: ClusterData, policy: InstancePolicy, template: DiskTemplate) -> CountedCluster:
    """Return the only group of `data` under `policy`, ready for counting as hspace does."""
    group = replace(data.groups[0], policy=policy)
    return CountedCluster(replace(data, groups=(group,), policy=policy), template)


def as_hail_places(counted: CountedCluster) -> CountedCluster:
    """Return the dedicated nodes, ready for counting as hail places on them: by the dedicated metric, without N+1."""
    return replace(counted, accept_existing=True, allocator=_dedicated_allocator)


def _dedicated_allocator(candidates: Candidates, _rules: CapacityRules) -> Allocator:
    assert isinstance(candidates, SingleCandidates)  # noqa: S101 (exclusive storage is for plain disks only)
    return Allocator(_DedicatedEngine(candidates), capacity_checks=False)


@dataclass(frozen=True, slots=True)
class _DedicatedEngine:
    """Places by the metric of the design document "dedicated allocation". Only changed nodes are tried again."""

    candidates: SingleCandidates
    tried: dict[int, tuple[Node, Instance, Attempt]] = field(default_factory=dict)

    def attempt(
        self,
        nodes: Nodes,
        instances: Instances,  # noqa: ARG002
        instance: Instance,
        *,
        checked: bool,  # noqa: ARG002 (N+1 is not kept)
    ) -> Attempt:
        """Try every node. The smallest loss wins, then the least disk left, then the last node."""
        wanted = replace(instance, index=-1, name="")
        failures, best = NO_FAILURES, None
        for index in self.candidates.nodes:
            node, size, attempt = self.tried.get(index, (None, None, None))
            if attempt is None or node is not nodes[index] or size != wanted:
                attempt = search_dedicated(Wanted(wanted, 1), RequestOptions(), nodes, {}, [index])
                self.tried[index] = nodes[index], wanted, attempt
            failures = add_counts(failures, attempt.failures)
            if attempt.solution is not None and (best is None or _metric(attempt.solution) <= _metric(best)):
                best = attempt.solution
        if best is not None:
            best = replace(best, instance=replace(best.instance, index=instance.index, name=instance.name))
        return Attempt(failures, 0, best)

    def redundant(self, nodes: Nodes, instances: Instances) -> bool:  # noqa: ARG002
        """Return True: N+1 is not tested here."""
        return True


def _metric(placement: Placement) -> tuple[tuple[int, ...], int]:
    return placement.lost or (), placement.disk_left


def count_mix(counted: CountedCluster, instances: Mapping[str, Instance], weights: Mapping[str, int]) -> Mix:
    """Return how often the complete mix fits, by trial, the biggest size first; `instances` are in that order.

    The next mix is then placed in the same order, to find the part that still fits and the reason why not all does.
    """
    high = min(counted.fit(instances[name]).fits // weight for name, weight in weights.items())
    low, reached = 0, counted.initial
    middle = high  # the bound is often reached
    while low < high:
        final, complete = _place_mixes(counted, instances, {name: middle * n for name, n in weights.items()})
        if complete:
            low, reached = middle, final
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    best, limit, why = _one_more(counted, instances, weights, reached)
    while limit is None:  # placing mix by mix fits more than size by size
        low, reached = low + 1, best
        best, limit, why = _one_more(counted, instances, weights, reached)
    return Mix(
        weights=weights,
        mixes=low,
        placed={name: low * weights.get(name, 0) for name in instances},
        limit=limit,
        binding=why,
        best=_placed_in(best, instances),
        more={
            name: len(counted.place(reached, instance).placed) - len(reached.placed)
            for name, instance in instances.items()
        },
        left=_left(reached, counted),
        n1=not counted.accept_existing,
    )


def _place_mixes(
    counted: CountedCluster, instances: Mapping[str, Instance], counts: Mapping[str, int]
) -> tuple[AllocationState, bool]:
    """Place `counts` of each size, biggest first; return the state, and whether all fit."""
    state = counted.initial
    for name, instance in instances.items():
        wanted = counts.get(name, 0)
        if wanted:
            before = len(state.placed)
            state = counted.place(state, instance, wanted)
            if len(state.placed) - before < wanted:
                return state, False
    return state, True


def _one_more(
    counted: CountedCluster, instances: Mapping[str, Instance], weights: Mapping[str, int], state: AllocationState
) -> tuple[AllocationState, str | None, Binding | None]:
    """Place as much as fits of one more mix, biggest first; return the state, the first missing size, and why."""
    limit, why = None, None
    for name, instance in instances.items():
        before = len(state.placed)
        if wanted := weights.get(name, 0):
            state = counted.place(state, instance, wanted)
            if limit is None and len(state.placed) - before < wanted:
                limit, why = name, counted.find_binding(state, instance)
    return state, limit, why


def _placed_in(state: AllocationState, instances: Mapping[str, Instance]) -> dict[str, int]:
    sizes = {instance.memory: name for name, instance in instances.items()}
    counts = dict.fromkeys(instances, 0)
    for placed in state.placed:
        counts[sizes[placed.memory]] += 1
    return counts


def _left(state: AllocationState, counted: CountedCluster) -> Amounts:
    """Return the free resources of all nodes that take instances."""
    nodes = [node for node in state.nodes.values() if not node.facts.offline]
    exclusive = any(node.facts.exclusive for node in nodes)
    return Amounts(
        sum(max(0, node.unallocated_memory) for node in nodes),
        sum(max(0, node.facts.high_cpus - node.used_cpus) for node in nodes),
        sum(node.free_disk for node in nodes) if counted.template and counted.template.local else None,
        sum(node.free_spindles for node in nodes) if exclusive else None,
    )
