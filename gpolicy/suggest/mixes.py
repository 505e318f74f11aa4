"""How often a complete mix of sizes fits, tried by the allocator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpolicy.allocator.cluster_data import ClusterData, Instance, InstancePolicy
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.suggest.suggestion import Mix
from gpolicy.suggest.tiling import Amounts


def under_policy(data: ClusterData, policy: InstancePolicy, template: DiskTemplate) -> CountedCluster:
    """Return the only group of `data` under `policy`, ready for counting as hspace does."""
    group = replace(data.groups[0], policy=policy)
    return CountedCluster(replace(data, groups=(group,), policy=policy), template)


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
