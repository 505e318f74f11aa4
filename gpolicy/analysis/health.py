"""What is wrong with a cluster as it is: violations of policies, losses that it cannot absorb, conflicts of tags.

The tags are those of failure domains, exclusion, migration and desired locations. They are read as htools reads them
(design document "location awareness"; `htools:iextags:` and `htools:desiredlocation:` are compared as bare prefixes,
`htools:nlocation:` and `htools:migration:` with a colon). Ganeti itself enforces none of these: failure domains only
count in the cluster score, exclusion and migration tags bind hail and hbal, and no tool checks whether they can be
satisfied.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpolicy.allocator import merge
from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.analysis.node_losses import GroupRedundancy, redundancy
from gpolicy.analysis.violations import PolicyJudge, node_verdicts
from gpolicy.cluster.state import ClusterState, LiveInstance, LiveNode
from gpolicy.cluster.terms import NO_LIMITS, Limits

_EXTERNALLY_MIRRORED = frozenset(template.value for template in DiskTemplate if template.externally_mirrored)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDomain:
    """A mirrored instance with both nodes in one failure domain."""

    instance: str
    primary_node: str
    secondary_node: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionConflict:
    """Instances with the same exclusion tag and the same primary node."""

    tag: str
    node: str
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainConflict:
    """Instances with the same exclusion tag and primary nodes in the same failure domain (perhaps the same node)."""

    tag: str
    domain: str
    nodes: tuple[str, ...]
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionUnsatisfiable:
    """A group with more instances of the same exclusion tag than places for them.

    Places are nodes that may hold instances, or failure domains and nodes in none: each node can have one of the
    instances, but two share a domain.
    """

    tag: str
    group: str
    instances: tuple[str, ...]
    domain_kind: str | None
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmovable:
    """An instance that no node may receive because of migration tags.

    Only instances that Ganeti can migrate: with DRBD, or with disks that all nodes of the group reach.
    """

    instance: str
    primary_node: str
    targets: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredLocationMissing:
    """An instance with a desired location that no node of its group has."""

    instance: str
    group: str
    tag: str
    elsewhere: tuple[str, ...]


class LocationFacts:
    """The effects of tags in one state of the cluster. `names` are other names for its groups."""

    def __init__(self, state: ClusterState, names: Mapping[str, str]) -> None:
        self.state, self.names = state, names
        tags = self.tags = tuple(sorted(state.cluster.tags))
        self.kinds = merge.tagged_values(tags, merge.LOCATION_PREFIX)
        self.location, self.migration = (
            {node.name: frozenset(merge.tags_of(family, tags, tuple(node.tags))) for node in state.nodes.values()}
            for family in (merge.LOCATION_PREFIX, merge.MIGRATION_PREFIX)
        )
        self.receivable = {name: merge.receivable_tags(tags, found) for name, found in self.migration.items()}
        self.instances = sorted(state.instances.values(), key=lambda item: item.name)
        self.usable: dict[str, list[LiveNode]] = {name: [] for name in state.groups}
        self.at: dict[str, list[LiveNode]] = {}
        for node in sorted(state.nodes.values(), key=lambda node: node.name):
            if node.is_usable:
                self.usable[node.group].append(node)
                for tag in self.location[node.name]:
                    self.at.setdefault(tag, []).append(node)
        self.places = {name: list(self._places_for_tag(nodes)) for name, nodes in self.usable.items()}

    def shared_domains(self) -> Iterator[SharedDomain]:
        """Yield mirrored instances with both nodes in the same failure domain."""
        for item in self.instances:
            for secondary in item.secondary_nodes:
                if near := self.location[item.primary_node] & self.location[secondary]:
                    yield SharedDomain(
                        instance=item.name,
                        primary_node=item.primary_node,
                        secondary_node=secondary,
                        tags=tuple(sorted(near)),
                    )

    def exclusion_conflicts(self) -> Iterator[ExclusionConflict]:
        """Yield instances with the same exclusion tag on the same primary node."""
        for tag, node, items in self._sharing(lambda item: (item.primary_node,)):
            if len(items) > 1:
                yield ExclusionConflict(tag=tag, node=node, instances=tuple(item.name for item in items))

    def domain_conflicts(self) -> Iterator[DomainConflict]:
        """Yield instances with the same exclusion tag in the same failure domain."""
        for tag, domain, items in self._sharing(lambda item: self.location[item.primary_node]):
            if len(items) > 1:
                nodes = tuple(sorted({item.primary_node for item in items}))
                names = tuple(item.name for item in items)
                yield DomainConflict(tag=tag, domain=domain, nodes=nodes, instances=names)

    def unsatisfiable(self) -> Iterator[ExclusionUnsatisfiable]:
        """Yield exclusion tags that more instances of a group have than it has places."""
        for tag, group, items in self._sharing(lambda item: (self.state.nodes[item.primary_node].group,)):
            for kind, places in self.places[group]:
                if len(items) > len(places):
                    yield ExclusionUnsatisfiable(
                        tag=tag,
                        group=self.names.get(group, group),
                        instances=tuple(item.name for item in items),
                        domain_kind=kind,
                        places=places,
                    )
                    if kind is None:
                        break  # too few nodes: too few domains as well

    def _sharing(
        self, places: Callable[[LiveInstance], Iterable[str]]
    ) -> Iterator[tuple[str, str, list[LiveInstance]]]:
        """Yield each exclusion tag and place with the instances that have the tag there, sorted."""
        found: dict[tuple[str, str], list[LiveInstance]] = {}
        for item in self.instances:
            for tag in merge.tags_of(merge.EXCLUSION_PREFIX, self.tags, tuple(item.tags)):
                for place in places(item):
                    found.setdefault((tag, place), []).append(item)
        yield from ((tag, place, found[tag, place]) for tag, place in sorted(found))

    def _places_for_tag(self, nodes: Sequence[LiveNode]) -> Iterator[tuple[str | None, tuple[str, ...]]]:
        """Yield the places for instances with the same exclusion tag: nodes, then each kind of failure domain.

        A node in no domain of a kind is a place of its own. A node in several domains would reduce the number of
        places; that is ignored, so every finding is certain.
        """
        yield None, tuple(node.name for node in nodes)
        domains: dict[str, dict[str, set[str]]] = {kind: {} for kind in self.kinds}
        for node in nodes:
            for tag in self.location[node.name]:
                for kind in (tag[:place] for place, letter in enumerate(tag) if letter == ":"):
                    if kind in domains:
                        domains[kind].setdefault(node.name, set()).add(tag)
        for kind, within in domains.items():
            if within:
                alone = [node.name for node in nodes if node.name not in within]
                yield kind, (*sorted(set[str]().union(*within.values())), *alone)

    def stranded(self) -> Iterator[Unmovable]:
        """Yield instances that no node may receive."""
        for item in self.instances:
            needed = self.migration[item.primary_node]
            if not needed:
                continue
            lacking = ((node.name, needed - self.receivable[node.name]) for node in self._move_targets(item))
            targets = tuple((name, tuple(sorted(missing))) for name, missing in lacking)
            if targets and all(missing for _, missing in targets):
                yield Unmovable(instance=item.name, primary_node=item.primary_node, targets=targets)

    def _move_targets(self, item: LiveInstance) -> list[LiveNode]:
        nodes = self.usable[self.state.nodes[item.primary_node].group]
        if item.secondary_nodes:
            return [node for node in map(self.state.nodes.__getitem__, item.secondary_nodes) if node.is_usable]
        if item.disk_template in _EXTERNALLY_MIRRORED:
            return [node for node in nodes if node.name != item.primary_node]
        return []

    def desired_missing(self) -> Iterator[DesiredLocationMissing]:
        """Yield desired locations that no node of the group has."""
        for item in self.instances:
            group = self.state.nodes[item.primary_node].group
            for tag in sorted(merge.tags_of(merge.DESIRED_PREFIX, self.tags, tuple(item.tags))):
                having = self.at.get(tag, [])
                if not any(node.group == group for node in having):
                    name, elsewhere = self.names.get(group, group), tuple(node.name for node in having)
                    yield DesiredLocationMissing(instance=item.name, group=name, tag=tag, elsewhere=elsewhere)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHealth:
    """One group: the instances and nodes that violate its policy, those of which it is not known, and its redundancy.

    `redundancy` is None where figures of its nodes are missing.
    """

    violating: int
    undecided: int
    violating_nodes: int
    undecided_nodes: int
    redundancy: GroupRedundancy | None


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """Each group by name, and the number of conflicts of tags in the cluster by kind (`CONFLICTS`)."""

    groups: Mapping[str, GroupHealth]
    conflicts: Mapping[str, int]


CONFLICTS = {
    "exclusion": LocationFacts.exclusion_conflicts,
    "exclusion-domain": LocationFacts.domain_conflicts,
    "exclusion-unsatisfiable": LocationFacts.unsatisfiable,
    "failure-domain": LocationFacts.shared_domains,
    "migration": LocationFacts.stranded,
    "desired-location": LocationFacts.desired_missing,
}
"""The kinds of conflicts, and who finds them."""


def cluster_health(state: ClusterState, *, limits: Limits = NO_LIMITS) -> ClusterHealth:
    """Return what is wrong with the cluster in `state`; `limits` replace those that the policy declares.

    The loss of one node of each group is examined. Raise GpolicyError where a group has no instance policy, or no group
    has all figures.
    """
    judge = PolicyJudge(state, {})
    verdicts = Counter(
        (state.nodes[instance.primary_node].group, judge.verdict(instance).conforms)
        for instance in state.instances.values()
    )
    nodes = node_verdicts(state).values()
    violating = Counter(verdict.group for verdict in nodes if verdict.breaches)
    unknown = Counter(verdict.group for verdict in nodes if verdict.unknown and not verdict.breaches)
    examined = {item.group: item for item in redundancy(state, limits=limits)}
    facts = LocationFacts(state, {})
    return ClusterHealth(
        {
            name: GroupHealth(
                violating=verdicts[name, False],
                undecided=verdicts[name, None],
                violating_nodes=violating[name],
                undecided_nodes=unknown[name],
                redundancy=examined.get(name),
            )
            for name in state.groups
        },
        {kind: sum(1 for _ in find(facts)) for kind, find in CONFLICTS.items()},
    )
