"""A state ready for counting: each of its groups as a cluster of its own, and the whole cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Instance
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.compiled_allocation import MOST_STEPS, Budget
from gpolicy.allocator.merge import Cluster, ClusterData, inconsistent_nodes
from gpolicy.analysis.allocator_input import require
from gpolicy.analysis.basis import Basis, Settled, on_primary, settle
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.hail import as_hail_reads
from gpolicy.analysis.node_resources import declaration_notes, known_states, smallest_volumes, uncounted, volume_notes
from gpolicy.analysis.wanted_instance import allowed_templates, enabled_templates
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits, shared_limits
from gpolicy.errors import GpolicyError, RequestError, about
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.releases import RELEASE_VARIABLE
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import count, some


@dataclass(frozen=True, slots=True)
class LoadedState:
    """The clusters of what is known of a state. A group that is the whole of it is the same object as `whole`."""

    settled: Settled
    whole: CountedCluster
    groups: Mapping[str, CountedCluster]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of instances whose secondary node is in such a group."""
        return tuple(map(counted_on_primary, self.settled.split))

    @property
    def readable(self) -> Settled | None:
        """What `settle_readable` makes of the state, unless groups or instances are left out of it here."""
        return None if self.settled.unknown or self.settled.split else self.settled

    @property
    def limits_differ(self) -> bool:
        """Whether groups with nodes have different limits: none are those of requests that name no group."""
        return len({self.settled.state.terms_of(node.group).limits for node in self.settled.state.nodes.values()}) > 1

    @property
    def clusters(self) -> tuple[CountedCluster, ...]:
        """All clusters: the whole one first."""
        return self.whole, *self.groups.values()

    def basis(self, group: str | None = None) -> Basis:
        """Return what the figures of a group rest on, or those of all groups."""
        names = [item.name for item in self.settled.state.nodes.values() if group in (None, item.group)]
        return self.settled.basis(names)


def load_state(
    state: ClusterState,
    *,
    template: DiskTemplate | None = None,
    resource_model: bool = False,
    group: str | None = None,
    like: Iterable[CountedCluster] = (),
    weights: Weights = WEIGHTS,
    settled: Settled | None = None,
) -> LoadedState:
    """Load what is known of `state`. Instances get `template`, by default the first of the policy that is enabled.

    The first one is no more than a guess at what people ask for: disk counts, whether Ganeti reports it or not.

    `weights` are those of the score. `settled` is what `settle` makes of the state, where that is known already. With
    `resource_model`, what hv_state and disk_state declare goes before measured figures. A cluster with the same numbers
    as one of `like` is that object, so that nothing is counted twice. Raise GpolicyError if `group` is not known, or no
    group with nodes.
    """
    settled = settled or settle(state, resource_model=resource_model)
    require(state, settled.unknown, {group})
    return _load(settled, template, like, weights)


_NOTHING_DECLARED: Final = "hv_state and disk_state declare nothing that counts, so these are the measured numbers"


def basis_notes(
    settled: Settled, cluster: Cluster, group: str | None = None, *, resource_model: bool = False
) -> list[str]:
    """Return what is to be said of the figures that a count on `group`, or on all groups, rests on.

    `cluster` is what was made of `settled`. Raise GpolicyError where the `resource_model` was asked for and the
    source shows none.
    """
    state = settled.state
    here = {node.name for node in state.nodes.values() if group in (None, node.group)}
    notes = []
    if resource_model:
        if not known_states(state) and not settled.stated:
            hint = "name the policy that declares them, or read config.data on the master (local:, ssh://, snapshot)"
            raise GpolicyError(about(state.address, "not known: hv_state and disk_state"), hint=hint)
        notes = declaration_notes(state) if settled.stated else [_NOTHING_DECLARED]
    elif any(figures.declared for figures in settled.figures.values()):
        notes = uncounted(state)
    notes += volume_notes(state, {name: item for name, item in settled.volumes.items() if name in here})
    assumed: dict[tuple[str, int], list[str]] = {}
    for node, figures in settled.figures.items():
        for default in figures.assumed.items():
            assumed.setdefault(default, []).append(node)
    for (name, value), nodes in assumed.items():
        if silent := [node for node in nodes if node in here]:
            notes.append(f"{name} is not declared for {some(silent)}: {value} counts")
    notes += _release_notes(state, cluster, here)
    return [*notes, *_by_node(_differing(settled, here)), *inconsistency_notes(settled, cluster, here)]


def _release_notes(state: ClusterState, cluster: Cluster, here: Collection[str]) -> list[str]:
    """Return a note where nothing says which release the cluster has, and N+1 depends on it."""
    if state.says_release:
        return []
    late = [
        node.facts.name
        for node in cluster.nodes.values()
        if node.facts.name in here
        and not node.facts.offline
        and node.facts.free_memory >= node.reserved_memory >= node.unallocated_memory
    ]
    if not late:
        return []
    fails = f"{some(late, _MOST_NODES)} {'fails' if len(late) == 1 else 'fail'} N+1 from Ganeti 3.1.0 on, not before"
    way_out = f"write ganeti_version in the policy, or set {RELEASE_VARIABLE}"
    return [f"{fails}; nothing says which release the cluster has, so {state.release} counts ({way_out})"]


def _by_node(nodes: Iterable[tuple[str, str]]) -> list[str]:
    """Return a note for each text that is true of nodes, given as name and text; of many texts the first."""
    alike: dict[str, list[str]] = {}
    for name, text in nodes:
        alike.setdefault(text, []).append(name)
    notes = [f"{some(names, _MOST_NODES)}: {text}" for text, names in alike.items()]
    more = sum(map(len, list(alike.values())[_MOST_NOTES:]))
    others = [f"the same is true of {count(more, 'more node')}, by other numbers"] if more else []
    return [*notes[:_MOST_NOTES], *others]


def _differing(settled: Settled, here: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the nodes that report other numbers than those declared, and which."""
    for name, numbers in settled.stated.items():
        if wrong := [item for item in numbers if item.differs and name in here]:
            told = (
                f"{x.name} is declared as {x.amount(x.declared)}, reported as {x.amount(x.reported)}" for x in wrong
            )
            yield name, ", ".join(told)


def inconsistency_notes(settled: Settled, cluster: Cluster, here: Collection[str]) -> list[str]:
    """Return notes on measured nodes whose figures do not add up, as htools warns (Loader: `checkData`)."""
    found = []
    declared = {name for name, figures in settled.figures.items() if figures.declared}
    for node, memory, disk in inconsistent_nodes(cluster):
        name = node.facts.name
        if name in here and name not in declared and not node.facts.exclusive:
            lost = [f"{exact_size(memory)} of memory"] if memory > 0 else []
            lost += [f"{exact_size(disk)} of disk"] if disk > 0 else []
            verb, it_counts = ("is", "it counts") if len(lost) == 1 else ("are", "they count")
            used = f"{' and '.join(lost)} {verb} neither free nor used by the instances there"
            by = " or ".join(["other programs"] * (memory > 0) + ["other volumes"] * (disk > 0))
            found.append((name, f"{used}; {it_counts} as used, as in htools (perhaps {by} use it)"))
    return _by_node(found)


_MOST_STEPS_OF_WHOLE: Final = MOST_STEPS // 5
"""The whole cluster is worth less waiting than its groups, which stand for themselves."""
_MOST_NODES: Final = 5
_MOST_NOTES: Final = 3


def _load(
    settled: Settled, template: DiskTemplate | None, like: Iterable[CountedCluster], weights: Weights
) -> LoadedState:
    known, volumes, configured = list(like), smallest_volumes(settled.state), settled.resources
    enabled, observed, data = enabled_templates(settled.state), settled.data, as_hail_reads(settled.state, settled.data)

    def counted(
        part: ClusterData, hspace: ClusterData, limits: Limits, split: int = 0, steps: int = MOST_STEPS
    ) -> CountedCluster:
        resources = {node.name: configured[node.name] for node in part.nodes if node.name in configured}
        here = {node.name: volumes[node.name] for node in part.nodes if node.name in volumes}
        exclusive = bool(part.nodes) and all(node.exclusive for node in part.nodes)
        template_of_part = template or next(iter(allowed_templates(enabled, part.policy, exclusive=exclusive)), None)
        if limits.oversubscription is not None:
            part = guaranteed(part, settled.state)
        made = CountedCluster(
            _decisive(part),
            template_of_part,
            resources,
            here,
            split,
            weights,
            limits,
            hspace_data=_decisive(hspace),
            hail=settled.hail,
            asked_for=template,
            budget=Budget(each=steps),
        )
        found = next((item for item in known if item.gives_the_same(made)), made)
        known.append(found)
        return found

    limits = {group.name: settled.state.terms_of(group.name).limits for group in data.groups}
    groups = {
        group.name: counted(
            group_data(data, group.index),
            group_data(observed, group.index),
            limits[group.name],
            len(split_instances(data, group.index)),
        )
        for group in data.groups
    }
    whole = counted(data, observed, shared_limits(settled.state), steps=_MOST_STEPS_OF_WHOLE)
    return LoadedState(settled, whole, groups)


def guaranteed(data: ClusterData, state: ClusterState) -> ClusterData:
    """Return `data`, made of `state`, with its instances at their minimum memory, and the memory above it free.

    Under over-subscription only the minimum is guaranteed; ballooning can take back the rest (design document "Resource
    model"). An instance with less memory than that now (its minmem was raised while it ran) stays as it is.
    """
    freed: dict[int, int] = {}
    instances = []
    for instance in data.instances:
        least = min(instance.memory, state.instances[instance.name].minmem)
        if instance.uses_memory:
            freed[instance.primary] = freed.get(instance.primary, 0) + instance.memory - least
        instances.append(replace(instance, memory=least, maximum_memory=instance.memory))
    nodes = tuple(replace(node, free_memory=node.free_memory + freed.get(node.index, 0)) for node in data.nodes)
    return replace(data, instances=tuple(instances), nodes=nodes)


def check_group(state: ClusterState, group: str | None) -> None:
    """Raise RequestError for an unknown group; None stands for all."""
    if group is not None and group not in state.groups:
        raise RequestError(f"there is no group {group!r}", hint=did_you_mean_one_of(group, "groups", state.groups))


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
        item = instance if instance.secondary in place else on_primary(instance)
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
