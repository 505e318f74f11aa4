"""How often a complete mix of sizes fits, tried by the allocator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.suggest.suggestion import Mix
from gpolicy.suggest.tiling import Amounts


def under_policy(counted: CountedCluster, policy: InstancePolicy) -> CountedCluster:
    """Return a cluster of one group under another policy."""
    group = replace(counted.data.groups[0], policy=policy)
    return replace(counted, data=replace(counted.data, groups=(group,), policy=policy))


def count_mix(counted: CountedCluster, instances: Mapping[str, Instance], weights: Mapping[str, int]) -> Mix:
    """Return how often the complete mix fits, by trial, the biggest size first; `instances` are in that order.

    The next mix is then placed in the same order, to find the part that still fits and the reason why not all does.
    """
    low, reached = _most_mixes(counted, instances, weights)
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
        n1=counted.rules.max_node_failures > 0,
    )


def fill_with_mix(
    counted: CountedCluster, instances: Mapping[str, Instance], weights: Mapping[str, int]
) -> dict[str, int]:
    """Return how many of each size fill the nodes, at any time as near to the proportions `weights` as can be.

    When a size fits no more, the others go on.
    """
    total = sum(weights.values())
    few = {name: max(1, round(_MIX * weight / total)) for name, weight in weights.items()}
    _, reached = _most_mixes(counted, {name: instances[name] for name in weights}, few)
    placed, fitting = Counter(_placed_in(reached, instances)), dict(weights)
    while fitting:
        name = max(fitting, key=lambda item: (fitting[item] / (placed[item] + 1), instances[item].memory))
        after = counted.place(reached, instances[name], 1 if len(fitting) > 1 else None)
        more = len(after.placed) - len(reached.placed)
        reached, placed[name] = after, placed[name] + more
        if not more or len(fitting) == 1:
            del fitting[name]
    return {name: placed[name] for name in instances}


_MIX: Final = 16  # instances in one mix, which is placed as a whole while it fits


def _most_mixes(
    counted: CountedCluster, instances: Mapping[str, Instance], weights: Mapping[str, int]
) -> tuple[int, AllocationState]:
    """Return how often the complete mix fits when it is placed size by size, and the state then."""
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
    return low, reached


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
    sizes = {instance.burst: name for name, instance in instances.items()}
    counts = dict.fromkeys(instances, 0)
    for placed in state.placed:
        counts[sizes[placed.burst]] += 1
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
