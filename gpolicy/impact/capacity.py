"""How many more instances fit, by group and spec pair, and what keeps out the next one.

Each group is counted alone, as if the cluster were that group and its policy that of the cluster: the numbers are
those of `hspace` on such a cluster (`group_data` gives it). `CapacityReport.cluster` is what `hspace` says of the whole
cluster. Both with hspace's defaults: N+1 is kept, and where a node breaks it already nothing may be added.

For one spec pair alone, an instance at the pair's maximum is placed again and again (`hspace --standard-alloc`);
tiered allocation goes through all pairs in the order of the policy and shrinks what no longer fits. An instance has one
disk, and the spindle use of `std`; for a pair that does not take that, the nearest value that it takes.
Sources: design documents "partitioned Ganeti" and "resource model"; hspace(1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.capacity import DivisionError, State
from gpolicy.allocator.engines import make_allocator
from gpolicy.allocator.kinds import NO_NODE, AllocPolicy, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.model import ClusterData, Disk, Instance, Policy, Spec, SpecPair
from gpolicy.allocator.numerals import fixed
from gpolicy.allocator.placement import NO_FAILURES, NoCandidatesError, candidate_nodes
from gpolicy.allocator.score import COMPONENTS, component_values, statistics, total_score
from gpolicy.allocator.usable import usable_groups
from gpolicy.errors import GpolicyError, UsageError
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.impact.allocator_input import cluster_data
from gpolicy.impact.binding import Binding, Cause, binding

if TYPE_CHECKING:
    from gpolicy.allocator.capacity import Allocator
    from gpolicy.allocator.placement import Candidates
    from gpolicy.cluster.state import ClusterState

KVM_NODE_MEMORY: Final = 4096
"""MiB that hspace takes for the node itself on KVM clusters, whatever was measured (its `--static-kvm-node-memory`)."""

_LIKELY: Final = (DiskTemplate.DRBD, DiskTemplate.PLAIN)

Observer = Callable[[str], None]
"""Told what is being counted, for a sign of life."""


@dataclass(frozen=True, slots=True)
class Size:
    """What was placed: MiB of memory and disk, virtual CPUs, spindles, and how many of it."""

    memory: int
    disk: int
    cpus: int
    spindles: int
    count: int


@dataclass(frozen=True, slots=True)
class SpecCapacity:
    """One spec pair: `fits` instances at its maximum, alone on the cluster as it is; `tiered` in the tiered run."""

    name: str
    pair: SpecPair
    spindle_use: int
    fits: int
    binding: Binding
    tiered: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class StandardCapacity:
    """How many instances of the policy's `std` fit."""

    spec: Spec
    fits: int
    binding: Binding


@dataclass(frozen=True, slots=True)
class ScoreComponent:
    """One of the twenty components of the cluster score."""

    name: str
    value: float
    weight: float

    @property
    def product(self) -> float:
        """What it adds to the score."""
        return self.weight * self.value

    @property
    def shown(self) -> tuple[str, str, str]:
        """Value, weight and product as htools prints numbers."""
        return fixed(self.value, 8), fixed(self.weight, 2), fixed(self.product, 8)


@dataclass(frozen=True, slots=True)
class Score:
    """Cluster score as hspace and hbal compute it: the smaller the better balanced. No component if no node is up."""

    total: float
    components: tuple[ScoreComponent, ...]

    @property
    def shown(self) -> str:
        """The score as htools prints it."""
        return fixed(self.total, 8)


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """The capacity of a group, of the whole cluster where `group` is None.

    `template` is None where no enabled template is allowed. `tiered` are runs of equal sizes in the order of
    placement, `tiered_binding` what kept out the last one.
    """

    group: str | None
    template: DiskTemplate | None
    nodes: int
    instances: int
    specs: tuple[SpecCapacity, ...]
    tiered: tuple[Size, ...]
    tiered_binding: Binding
    standard: StandardCapacity
    score: Score


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """Capacity of each group, and of the whole cluster as hspace sees it (None where one group was asked for)."""

    source: str
    cluster_name: str
    groups: tuple[GroupCapacity, ...]
    cluster: GroupCapacity | None
    notes: tuple[str, ...] = ()


def capacity(
    state: ClusterState, *, group: str | None = None, template: str | None = None, observer: Observer | None = None
) -> CapacityReport:
    """Count what fits on the cluster in `state`, in all groups or in `group`.

    `template` is the disk template of the instances; otherwise each group's is the first enabled one that it allows.
    Raise UsageError for a group that is not there or a template that is not enabled, and GpolicyError where the state
    does not hold what has to be known.
    """
    if group is not None and group not in state.groups:
        raise UsageError(f"there is no group {group!r}", hint=f"the groups are {', '.join(sorted(state.groups))}")
    enabled = _enabled(state)
    wanted = None if template is None else _wanted(template, enabled)
    data = cluster_data(state)
    tell = observer or _silent
    found, notes = [], []
    for item in data.groups:
        if group in (None, item.name):
            alone, split = group_data(data, item.index)
            chosen = wanted or _first_allowed(enabled, item.policy)
            found.append(_count(alone, item.name, chosen, tell))
            notes += [f"instance {name}: its nodes are in two groups; counted on its primary only" for name in split]
    whole = None
    if group is None:
        if len(found) == 1 and not notes and data.groups[0].policy == data.policy:
            whole = replace(found[0], group=None)  # the same cluster: not counted twice
        else:
            whole = _count(data, None, wanted or _first_allowed(enabled, data.policy), tell)
    return CapacityReport(state.source, state.name, tuple(found), whole, tuple(notes))


def spec_values(spec: Spec) -> dict[str, int]:
    """Return a spec by Ganeti's names (sizes in MiB)."""
    values = (spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use)
    return dict(zip(SPEC_PARAMETERS, values, strict=True))


def group_data(data: ClusterData, index: int) -> tuple[ClusterData, list[str]]:
    """Return the cluster that group `index` is alone, and the names of instances that reach into another group.

    Such an instance keeps its primary and loses its secondary; where only its secondary is in the group, it is left
    out (its disk is no longer free there either way).
    """
    group = data.groups[index]
    nodes = [node for node in data.nodes if node.group == index]
    place = {node.index: number for number, node in enumerate(nodes)} | {NO_NODE: NO_NODE}
    instances: list[Instance] = []
    split = []
    for instance in data.instances:
        if instance.primary not in place:
            continue
        if instance.secondary not in place:
            split.append(instance.name)
            instance = replace(instance, secondary=NO_NODE, template=_without_mirror(instance.template))  # noqa: PLW2901
        instances.append(
            replace(
                instance,
                index=len(instances),
                primary=place[instance.primary],
                secondary=place[instance.secondary],
            )
        )
    alone = replace(
        data,
        groups=(replace(group, index=0),),
        nodes=tuple(replace(node, index=place[node.index], group=0) for node in nodes),
        instances=tuple(instances),
        policy=group.policy,
    )
    return alone, split


def _without_mirror(template: DiskTemplate) -> DiskTemplate:
    return DiskTemplate.PLAIN if template is DiskTemplate.DRBD else template


def _silent(_what: str) -> None:
    pass


def _enabled(state: ClusterState) -> tuple[DiskTemplate, ...] | None:
    """Return the enabled templates, Ganeti's default first; None if the source does not name them."""
    names = state.cluster.own.get(("enabled_disk_templates",))
    if not isinstance(names, list):
        return None
    return tuple(DiskTemplate(name) for name in names if name in {template.value for template in DiskTemplate})


def _wanted(name: str, enabled: tuple[DiskTemplate, ...] | None) -> DiskTemplate:
    known = {template.value: template for template in DiskTemplate}
    if name not in known:
        raise UsageError(f"there is no disk template {name!r}", hint=f"the templates are {', '.join(known)}")
    if enabled is not None and known[name] not in enabled:
        names = ", ".join(template.value for template in enabled)
        raise UsageError(f"disk template {name} is not enabled on the cluster", hint=f"enabled are {names}")
    return known[name]


def _first_allowed(enabled: tuple[DiskTemplate, ...] | None, policy: Policy) -> DiskTemplate | None:
    """Return the default template under `policy`.

    Where the source does not name the enabled ones, DRBD and plain come first: the order of a policy's own list means
    nothing to Ganeti, although hspace takes the first of it.
    """
    order = (*_LIKELY, *DiskTemplate) if enabled is None else enabled
    return next((template for template in order if template in policy.templates), None)


class _Run:
    """Allocations on one cluster with one template, each from the state at the beginning."""

    def __init__(self, data: ClusterData, template: DiskTemplate) -> None:
        cluster = merge(data, static_kvm_node_memory=KVM_NODE_MEMORY)
        self.initial = State(cluster.nodes, cluster.instances)
        self.known: dict[Instance, tuple[int, Binding]] = {}
        self.template = template
        self.candidates: Candidates | None = None
        self.allocator: Allocator | None = None
        usable = usable_groups(
            cluster.groups, cluster.nodes, cluster.instances, accept_existing=False, independent=False
        )
        closed = all(group.alloc_policy is AllocPolicy.UNALLOCABLE for group in cluster.groups.values())
        self.hindrance = Binding(Cause.CLOSED if closed and cluster.nodes else Cause.NO_NODES)
        if usable.stopped:
            title = FailReason.N1.title
            self.hindrance = Binding(Cause.BROKEN, title, ((title, 1),))  # as hspace reports it
            return
        count = 2 if template is DiskTemplate.DRBD else 1
        try:
            self.candidates = candidate_nodes(usable.groups, cluster.nodes, count, drop_unallocable=True)
        except NoCandidatesError:
            return
        self.allocator = make_allocator(
            cluster.nodes, cluster.instances, self.candidates, usable.rules, capacity_checks=True
        )

    def standard(self, spec: Spec, spindle_use: int) -> tuple[int, Binding]:
        """Return how many instances of `spec` fit, and what keeps out the next one."""
        if self.allocator is None:
            return 0, self.hindrance
        instance = self.instance(spec, spindle_use)
        if instance not in self.known:
            final = self._guarded(spec, lambda allocator: allocator.standard(self.initial, instance, None))
            self.known[instance] = len(final.placed), self._binding(final, instance)
        return self.known[instance]

    def tiered(self, state: State, spec: Spec, spindle_use: int) -> State:
        """Return `state` with all placed that fits of `spec` and of what it shrinks to."""
        if self.allocator is None:
            return state
        instance = self.instance(spec, spindle_use)
        return self._guarded(spec, lambda allocator: allocator.tiered(state, instance, None))

    def after_tiered(self, final: State, spec: Spec, spindle_use: int) -> Binding:
        """Return what kept out the last instance of the tiered run that ended with `spec`."""
        if self.allocator is None:
            return self.hindrance
        last = final.placed[0] if final.placed else self.instance(spec, spindle_use)
        return self._binding(final, replace(last, primary=NO_NODE, secondary=NO_NODE, location_score=0))

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

    def _guarded(self, spec: Spec, work: Callable[[Allocator], State]) -> State:
        assert self.allocator is not None  # noqa: S101 (asked by the callers)
        try:
            return work(self.allocator)
        except DivisionError:
            raise GpolicyError(f"a spec without memory cannot be counted: {spec}") from None

    def _binding(self, final: State, instance: Instance) -> Binding:
        assert self.candidates is not None  # noqa: S101
        if final.failures == NO_FAILURES:
            return Binding(Cause.NOTHING)
        return binding(final.nodes, instance, self.candidates, final.failures)


def _count(data: ClusterData, name: str | None, template: DiskTemplate | None, tell: Observer) -> GroupCapacity:
    what = f"group {name}" if name is not None else "the whole cluster"
    policy, std = data.policy, data.policy.std
    run = _Run(data, template or DiskTemplate.PLAIN)
    if template is None:
        run.allocator, run.hindrance = None, Binding(Cause.NO_TEMPLATE)
    specs = []
    state = run.initial
    for number, pair in enumerate(policy.minmax, start=1):
        tell(f"{what}: spec pair {number} of {len(policy.minmax)}")
        before = len(state.placed)
        state = run.tiered(state, pair.max, std.spindle_use)
        placed = state.placed[: len(state.placed) - before]
        use = min(max(std.spindle_use, pair.min.spindle_use), pair.max.spindle_use)
        fits, why = run.standard(pair.max, use)
        specs.append(SpecCapacity(str(number), pair, use, fits, why, _sizes(placed)))
    tell(f"{what}: standard instances")
    fits, why = run.standard(std, std.spindle_use)
    last = policy.minmax[-1].max if policy.minmax else std
    stats = statistics(run.initial.nodes.values())
    return GroupCapacity(
        group=name,
        template=template,
        nodes=len(data.nodes),
        instances=len(data.instances),
        specs=tuple(specs),
        tiered=_sizes(state.placed),
        tiered_binding=run.after_tiered(state, last, std.spindle_use),
        standard=StandardCapacity(std, fits, why),
        score=Score(
            total_score(stats),
            tuple(
                ScoreComponent(component.name, value, component.weight)
                for component, value in zip(COMPONENTS, component_values(stats), strict=False)
            ),
        ),
    )


def _sizes(placed: tuple[Instance, ...]) -> tuple[Size, ...]:
    """Return runs of equal sizes in the order of placement; `placed` begins with the last."""
    runs: list[Size] = []
    for instance in reversed(placed):
        size = Size(instance.memory, instance.disk, instance.vcpus, instance.total_spindles or 0, 1)
        if runs and replace(runs[-1], count=1) == size:
            runs[-1] = replace(size, count=runs[-1].count + 1)
        else:
            runs.append(size)
    return tuple(runs)
