"""Declared resources (hv_state, disk_state) against those that nodes report, and what the difference does.

Ganeti stores hv_state and disk_state and computes nothing from them; htools reads what nodes measure. What counts as
declared says `gpolicy.analysis.declared_resources`; what is not declared is taken as reported. Under the declared model
stopped instances keep their resources, only those that are ADMIN_offline give memory and CPUs back.

    free memory = mem_total - mem_node - mem_hv - sum of the instances
    free disk   = disk_total - disk_overhead - sum of the instances

Source: design document "Resource model".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpolicy.analysis.capacity_run import Run, loaded
from gpolicy.analysis.clusters import Clusters
from gpolicy.analysis.declared_resources import configured, declared, known_states, reported, uncounted
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed
from gpolicy.analysis.side_by_side import side_by_side

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import NodeData
    from gpolicy.allocator.configured_resources import NodeResources
    from gpolicy.allocator.enumerations import DiskTemplate
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.analysis.binding import Binding
    from gpolicy.analysis.clusters import SharedCluster
    from gpolicy.analysis.known_part import KnownPart
    from gpolicy.cluster.state import ClusterState, Instance

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
class _Question:
    """How many standard instances fit on a cluster as measured, and with these configured resources by node name."""

    shared: SharedCluster
    template: DiskTemplate | None
    resources: tuple[tuple[str, NodeResources], ...]

    def answer(self, group: str) -> GroupModel:
        """Count both; the measured number may be known from another part of an impact."""
        std = self.shared.data.policy.std
        fits, why = self.shared.run(self.template).standard(std, std.spindle_use)
        planned = Run(self.shared.data, self.template, resources=dict(self.resources))
        planned_fits, planned_why = planned.standard(std, std.spindle_use)
        return GroupModel(group, fits, why, planned_fits, planned_why)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A model whose groups, by name, are yet to be counted."""

    nodes: tuple[NodeModel, ...]
    groups: Mapping[str, _Question]
    notes: tuple[str, ...]


def resource_model(
    state: ClusterState, *, observer: Observer | None = None, clusters: Clusters | None = None
) -> ResourceModel:
    """Compare what is declared in `state` with what its nodes report.

    Raise GpolicyError where the state does not hold what nodes measured. `clusters` are shared with other parts of an
    impact.
    """
    return models([state], observer, clusters or Clusters())[0]


def models(states: Sequence[ClusterState], observer: Observer | None, clusters: Clusters) -> list[ResourceModel]:
    """Return the models of each state; what is the same is counted once."""
    drafts = [_draft(state, clusters) for state in states]
    names: dict[_Question, str] = {}
    for draft in drafts:
        for name, question in draft.groups.items():
            names.setdefault(question, name)

    def answer(question: _Question) -> GroupModel:
        if observer is not None:
            observer(f"group {names[question]}: standard instances under both resource models")
        return question.answer(names[question])

    longest_first = sorted(names, key=lambda question: -len(question.shared.data.nodes))
    found = dict(zip(longest_first, side_by_side([partial(answer, item) for item in longest_first]), strict=True))
    return [
        ResourceModel(
            draft.nodes,
            tuple(replace(found[question], group=name) for name, question in draft.groups.items()),
            draft.notes,
        )
        for draft in drafts
    ]


def _draft(state: ClusterState, clusters: Clusters) -> _Draft:
    part = clusters.part(state)
    known = known_states(state)
    notes = [f"group {group}: {reason}" for group, reason in part.gaps.items()]
    if known:
        notes += uncounted(state)
    else:
        notes.append(f"{state.address} does not show hv_state and disk_state: what is declared is not known")
    cluster = clusters.of(part, None).cluster
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
    groups = {part.data.groups[item.group].name: None for item in part.data.nodes if item.name in resources}
    return _Draft(nodes, {name: _question(part, name, clusters) for name in groups}, tuple(notes))


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


def _question(part: KnownPart, name: str, clusters: Clusters) -> _Question:
    shared = clusters.of(part, name)
    template = first_allowed(enabled_templates(part.state), shared.data.policy)
    resources = configured(part.state, shared.data, shared.cluster)
    return _Question(shared, template, tuple(sorted(resources.items(), key=lambda pair: pair[0])))
