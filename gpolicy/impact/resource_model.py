"""Declared resources (hv_state, disk_state) against those that nodes report, and what the difference does.

Ganeti stores hv_state and disk_state and computes nothing from them; htools reads what nodes measure. What counts as
declared says `gpolicy.impact.declared_resources`; what is not declared is taken as reported. Under the declared model
stopped instances keep their resources, only those that are ADMIN_offline give memory and CPUs back.

    free memory = mem_total - mem_node - mem_hv - sum of the instances
    free disk   = disk_total - disk_overhead - sum of the instances

Source: design document "Resource model".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.impact.capacity_run import Run, loaded
from gpolicy.impact.clusters import Clusters
from gpolicy.impact.declared_resources import configured, declared, known_states, reported, uncounted
from gpolicy.impact.disk_templates import enabled_templates, first_allowed

if TYPE_CHECKING:
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.model import NodeData
    from gpolicy.allocator.node import Node
    from gpolicy.cluster.state import ClusterState, Instance
    from gpolicy.impact.binding import Binding
    from gpolicy.impact.known_part import KnownPart

Observer = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared number beside the reported one (None where nodes report no such thing). MiB or CPUs.

    `level` is where it is declared: node, group or cluster. `name` is Ganeti's: mem_total, disk_overhead, …
    """

    name: str
    declared: int
    level: str
    reported: int | None

    @property
    def differs(self) -> bool:
        """Whether the node reports another number."""
        return self.reported is not None and self.reported != self.declared


@dataclass(frozen=True, slots=True)
class Model:
    """Free memory and disk (MiB) of a node under one of the two models, and virtual CPUs that its ratio still allows.

    `free_disk` is without what is to stay free (disk_reserved).
    """

    free_memory: int
    free_disk: int
    cpus: int


@dataclass(frozen=True, slots=True)
class NodeModel:
    """One node: what is declared for it, and what is free under either model.

    `minimum_memory` and `maximum_memory` are the sums of minmem and maxmem of its primaries that are not
    ADMIN_offline, `available_memory` what the node has for instances (total less what it keeps for itself).
    """

    node: str
    group: str
    declared: tuple[Declared, ...]
    measured: Model
    configured: Model
    available_memory: int
    minimum_memory: int
    maximum_memory: int

    @property
    def oversubscription(self) -> float | None:
        """Sum of maxmem over memory for instances; above 1 not all can burst at once. None without memory."""
        return self.maximum_memory / self.available_memory if self.available_memory > 0 else None


@dataclass(frozen=True, slots=True)
class GroupModel:
    """Standard instances of a group that fit under either model, and what binds."""

    group: str
    measured_fits: int
    measured_binding: Binding
    configured_fits: int
    configured_binding: Binding


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """Both models of one state: of the nodes that are up, and of the groups for which something is declared.

    Where the source shows neither hv_state nor disk_state, no node has anything declared, and `notes` say so.
    """

    nodes: tuple[NodeModel, ...]
    groups: tuple[GroupModel, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both models before and after."""

    before: ResourceModel
    after: ResourceModel


Known = dict[object, GroupModel]
"""Groups that have been counted, by all that decides the numbers."""


def resource_model(
    state: ClusterState,
    *,
    observer: Observer | None = None,
    known_groups: Known | None = None,
    clusters: Clusters | None = None,
) -> ResourceModel:
    """Compare what is declared in `state` with what its nodes report.

    Raise GpolicyError where the state does not hold what nodes measured.
    """
    clusters = clusters or Clusters()
    part = clusters.part(state)
    known = known_states(state)
    notes = [f"group {group}: {reason}" for group, reason in part.gaps.items()]
    if known:
        notes += uncounted(state)
    else:
        notes.append(f"{state.address} does not show hv_state and disk_state: what is declared is not known")
    cluster = clusters.loaded(clusters.data(part, None))
    resources = configured(part.state, part.data, cluster) if known else {}
    planned = loaded(part.data, resources) if resources else cluster
    owned: dict[str, list[Instance]] = {name: [] for name in part.state.nodes}
    for instance in part.state.instances.values():
        if instance.admin_state != "offline" and not instance.forthcoming:
            owned[instance.primary_node].append(instance)
    nodes = tuple(
        _node(part, item, cluster, planned, owned[item.name], configured_here=item.name in resources)
        for item in part.data.nodes
        if not item.offline
    )
    names = {part.data.groups[item.group].name: None for item in part.data.nodes if item.name in resources}
    counted = {} if known_groups is None else known_groups
    groups = tuple(_group(part, name, clusters, counted, observer) for name in names)
    return ResourceModel(nodes, groups, tuple(notes))


def resource_model_change(
    before: ClusterState, after: ClusterState, *, observer: Observer | None = None, clusters: Clusters | None = None
) -> ResourceModelChange:
    """Compare both models before and after; what is the same is counted once. Errors as for `resource_model`.

    `clusters` are shared with other parts of an impact.
    """
    known: Known = {}
    clusters = clusters or Clusters()
    return ResourceModelChange(
        resource_model(before, observer=observer, known_groups=known, clusters=clusters),
        resource_model(after, observer=observer, known_groups=known, clusters=clusters),
    )


def _node(
    part: KnownPart,
    item: NodeData,
    cluster: Cluster,
    planned: Cluster,
    own: Sequence[Instance],
    *,
    configured_here: bool,
) -> NodeModel:
    observed = part.state.nodes[item.name]
    measured, then = cluster.nodes[item.index], planned.nodes[item.index]
    values = reported(measured, cluster)
    stated = declared(part.state, observed) if configured_here else {}
    return NodeModel(
        node=item.name,
        group=observed.group,
        declared=tuple(
            Declared(name, value.value, value.level.value, getattr(values, name, None))
            for name, value in stated.items()
        ),
        measured=_model(measured),
        configured=_model(then),
        available_memory=max(0, int(then.facts.total_memory) - then.facts.node_memory),
        minimum_memory=sum(instance.minmem for instance in own),
        maximum_memory=sum(instance.maxmem for instance in own),
    )


def _model(node: Node) -> Model:
    return Model(node.unallocated_memory, node.available_disk, node.available_cpus)


def _group(part: KnownPart, name: str, clusters: Clusters, known: Known, observer: Observer | None) -> GroupModel:
    data = clusters.data(part, name)
    cluster = clusters.loaded(data)
    template = first_allowed(enabled_templates(part.state), data.policy)
    resources = configured(part.state, data, cluster)
    key = (id(data), template, tuple(sorted(resources.items(), key=lambda pair: pair[0])))
    if key not in known:
        if observer is not None:
            observer(f"group {name}: standard instances under both resource models")
        std = data.policy.std
        fits, why = Run(data, template, cluster=cluster).standard(std, std.spindle_use)
        planned_fits, planned_why = Run(data, template, resources=resources).standard(std, std.spindle_use)
        known[key] = GroupModel(name, fits, why, planned_fits, planned_why)
    return replace(known[key], group=name)
