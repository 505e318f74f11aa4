"""A state ready for counting: each of its groups as a cluster of its own, and the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import ClusterData, Instance
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate
from gpolicy.analysis.allocator_input import cluster_data, gaps
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed
from gpolicy.errors import GpolicyError, UsageError, about

if TYPE_CHECKING:
    from gpolicy.allocator.configured_resources import NodeResources
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class LoadedState:
    """The clusters of a state. A group that is the whole cluster is the same object as `whole`.

    `state` and `data` lack the groups in `gaps`, which tells the missing figures of each.
    """

    state: ClusterState
    data: ClusterData
    whole: CountedCluster
    groups: Mapping[str, CountedCluster]
    gaps: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def clusters(self) -> tuple[CountedCluster, ...]:
        """All clusters: the whole one first."""
        return self.whole, *self.groups.values()

    def with_resources(self, resources: Mapping[str, NodeResources]) -> LoadedState:
        """Return a copy with declared resources, by node, instead of measured ones."""
        made = {cluster: replace(cluster, resources=resources) for cluster in self.clusters}
        groups = {name: made[cluster] for name, cluster in self.groups.items()}
        return replace(self, whole=made[self.whole], groups=groups)


def load_state(
    state: ClusterState, *, template: DiskTemplate | None = None, like: Iterable[CountedCluster] = ()
) -> LoadedState:
    """Load all of `state`. Instances get `template`, by default the first enabled one that the policy allows.

    A cluster with the same numbers as one of `like` is that object, so that nothing is counted twice. Raise
    GpolicyError if the state lacks figures that the allocator needs.
    """
    data = cluster_data(state)
    known = list(like)
    enabled = enabled_templates(state)

    def counted(part: ClusterData) -> CountedCluster:
        decisive = _decisive(part)
        chosen = template or first_allowed(enabled, part.policy)
        found = next((item for item in known if item.template is chosen and item.data == decisive), None)
        if found is None:
            found = CountedCluster(decisive, chosen)
            known.append(found)
        return found

    groups = {group.name: counted(group_data(data, group.index)) for group in data.groups}
    return LoadedState(state, data, counted(data), groups)


def load_known_groups(state: ClusterState, *, like: Iterable[CountedCluster] = ()) -> LoadedState:
    """Load the groups of `state` whose nodes have all figures; the others are in `gaps`. Arguments as for `load_state`.

    An instance with its primary in a skipped group is skipped; one with only its secondary there is counted without it.
    Raise GpolicyError if no group with nodes is left.
    """
    missing: dict[str, dict[str, None]] = {}
    for name, what in gaps(state).items():
        missing.setdefault(state.nodes[name].group, {}).update(dict.fromkeys(what))
    if not missing:
        return load_state(state, like=like)
    reasons = {group: f"not known: {', '.join(what)} of its nodes" for group, what in missing.items()}
    nodes = {name: node for name, node in state.nodes.items() if node.group not in reasons}
    if not nodes:
        cluster_data(state)  # raises an error with all missing figures
        raise GpolicyError(about(state.address, next(iter(reasons.values()))))
    instances, split = {}, []
    for name, instance in state.instances.items():
        if instance.primary_node not in nodes:
            continue
        if all(other in nodes for other in instance.secondary_nodes):
            instances[name] = instance
        else:
            template = "plain" if instance.disk_template == "drbd" else instance.disk_template
            instances[name] = replace(instance, secondary_nodes=(), disk_template=template)
            split.append(name)
    groups = {name: group for name, group in state.groups.items() if name not in reasons}
    known = load_state(replace(state, groups=groups, nodes=nodes, instances=instances), like=like)
    return replace(known, gaps=reasons, notes=tuple(map(counted_on_primary, split)))


def check_group(state: ClusterState, group: str | None) -> None:
    """Raise UsageError for an unknown group; None stands for all."""
    if group is not None and group not in state.groups:
        raise UsageError(f"there is no group {group!r}", hint=f"the groups are {', '.join(sorted(state.groups))}")


def counted_on_primary(instance: str) -> str:
    """Return the note about an instance whose nodes are in two groups."""
    return f"instance {instance}: its nodes are in two groups; counted on its primary only"


def group_data(data: ClusterData, index: int) -> ClusterData:
    """Return group `index` as a cluster of its own.

    An instance of `split_instances` keeps its primary and loses its secondary; if only its secondary is in the group,
    it is skipped (its disk is not free in either case).
    """
    group = data.groups[index]
    nodes = [node for node in data.nodes if node.group == index]
    place = {node.index: number for number, node in enumerate(nodes)} | {NO_NODE: NO_NODE}
    instances: list[Instance] = []
    for instance in data.instances:
        if instance.primary not in place:
            continue
        item = instance
        if instance.secondary not in place:
            template = DiskTemplate.PLAIN if instance.template is DiskTemplate.DRBD else instance.template
            item = replace(instance, secondary=NO_NODE, template=template)
        primary, secondary = place[item.primary], place[item.secondary]
        instances.append(item.at(len(instances), item.name, primary, secondary, item.location_score))
    return replace(
        data,
        groups=(replace(group, index=0),),
        nodes=tuple(replace(node, index=place[node.index], group=0) for node in nodes),
        instances=tuple(instances),
        policy=group.policy,
    )


def split_instances(data: ClusterData, index: int) -> list[str]:
    """Return the names of the instances of group `index` whose secondary is in another group."""
    group = {node.index: node.group for node in data.nodes} | {NO_NODE: index}
    return [item.name for item in data.instances if group[item.primary] == index and group[item.secondary] != index]


def _decisive(data: ClusterData) -> ClusterData:
    """Return `data` without fields that do not influence any number: names of groups, ignored tags and networks."""
    tags = tuple(tag for tag in data.tags if tag.startswith("htools:"))
    groups = tuple(replace(group, name="", uuid="", tags=(), networks=()) for group in data.groups)
    return replace(data, groups=groups, tags=tags)
