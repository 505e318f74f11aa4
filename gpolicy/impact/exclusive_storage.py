"""Exclusive storage: what it finds on the nodes, and what turning it on or off does to each instance.

Under exclusive storage a physical volume is a spindle, and each disk has whole ones of its own (design document
"partitioned Ganeti"). Five numbers are called spindles, and are kept apart here: the backend parameter `spindle_use`,
the spec parameter `spindle-use`, the node parameter `spindle_count`, the `spindles` of a disk, and the policy's
`spindle-ratio`. Beside them stands the number of physical volumes that a node has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Hardware


class VolumesFrom(Enum):
    """How physical volumes are known."""

    MEASURED = "measured"
    PROMISED = "promised"  # the `hardware` of the policy
    UNKNOWN = "unknown"


class Turn(Enum):
    """What becomes of exclusive storage on the nodes of an instance."""

    ON = "on"
    OFF = "off"
    STAYS = "stays"


class DiskTrouble(Enum):
    """What is wrong with a disk under exclusive storage: a key, and a sentence."""

    NOT_PLAIN = ("not-plain", "only plain disks can have exclusive storage; verify reports this one as an error")
    NO_SPINDLES = ("no-spindles", "it has no spindle count, so that the instance violates every policy")
    TOO_FEW_SPINDLES = ("too-few-spindles", "its size needs more physical volumes than it has spindles")
    SHARED_VOLUMES = ("shared-volumes", "it was made without volumes of its own, and nothing moves it to such")
    SPINDLES_LEFT = ("spindles-left", "its spindle count means nothing any more; its volumes may be shared from now on")

    @property
    def key(self) -> str:
        """Short and stable name."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        """What it means."""
        return self.value[1]


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
    """Everything that is called spindles around one instance; None where nothing is known or recorded.

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
    """What exclusive storage means for one instance after the changes."""

    instance: str
    primary_node: str
    group: str
    turn: Turn
    disks: tuple[DiskFinding, ...]
    before: SpindleNumbers
    after: SpindleNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyUsedVolume:
    """A physical volume (MiB) that some disk has a part of: its free space is lost under exclusive storage."""

    node: str
    volume: str
    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVolumes:
    """The physical volumes of a group that has exclusive storage after the changes (sizes: MiB).

    `differ` tells whether the smallest and the largest are too different for Ganeti, in the group (`differ_on`: the
    nodes on which they already are so alone). `usable` is what Ganeti counts of each volume, `counts` how many each
    node has. None where nothing is known. `not_measured` are nodes without a measurement.
    """

    group: str
    known_from: VolumesFrom
    smallest: int | None = None
    largest: int | None = None
    differ: bool | None = None
    differ_on: tuple[str, ...] = ()
    usable: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    partly_used: tuple[PartlyUsedVolume, ...] = ()
    not_measured: tuple[str, ...] = ()


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


def exclusive_storage_change(
    before: ClusterState, after: ClusterState, hardware: Mapping[str, Hardware] | None = None
) -> ExclusiveStorageChange:
    """Return what exclusive storage is after the changes; `hardware` is promised by group, by the name afterwards.

    Volumes are those that were measured, else those that the policy promises, else not known.
    """
    raise NotImplementedError
