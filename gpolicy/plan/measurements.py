"""What a node measures after exclusive storage is turned on or off, worked out from its physical volumes.

Under exclusive storage only empty volumes count as free, each without margin and reserve (design document "partitioned
Ganeti", "Exclusive use of disks"). Where the volumes are not known, the figures become unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpolicy.cluster.state import Node, PhysicalVolume, Resources
from gpolicy.ganeti.volume_arithmetic import is_empty, usable_size

_ROUNDING: Final = 8  # MiB: by how much each volume may be counted larger or smaller than in its group


def resources_when_turned(node: Node, *, on: bool) -> Resources:
    """Return what `node` measures after its exclusive_storage has been turned on or off."""
    measured = node.resources
    if measured.disk_total is None:
        return measured
    volumes = _of_one_group(node, measured.disk_total)
    if volumes is None:
        return replace(measured, disk_free=None, spindles_total=None, spindles_free=None)
    if not on:
        free = sum(volume.free for volume in volumes)
        return replace(measured, disk_free=free, spindles_total=None, spindles_free=None)
    empty = sum(1 for volume in volumes if is_empty(volume.size, volume.free))
    smallest = min((volume.size for volume in volumes), default=0)
    return replace(
        measured,
        disk_free=empty * usable_size(smallest),
        spindles_total=len(volumes),
        spindles_free=empty,
    )


def _of_one_group(node: Node, disk_total: int) -> tuple[PhysicalVolume, ...] | None:
    """Return the volumes, if they are known and make up the volume group that Ganeti measures.

    Ganeti lists the volumes of all groups, and does not say which is in which.
    """
    volumes = node.physical_volumes
    if volumes is None or abs(sum(volume.size for volume in volumes) - disk_total) > _ROUNDING * max(len(volumes), 1):
        return None
    return volumes
