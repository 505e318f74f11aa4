"""Counts by the allocator: how many of a size fit, and how often a whole mix does. No number here is a quotient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import ClusterData, Disk, Instance, Policy, Spec
from gpolicy.allocator.engines import make_allocator
from gpolicy.allocator.enumerations import AllocPolicy, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import NO_FAILURES, NoCandidatesError, candidate_nodes
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.allocator.usable import usable_groups
from gpolicy.analysis.binding import Binding, Cause, binding
from gpolicy.analysis.capacity import KVM_NODE_MEMORY
from gpolicy.suggest.dedicated_placing import place_dedicated
from gpolicy.suggest.model import Fit, Mix
from gpolicy.suggest.tiling import Resources

if TYPE_CHECKING:
    from gpolicy.allocator.placement import Candidates
    from gpolicy.allocator.repeated_allocation import Allocator


class Counter:
    """Allocations in one group (`data`) under `policy`: hspace's, or (not `n1`) those of hail on dedicated nodes."""

    def __init__(self, data: ClusterData, policy: Policy, template: DiskTemplate, *, n1: bool = True) -> None:
        group = replace(data.groups[0], policy=policy)
        cluster = merge(replace(data, groups=(group,), policy=policy), static_kvm_node_memory=KVM_NODE_MEMORY)
        self.template = template
        self.n1 = n1
        self.initial = AllocationState(cluster.nodes, cluster.instances)
        self._known: dict[Instance, Fit] = {}
        self._candidates: Candidates | None = None
        self._allocator: Allocator | None = None
        usable = usable_groups(
            cluster.groups, cluster.nodes, cluster.instances, accept_existing=not n1, independent=False
        )
        closed = group.alloc_policy is AllocPolicy.UNALLOCABLE
        self._hindrance = Binding(Cause.CLOSED if closed and cluster.nodes else Cause.NO_NODES)
        if usable.stopped:
            title = FailReason.N1.title
            self._hindrance = Binding(Cause.BROKEN, title, ((title, 1),))
            return
        try:
            count = 2 if template is DiskTemplate.DRBD else 1
            self._candidates = candidate_nodes(usable.groups, cluster.nodes, count)
        except NoCandidatesError:
            return
        self._allocator = make_allocator(self._candidates, usable.rules, capacity_checks=n1)

    def fit(self, instance: Instance) -> Fit:
        """Return how many of `instance` fit beside what is there."""
        if instance not in self._known:
            final = self.place(self.initial, instance, None)
            self._known[instance] = Fit(len(final.placed), self.why(final, instance))
        return self._known[instance]

    def place(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Return `state` with as many of `instance` placed as fit, at most `limit`."""
        if self._allocator is None:
            return state
        return self._allocator.standard(state, instance, limit) if self.n1 else place_dedicated(state, instance, limit)

    def why(self, final: AllocationState, instance: Instance) -> Binding:
        """Return what kept out the next `instance` of a run that ended with `final`."""
        if self._candidates is None:
            return self._hindrance
        if final.failures == NO_FAILURES:
            return Binding(Cause.NOTHING)
        return binding(final.nodes, instance, self._candidates, final.failures)


def largest(spec: Spec, low: Spec, std: Spec, template: DiskTemplate) -> Instance:
    """Return the instance at the maximum of a pair as capacity counts it: one disk, running, std's spindle use."""
    return Instance(
        index=-1,
        name="new",
        memory=spec.memory,
        disk=spec.disk_size,
        disks=(Disk(spec.disk_size, spec.spindle_use),),
        vcpus=spec.cpus,
        status=InstanceStatus.RUNNING,
        template=template,
        spindle_use=min(max(std.spindle_use, low.spindle_use), spec.spindle_use),
    )


def count_mix(counter: Counter, instances: Mapping[str, Instance], weights: Mapping[str, int]) -> Mix:
    """Return how often the mix fits as a whole: tried, the biggest size first; `instances` are in that order.

    What stops the next mix, and what of it still fits, is seen by placing it beside those that fit, in the same order.
    """
    high = min(counter.fit(instances[name]).fits // weight for name, weight in weights.items())
    low, reached = 0, counter.initial
    tried: dict[int, tuple[AllocationState, str | None]] = {}

    def attempt(mixes: int) -> tuple[AllocationState, str | None]:
        if mixes not in tried:
            tried[mixes] = _place_mixes(counter, instances, {name: mixes * n for name, n in weights.items()})
        return tried[mixes]

    while low < high:
        middle = high if not tried else (low + high + 1) // 2  # the bound is often reached
        final, stopped = attempt(middle)
        if stopped is None:
            low, reached = middle, final
        else:
            high = middle - 1
    best, limit, why = _one_more(counter, instances, weights, reached)
    while limit is None:  # mix by mix there is room for more than size by size
        low, reached = low + 1, best
        best, limit, why = _one_more(counter, instances, weights, reached)
    return Mix(
        weights=weights,
        mixes=low,
        placed={name: low * weights.get(name, 0) for name in instances},
        limit=limit,
        binding=why,
        best=_placed_in(best, instances),
        more={
            name: len(counter.place(reached, instance, None).placed) - len(reached.placed)
            for name, instance in instances.items()
        },
        left=_left(reached, counter.template),
        n1=counter.n1,
    )


def _place_mixes(
    counter: Counter, instances: Mapping[str, Instance], counts: Mapping[str, int]
) -> tuple[AllocationState, str | None]:
    """Place so many of each size, biggest first; return the state, and the size that there was no room for."""
    state = counter.initial
    for name, instance in instances.items():
        wanted = counts.get(name, 0)
        if wanted:
            before = len(state.placed)
            state = counter.place(state, instance, wanted)
            if len(state.placed) - before < wanted:
                return state, name
    return state, None


def _one_more(
    counter: Counter, instances: Mapping[str, Instance], weights: Mapping[str, int], state: AllocationState
) -> tuple[AllocationState, str | None, Binding | None]:
    """Place what of one more mix fits, biggest first; return the state, the first size that lacks room, and why."""
    limit, why = None, None
    for name, instance in instances.items():
        before = len(state.placed)
        if wanted := weights.get(name, 0):
            state = counter.place(state, instance, wanted)
            if limit is None and len(state.placed) - before < wanted:
                limit, why = name, counter.why(state, instance)
    return state, limit, why


def _placed_in(state: AllocationState, instances: Mapping[str, Instance]) -> dict[str, int]:
    sizes = {instance.memory: name for name, instance in instances.items()}
    counts = dict.fromkeys(instances, 0)
    for placed in state.placed:
        counts[sizes[placed.memory]] += 1
    return counts


def _left(state: AllocationState, template: DiskTemplate) -> Resources:
    """Return what is free on all nodes that take instances."""
    nodes = [node for node in state.nodes.values() if not node.facts.offline]
    exclusive = any(node.facts.exclusive for node in nodes)
    return Resources(
        sum(max(0, node.unallocated_memory) for node in nodes),
        sum(max(0, node.facts.high_cpus - node.used_cpus) for node in nodes),
        sum(node.free_disk for node in nodes) if template.local else None,
        sum(node.free_spindles for node in nodes) if exclusive else None,
    )
