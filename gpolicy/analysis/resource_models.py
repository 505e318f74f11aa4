"""Declared resources (hv_state, disk_state) compared with reported ones, and the effects of the difference.

Ganeti stores hv_state and disk_state and computes nothing from them; htools reads the measurements of nodes.
`gpolicy.analysis.node_resources` defines what counts as declared; for other values the reported ones are used.
Under the declared model stopped instances keep their resources; only ADMIN_offline ones release memory and CPUs.

    free memory = mem_total - mem_node - mem_hv - sum of the instances
    free disk   = disk_total - disk_overhead - sum of the instances

Source: design document "Resource model".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.compiled_allocation import memory_for_instances
from gpolicy.analysis.basis import BasisKind
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.loaded_state import LoadedState, inconsistency_notes
from gpolicy.analysis.node_resources import DeclaredNumber, declaration_notes
from gpolicy.analysis.side_by_side import each_cluster
from gpolicy.cluster.state import LiveInstance
from gpolicy.progress import Tell


@dataclass(frozen=True, slots=True)
class Model:
    """What is free on a node under one of the two models. Disk that must stay free (disk_reserved) is not."""

    free_memory: int
    free_disk: int
    cpus: int


@dataclass(frozen=True, slots=True)
class NodeModel:
    """One node: its declared numbers, and its free resources under either model.

    Memory counts primary instances that are not ADMIN_offline.
    """

    node: str
    group: str
    declared: tuple[DeclaredNumber, ...]
    measured: Model | None
    configured: Model
    available_memory: int
    minimum_memory: int
    maximum_memory: int

    @property
    def oversubscription(self) -> float | None:
        """Sum of maxmem / memory for instances; above 1 not all can burst at once. None without memory."""
        return self.maximum_memory / self.available_memory if self.available_memory > 0 else None


@dataclass(frozen=True, slots=True)
class GroupModel:
    """The standard instances that fit in a group under either model."""

    group: str
    measured_fits: int | None
    measured_binding: Binding | None
    configured_fits: int
    configured_binding: Binding


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """Both models of one state: of the nodes that are up, and of the groups for which something is declared."""

    nodes: tuple[NodeModel, ...]
    groups: tuple[GroupModel, ...]
    notes: tuple[str, ...] = ()


def resource_models(states: Sequence[LoadedState], declared: Sequence[LoadedState], tell: Tell) -> list[ResourceModel]:
    """Compare each of `states` with the same one on the declared basis; equal clusters are counted once."""
    titles: dict[CountedCluster, str] = {}
    for loaded in (*declared, *states):
        titles |= {cluster: name for name, cluster in loaded.groups.items() if cluster not in titles}
    pairs = list(zip(states, declared, strict=True))
    wanted = {
        cluster: titles[cluster]
        for loaded, planned in pairs
        for name in _declared_groups(planned)
        for cluster in (loaded.groups.get(name), planned.groups[name])
        if cluster is not None
    }

    def count(cluster: CountedCluster, name: str) -> Fit:
        tell(f"group {name}: standard instances under both resource models")
        return cluster.standard(cluster.policy.std, cluster.policy.std.spindle_use)

    found = each_cluster(wanted, count)

    def group_model(name: str, loaded: LoadedState, planned: LoadedState) -> GroupModel:
        now, then = loaded.groups.get(name), found[planned.groups[name]]
        shown = None if now is None or loaded.basis(name).kind is BasisKind.DECLARED else found[now]
        fits, binding = (None, None) if shown is None else (shown.fits, shown.binding)
        return GroupModel(name, fits, binding, then.fits, then.binding)

    return [
        ResourceModel(
            nodes=tuple(_node_models(loaded, planned)),
            groups=tuple(group_model(name, loaded, planned) for name in _declared_groups(planned)),
            notes=(
                *declaration_notes(planned.settled.state),
                *inconsistency_notes(loaded.settled, loaded.whole.cluster, loaded.settled.state.nodes),
            ),
        )
        for loaded, planned in pairs
    ]


def _declared_groups(planned: LoadedState) -> list[str]:
    """Return the groups for whose nodes hv_state or disk_state declares something."""
    stated = {planned.settled.state.nodes[name].group for name, numbers in planned.settled.stated.items() if numbers}
    return [name for name in planned.groups if name in stated]


def _node_models(loaded: LoadedState, planned: LoadedState) -> Iterator[NodeModel]:
    state, configured, stated = planned.settled.state, planned.whole.cluster.nodes, planned.settled.stated
    measured = {node.facts.name: node for node in loaded.whole.cluster.nodes.values()}
    owned: dict[str, list[LiveInstance]] = {name: [] for name in state.nodes}
    for instance in state.instances.values():
        if instance.admin_state != "offline" and not instance.forthcoming:
            owned[instance.primary_node].append(instance)
    for item in planned.settled.data.nodes:
        if item.offline:
            continue
        now, then = measured.get(item.name), configured[item.index]
        figures = loaded.settled.figures.get(item.name)
        shown = figures is not None and figures.measured
        yield NodeModel(
            node=item.name,
            group=state.nodes[item.name].group,
            declared=stated.get(item.name, ()),
            measured=_model(now) if now is not None and shown else None,
            configured=_model(then),
            available_memory=memory_for_instances(then),
            minimum_memory=sum(instance.minmem for instance in owned[item.name]),
            maximum_memory=sum(instance.maxmem for instance in owned[item.name]),
        )


def _model(node: Node) -> Model:
    return Model(node.unallocated_memory, node.available_disk, node.available_cpus)
