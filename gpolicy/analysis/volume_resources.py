"""The disk and spindles of nodes with exclusive storage, worked out from physical volumes.

Ganeti 3.0 and 3.1 report neither for such nodes (`gpolicy explain exclusive-storage-reads`). Sizes are MiB; sources:
design document "partitioned Ganeti", "Exclusive use of disks", and `LogicalVolume._GetRawFreePvInfo` of Ganeti.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.volume_pools import VolumesFrom, own_group, pools_of
from gpolicy.ganeti.vocabulary import DRBD_METADATA
from gpolicy.ganeti.volume_arithmetic import VolumeSize

_LOCAL: Final = {"plain": 0, "drbd": DRBD_METADATA}
"""The templates of disks in a volume group, and what each disk takes beside its size."""


@dataclass(frozen=True, slots=True)
class VolumeResources:
    """What a node has under exclusive storage: figures by their names in `Resources`, measured or promised.

    Only whole and empty volumes are free. `disk_total` is what disks can use, without margin and reserve: all of it is
    free on an empty node.
    """

    figures: Mapping[str, int]
    known_from: VolumesFrom


def volume_resources(state: ClusterState, node: LiveNode) -> VolumeResources | None:
    """Return disk and spindles of `node`, which has exclusive storage; None if nothing is known of its volumes.

    Measured volumes go before those that the policy promises. Of promised ones, all that the disks of the node's
    instances take are in use: the recorded spindles of a disk, else as many as its size needs. Which of them are only
    partly used is not known there. None also if disks without recorded spindles are on volumes too small to count.
    """
    if not state.has_exclusive_storage(node):
        return None
    pools = pools_of(state, node)
    if pools is not None:
        pool = pools.own
        return _resources(pool.count, len(pool.empty), pool.usable, VolumesFrom.MEASURED)
    terms = state.terms_of(node.group)
    sizes = terms.promise.volumes
    if not sizes:
        return None
    volume = terms.volumes.volume_size(min(sizes))
    taken = _taken(state, node, volume)
    if taken is None:
        return None
    return _resources(len(sizes), max(0, len(sizes) - taken), volume.usable, VolumesFrom.PROMISED)


def volume_notes(state: ClusterState, worked_out: Mapping[str, VolumeResources]) -> list[str]:
    """Return notes on figures of nodes (by name) that come from `volume_resources`."""
    name = own_group(state)
    group = f"volume group {name}" if name else "the cluster's volume group"
    notes = []
    for origin, what in (
        (
            VolumesFrom.MEASURED,
            f"physical volumes; those that the policy neither excludes nor assigns count as {group}",
        ),
        (VolumesFrom.PROMISED, "the hardware that the policy promises, less what disks take"),
    ):
        names = sorted(name for name, figures in worked_out.items() if figures.known_from is origin)
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            notes.append(f"disk and spindles of {names[0]}{more} are worked out from {what}")
    return notes


def _resources(count: int, free: int, usable: int, known_from: VolumesFrom) -> VolumeResources:
    disk = {"disk_total": count * usable, "disk_free": free * usable}
    return VolumeResources(disk | {"spindles_total": count, "spindles_free": free}, known_from)


def _taken(state: ClusterState, node: LiveNode, volume: VolumeSize) -> int | None:
    """Return how many volumes the disks on `node` take; None if volumes are too small to count."""
    taken = 0
    for size, spindles in _disks_on(state, node):
        if spindles is not None:
            taken += spindles
        elif volume.usable < 1:
            return None
        else:
            taken += volume.needed(size)
    return taken


def _disks_on(state: ClusterState, node: LiveNode) -> Iterator[tuple[int, int | None]]:
    """Give the size and the recorded spindles of each disk in the node's volume group."""
    for instance in state.instances.values():
        if instance.forthcoming or node.name not in (instance.primary_node, *instance.secondary_nodes):
            continue
        summed = instance.summed_disk
        if summed is not None and summed.template in _LOCAL:
            yield summed.size, summed.spindles
        for disk in instance.disks if summed is None else ():
            if disk.template in _LOCAL:
                yield disk.size + _LOCAL[disk.template], disk.spindles
