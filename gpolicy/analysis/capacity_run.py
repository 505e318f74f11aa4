"""Allocations on one cluster, each from the state at the beginning: what `hspace` does with its default options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.cluster_data import ClusterData, Disk, Instance, Spec, SpecPair
from gpolicy.allocator.configured_resources import configured_cluster
from gpolicy.allocator.engines import make_allocator
from gpolicy.allocator.enumerations import NO_NODE, AllocPolicy, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import NO_FAILURES, NoCandidatesError, candidate_nodes
from gpolicy.allocator.repeated_allocation import AllocationState, DivisionError
from gpolicy.allocator.usable import usable_groups
from gpolicy.analysis.binding import Binding, Cause, binding
from gpolicy.errors import GpolicyError

if TYPE_CHECKING:
    from gpolicy.allocator.configured_resources import NodeResources
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.placement import Candidates
    from gpolicy.allocator.redundancy import CapacityRules
    from gpolicy.allocator.repeated_allocation import Allocator

KVM_NODE_MEMORY: Final = 4096
"""MiB that hspace takes for the node itself on KVM clusters, whatever was measured (its `--static-kvm-node-memory`)."""


class Run:
    """One cluster with one template. `template` None: no enabled one is allowed, so nothing fits.

    `resources` are configured ones by node name, which take the place of what was measured (design document "resource
    model"); `cluster` is what `loaded` gives for the same arguments, if that is known already. Nothing is counted
    twice: what was asked before is remembered.
    """

    def __init__(
        self,
        data: ClusterData,
        template: DiskTemplate | None,
        *,
        resources: Mapping[str, NodeResources] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.data, self.policy = data, data.policy
        self.template = template or DiskTemplate.PLAIN
        self.cluster = cluster or loaded(data, resources)
        self.initial = AllocationState(self.cluster.nodes, self.cluster.instances)
        self.candidates: Candidates | None = None
        self.allocator: Allocator | None = None
        self.rules: CapacityRules | None = None
        self.hindrance = Binding(Cause.NOTHING)
        self._known: dict[Instance, tuple[int, Binding]] = {}
        if template is None:
            self.hindrance = Binding(Cause.NO_TEMPLATE)
        else:
            self._prepare()

    def _prepare(self) -> None:
        cluster = self.cluster
        usable = usable_groups(
            cluster.groups, cluster.nodes, cluster.instances, accept_existing=False, independent=False
        )
        closed = all(group.alloc_policy is AllocPolicy.UNALLOCABLE for group in cluster.groups.values())
        self.hindrance = Binding(Cause.CLOSED if closed and cluster.nodes else Cause.NO_NODES)
        if usable.stopped:
            title = FailReason.N1.title
            self.hindrance = Binding(Cause.BROKEN, title, ((title, 1),))  # as hspace reports it
            return
        count = 2 if self.template is DiskTemplate.DRBD else 1
        try:
            self.candidates = candidate_nodes(usable.groups, cluster.nodes, count)
        except NoCandidatesError:
            return
        self.rules = usable.rules
        self.allocator = make_allocator(self.candidates, usable.rules, capacity_checks=True)

    def standard(self, spec: Spec, spindle_use: int) -> tuple[int, Binding]:
        """Return how many instances of `spec` fit, and what keeps out the next one."""
        if self.allocator is None:
            return 0, self.hindrance
        instance = self.instance(spec, spindle_use)
        if instance not in self._known:
            final = self._guarded(spec, lambda allocator: allocator.standard(self.initial, instance, None))
            self._known[instance] = len(final.placed), self._binding(final, instance)
        return self._known[instance]

    def pair(self, pair: SpecPair) -> tuple[int, Binding]:
        """Return how many instances of the maximum of `pair` fit alone."""
        return self.standard(pair.max, self.spindle_use(pair))

    def spindle_use(self, pair: SpecPair) -> int:
        """Return the spindle use of instances of `pair`: that of `std`, or the nearest that the pair takes."""
        return min(max(self.policy.std.spindle_use, pair.min.spindle_use), pair.max.spindle_use)

    def tiered(self, state: AllocationState, spec: Spec, spindle_use: int) -> AllocationState:
        """Return `state` with all placed that fits of `spec` and of what it shrinks to."""
        if self.allocator is None:
            return state
        instance = self.instance(spec, spindle_use)
        return self._guarded(spec, lambda allocator: allocator.tiered(state, instance, None))

    def after_tiered(self, final: AllocationState, spec: Spec, spindle_use: int) -> Binding:
        """Return what kept out the last instance of the tiered run that ended with `spec`."""
        if self.allocator is None:
            return self.hindrance
        last = final.placed[0] if final.placed else self.instance(spec, spindle_use)
        return self._binding(final, replace(last, primary=NO_NODE, secondary=NO_NODE, location_score=0))

    def filled(self, state: AllocationState) -> AllocationState:
        """Return `state` with the least size of each pair placed as often as it fits."""
        for pair in self.policy.minmax:
            least, use = pair.min, pair.min.spindle_use
            if self.allocator is not None and least.memory > 0:
                instance = self.instance(least, use)
                before = state
                state = self.allocator.standard(before, instance, None)
        return state

    def instance(self, spec: Spec, spindle_use: int) -> Instance:
        """Return the instance that hspace places for `spec`: one disk, running."""
        return Instance(
            index=-1,
            name="new",
            memory=spec.memory,
            disk=spec.disk_size,
            disks=(Disk(spec.disk_size, spec.spindle_use),),
            vcpus=spec.cpus,
            status=InstanceStatus.RUNNING,
            template=self.template,
            spindle_use=spindle_use,
        )

    def _guarded(self, spec: Spec, work: Callable[[Allocator], AllocationState]) -> AllocationState:
        assert self.allocator is not None  # noqa: S101 (asked by the callers)
        try:
            return work(self.allocator)
        except DivisionError:
            raise GpolicyError(f"a spec without memory cannot be counted: {spec}") from None

    def _binding(self, final: AllocationState, instance: Instance) -> Binding:
        assert self.candidates is not None  # noqa: S101
        if final.failures == NO_FAILURES:
            return Binding(Cause.NOTHING)
        return binding(final.nodes, instance, self.candidates, final.failures)


def loaded(data: ClusterData, resources: Mapping[str, NodeResources] | None = None) -> Cluster:
    """Return the cluster ready to calculate with, as hspace loads it; `resources` as for `Run`."""
    if not resources:
        return merge(data, static_kvm_node_memory=KVM_NODE_MEMORY)
    if data.hypervisor == "kvm":  # what is configured holds; only the other nodes get hspace's number
        nodes = (node if node.name in resources else replace(node, node_memory=KVM_NODE_MEMORY) for node in data.nodes)
        data = replace(data, nodes=tuple(nodes))
    return configured_cluster(data, resources)
