"""Declared resources (hv_state, disk_state) compared with reported ones, and the effects of the difference.

Ganeti stores hv_state and disk_state and computes nothing from them; htools reads the measurements of nodes.
`gpolicy.analysis.declared_resources` defines what counts as declared; for other values the reported ones are used.
Under the declared model stopped instances keep their resources; only ADMIN_offline ones release memory and CPUs.

    free memory = mem_total - mem_node - mem_hv - sum of the instances
    free disk   = disk_total - disk_overhead - sum of the instances

Source: design document "Resource model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.analysis.counted_cluster import CountedCluster, each_cluster
from gpolicy.analysis.declared_resources import declared, known_states, node_resources, reported, uncounted

if TYPE_CHECKING:
    from gpolicy.allocator.node import Node
    from gpolicy.analysis.binding import Binding
    from gpolicy.analysis.loaded_state import LoadedState
    from gpolicy.cluster.state import Instance


@dataclass(frozen=True, slots=True)
class DeclaredNumber:
    """One declared number and the reported one (None if nodes do not report it), in MiB or CPUs.

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

    `free_disk` excludes the space that must stay free (disk_reserved).
    """

    free_memory: int
    free_disk: int
    cpus: int


@dataclass(frozen=True, slots=True)
class NodeModel:
    """One node: its declared numbers, and its free resources under either model.

    `minimum_memory` and `maximum_memory` are the sums of minmem and maxmem of its primaries that are not
    ADMIN_offline, `available_memory` its memory for instances (total less that of the node itself).
    """

    node: str
    group: str
    declared: tuple[DeclaredNumber, ...]
    measured: Model
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
    """The number of standard instances that fit in a group under either model, and the binding resources."""

    group: str
    measured_fits: int
    measured_binding: Binding
    configured_fits: int
    configured_binding: Binding


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """Both models of one state: of the nodes that are up, and of the groups for which something is declared.

    If the source does not show hv_state and disk_state, no node has declared numbers, and `notes` say so.
    """

    nodes: tuple[NodeModel, ...]
    groups: tuple[GroupModel, ...]
    notes: tuple[str, ...] = ()


def resource_models(states: Sequence[LoadedState], tell: Callable[[str], None]) -> list[ResourceModel]:
    """Compare the declared numbers of each state with the reported ones; equal clusters are counted once."""
    known: dict[CountedCluster, CountedCluster] = {}  # the declared model of a group, and the measured one
    groups = [_declared_groups(loaded, known) for loaded in states]
    titles = {cluster: name for members in reversed(groups) for name, cluster in reversed(members.items())}

    def count(cluster: CountedCluster, name: str) -> GroupModel:
        tell(f"group {name}: standard instances under both resource models")
        std = cluster.policy.std
        measured, planned = (item.standard(std, std.spindle_use) for item in (known[cluster], cluster))
        return GroupModel(name, measured.fits, measured.binding, planned.fits, planned.binding)

    found = each_cluster(titles, count)
    return [
        ResourceModel(
            nodes=tuple(_nodes(loaded)),
            groups=tuple(replace(found[cluster], group=name) for name, cluster in members.items()),
            notes=tuple(_notes(loaded)),
        )
        for loaded, members in zip(states, groups, strict=True)
    ]


def _declared_groups(loaded: LoadedState, known: dict[CountedCluster, CountedCluster]) -> dict[str, CountedCluster]:
    """Return the groups with declared numbers, to be counted under the declared model, and add them to `known`."""
    found = {}
    for name in dict.fromkeys(loaded.state.nodes[node.name].group for node in loaded.data.nodes):
        measured = loaded.groups[name]
        resources = node_resources(loaded.state, measured) if known_states(loaded.state) else {}
        if resources:
            same = (item for item, other in known.items() if other is measured and item.resources == resources)
            found[name] = next(same, None) or replace(measured, resources=resources)
            known[found[name]] = measured
    return found


def _notes(loaded: LoadedState) -> list[str]:
    notes = [f"group {group}: {reason}" for group, reason in loaded.gaps.items()]
    if known_states(loaded.state):
        return notes + uncounted(loaded.state)
    return [*notes, f"{loaded.state.address} does not show hv_state and disk_state: declared resources are unknown"]


def _nodes(loaded: LoadedState) -> Iterator[NodeModel]:
    """Yield the nodes that are up."""
    state, measured = loaded.state, loaded.whole.cluster
    resources = node_resources(state, loaded.whole) if known_states(state) else {}
    planned = replace(loaded.whole, resources=resources).cluster if resources else measured
    owned: dict[str, list[Instance]] = {name: [] for name in state.nodes}
    for instance in state.instances.values():
        if instance.admin_state != "offline" and not instance.forthcoming:
            owned[instance.primary_node].append(instance)
    for item in loaded.data.nodes:
        if item.offline:
            continue
        now, then = measured.nodes[item.index], planned.nodes[item.index]
        values = reported(now, measured)
        stated = declared(state, state.nodes[item.name]) if item.name in resources else {}
        yield NodeModel(
            node=item.name,
            group=state.nodes[item.name].group,
            declared=tuple(
                DeclaredNumber(name, value.value, value.level.value, values.get(name)) for name, value in stated.items()
            ),
            measured=_model(now),
            configured=_model(then),
            available_memory=max(0, int(then.facts.total_memory) - then.facts.node_memory),
            minimum_memory=sum(instance.minmem for instance in owned[item.name]),
            maximum_memory=sum(instance.maxmem for instance in owned[item.name]),
        )


def _model(node: Node) -> Model:
    return Model(node.unallocated_memory, node.available_disk, node.available_cpus)
