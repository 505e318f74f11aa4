"""One cluster ready for the allocator, and its answers: how many instances fit, and why the next one does not.

Each question starts from the present cluster, with the default options of `hspace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Final, TypeVar

from gpolicy.allocator.cluster_data import ClusterData, Instance, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.compiled_allocation import make_allocator
from gpolicy.allocator.configured_resources import NodeResources, configured_cluster
from gpolicy.allocator.enumerations import NO_NODE, AllocPolicy, DiskTemplate, FailReason
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.node import Node
from gpolicy.allocator.placement import NO_FAILURES, Candidates, NoCandidatesError, candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.allocator.usable import usable_groups
from gpolicy.analysis.binding import Binding, Cause, binding
from gpolicy.analysis.side_by_side import side_by_side
from gpolicy.analysis.unmade import Unmade, unmade
from gpolicy.cluster.terms import NO_LIMITS, Limits
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.volume_arithmetic import VolumeSize

_Result = TypeVar("_Result")

KVM_NODE_MEMORY: Final = 4096
"""MiB that hspace assumes for the node itself on KVM clusters (the default of its `--static-kvm-node-memory`)."""


def _keeping_n1(candidates: Candidates, rules: CapacityRules) -> Allocator:
    return make_allocator(candidates, rules, capacity_checks=True)


@dataclass(frozen=True, slots=True)
class Fit:
    """The number of instances of `spec` that fit (None: of shrinking sizes), and why the next one does not."""

    fits: int
    binding: Binding
    spec: Spec | None = None


def merged(
    data: ClusterData, resources: Mapping[str, NodeResources], kvm_node_memory: int = KVM_NODE_MEMORY
) -> Cluster:
    """Return `data` as hspace loads it, with the declared resources of the nodes that are in `resources`.

    hail's `kvm_node_memory` is the cluster's (`HailParameters.static_kvm_node_memory`).
    """
    here = {node.name: resources[node.name] for node in data.nodes if node.name in resources}
    if not here:
        return merge(data, static_kvm_node_memory=kvm_node_memory)
    if data.hypervisor == "kvm" and kvm_node_memory > 0:  # only nodes without declared memory get this number
        nodes = (
            node if node.name in here and here[node.name].hypervisor else replace(node, node_memory=kvm_node_memory)
            for node in data.nodes
        )
        data = replace(data, nodes=tuple(nodes))
    return configured_cluster(data, here)


@dataclass(eq=False)
class CountedCluster:
    """One cluster, counted with one disk template. `template` None: no enabled one is allowed, so nothing fits.

    `resources` are declared ones by node name, which replace measured ones (design document "Resource model").
    `accept_existing` counts even if a node breaks N+1 already. `volumes` are the sizes of the smallest physical volume
    of nodes, by name, where known. `split` instances are mirrored, but on a node of another group, and count on their
    primary only. `allocator` makes the allocator, `weights` are
    those of the score. `limits` are those of its group, which hspace does
    not know: nothing here counts with them. Results are remembered.
    """

    data: ClusterData
    template: DiskTemplate | None
    resources: Mapping[str, NodeResources] = field(default_factory=dict)
    accept_existing: bool = False
    volumes: Mapping[str, VolumeSize] = field(default_factory=dict)
    split: int = 0
    allocator: Callable[[Candidates, CapacityRules], Allocator] = _keeping_n1
    weights: Weights = WEIGHTS
    limits: Limits = NO_LIMITS

    def __post_init__(self) -> None:
        self._known: dict[Instance, Fit] = {}

    def gives_the_same(self, other: CountedCluster) -> bool:
        """Return whether `other` is made of the same, and so gives the same numbers."""
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    @property
    def policy(self) -> InstancePolicy:
        """The policy for the instances."""
        return self.data.policy

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as hspace loads it."""
        return merged(self.data, self.resources)

    @cached_property
    def initial(self) -> AllocationState:
        """The initial state of every count."""
        return AllocationState(self.cluster.nodes, self.cluster.instances)

    @cached_property
    def candidates(self) -> Candidates | None:
        """The nodes, or pairs of nodes, that may take an instance; None if `hindrance` forbids all."""
        return None if isinstance(self._beginning, Binding) else self._beginning[0]

    @property
    def hindrance(self) -> Binding:
        """Why no node may take any instance; the cause is `nothing` if there are candidates."""
        return self._beginning if isinstance(self._beginning, Binding) else Binding(Cause.NOTHING)

    @cached_property
    def _beginning(self) -> Binding | tuple[Candidates, Allocator]:
        if self.template is None:
            return Binding(Cause.NO_TEMPLATE)
        groups, nodes, instances = self.cluster.groups, self.cluster.nodes, self.cluster.instances
        usable = usable_groups(groups, nodes, instances, accept_existing=self.accept_existing, independent=False)
        if usable.stopped:
            title = FailReason.N1.title
            return Binding(Cause.BROKEN, title, ((title, 1),))  # as hspace reports it
        count = 2 if self.template is DiskTemplate.DRBD else 1
        try:
            candidates = candidate_nodes(usable.groups, nodes, count)
        except NoCandidatesError:
            closed = all(group.alloc_policy is AllocPolicy.UNALLOCABLE for group in groups.values())
            return Binding(Cause.CLOSED if closed and nodes else Cause.NO_NODES)
        return candidates, self.allocator(candidates, replace(usable.rules, weights=self.weights))

    def instance(self, spec: Spec, spindle_use: int) -> Instance:
        """Return the instance that hspace places for `spec`: one disk, running."""
        return Instance.wanted(spec, self.template or DiskTemplate.PLAIN, spindle_use)

    def largest(self, pair: SpecPair) -> Instance:
        """Return the instance at the maximum of `pair`."""
        return self.instance(pair.max, self.spindle_use(pair))

    def spindle_use(self, pair: SpecPair) -> int:
        """Return the spindle use of instances of `pair`: that of `std`, or the nearest that the pair allows."""
        return min(max(self.policy.std.spindle_use, pair.min.spindle_use), pair.max.spindle_use)

    def place(self, state: AllocationState, instance: Instance, limit: int | None = None) -> AllocationState:
        """Return `state` with as many copies of `instance` as fit, at most `limit`."""
        return state if isinstance(self._beginning, Binding) else self._beginning[1].standard(state, instance, limit)

    def fit(self, instance: Instance, spec: Spec | None = None) -> Fit:
        """Return how many copies of `instance`, which has the size `spec`, fit."""
        if instance not in self._known:
            final = self.place(self.initial, instance)
            made = sum(map(self.is_made, final.placed))
            found = self.find_binding(final, instance)
            refusal = self.refusal(instance)
            if refusal is not None:
                detail = f"{refusal.sentence}; hspace itself counts {len(final.placed):,}"
                found = replace(found, cause=refusal.cause, detail=detail)
            elif made < len(final.placed):
                why = next(filter(None, map(self._refused, final.placed))).cause.sentence
                found = replace(found, detail=f"hspace itself counts {len(final.placed):,}; but {why}")
            self._known[instance] = Fit(made, found)
        return replace(self._known[instance], spec=spec)

    def refusal(self, instance: Instance) -> Unmade | None:
        """Return why Ganeti makes the disks of `instance` on no node of the cluster; None if it may make them.

        hspace gives every counted disk spindles: on nodes without exclusive storage they do not count.
        """
        if not self._may_refuse:
            return None
        found = [self._refused_on(node, instance) for node in self.cluster.nodes.values() if not node.facts.offline]
        return found[0] if found and None not in found else None

    @cached_property
    def _may_refuse(self) -> bool:
        return any(node.facts.exclusive for node in self.cluster.nodes.values())

    def is_made(self, placed: Instance) -> bool:
        """Whether Ganeti makes the disks of an instance where the allocator has placed it."""
        return self._refused(placed) is None

    def _refused(self, placed: Instance) -> Unmade | None:
        if not self._may_refuse:
            return None
        nodes = [self.cluster.nodes[index] for index in (placed.primary, placed.secondary) if index != NO_NODE]
        return next(filter(None, (self._refused_on(node, placed) for node in nodes)), None)

    def _refused_on(self, node: Node, instance: Instance) -> Unmade | None:
        facts = node.facts
        return unmade(instance, exclusive=True, volume=self.volumes.get(facts.name)) if facts.exclusive else None

    def standard(self, spec: Spec, spindle_use: int) -> Fit:
        """Return how many instances of `spec` fit. Raise GpolicyError for one without memory."""
        instance = self.instance(spec, spindle_use)
        return _counting(spec, lambda: self.fit(instance, spec))

    def tiered(self, state: AllocationState, spec: Spec, spindle_use: int) -> AllocationState:
        """Return `state` after tiered allocation from `spec`. Raise as `standard`."""
        beginning = self._beginning
        if isinstance(beginning, Binding):
            return state
        instance = self.instance(spec, spindle_use)
        return _counting(spec, lambda: beginning[1].tiered(state, instance, None))

    def find_binding(self, final: AllocationState, instance: Instance) -> Binding:
        """Return why the next `instance` did not fit in a run that ended with `final`."""
        if self.candidates is None:
            return self.hindrance
        if final.failures == NO_FAILURES:
            return Binding(Cause.NOTHING)
        return binding(final.nodes, instance, self.candidates, final.failures)

    def find_tiered_binding(self, final: AllocationState, spec: Spec, spindle_use: int) -> Binding:
        """Return why the last instance did not fit in the tiered run that ended with `spec`."""
        last = final.placed[0] if final.placed else self.instance(spec, spindle_use)
        return self.find_binding(final, replace(last, primary=NO_NODE, secondary=NO_NODE, location_score=0))

    def fill_with_minimums(self, state: AllocationState) -> AllocationState:
        """Return `state` with the least size of each pair placed as often as it fits."""
        for pair in self.policy.minmax:
            least = self.instance(pair.min, pair.min.spindle_use)
            refused = self.refusal(least)  # for its spindles: a larger one takes as much
            if pair.min.memory > 0 and (refused is None or refused.cause is not Cause.ONLY_PLAIN):
                state = self.place(state, least)
        return state


def _counting(spec: Spec, work: Callable[[], _Result]) -> _Result:
    try:
        return work()
    except DivisionError:
        raise GpolicyError(f"a spec without memory cannot be counted: {spec}") from None


def each_cluster(
    titles: Mapping[CountedCluster, str], count: Callable[[CountedCluster, str], _Result]
) -> dict[CountedCluster, _Result]:
    """Return the results of `count` for each cluster and its title, computed on all cores."""
    # N+1 takes longest for instances that are not mirrored
    longest_first = sorted(titles, key=lambda item: (item.template is DiskTemplate.DRBD, -len(item.data.nodes)))
    found = side_by_side([partial(count, item, titles[item]) for item in longest_first])
    return dict(zip(longest_first, found, strict=True))
