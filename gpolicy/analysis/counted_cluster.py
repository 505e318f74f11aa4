"""One cluster ready for the allocator, and its answers: how many instances fit, and why the next one does not.

`CountedCluster` counts what hail accepts, one instance after the other, under the limits of the policy; `HspaceCluster`
counts as hspace does with its default options. Each question starts from the present cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TypeVar
from weakref import ref

from gpolicy.allocator import cluster_data
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.compiled_allocation import Budget, CompiledAllocator, memory_left, refuse_minutes
from gpolicy.allocator.configured_resources import NodeResources
from gpolicy.allocator.engines import Usable, is_redundant, usable_groups
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.merge import Cluster, ClusterData
from gpolicy.allocator.placement import NO_FAILURES, Candidates, NoCandidatesError, candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.analysis.allocator_input import charged_space, merged
from gpolicy.analysis.binding import Binding, Cause, binding
from gpolicy.analysis.hail import as_reported, hail_allocator, no_disk_words, rules_of, without_nodes
from gpolicy.analysis.losses import FirstLoss, first_loss
from gpolicy.analysis.wanted_instance import Unmade, spec_disks, unmade
from gpolicy.cluster.terms import NO_LIMITS, Limits, VolumeSize
from gpolicy.errors import GpolicyError, InputError
from gpolicy.ganeti.htools_reading import HailParameters

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Fit:
    """How many instances fit, and why the next one does not."""

    fits: int
    """Instances."""
    binding: Binding
    """The binding resource: why no more fit."""
    spec: cluster_data.Spec | None = None
    """Size of each: the size's maximum, or std; None for a tiered run."""
    run_memory: int = 0
    """Memory of a whole tiered run (MiB)."""

    @property
    def memory(self) -> int:
        """The memory of all that fit (MiB)."""
        return self.fits * self.spec.memory if self.spec else self.run_memory


@dataclass(eq=False)
class CountedCluster:
    """One cluster, counted with one disk template. `template` None: no enabled one is allowed, so nothing fits.

    `data` is the cluster as hail reads it, `hspace_data` as hspace does (None: the same). `resources` are declared ones
    by node name, which replace measured ones (design document "Resource model"). `volumes` are the sizes of the
    smallest physical volume of nodes, by name, where known. `split` instances are mirrored, but on a node of another
    group, and count on their primary only. `weights` are those of the score, `limits` those of the policy. Results are
    remembered. `hail` is what the parameters of the cluster make of hail. `asked_for` is the template by which Ganeti
    reports disk (`reports_disk`), None where no request is counted.
    """

    data: ClusterData
    template: cluster_data.DiskTemplate | None
    resources: Mapping[str, NodeResources] = field(default_factory=dict)
    volumes: Mapping[str, VolumeSize] = field(default_factory=dict)
    split: int = 0
    weights: Weights = WEIGHTS
    limits: Limits = NO_LIMITS
    hspace_data: ClusterData | None = None
    hail: HailParameters = field(default_factory=HailParameters)
    asked_for: cluster_data.DiskTemplate | None = None
    budget: Budget = field(default_factory=Budget, compare=False)

    def __post_init__(self) -> None:
        # with whether the N+1 test kept a copy off a node
        self._known: dict[cluster_data.Instance, tuple[Fit, bool]] = {}
        self._tiered: dict[tuple[int, cluster_data.Instance], tuple[AllocationState, AllocationState]] = {}
        self._made: dict[frozenset[int], tuple[Candidates, Allocator] | None] = {}

    def gives_the_same(self, other: CountedCluster) -> bool:
        """Return whether `other` is made of the same, and so gives the same numbers."""
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self) if item.compare)

    @cached_property
    def as_hspace(self) -> HspaceCluster:
        """The same cluster, counted as hspace does."""
        return HspaceCluster(
            self.hspace_data or self.data,
            self.template,
            self.resources,
            self.volumes,
            self.split,
            self.weights,
            budget=Budget(each=self.budget.each),
            base=ref(self),
        )

    @property
    def policy(self) -> cluster_data.InstancePolicy:
        """The policy for the instances."""
        return self.data.policy

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as the allocator loads it."""
        return merged(self.data, self.resources, self.hail.static_kvm_node_memory)

    @cached_property
    def initial(self) -> AllocationState:
        """The initial state of every count."""
        return AllocationState(as_reported(self.cluster.nodes, self.asked_for), self.cluster.instances)

    @cached_property
    def dedicated(self) -> bool:
        """Whether hail goes by lost allocations: all nodes that may take instances have exclusive storage."""
        open_groups = {index for index, group in self.cluster.groups.items() if _is_open(group)}
        nodes = [node for node in self.cluster.nodes.values() if node.facts.group in open_groups]
        return bool(nodes) and all(node.facts.exclusive for node in nodes)

    @cached_property
    def rules(self) -> CapacityRules:
        """What each placement has to keep."""
        tests = self.hail.capacity_checks and not self.dedicated
        return replace(rules_of(self.limits, tests=tests), weights=self.weights, force=self.hail.ignore_soft_errors)

    @cached_property
    def too_slow(self) -> InputError | None:
        """Why counting under the limits takes minutes; None if it does not."""
        instance = self.instance(self.policy.std, self.policy.std.spindle_use)
        try:
            refuse_minutes(self.cluster.nodes, self.cluster.instances, instance, self.rules)
        except InputError as error:
            return error
        return None

    @cached_property
    def hindrance(self) -> Binding | None:
        """Why no node may take any instance; None if some may."""
        if self.template is None:
            return Binding(Cause.NO_TEMPLATE)
        if self.hail.failure:
            return Binding(Cause.ALLOCATOR, detail=f"hail refuses every request: {self.hail.failure}")
        if self._candidates() is not None:
            return None
        closed = not any(map(_is_open, self.cluster.groups.values())) and self.cluster.nodes
        return Binding(Cause.CLOSED if closed else Cause.NO_NODES)

    def _candidates(self, groups: Mapping[int, cluster_data.Group] | None = None) -> Candidates | None:
        """Return the nodes, or pairs of nodes, that may take an instance, of `groups` alone."""
        count = 2 if self.template is cluster_data.DiskTemplate.DRBD else 1
        try:
            return candidate_nodes(self.cluster.groups if groups is None else groups, self.cluster.nodes, count)
        except NoCandidatesError:
            return None

    def _allocator(self, instance: cluster_data.Instance) -> tuple[Candidates, Allocator] | None:
        """Return the candidates for `instance`, and what places it there; None if no node may take it."""
        if self.hindrance is not None:
            return None
        nodes, only = self.cluster.nodes, self.hail.restriction
        refused = frozenset(
            index
            for index, node in nodes.items()
            if self._refused_on(index, instance) is not None or (only is not None and node.facts.name not in only)
        )
        if refused not in self._made:
            self._made[refused] = self._make(refused)
        return self._made[refused]

    def _make(self, refused: frozenset[int]) -> tuple[Candidates, Allocator] | None:
        groups, parts = self.cluster.groups, list[Candidates]()
        for policy in (cluster_data.AllocPolicy.PREFERRED, cluster_data.AllocPolicy.LAST_RESORT):
            there = {index: group for index, group in groups.items() if group.alloc_policy is policy}
            found = self._candidates(there) if there else None
            if found is not None and (left := without_nodes(found, refused)) is not None:
                parts.append(left)
        if not parts:
            return None
        together = parts[0] if len(parts) == 1 else without_nodes(self._candidates(), refused)
        assert together is not None  # noqa: S101 (its parts are not empty)
        return together, hail_allocator(parts, self.rules, self.budget, dedicated=self.dedicated)

    def instance(self, spec: cluster_data.Spec, spindle_use: int) -> cluster_data.Instance:
        """Return a new instance of `spec` as Ganeti asks hail for it: running, its disks with their metadata."""
        made = cluster_data.Instance.wanted(spec, self.template or cluster_data.DiskTemplate.PLAIN, spindle_use)
        disks = made.disks if made.template is cluster_data.DiskTemplate.DISKLESS else spec_disks(spec, exclusive=True)
        return replace(made, disks=disks, disk=charged_space(made.template, [disk.size for disk in disks]))

    def largest(self, pair: cluster_data.SpecPair, spindle_use: int | None = None) -> cluster_data.Instance:
        """Return the instance at the maximum of `pair`; under over-subscription it is guaranteed the minimum memory."""
        use = self.spindle_use(pair) if spindle_use is None else spindle_use
        made = self.instance(pair.largest, use)
        if self.limits.oversubscription is None:
            return made
        return replace(made, memory=min(pair.min.memory, pair.max.memory), maximum_memory=pair.max.memory)

    def spindle_use(self, pair: cluster_data.SpecPair) -> int:
        """Return the spindle use of instances of `pair`: that of `std`, or the nearest that the pair allows."""
        return min(max(self.policy.std.spindle_use, pair.min.spindle_use), pair.max.spindle_use)

    def place(
        self, state: AllocationState, instance: cluster_data.Instance, limit: int | None = None
    ) -> AllocationState:
        """Return `state` with as many copies of `instance` as fit, at most `limit`.

        Raise InputError where the limits make that take minutes.
        """
        made = self._allocator(instance)
        if made is None:
            return state
        if self.too_slow is not None:
            raise self.too_slow
        return made[1].standard(state, instance, limit)

    def fit(self, instance: cluster_data.Instance, spec: cluster_data.Spec | None = None) -> Fit:
        """Return how many copies of `instance`, which has the size `spec`, fit."""
        key = self._decisive(instance)
        if key not in self._known:
            final = self.place(self.initial, instance)
            self._known[key] = Fit(len(final.placed), self.find_binding(final, instance)), final.refused
        return replace(self._known[key][0], spec=spec)

    def unrefused_fit(self, instance: cluster_data.Instance) -> Fit | None:
        """Return what `fit` has found if the N+1 test kept no copy off any node; None if it is not known."""
        known, refused = self._known.get(self._decisive(instance), (None, False))
        return None if refused else known

    def _decisive(self, instance: cluster_data.Instance) -> cluster_data.Instance:
        """Return the instance without what no node looks at: the spindles of disks, without exclusive storage."""
        if self._any_exclusive:
            return instance
        return replace(instance, disks=tuple(replace(disk, spindles=None) for disk in instance.disks))

    @cached_property
    def _any_exclusive(self) -> bool:
        return any(node.exclusive for node in self.data.nodes)

    def fit_pair(self, pair: cluster_data.SpecPair, spindle_use: int | None = None) -> Fit:
        """Return how many instances at the maximum of `pair` fit. Raise as `standard`."""
        return _counting(pair.max, lambda: self.fit(self.largest(pair, spindle_use), pair.largest))

    def refusal(self, instance: cluster_data.Instance) -> Unmade | None:
        """Return why Ganeti makes the disks of `instance` on no node of the cluster; None if it may make them."""
        online = (index for index, node in self.cluster.nodes.items() if not node.facts.offline)
        found = [self._refused_on(index, instance) for index in online]
        return found[0] if found and None not in found else None

    def is_made(self, placed: cluster_data.Instance) -> bool:
        """Whether Ganeti makes the disks of an instance where the allocator has placed it."""
        nodes = [index for index in (placed.primary, placed.secondary) if index != cluster_data.NO_NODE]
        return all(self._refused_on(index, placed) is None for index in nodes)

    def _refused_on(self, index: int, instance: cluster_data.Instance) -> Unmade | None:
        """Return why Ganeti refuses the disks of `instance` on a node; spindles count under exclusive storage alone."""
        facts = self.cluster.nodes[index].facts
        return unmade(instance, exclusive=True, volume=self.volumes.get(facts.name)) if facts.exclusive else None

    def standard(self, spec: cluster_data.Spec, spindle_use: int) -> Fit:
        """Return how many instances of `spec` fit. Raise GpolicyError for one without memory."""
        return _counting(spec, lambda: self.fit(self.instance(spec, spindle_use), spec))

    def tiered(self, state: AllocationState, pair: cluster_data.SpecPair) -> AllocationState:
        """Return `state` after tiered allocation from the maximum of `pair`. Raise as `standard`."""
        instance = self.largest(pair, self.policy.std.spindle_use)
        made = self._allocator(instance)
        if made is None:
            return state
        found = _counting(pair.max, lambda: made[1].tiered(state, instance, None))
        self._tiered[id(state), instance] = state, found  # the state is kept so that no other one gets its identity
        return found

    def unrefused_tiered(self, state: AllocationState, instance: cluster_data.Instance) -> AllocationState | None:
        """Return what `tiered` has found from this state if the N+1 test kept no copy off any node."""
        _, found = self._tiered.get((id(state), instance), (None, None))
        return None if found is None or found.refused else found

    def find_binding(self, final: AllocationState, instance: cluster_data.Instance) -> Binding:
        """Return why the next `instance` did not fit in a run that ended with `final`."""
        if self.hindrance is not None:
            return self.hindrance
        if (refusal := self.refusal(instance)) is not None:
            return Binding(refusal.cause, detail=refusal.sentence)
        made = self._allocator(instance)
        if made is None:
            restricted = Binding(Cause.ALLOCATOR, detail="restrict-allocation-to leaves no nodes that may take it")
            return Binding(Cause.NO_NODES) if self.hail.restriction is None else restricted
        if final.failures == NO_FAILURES:
            return Binding(Cause.NOTHING)
        found = binding(final.nodes, instance, made[0], final.failures)
        if found.cause is Cause.REDUNDANCY and final.nodes is self.initial.nodes and (loss := self.loss) is not None:
            return replace(found, cause=Cause.BROKEN, detail=f"{loss.sentence}{no_disk_words(self.asked_for)}")
        return self._under_limits(found, final, instance, made[0])

    @cached_property
    def loss(self) -> FirstLoss | None:
        """The first loss of nodes that the present cluster cannot absorb; None if it absorbs all that it has to."""
        nodes, instances, rules = self.initial.nodes, self.initial.instances, self.rules
        if is_redundant(nodes, instances, rules):
            return None
        return first_loss(nodes, instances, tuple(nodes), rules)

    def _under_limits(
        self, found: Binding, final: AllocationState, instance: cluster_data.Instance, candidates: Candidates
    ) -> Binding:
        """Return the cause, or the limit of the policy that it stands for."""
        rules, top = self.rules, max(cluster_data.FailReason, key=lambda reason: final.failures[reason])
        if top is cluster_data.FailReason.N1 and rules.cpus:
            strict = replace(rules, cpus=False, force=False)
            allocator = CompiledAllocator(candidates, strict, capacity_checks=True, each=True, budget=self.budget)
            if len(allocator.standard(final, instance, 1).placed) > len(final.placed):
                return replace(found, cause=Cause.CPUS_AFTER_FAILURE)
        if top is cluster_data.FailReason.N1 and rules.failures > 1:
            return replace(found, cause=Cause.NODE_FAILURES)
        if top is cluster_data.FailReason.MEM and rules.oversubscription is not None:
            nodes, instances, ratio = final.nodes, final.instances, rules.oversubscription
            short = (instance.burst > memory_left(nodes[index], instances, ratio) for index, _ in candidates.counts)
            over = sum(count for (_, count), lacks in zip(candidates.counts, short, strict=True) if lacks)
            if 2 * over > final.failures[top]:
                return replace(found, cause=Cause.OVERSUBSCRIPTION)
        return found

    def find_tiered_binding(self, final: AllocationState, pair: cluster_data.SpecPair) -> Binding:
        """Return why the last instance did not fit in the tiered run that ended with `pair`."""
        last = final.placed[0] if final.placed else self.largest(pair, self.policy.std.spindle_use)
        nowhere = cluster_data.NO_NODE
        return self.find_binding(final, replace(last, primary=nowhere, secondary=nowhere, location_score=0))

    @property
    def surely_takes_one(self) -> bool:
        """Whether a standard instance, or one at the minimum or maximum of a pair fits; if not, another size may."""
        policy = self.policy
        sizes = [(policy.std, policy.std.spindle_use), *((pair.min, pair.min.spindle_use) for pair in policy.minmax)]
        wanted = [self.instance(size, use) for size, use in sizes if size.memory > 0]
        return any(self.place(self.initial, one, 1).placed for one in (*wanted, *map(self.largest, policy.minmax)))

    def fill_with_minimums(self, state: AllocationState) -> tuple[AllocationState, Binding]:
        """Return `state` with the least size of each pair placed as often as it fits, and why the last fits no more."""
        why = self.hindrance or Binding(Cause.BOUNDS)
        for pair in self.policy.minmax:
            least = self.instance(replace(pair.min, disk_count=pair.largest.disk_count), pair.min.spindle_use)
            refusal = self.refusal(least)
            if refusal is not None and refusal.cause is Cause.TOO_FEW_SPINDLES:  # a larger one takes as much
                least = replace(least, disks=tuple(replace(disk, spindles=None) for disk in least.disks))
            if pair.min.memory > 0:
                state = self.place(state, least)
                why = self.find_binding(state, least)
        return state, why


@dataclass(eq=False)
class HspaceCluster(CountedCluster):
    """One cluster, counted with the default options of hspace: N+1 for many at once, no limits of the policy.

    `base` is the cluster as hail counts it, which has this one: without a weak reference both would stay in memory.
    """

    base: ref[CountedCluster] | None = field(default=None, compare=False)

    @property
    def _of_hail(self) -> CountedCluster | None:
        return None if self.base is None else self.base()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as the allocator loads it: that of `base` if hail loads the same."""
        base = self._of_hail
        same = base is not None and base.data == self.data and base.hail == self.hail
        return base.cluster if base is not None and same else super().cluster

    @cached_property
    def initial(self) -> AllocationState:
        """The initial state of every count."""
        base = self._of_hail
        return base.initial if base is not None and self.cluster.nodes is base.initial.nodes else super().initial

    @property
    def as_tested(self) -> CountedCluster | None:
        """The cluster as hail counts it, where that places alike as long as N+1 refuses nothing; else None.

        hail tests N+1 for each placement, hspace for many at once: without a refusal, both choose by score alone. With
        DRBD, hail's instances have metadata.
        """
        base, groups = self._of_hail, self.cluster.groups.values()
        if base is None or self.initial is not base.initial or base.limits != NO_LIMITS or self._any_exclusive:
            return None
        if self.template in (None, cluster_data.DiskTemplate.DRBD) or base.weights != self.weights:
            return None
        if self._usable.stopped or self._usable.groups != self.cluster.groups:
            return None
        return base if len({group.alloc_policy for group in groups if _is_open(group)}) == 1 else None

    def fit(self, instance: cluster_data.Instance, spec: cluster_data.Spec | None = None) -> Fit:
        """Return how many copies of `instance`, which has the size `spec`, fit."""
        tested = self.as_tested
        known = tested.unrefused_fit(instance) if tested else None
        return super().fit(instance, spec) if known is None else replace(known, spec=spec)

    def tiered(self, state: AllocationState, pair: cluster_data.SpecPair) -> AllocationState:
        """Return `state` after tiered allocation from the maximum of `pair`."""
        instance = self.largest(pair, self.policy.std.spindle_use)
        tested = self.as_tested
        known = tested.unrefused_tiered(state, instance) if tested else None
        return super().tiered(state, pair) if known is None else known

    @cached_property
    def _usable(self) -> Usable:
        groups, nodes, instances = self.cluster.groups, self.cluster.nodes, self.cluster.instances
        return usable_groups(groups, nodes, instances, accept_existing=False, independent=False)

    @cached_property
    def hindrance(self) -> Binding | None:
        """Why no node may take any instance; None if some may."""
        if self.template is not None and self._usable.stopped:
            title = cluster_data.FailReason.N1.title
            return Binding(Cause.BROKEN, title, ((title, 1),))  # as hspace reports it
        return super().hindrance

    def _make(self, refused: frozenset[int]) -> tuple[Candidates, Allocator] | None:  # noqa: ARG002
        found = self._candidates(self._usable.groups)
        if found is None:
            return None
        rules = replace(self._usable.rules, weights=self.weights)
        return found, CompiledAllocator(found, rules, capacity_checks=True, budget=self.budget)

    def instance(self, spec: cluster_data.Spec, spindle_use: int) -> cluster_data.Instance:
        """Return the instance that hspace places for `spec`: one disk, without its metadata."""
        return cluster_data.Instance.wanted(spec, self.template or cluster_data.DiskTemplate.PLAIN, spindle_use)

    def _refused_on(self, index: int, instance: cluster_data.Instance) -> Unmade | None:  # noqa: ARG002
        """Return None: hspace does not ask which disks Ganeti makes."""
        return None


def _is_open(group: cluster_data.Group) -> bool:
    return group.alloc_policy is not cluster_data.AllocPolicy.UNALLOCABLE


def _counting(spec: cluster_data.Spec, work: Callable[[], _Result]) -> _Result:
    try:
        return work()
    except DivisionError:
        raise GpolicyError(f"a size without memory cannot be counted: {spec}") from None
