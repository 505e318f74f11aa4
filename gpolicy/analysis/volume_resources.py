"""Physical volumes of nodes with exclusive storage: how large they are, and the disk and spindles that follow.

Sizes are measured, else promised by the policy, else not known.
Ganeti 3.0 and 3.1 report neither for such nodes (`gpolicy explain exclusive-storage-reads`). Sizes are MiB; sources:
design document "partitioned Ganeti", "Exclusive use of disks", and `LogicalVolume._GetRawFreePvInfo` of Ganeti.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpolicy.analysis.declared_resources import declared_disk
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.terms import VolumeSize
from gpolicy.cluster.volume_pools import VolumesFrom, own_group, pools_of, separate_metavg
from gpolicy.ganeti.vocabulary import DRBD_METADATA

_LOCAL: Final = {"plain": 0, "drbd": DRBD_METADATA}
"""The templates of disks in a volume group, and what each disk takes beside its size."""


def smallest_volume(state: ClusterState, node: LiveNode) -> VolumeSize | None:
    """Return the size of the smallest physical volume of a node, which Ganeti computes with; None: not known."""
    pools = pools_of(state, node)
    return promised_volume(state, node.group) if pools is None else pools.own.volume_size


def promised_volume(state: ClusterState, group: str) -> VolumeSize | None:
    """Return the size of the smallest physical volume that the policy promises for a group; None: not known."""
    terms = state.terms_of(group)
    return terms.volumes.volume_size(min(terms.promise.volumes)) if terms.promise.volumes else None


def smallest_volumes(state: ClusterState) -> dict[str, VolumeSize]:
    """Return the size of the smallest physical volume of each node where it is known, by name."""
    found = {name: smallest_volume(state, node) for name, node in state.nodes.items()}
    return {name: size for name, size in found.items() if size is not None}


def groups_of_unknown_volumes(state: ClusterState, group: str | None = None) -> list[str]:
    """Return the groups (or `group` alone) with exclusive storage where the size of volumes is not known."""
    volumes = smallest_volumes(state)
    groups = dict.fromkeys(
        node.group
        for node in state.nodes.values()
        if node.name not in volumes
        and node.physical_volumes is None
        and not node.offline
        and group in (None, node.group)
        and state.has_exclusive_storage(node)
    )
    return list(groups)


def what_if_shares(state: ClusterState, group: str | None = None) -> list[str]:
    """Return a note on each group (or on `group`) with exclusive storage whose margin or reserve is not Ganeti's."""
    groups = dict.fromkeys(node.group for node in state.nodes.values() if state.has_exclusive_storage(node))
    said = {name: state.terms_of(name).volumes.what_if for name in groups if group in (None, name)}
    return [f"group {name}: {text}" for name, text in said.items() if text]


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
    volume = promised_volume(state, node.group)
    taken = None if volume is None else _taken(state, node, volume)
    if volume is None or taken is None:
        return None
    number = len(state.terms_of(node.group).promise.volumes or ())
    return _resources(number, max(0, number - taken), volume.usable, VolumesFrom.PROMISED)


def volume_notes(state: ClusterState, worked_out: Mapping[str, VolumeResources]) -> list[str]:
    """Return notes on figures of nodes (by name) that come from `volume_resources`."""
    name = own_group(state)
    group = f"volume group {name}" if name else "the cluster's volume group"
    sources = {
        VolumesFrom.MEASURED: f"physical volumes; those that the policy neither excludes nor assigns count as {group}",
        VolumesFrom.PROMISED: "the hardware that the policy promises, less what disks take",
    }
    notes = []
    for origin, what in sources.items():
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


# --- metadata of DRBD disks -----------------------------------------------------------------------------------------
# Room for the metadata of DRBD disks where it is in another volume group than the cluster's own (`metavg`).
#
# htools charges the 128 MiB of metadata of each disk to the one disk pool that nodes report, wherever it is; so it
# cannot see that the other group is full (Ganeti's issue 865). The room is a limit of its own, beside capacity. It is
# known from the volumes that a policy assigns to the group, or from disk_state of the group. Sources: design document
# "Resource model" (drbd/metavg; disk_state is "indexed per storage type and name"); Ganeti's `GenerateDRBD8Branch`.


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is free for metadata on a node."""

    node: str
    """A node that takes new instances."""
    free: int
    """What is free there for metadata."""
    disks: int
    """For how many disks that is enough."""
    measured: bool
    """Whether it is from physical volumes that the policy assigns, not from disk_state."""


@dataclass(frozen=True, slots=True)
class MetadataRoom:
    """Room for the metadata of new DRBD disks of a group."""

    group: str
    volume_group: str
    """The volume group of the metadata."""
    nodes: tuple[NodeRoom, ...]
    """The nodes of which something is known."""
    unknown: tuple[str, ...] = ()
    """The others."""

    @property
    def disks(self) -> int | None:
        """The most DRBD disks whose metadata fits, each on two nodes; None if a node is not known."""
        counts = [node.disks for node in self.nodes]
        return None if self.unknown or not counts else min(sum(counts) // 2, sum(counts) - max(counts))


def metadata_rooms(state: ClusterState, group: str | None = None) -> tuple[MetadataRoom, ...]:
    """Return the room of each group (or of `group`) whose DRBD disks have their metadata in another volume group."""
    found = []
    for name in sorted(state.groups):
        volume_group = separate_metavg(state, state.groups[name])
        if volume_group is None or group not in (None, name):
            continue
        nodes = sorted((node for node in state.nodes_of(name) if node.is_usable), key=lambda node: node.name)
        rooms = {node.name: _room(state, node, volume_group) for node in nodes}
        known = tuple(room for room in rooms.values() if room is not None)
        found.append(MetadataRoom(name, volume_group, known, tuple(node for node, room in rooms.items() if not room)))
    return tuple(found)


def _room(state: ClusterState, node: LiveNode, volume_group: str) -> NodeRoom | None:
    """Return the room on a node: measured, else declared less the metadata of its DRBD disks, as if all were there."""
    declared = declared_disk(state, node, volume_group)
    pools = pools_of(state, node)
    pool = pools.others.get(volume_group) if pools else None
    if pool is not None:
        free = sum(volume.free for volume in pool.allocatable)
    elif "disk_total" in declared:
        there = (item for item in state.instances.values() if node.name in (item.primary_node, *item.secondary_nodes))
        drbd_disks = sum(disk.template == "drbd" for item in there for disk in item.disks)
        free = declared["disk_total"] - declared.get("disk_overhead", 0) - DRBD_METADATA * drbd_disks
    else:
        return None
    free = max(0, free - declared.get("disk_reserved", 0))
    return NodeRoom(node.name, free, free // DRBD_METADATA, pool is not None)
