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
    """One disk (numbered from 0; MiB) with what is wrong; `needed` volumes where their size is known."""

    disk: int
    trouble: DiskTrouble
    size: int
    template: str
    spindles: int | None
    needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpindleNumbers:
    """All numbers called spindles that concern one instance; None where nothing is known or recorded.

    `spindle_use` is its backend parameter, `disk_spindles` the sum over its disks; `compared` the one of the two that
    the policy's `spec_spindle_use` (least and most of each pair) is held against. `spindle_count` is the parameter
    of its primary node, `physical_volumes` what that node has of them; `spindle_ratio` the policy's. `in_use` tells
    whether count and ratio mean anything: not under exclusive storage.
    """

    spindle_use: int
    disk_spindles: int | None
    compared: int | None
    spec_spindle_use: tuple[tuple[int, int], ...]
    spindle_count: int | None
    physical_volumes: int | None
    spindle_ratio: float | None
    in_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEffect:
    """What exclusive storage means for one instance after the changes.

    `exclusive_nodes` are the nodes of it that have it then. `unsuitable`: verify reports the instance as unsuitable for
    them, since a disk is not plain, or (Ganeti's own quirk) since it has no disks at all.
    """

    instance: str
    primary_node: str
    group: str
    turn: Turn
    disks: tuple[DiskFinding, ...]
    before: SpindleNumbers
    after: SpindleNumbers
    exclusive_nodes: tuple[str, ...]
    unsuitable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyUsedVolume:
    """A physical volume (MiB) of which disks use a part: its free space is lost under exclusive storage."""

    node: str
    volume: str
    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVolumes:
    """The volumes of one volume group on a node: how many, how many of them LVM may use and are empty, and MiB."""

    node: str
    count: int
    empty: int
    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGroup:
    """The measured volumes of one volume group on the nodes of a group. `name` is None if it is not known.

    `own` is the cluster's: it has all volumes that the policy does not exclude or assign to another. Each is accounted
    separately; capacity counts `own` alone.
    """

    name: str | None
    own: bool
    smallest: int | None
    largest: int | None
    nodes: tuple[NodeVolumes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVolumes:
    """The physical volumes of a group that has exclusive storage after the changes (sizes: MiB).

    `differ` tells whether the smallest and the largest (`smallest_on` and `largest_on` name nodes where they are) are
    too different for Ganeti, in the group; `differ_on` are the nodes on which they already are so alone. `usable` is
    what Ganeti counts of each volume, `counts` how many each node has. `partly_used` are volumes of nodes that get
    exclusive storage, `unusable_free` is the free space on all partly used volumes of the group. None where nothing is
    known. `not_measured` are nodes without a measurement. These figures are of the cluster's own volume group;
    `volume_groups` has the measured volumes of each group, and `excluded` the number of volumes in none by node.
    `terms` are what the policy says of the volumes.
    """

    group: str
    known_from: VolumesFrom
    smallest: int | None = None
    largest: int | None = None
    smallest_on: str | None = None
    largest_on: str | None = None
    differ: bool | None = None
    differ_on: tuple[str, ...] = ()
    usable: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    partly_used: tuple[PartlyUsedVolume, ...] = ()
    unusable_free: int | None = None
    not_measured: tuple[str, ...] = ()
    volume_groups: tuple[VolumeGroup, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()
    terms: VolumeTerms = _GANETIS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveStorageChange:
    """Exclusive storage after the changes.

    `turned_on` and `turned_off` are nodes; `instances` those with something to say: a disk in trouble, or a node whose
    flag changes. Ganeti 3.0 and 3.1 cannot report disk and spindles of the nodes in `not_reported`.
    """

    groups: tuple[GroupVolumes, ...] = ()
    turned_on: tuple[str, ...] = ()
    turned_off: tuple[str, ...] = ()
    instances: tuple[InstanceEffect, ...] = ()
    not_reported: tuple[str, ...] = ()
