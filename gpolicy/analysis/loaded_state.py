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
from gpolicy.analysis.volume_sizes import smallest_volumes
from gpolicy.cluster.terms import NO_LIMITS, Limits
from gpolicy.errors import UsageError

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


def load_state(state: ClusterState, *, template: DiskTemplate | None = None) -> LoadedState:
    """Load all of `state`. Instances get `template`, by default the first enabled one that the policy allows.

    Raise GpolicyError if the state lacks figures that the allocator needs.
    """
    return _load(state, cluster_data(state), template, ())


def _load(
    state: ClusterState, data: ClusterData, template: DiskTemplate | None, like: Iterable[CountedCluster]
) -> LoadedState:
    known, volumes = list(like), smallest_volumes(state)
    enabled = enabled_templates(state)

    def counted(part: ClusterData, limits: Limits) -> CountedCluster:
        here = {node.name: volumes[node.name] for node in part.nodes if node.name in volumes}
        template_of_part = template or first_allowed(enabled, part.policy)
        made = CountedCluster(_decisive(part), template_of_part, volumes=here, limits=limits)
        found = next((item for item in known if item.gives_the_same(made)), made)
        known.append(found)
        return found

    limits = {group.name: state.terms_of(group.name).limits for group in data.groups}
    groups = {group.name: counted(group_data(data, group.index), limits[group.name]) for group in data.groups}
    of_all = set(limits.values())  # no matter for the numbers: a group that is the whole cluster is counted once
    return LoadedState(state, data, counted(data, of_all.pop() if len(of_all) == 1 else NO_LIMITS), groups)


def load_known_groups(state: ClusterState, *, like: Iterable[CountedCluster] = ()) -> LoadedState:
    """Load the groups of `state` whose nodes have all figures; the others are in `gaps`.

    An instance with its primary in a skipped group is skipped; one with only its secondary there is counted on its
    primary only. A cluster with the same numbers as one of `like` is that object, so that nothing is counted twice.
    Raise GpolicyError if no group with nodes is left.
    """
    missing: dict[str, dict[str, None]] = {}
    for name, what in gaps(state).items():
        missing.setdefault(state.nodes[name].group, {}).update(dict.fromkeys(what))
    reasons = {group: f"not known: {', '.join(what)} of its nodes" for group, what in missing.items()}
    nodes = {name: node for name, node in state.nodes.items() if node.group not in reasons}
    if not missing or not nodes:  # without nodes: an error with all missing figures
        return _load(state, cluster_data(state), None, like)
    here = {name: instance for name, instance in state.instances.items() if instance.primary_node in nodes}
    split = {name: item for name, item in here.items() if not nodes.keys() >= set(item.secondary_nodes)}
    here |= {name: replace(item, secondary_nodes=()) for name, item in split.items()}
    groups = {name: group for name, group in state.groups.items() if name not in reasons}
    part = replace(state, groups=groups, nodes=nodes, instances=here)
    data = cluster_data(part)
    instances = (_on_primary(item) if item.name in split else item for item in data.instances)
    known = _load(part, replace(data, instances=tuple(instances)), None, like)
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
        item = instance if instance.secondary in place else _on_primary(instance)
        primary, secondary = place[item.primary], place[item.secondary]
        instances.append(item.at(len(instances), item.name, primary, secondary, item.location_score))
    return replace(
        data,
        groups=(replace(group, index=0),),
        nodes=tuple(replace(node, index=place[node.index], group=0) for node in nodes),
        instances=tuple(instances),
        policy=group.policy,
    )


def _on_primary(instance: Instance) -> Instance:
    """Return a split instance without its secondary. Its disk keeps the metadata of DRBD, as on the real primary."""
    template = DiskTemplate.PLAIN if instance.template is DiskTemplate.DRBD else instance.template
    return replace(instance, secondary=NO_NODE, template=template)


def split_instances(data: ClusterData, index: int) -> list[str]:
    """Return the names of the instances of group `index` whose secondary is in another group."""
    group = {node.index: node.group for node in data.nodes} | {NO_NODE: index}
    return [item.name for item in data.instances if group[item.primary] == index and group[item.secondary] != index]


def _decisive(data: ClusterData) -> ClusterData:
    """Return `data` without fields that do not influence any number: names of groups, ignored tags and networks."""
    tags = tuple(tag for tag in data.tags if tag.startswith("htools:"))
    groups = tuple(replace(group, name="", uuid="", tags=(), networks=()) for group in data.groups)
    return replace(data, groups=groups, tags=tags)
