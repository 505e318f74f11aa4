"""The physical volumes of a node by volume group: its pools.

Ganeti lists the volumes of all groups and does not say which volume is in which; the terms of a policy do. Without
terms all volumes count as the cluster's own group. Sizes are MiB (design document "partitioned Ganeti", "Exclusive use
of disks").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from gpolicy.cluster.state import ClusterState, LiveGroup, LiveNode, PhysicalVolume
from gpolicy.cluster.terms import VolumeTerms
from gpolicy.ganeti.volume_arithmetic import VolumeSize, is_empty

_GANETIS: Final = VolumeTerms()
_METAVG: Final = ("diskparams", "drbd", "metavg")


class VolumesFrom(Enum):
    """Where the sizes of physical volumes are known from."""

    MEASURED = "measured"
    PROMISED = "promised"  # the `hardware` of the policy
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePool:
    """The volumes of one volume group on a node.

    Under exclusive storage Ganeti counts only the `allocatable` ones, whole and empty, each as the smallest less margin
    and reserve.
    """

    volumes: tuple[PhysicalVolume, ...] = ()
    terms: VolumeTerms = _GANETIS

    @property
    def allocatable(self) -> tuple[PhysicalVolume, ...]:
        """The volumes that LVM may use: the spindles."""
        return tuple(volume for volume in self.volumes if volume.allocatable)

    @property
    def count(self) -> int:
        """How many spindles there are."""
        return len(self.allocatable)

    @property
    def smallest(self) -> int | None:
        """The size of the smallest spindle; None without any."""
        return min((volume.size for volume in self.allocatable), default=None)

    @property
    def largest(self) -> int | None:
        """The size of the largest spindle; None without any."""
        return max((volume.size for volume in self.allocatable), default=None)

    @property
    def volume_size(self) -> VolumeSize | None:
        """How each spindle counts; None without any."""
        return None if self.smallest is None else self.terms.volume_size(self.smallest)

    @property
    def usable(self) -> int:
        """How much of each spindle counts; 0 without any."""
        return self.volume_size.usable if self.volume_size else 0

    @property
    def empty(self) -> tuple[PhysicalVolume, ...]:
        """The spindles on which disks can be made."""
        return tuple(volume for volume in self.allocatable if is_empty(volume.size, volume.free))

    @property
    def partly_used(self) -> tuple[PhysicalVolume, ...]:
        """The spindles of which something is free, but not all: that part is lost under exclusive storage."""
        return tuple(volume for volume in self.allocatable if volume.free and not is_empty(volume.size, volume.free))

    @property
    def differs(self) -> bool:
        """Whether the sizes of its spindles are too different to count as equal."""
        return self.terms.sizes_differ(self.smallest or 0, self.largest or 0)

    @property
    def size(self) -> int:
        """The size of the volume group: of all volumes, allocatable or not."""
        return sum(volume.size for volume in self.volumes)

    @property
    def free(self) -> int:
        """What is free in the volume group without exclusive storage."""
        return sum(volume.free for volume in self.volumes)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePools:
    """The pools of a node: of the cluster's `own` volume group, of `others` by name, and volumes in none."""

    own: VolumePool
    others: Mapping[str, VolumePool] = field(default_factory=dict)
    excluded: tuple[PhysicalVolume, ...] = ()


def volume_pools(volumes: Iterable[PhysicalVolume], terms: VolumeTerms, own_group: str | None) -> VolumePools:
    """Return the pools that `volumes` make up under `terms`; `own_group` is the name of the cluster's volume group.

    A volume that is both excluded and assigned is excluded; of several groups it is in the first.
    """
    members: dict[str | None, list[PhysicalVolume]] = {own_group: [], **{name: [] for name in terms.volume_groups}}
    excluded = []
    for volume in volumes:
        if matches(volume.name, terms.exclude):
            excluded.append(volume)
        else:
            named = (name for name, patterns in terms.volume_groups.items() if matches(volume.name, patterns))
            members[next(named, own_group)].append(volume)
    pools = {name: VolumePool(volumes=tuple(found), terms=terms) for name, found in members.items()}
    own = pools.pop(own_group)
    return VolumePools(
        own=own, others={name: pool for name, pool in pools.items() if name is not None}, excluded=tuple(excluded)
    )


def pools_of(state: ClusterState, node: LiveNode) -> VolumePools | None:
    """Return the pools of `node` under the terms of its group; None if its volumes were not read."""
    if node.physical_volumes is None:
        return None
    return volume_pools(node.physical_volumes, state.terms_of(node.group).volumes, own_group(state))


def own_group(state: ClusterState) -> str | None:
    """Return the name of the cluster's volume group; None if it has none, or the source does not show it."""
    name = state.cluster.own.get(("volume_group_name",))
    return name if isinstance(name, str) and name else None


def separate_metavg(state: ClusterState, group: LiveGroup) -> str | None:
    """Return the volume group of the metadata of a group's DRBD disks; None if it is the cluster's own.

    None also where no DRBD disk can be: without the template, or with exclusive storage.
    """
    metavg, own = group.effective.get(_METAVG), own_group(state)
    if not isinstance(metavg, str) or not metavg or own is None or metavg == own:
        return None
    lists = (state.cluster.own.get(("enabled_disk_templates",)), group.effective.get(("ipolicy", "disk-templates")))
    possible = all(not isinstance(names, list) or "drbd" in names for names in lists)
    exclusive = any(state.has_exclusive_storage(node) for node in state.nodes_of(group.name))
    return metavg if possible and not exclusive else None


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a volume of this name matches one of the names or globs."""
    return any(fnmatchcase(name, pattern) or name == pattern for pattern in patterns)
