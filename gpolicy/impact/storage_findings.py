"""What is found of exclusive storage: disks, instances, volumes, and what turning the flag on does to them. MiB."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gpolicy.analysis.binding import Explained
from gpolicy.cluster.terms import VolumeTerms
from gpolicy.cluster.volume_pools import VolumesFrom

_GANETIS: Final = VolumeTerms()


class Turn(Enum):
    """What becomes of exclusive storage on the nodes of an instance."""

    ON = "on"
    OFF = "off"
    STAYS = "stays"


class DiskTrouble(Explained):
    """What is wrong with a disk under exclusive storage."""

    NOT_PLAIN = ("not-plain", "only plain disks can have exclusive storage; verify reports this one as an error")
    NO_SPINDLES = ("no-spindles", "it has no spindle count, so that the instance violates every policy")
    TOO_FEW_SPINDLES = ("too-few-spindles", "its size needs more physical volumes than it has spindles")
    SHARED_VOLUMES = ("shared-volumes", "it was made without volumes of its own, and nothing moves it to such")
    SPINDLES_LEFT = ("spindles-left", "its spindle count means nothing any more; its volumes may be shared from now on")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFinding:
    """One disk with what is wrong."""

    disk: int
    """Number, from 0."""
    trouble: DiskTrouble
    """not-plain, no-spindles, too-few-spindles, shared-volumes or spindles-left."""
    size: int
    """MiB."""
    template: str
    """Its template."""
    spindles: int | None
    """Recorded spindles."""
    needed: int | None = None
    """Physical volumes that its size needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpindleNumbers:
    """All numbers called spindles that concern one instance; None where nothing is known or recorded."""

    spindle_use: int
    """Backend parameter of the instance."""
    disk_spindles: int | None
    """Sum over its disks."""
    compared: int | None
    """The one that the policy is held against."""
    spec_spindle_use: tuple[tuple[int, int], ...]
    """Least and most of each spec pair."""
    spindle_count: int | None
    """Parameter of its primary node."""
    physical_volumes: int | None
    """Volumes of that node."""
    spindle_ratio: float | None
    """The policy's."""
    in_use: bool
    """Whether count and ratio mean anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEffect:
    """What exclusive storage means for one instance after the changes."""

    instance: str
    primary_node: str
    group: str
    turn: Turn
    """What becomes of exclusive storage on its nodes."""
    disks: tuple[DiskFinding, ...]
    """Disks in trouble."""
    before: SpindleNumbers
    after: SpindleNumbers
    exclusive_nodes: tuple[str, ...]
    """Nodes of it that have exclusive storage then."""
    unsuitable: bool
    """Whether gnt-cluster verify reports it as unsuitable for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyUsedVolume:
    """A physical volume of which disks use a part."""

    node: str
    """Its node."""
    volume: str
    """Its name."""
    size: int
    """MiB."""
    free: int
    """MiB that are lost under exclusive storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVolumes:
    """The volumes of one volume group on a node."""

    node: str
    count: int
    """How many volumes of the group LVM may use there."""
    empty: int
    """How many of these are empty."""
    size: int
    """Size of the volume group there, MiB."""
    free: int
    """What is free in it, MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGroup:
    """The measured volumes of one volume group on the nodes of a group.

    The cluster's own has all volumes that the policy does not exclude or assign to another.
    """

    name: str | None
    """Its name; None where it is not known."""
    own: bool
    """Whether it is the cluster's own, which capacity counts."""
    smallest: int | None
    """The smallest volume that LVM may use, MiB."""
    largest: int | None
    """The largest volume that LVM may use, MiB."""
    nodes: tuple[NodeVolumes, ...]
    """Each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVolumes:
    """The physical volumes of a group that has exclusive storage after the changes; None where nothing is known."""

    group: str
    known_from: VolumesFrom
    """Where they are known from: measured, or promised by the policy's hardware."""
    smallest: int | None = None
    """The smallest volume, MiB."""
    largest: int | None = None
    """The largest volume, MiB."""
    smallest_on: str | None = None
    """A node that has the smallest."""
    largest_on: str | None = None
    """A node that has the largest."""
    differ: bool | None = None
    """Whether they differ too much for Ganeti."""
    differ_on: tuple[str, ...] = ()
    """Nodes on which they already do so alone."""
    usable: int | None = None
    """What Ganeti counts of each volume, MiB."""
    counts: tuple[tuple[str, int], ...] = ()
    """Node and number of its volumes."""
    partly_used: tuple[PartlyUsedVolume, ...] = ()
    """Volumes that some disk has a part of."""
    unusable_free: int | None = None
    """Free space on all partly used volumes, MiB."""
    not_measured: tuple[str, ...] = ()
    """Nodes without a measurement."""
    volume_groups: tuple[VolumeGroup, ...] = ()
    """The measured volumes by volume group, the cluster's own first; the other figures are of that one alone."""
    excluded: tuple[tuple[str, int], ...] = ()
    """Node and number of its volumes that the policy excludes."""
    terms: VolumeTerms = _GANETIS
    """What the policy says of the volumes (physical_volumes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveStorageChange:
    """Exclusive storage after the changes."""

    groups: tuple[GroupVolumes, ...] = ()
    """Groups that have it."""
    turned_on: tuple[str, ...] = ()
    """Nodes that get it."""
    turned_off: tuple[str, ...] = ()
    """Nodes that lose it."""
    instances: tuple[InstanceEffect, ...] = ()
    """Instances with a disk in trouble, or on a node whose flag changes."""
    not_reported: tuple[str, ...] = ()
    """Nodes of which Ganeti 3.0 and 3.1 cannot report disk and spindles."""
