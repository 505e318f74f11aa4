"""Nodes and failure domains before and after, for pictures: membership and use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.impact.location_change import LocationChange

_DOMAIN_KIND: Final = "htools:nlocation:"
MOST_ROWS: Final = 16
"""Nodes of a group that are shown one a line; more become small boxes."""


@dataclass(frozen=True, slots=True)
class Use:
    """The used part of `total` (MiB), and its share."""

    used: int
    total: int

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(max(self.used / self.total, 0.0), 1.0) if self.total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class NodePicture:
    """One node of a group. `moved` is the group that it comes from or goes to; `gone` is one that leaves."""

    name: str
    memory: Use | None
    disk: Use | None
    state: str
    instances: int
    moved: str | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPicture:
    """The nodes of a group after the changes, and those that leave it, by name. `before` is how many there were."""

    name: str
    renamed_from: str | None
    before: int
    after: int
    nodes: tuple[NodePicture, ...]

    @property
    def compact(self) -> bool:
        """Whether there are too many nodes for a line each."""
        return len(self.nodes) > MOST_ROWS

    @property
    def moved(self) -> tuple[NodePicture, ...]:
        """The nodes that come or go."""
        return tuple(node for node in self.nodes if node.moved is not None)


@dataclass(frozen=True, slots=True)
class DomainNode:
    """A node in a failure domain: stays, comes or goes."""

    name: str
    turn: str


@dataclass(frozen=True, slots=True)
class DomainPicture:
    """One failure domain: its nodes, and mirrored instances with both halves in it now and then (None: not known)."""

    tag: str
    nodes: tuple[DomainNode, ...]
    halves_now: int | None
    halves_then: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainKind:
    """A kind of failure domains, such as rack: it stays one, comes or goes."""

    name: str
    turn: str
    domains: tuple[DomainPicture, ...]


_TURNS: Final = {(True, True): "stays", (False, True): "comes", (True, False): "goes"}
"""Whether something stays, comes or goes."""


def group_pictures(before: ClusterState, after: ClusterState, renamed: Mapping[str, str]) -> list[GroupPicture]:
    """Return all groups after the changes, and those that are gone. `renamed` leads from names after to before."""
    new_names = {old: new for new, old in renamed.items()}
    homes = {name: new_names.get(node.group, node.group) for name, node in before.nodes.items()}
    primaries = Counter(instance.primary_node for instance in after.instances.values())
    pictures = []
    for group in [*after.groups, *(name for name in before.groups if new_names.get(name, name) not in after.groups)]:
        nodes = []
        for name, node in after.nodes.items():
            home = homes.get(name)
            if node.group == group:
                nodes.append(_node(node, primaries[name], moved=home if home != group else None))
            elif home == group:
                nodes.append(_node(node, primaries[name], moved=node.group, gone=True))
        pictures.append(
            GroupPicture(
                name=group,
                renamed_from=renamed.get(group),
                before=sum(home == group for home in homes.values()),
                after=sum(node.group == group for node in after.nodes.values()),
                nodes=tuple(sorted(nodes, key=lambda item: (item.gone, _natural(item.name)))),
            )
        )
    return pictures


def _node(node: LiveNode, instances: int, *, moved: str | None, gone: bool = False) -> NodePicture:
    there = node.resources
    state = "offline" if node.offline else "drained" if node.drained else "master" if node.master else ""
    memory, disk = _use(there.memory_total, there.memory_free), _use(there.disk_total, there.disk_free)
    return NodePicture(node.name, memory, disk, state, instances, moved, gone)


def _use(total: int | None, free: int | None) -> Use | None:
    return None if total is None or free is None else Use(total - free, total)


def _natural(name: str) -> tuple[int, str]:
    return len(name), name  # node2 before node10


def domain_pictures(before: ClusterState, after: ClusterState, location: LocationChange | None) -> list[DomainKind]:
    """Return the failure domains of each kind, now or then."""
    kinds_now, kinds_then = _kinds(before), _kinds(after)
    members_now, members_then = _members(before, kinds_now), _members(after, kinds_then)
    found = []
    for kind in sorted({*kinds_now, *kinds_then}):
        now, then = members_now.get(kind, {}), members_then.get(kind, {})
        domains = tuple(
            DomainPicture(
                tag,
                tuple(_domain_nodes(now.get(tag, ()), then.get(tag, ()))),
                *(_halves(location, tag, then=side) for side in (False, True)),
            )
            for tag in sorted({*now, *then}, key=_natural)
        )
        found.append(DomainKind(name=kind, turn=_TURNS[kind in kinds_now, kind in kinds_then], domains=domains))
    return found


def _kinds(state: ClusterState) -> list[str]:
    return [tag.removeprefix(_DOMAIN_KIND) for tag in state.cluster.tags if tag.startswith(_DOMAIN_KIND)]


def _members(state: ClusterState, kinds: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Return the nodes that have each tag of each kind: a tag is of a kind that stands before one of its colons."""
    members: dict[str, dict[str, list[str]]] = {kind: {} for kind in kinds}
    for node in state.nodes.values():
        for tag in node.tags:
            for kind in (tag[:place] for place, letter in enumerate(tag) if letter == ":"):
                if kind in members:
                    members[kind].setdefault(tag, []).append(node.name)
    return members


def _domain_nodes(now: Sequence[str], then: Sequence[str]) -> list[DomainNode]:
    names = sorted({*now, *then}, key=_natural)
    return [DomainNode(name, _TURNS[name in now, name in then]) for name in names]


def _halves(location: LocationChange | None, tag: str, *, then: bool) -> int | None:
    if location is None:
        return None
    shared = location.shared_domains
    pairs = [*shared.still, *(shared.new if then else shared.gone)]
    return sum(tag in pair.tags for pair in pairs)
