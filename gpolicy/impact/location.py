"""Failure domains, exclusion, migration and desired locations: what changed tags and nodes do to instances.

Tags are read as htools reads them (design document "location awareness"; `htools:iextags:` and
`htools:desiredlocation:` are compared as bare prefixes, `htools:nlocation:` and `htools:migration:` with a colon).
Nothing here stops Ganeti: failure domains only weigh in the cluster score, exclusion and migration tags bind hail and
hbal, and no tool checks whether any of it can be satisfied at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Generic[T]):
    """Facts that are there after the changes only, before and after, and before only."""

    new: tuple[T, ...] = ()
    still: tuple[T, ...] = ()
    gone: tuple[T, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDomain:
    """A mirrored instance whose two nodes are in the same failure domains: `tags` name them."""

    instance: str
    primary_node: str
    secondary_node: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionConflict:
    """Instances with one exclusion tag that have the same primary node."""

    tag: str
    node: str
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainConflict:
    """Instances with one exclusion tag whose primary nodes, more than one, are in the same failure domain."""

    tag: str
    domain: str
    nodes: tuple[str, ...]
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionUnsatisfiable:
    """More instances with one exclusion tag in a group than it has places to spread them over.

    With `domain_kind` None the places are nodes that may hold instances. Else they are failure domains of that kind
    (`rack` of tags `rack:1`): each node can have one of the instances, but then two are in one domain.
    """

    tag: str
    group: str
    instances: tuple[str, ...]
    domain_kind: str | None
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranded:
    """An instance that no node may receive, as far as migration tags go.

    `targets` are the nodes that it could go to otherwise (the secondary of a DRBD instance, else the other nodes of
    the group that are in use), with the migration tags of the primary node that each must have and has not.
    """

    instance: str
    primary_node: str
    targets: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredLocationMissing:
    """An instance with a desired location that no node of its group has. `elsewhere`: nodes of other groups with it."""

    instance: str
    group: str
    tag: str
    elsewhere: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationChange:
    """What the changes do to locations and migration."""

    shared_domains: Compared[SharedDomain] = Compared()
    exclusion_conflicts: Compared[ExclusionConflict] = Compared()
    domain_conflicts: Compared[DomainConflict] = Compared()
    unsatisfiable: Compared[ExclusionUnsatisfiable] = Compared()
    stranded: Compared[Stranded] = Compared()
    desired_missing: Compared[DesiredLocationMissing] = Compared()


def location_change(before: ClusterState, after: ClusterState) -> LocationChange:
    """Return what differs between two states of a cluster in location and migration."""
    raise NotImplementedError
