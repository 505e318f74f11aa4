"""The resources of the empty nodes of a group for instances, and which nodes are alike.

Memory counts as in the allocator: total less the memory of the node itself, or the measured free memory if that is
less. If hv_state or disk_state declares a greater reserve than measured, that one counts. A node must keep some free
memory and disk, so a size never uses the last MiB. Sources: design documents "resource model" and "partitioned Ganeti"
(dedicated CPUs and RAM).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.allocator.cluster_data import ClusterData, NodeData
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.merge import merge
from gpolicy.allocator.node import Node
from gpolicy.analysis.declared_resources import declared_numbers
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.volume_pools import pools_of
from gpolicy.errors import GpolicyError, UsageError, about
from gpolicy.ganeti.hail_parameters import ALLOCATOR_PARAMETERS, hail_parameters
from gpolicy.ganeti.units import compared_sizes, exact_size, rough_size
from gpolicy.ganeti.volume_arithmetic import sizes_differ, usable_size
from gpolicy.suggest.suggestion import NodeHardware, NodeKind, SuggestRequest
from gpolicy.suggest.tiling import Amounts, combined

ALIKE: Final = 0.97
"""Nodes are of the same kind if none has less than this share of another's resource: measurements vary."""


def emptied(data: ClusterData, volume: int | None = None) -> ClusterData:
    """Return `data` without instances, with their known resources free.

    `volume` (MiB) is what Ganeti counts of each physical volume under exclusive storage: a disk frees its whole
    volumes.
    """
    memory: dict[int, int] = {}
    disk: dict[int, int] = {}
    spindles: dict[int, int] = {}
    for instance in data.instances:
        if instance.uses_memory:
            memory[instance.primary] = memory.get(instance.primary, 0) + instance.memory
        if not instance.template.local or instance.forthcoming:
            continue
        for index in {instance.primary, instance.secondary}:
            disk[index] = disk.get(index, 0) + instance.disk
            spindles[index] = spindles.get(index, 0) + (instance.total_spindles or 0)
    nodes = []
    for node in data.nodes:
        free = node.free_disk + disk.get(node.index, 0)
        volumes = node.free_spindles
        if node.exclusive_storage:
            volumes = min(node.spindles, volumes + spindles.get(node.index, 0))
            free = max(free, volumes * (volume or 0))
        memory_free = node.free_memory + memory.get(node.index, 0)
        disk_free = min(int(node.total_disk), free)
        nodes.append(replace(node, free_memory=memory_free, free_disk=disk_free, free_spindles=volumes))
    return replace(data, nodes=tuple(nodes), instances=())


def node_hardware(
    empty: ClusterData, state: ClusterState, template: DiskTemplate, ratio: float, request: SuggestRequest
) -> list[NodeHardware]:
    """Return the hardware of the nodes of `empty` (one group, emptied); `ratio` is virtual CPUs for each CPU."""
    hail = hail_parameters(state.cluster.own.get(ALLOCATOR_PARAMETERS))
    merged = merge(empty, static_kvm_node_memory=hail.static_kvm_node_memory).nodes
    return [
        _hardware(node, merged[node.index], declared_numbers(state, state.nodes[node.name]), template, ratio, request)
        for node in empty.nodes
        if not node.offline
    ]


def _hardware(
    node: NodeData, merged: Node, kept: Mapping[str, int], template: DiskTemplate, ratio: float, request: SuggestRequest
) -> NodeHardware:
    total = int(node.total_memory)
    keeps = kept.get("mem_node", 0) + kept.get("mem_hv", 0)
    measured = min(merged.unallocated_memory, merged.forth_free_memory)
    memory = min(math.floor(measured * (1 - request.margin / 100)), measured - 1, total - keeps - 1)
    kept_cpus = max(node.node_cpus, kept.get("cpu_node", 0))
    cpus = math.floor(ratio * node.total_cpus) if ratio > 0 else int(node.total_cpus)
    while cpus > 0 and 0 < ratio < cpus / node.total_cpus:
        cpus -= 1  # the product was rounded up
    disk = None
    if template.local:
        reserved = kept.get("disk_reserved", 0) + kept.get("disk_overhead", 0)
        disk = max(0, min(node.free_disk, int(node.total_disk) - reserved) - 1)
    return NodeHardware(
        name=node.name,
        room=Amounts(
            max(0, memory),
            max(0, cpus - kept_cpus),
            disk,
            max(0, node.free_spindles) if node.exclusive_storage else None,
        ),
        total_memory=total,
        kept_memory=max(total - measured, keeps),
        total_cpus=int(node.total_cpus),
        kept_cpus=kept_cpus,
        spindle_use=merged.facts.high_spindles if template.local else None,
    )


def kinds_of(nodes: Iterable[NodeHardware]) -> tuple[NodeKind, ...]:
    """Return the kinds of `nodes`, the most numerous first."""
    kinds: list[list[NodeHardware]] = []
    for node in sorted(nodes, key=lambda node: _sorting(node.room), reverse=True):
        home = next((kind for kind in kinds if _alike(kind[0], node)), None)
        if home is None:
            kinds.append([node])
        else:
            home.append(node)
    kinds.sort(key=lambda kind: -len(kind))
    return tuple(
        NodeKind(
            nodes=tuple(sorted(kind, key=lambda node: node.name)), room=combined(min, [node.room for node in kind])
        )
        for kind in kinds
    )


def _sorting(room: Amounts) -> tuple[int, ...]:
    return room.cpus, room.volumes or 0, room.memory, room.disk or 0


def _alike(node: NodeHardware, another: NodeHardware) -> bool:
    one, other = node.room, another.room
    if (one.cpus, one.volumes, node.spindle_use) != (other.cpus, other.volumes, another.spindle_use):
        return False
    return all(
        min(first, second) >= ALIKE * max(first, second)
        for first, second in ((one.memory, other.memory), (one.disk or 0, other.disk or 0))
    )


def smallest_volume(state: ClusterState, names: Sequence[str], given: int | None, notes: list[str]) -> int:
    """Return the size (MiB) of the smallest physical volume of the nodes `names`; `given` overrides the measured sizes.

    If the state does not show single volumes, those of a node are assumed to be equal, with a note in `notes`. Raise
    GpolicyError if it shows nothing about them.
    """
    if given is not None:
        return given
    pools = [pools_of(state, state.nodes[name]) for name in names]
    volumes = [volume.size for pool in pools if pool for volume in pool.own.allocatable]
    if volumes and all(pool and pool.own.count for pool in pools):
        _judge(min(volumes), max(volumes), notes)
        return min(volumes)
    sizes = []
    for name in names:
        measured = state.nodes[name].resources
        if not measured.spindles_total or not measured.disk_total:
            raise GpolicyError(
                about(state.address, f"not known: the physical volumes of {name}"),
                hint="give the size of the smallest: --pv-size 1T (and see `gpolicy explain exclusive-storage-reads`)",
            )
        sizes.append(measured.disk_total // measured.spindles_total)
    notes.append(
        f"physical volumes are assumed to be equal on each node: disk / spindles, at least {rough_size(min(sizes))}"
        " (or use --pv-size)"
    )
    _judge(min(sizes), max(sizes), notes)
    return min(sizes)


def _judge(smallest: int, largest: int, notes: list[str]) -> None:
    if sizes_differ(smallest, largest):
        small, large = compared_sizes(smallest, largest)
        notes.append(
            f"physical volumes of {small} and {large} are too different for one group with exclusive storage:"
            " Ganeti calls that an error; all count as the smallest"
        )


def usable_volume(smallest: int) -> int:
    """Return the part of each volume that disks can use (MiB). Raise UsageError if that is 0."""
    usable = usable_size(smallest)
    if usable < 1:
        raise UsageError(
            f"a physical volume of {exact_size(smallest)} is too small for any disk", hint="--pv-size takes MiB, or 1T"
        )
    return usable
