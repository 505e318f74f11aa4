"""Instances that come or go in a state, with their resources taken from the nodes or freed there."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpolicy.allocator.enumerations import DiskTemplate, InstanceStatus
from gpolicy.allocator.evacuation import EvacuationMode, evacuate_nodes
from gpolicy.analysis.allocator_input import LOCAL, MIXED, disks_of, why_unreadable
from gpolicy.analysis.hail_document import hails_cluster
from gpolicy.cluster.state import ClusterState, LiveInstance, LiveNode, Resources


def with_all(state: ClusterState, instances: Sequence[LiveInstance]) -> ClusterState:
    """Return `state` with more instances, and with their resources taken from the nodes."""
    first = len(state.instances)
    placed = {item.name: replace(item, position=first + place) for place, item in enumerate(instances)}
    return replace(state, nodes=_with_use(state, instances, 1), instances={**state.instances, **placed})


def without(state: ClusterState, names: Sequence[str]) -> ClusterState:
    """Return `state` without these instances, and with their resources free on the nodes."""
    gone = [state.instances[name] for name in names]
    left = dict(state.instances)
    for name in names:
        del left[name]
    return replace(state, nodes=_with_use(state, gone, -1), instances=left)


def elsewhere(state: ClusterState, placed: Mapping[str, Sequence[str]]) -> ClusterState:
    """Return `state` with instances on other nodes, by name: the primary first."""
    old = [state.instances[name] for name in placed]
    new = [
        replace(item, primary_node=placed[item.name][0], secondary_nodes=tuple(placed[item.name][1:])) for item in old
    ]
    left = replace(state, nodes=_with_use(state, old, -1))
    return replace(
        left, nodes=_with_use(left, new, 1), instances={**state.instances, **{item.name: item for item in new}}
    )


def emptied_node(state: ClusterState, name: str) -> LiveNode:
    """Return a node as it would be without its instances."""
    return _with_use(state, instances_on(state, name), -1)[name]


def instances_on(state: ClusterState, node: str) -> list[LiveInstance]:
    """Return the instances whose primary or secondary node is `node`."""
    return [item for item in state.instances.values() if node in (item.primary_node, *item.secondary_nodes)]


def failed_over(state: ClusterState, lost: Collection[str]) -> tuple[ClusterState, list[str]]:
    """Return `state` with the DRBD instances of the nodes `lost` on their other node, and the names of the others.

    Each keeps the lost node as its secondary, as after `gnt-instance failover`. Those stay where they are that have no
    other node, or one that is lost, offline or drained, or has less memory free than their minimum: Ganeti refuses
    them. One after the other, by name.
    """
    instances, nodes, stay = dict(state.instances), dict(state.nodes), list[str]()
    for item in sorted(state.instances.values(), key=lambda item: item.name):
        if item.primary_node not in lost:
            continue
        other = next(iter(item.secondary_nodes), None)
        needed = memory_of(replace(item, oper_ram=None))
        if other is None or other in lost or not nodes[other].is_usable or not _has_memory(nodes[other], item, needed):
            stay.append(item.name)
            continue
        instances[item.name] = replace(item, primary_node=other, secondary_nodes=(item.primary_node,), oper_ram=None)
        nodes[other] = replace(nodes[other], resources=_less(nodes[other].resources, needed, 0, 0))
    return replace(state, instances=instances, nodes=nodes), stay


def restarted(
    state: ClusterState, lost: Sequence[str], homeless: Sequence[str], *, declared: bool = False
) -> ClusterState:
    """Return `state` with those of the `homeless` instances on shared storage on the nodes that hail gives them.

    That is its evacuation of the nodes `lost`, when they are offline (`declared` is that of `settle`). In a group that
    is not known all stay.
    """
    readable = [name for name in homeless if why_unreadable(state.instances[name]) is None]
    shared = [name for name in readable if DiskTemplate(state.instances[name].disk_template).externally_mirrored]
    if not shared:
        return state
    fresh = {name: replace(state.instances[name], oper_ram=None) for name in shared}
    state = replace(state, instances={**state.instances, **fresh})
    settled, cluster = hails_cluster(offline(state, lost), declared=declared)
    if settled.hail.failure:
        return state
    wanted = [index for index, item in cluster.instances.items() if item.name in fresh]
    force = settled.hail.ignore_soft_errors
    moved = evacuate_nodes(cluster.nodes, cluster.instances, EvacuationMode.PRIMARY, wanted, force=force).moved
    return elsewhere(state, {item.name: (cluster.nodes[where[0]].facts.name,) for item, _, where, _ in moved})


def _has_memory(node: LiveNode, instance: LiveInstance, needed: int) -> bool:
    free = node.resources.memory_free
    return free is None or min(needed, instance.minmem) <= free


def offline(state: ClusterState, names: Collection[str]) -> ClusterState:
    """Return `state` with these nodes offline: they report nothing, and Ganeti says so of the instances on them."""
    dead = {
        item.name: replace(item, status=InstanceStatus.NODE_OFFLINE.value, running=None, oper_ram=None)
        for item in state.instances.values()
        if item.primary_node in names and item.running is not False
    }
    silent = {name: replace(state.nodes[name], offline=True, resources=Resources()) for name in names}
    return replace(state, nodes={**state.nodes, **silent}, instances={**state.instances, **dead})


def free_names(stem: str, count: int, taken: Collection[str]) -> list[str]:
    """Return `count` names that are not `taken`: STEM+1, STEM+2, …, which no real node or instance can have."""
    names = (f"{stem}+{number}" for number in itertools.count(1))
    return list(itertools.islice((name for name in names if name not in taken), count))


def _with_use(state: ClusterState, instances: Sequence[LiveInstance], sign: int) -> dict[str, LiveNode]:
    nodes = dict(state.nodes)
    exclusive: dict[str, bool] = {}
    for instance in instances:
        size, disks = disks_of(instance)
        made = not instance.forthcoming  # else its disks take nothing yet
        used = size if made and instance.disk_template in (MIXED, *LOCAL) else 0
        spindles = sum(disk.spindles or 0 for disk in disks) if made else 0
        for place, name in enumerate((instance.primary_node, *instance.secondary_nodes)):
            node = nodes[name]
            if name not in exclusive:
                exclusive[name] = state.has_exclusive_storage(node)
            memory = memory_of(instance) if place == 0 else 0
            volumes = spindles if exclusive[name] else 0
            nodes[name] = replace(node, resources=_less(node.resources, sign * memory, sign * used, sign * volumes))
    return nodes


def memory_of(instance: LiveInstance) -> int:
    """Return the memory (MiB) that an instance takes on its primary node."""
    if instance.running is False or instance.forthcoming:
        return 0
    return instance.maxmem if instance.oper_ram is None else instance.oper_ram


def _less(resources: Resources, memory: int, disk: int, spindles: int) -> Resources:
    return replace(
        resources,
        memory_free=None if resources.memory_free is None else resources.memory_free - memory,
        disk_free=None if resources.disk_free is None else resources.disk_free - disk,
        spindles_free=None if resources.spindles_free is None else resources.spindles_free - spindles,
    )
