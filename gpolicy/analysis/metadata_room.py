"""Room for the metadata of DRBD disks where it is in another volume group than the cluster's own (`metavg`).

htools charges the 128 MiB of metadata of each disk to the one disk pool that nodes report, wherever it is; so it cannot
see that the other group is full (Ganeti's issue 865). The room is a limit of its own, beside capacity. It is known from
the volumes that a policy assigns to the group, or from disk_state of the group. Sources: design document "Resource
model" (drbd/metavg; disk_state is "indexed per storage type and name"); Ganeti's `GenerateDRBD8Branch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpolicy.analysis.declared_resources import declared_disk
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.volume_pools import pools_of, separate_metavg
from gpolicy.ganeti.vocabulary import DRBD_METADATA


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
