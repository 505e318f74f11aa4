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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import Spec, SpecPair
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity_run import KVM_NODE_MEMORY, Run, loaded
from gpolicy.analysis.cluster_score import Score, ScoreComponent, score_of
from gpolicy.analysis.declared_resources import configured, known_states, uncounted
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed, wanted_template
from gpolicy.analysis.extended_capacity import ExtendedCapacity, ExtendedOptions, extended_capacity, guaranteed
from gpolicy.analysis.group_data import group_data
from gpolicy.analysis.pair_names import PairNames
from gpolicy.analysis.side_by_side import side_by_side
from gpolicy.analysis.stranded import Stranded, room
from gpolicy.errors import GpolicyError, UsageError, about
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import ClusterData, Group, Instance
    from gpolicy.allocator.configured_resources import NodeResources
    from gpolicy.allocator.enumerations import DiskTemplate
    from gpolicy.cluster.state import ClusterState, Snapshot

__all__ = [
    "KVM_NODE_MEMORY",
    "CapacityReport",
    "ExtendedOptions",
    "GroupCapacity",
    "Observer",
    "Score",
    "ScoreComponent",
    "Size",
    "SpecCapacity",
    "StandardCapacity",
    "capacity",
    "count",
    "group_data",
    "spec_values",
]

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
class GroupCapacity:
    """The capacity of a group, of the whole cluster where `group` is None.

    `template` is None where no enabled template is allowed. `tiered` are runs of equal sizes in the order of
    placement, `tiered_binding` what kept out the last one. `stranded` is what no allowed instance can use,
    `extended` what fits under limits beyond those of htools, where they were asked for.
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
    stranded: Stranded | None = None
    extended: ExtendedCapacity | None = None


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """Capacity of each group, and of the whole cluster as hspace sees it (None where one group was asked for)."""

    source: str
    cluster_name: str
    groups: tuple[GroupCapacity, ...]
    cluster: GroupCapacity | None
    notes: tuple[str, ...] = ()
    snapshot: Snapshot | None = None


def capacity(
    state: ClusterState,
    *,
    group: str | None = None,
    template: str | None = None,
    names: PairNames | None = None,
    extended: ExtendedOptions | None = None,
    declared: bool = False,
    observer: Observer | None = None,
) -> CapacityReport:
    """Count what fits on the cluster in `state`, in all groups or in `group`.

    `template` is the disk template of the instances; otherwise each group's is the first enabled one that it allows.
    `names` are what the spec pairs are called. With `extended` each group is also counted under these limits.
    `declared` counts with the resources that hv_state and disk_state declare instead of measured ones. Raise UsageError
    for a group that is not there or a template that is not enabled, and GpolicyError where the state does not hold what
    has to be known.
    """
    if group is not None and group not in state.groups:
        raise UsageError(f"there is no group {group!r}", hint=f"the groups are {', '.join(sorted(state.groups))}")
    enabled = enabled_templates(state)
    wanted = None if template is None else wanted_template(template, enabled)
    data = cluster_data(state)
    tell, called = observer or _silent, names or PairNames()
    resources = declared_resources(state, data) if declared else {}
    burst = {name: instance.maxmem for name, instance in state.instances.items()}
    least = {name: instance.minmem for name, instance in state.instances.items()}
    notes = _model_notes(state, resources) if declared else []

    def whole() -> GroupCapacity:
        chosen = wanted or first_allowed(enabled, data.policy)
        return count(Run(data, chosen, resources=resources), None, chosen, called, tell)

    def alone(item: Group, members: ClusterData) -> GroupCapacity:
        chosen = wanted or first_allowed(enabled, item.policy)
        run = Run(members, chosen, resources=of_nodes(resources, members))
        counted = count(run, item.name, chosen, called, tell)
        if extended is None or not extended.asked:
            return counted
        shown = called.of(item.name, len(item.policy.minmax))
        if extended.oversubscription is not None:
            run = Run(guaranteed(members, least), chosen, resources=of_nodes(resources, members))
        limits = extended_capacity(run, shown, extended, burst, prefixed(tell, f"group {item.name}: "))
        return replace(counted, extended=limits)

    jobs: list[Callable[[], GroupCapacity]] = []
    for item in data.groups:
        if group in (None, item.name):
            members, split = group_data(data, item.index)
            jobs.append(partial(alone, item, members))
            notes += [f"instance {name}: its nodes are in two groups; counted on its primary only" for name in split]
    if group is not None:
        return CapacityReport(state.source, state.name, tuple(side_by_side(jobs)), None, tuple(notes), state.snapshot)
    if len(jobs) == 1 and not notes and data.groups[0].policy == data.policy:
        [counted] = side_by_side(jobs)
        same = replace(counted, group=None, extended=None)  # the same cluster: not counted twice
        return CapacityReport(state.source, state.name, (counted,), same, snapshot=state.snapshot)
    counted_whole, *found = side_by_side([whole, *jobs])
    return CapacityReport(state.source, state.name, tuple(found), counted_whole, tuple(notes), state.snapshot)


def spec_values(spec: Spec) -> dict[str, int]:
    """Return a spec by Ganeti's names (sizes in MiB)."""
    values = (spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use)
    return dict(zip(SPEC_PARAMETERS, values, strict=True))


def declared_resources(state: ClusterState, data: ClusterData) -> dict[str, NodeResources]:
    """Return the resources that are declared for the nodes of `data`, by name. Raise GpolicyError if none is known."""
    if not known_states(state):
        raise GpolicyError(
            about(state.address, "not known: hv_state and disk_state"),
            hint="they are in config.data only: read the cluster on its master (local:, ssh://), or from a snapshot",
        )
    return configured(state, data, loaded(data))


def of_nodes(resources: Mapping[str, NodeResources], data: ClusterData) -> dict[str, NodeResources]:
    """Return the resources of the nodes that `data` has."""
    return {node.name: resources[node.name] for node in data.nodes if node.name in resources}


def _model_notes(state: ClusterState, resources: Mapping[str, NodeResources]) -> list[str]:
    if resources:
        return uncounted(state)
    return ["neither hv_state nor disk_state declares anything that counts: these are the measured numbers"]


def prefixed(tell: Observer, prefix: str) -> Observer:
    """Return an observer that tells `tell` with `prefix` before it."""
    return lambda what: tell(f"{prefix}{what}")


def _silent(_what: str) -> None:
    pass


def count(
    run: Run, group: str | None, template: DiskTemplate | None, names: PairNames, tell: Observer
) -> GroupCapacity:
    """Count on the cluster of `run`, which is `group` alone (None: the whole cluster), with `template`."""
    what = f"group {group}" if group is not None else "the whole cluster"
    policy, std = run.policy, run.policy.std
    shown = names.of(group, len(policy.minmax))
    state = run.initial
    sizes = []
    # what follows on the tiered run comes first: the engine forgets it when another count begins anew
    for number, pair in enumerate(policy.minmax, start=1):
        tell(f"{what}: spec pair {number} of {len(policy.minmax)}")
        before = len(state.placed)
        state = run.tiered(state, pair.max, std.spindle_use)
        sizes.append(_sizes(state.placed[: len(state.placed) - before]))
    last = policy.minmax[-1].max if policy.minmax else std
    tiered_binding = run.after_tiered(state, last, std.spindle_use)
    stranded = Stranded(room(run.initial.nodes.values()), room(run.filled(state).nodes.values()))
    tell(f"{what}: standard instances")
    specs = []
    for name, pair, placed in zip(shown, policy.minmax, sizes, strict=True):
        fits, why = run.pair(pair)
        specs.append(SpecCapacity(name, pair, run.spindle_use(pair), fits, why, placed))
    fits, why = run.standard(std, std.spindle_use)
    return GroupCapacity(
        group=group,
        template=template,
        nodes=len(run.data.nodes),
        instances=len(run.data.instances),
        specs=tuple(specs),
        tiered=_sizes(state.placed),
        tiered_binding=tiered_binding,
        standard=StandardCapacity(std, fits, why),
        score=score_of(run.initial.nodes.values()),
        stranded=stranded,
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
