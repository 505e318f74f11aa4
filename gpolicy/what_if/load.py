"""Instances that come or go in a state, with their resources taken from the nodes or freed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpolicy.allocator.enumerations import DiskTemplate, InstanceStatus
from gpolicy.analysis.allocator_input import disks_of
from gpolicy.cluster.state import ClusterState, Instance, Node, Resources


def with_all(state: ClusterState, instances: Sequence[Instance]) -> ClusterState:
    """Return `state` with more instances, and with their resources taken from the nodes."""
    first = len(state.instances)
    placed = {item.name: replace(item, position=first + place) for place, item in enumerate(instances)}
    return replace(state, nodes=_with_use(state, instances, 1), instances={**state.instances, **placed})


def without(state: ClusterState, names: Sequence[str]) -> ClusterState:
    """Return `state` without these instances, and with their resources free on the nodes."""
    gone = [state.instances[name] for name in names]
    left = {name: item for name, item in state.instances.items() if name not in set(names)}
    return replace(state, nodes=_with_use(state, gone, -1), instances=left)


def emptied_node(state: ClusterState, name: str) -> Node:
    """Return a node as it would be without its instances."""
    return _with_use(state, instances_on(state, name), -1)[name]


def instances_on(state: ClusterState, node: str) -> list[Instance]:
    """Return the instances whose primary or secondary node is `node`."""
    return [item for item in state.instances.values() if node in (item.primary_node, *item.secondary_nodes)]


def failed_over(state: ClusterState, node: str) -> tuple[ClusterState, list[str]]:
    """Return `state` with the mirrored instances of `node` running on their other node, and the names of the others.

    Each keeps the lost node as its secondary, as after `gnt-instance failover`. Those without another node that is
    online stay where they are.
    """
    instances, nodes, stay = dict(state.instances), dict(state.nodes), list[str]()
    for item in instances_on(state, node):
        if item.primary_node != node:
            continue
        if not item.secondary_nodes or not nodes[other := item.secondary_nodes[0]].is_measured:
            stay.append(item.name)
            continue
        instances[item.name] = replace(item, primary_node=other, secondary_nodes=(node,))
        nodes[other] = replace(nodes[other], resources=_less(nodes[other].resources, memory_of(item), 0, 0))
    return replace(state, instances=instances, nodes=nodes), stay


def offline(state: ClusterState, node: str) -> ClusterState:
    """Return `state` with `node` offline: it reports nothing, and Ganeti says so of the instances on it."""
    dead = {
        item.name: replace(item, status=InstanceStatus.NODE_OFFLINE.value, running=None, oper_ram=None)
        for item in state.instances.values()
        if item.primary_node == node and item.running is not False
    }
    silent = replace(state.nodes[node], offline=True, resources=Resources())
    return replace(state, nodes={**state.nodes, node: silent}, instances={**state.instances, **dead})


def _with_use(state: ClusterState, instances: Sequence[Instance], sign: int) -> dict[str, Node]:
    nodes = dict(state.nodes)
    exclusive: dict[str, bool] = {}
    for instance in instances:
        size, disks = disks_of(instance)
        used = size if DiskTemplate(instance.disk_template).local else 0
        spindles = sum(disk.spindles or 0 for disk in disks)
        for place, name in enumerate((instance.primary_node, *instance.secondary_nodes)):
            node = nodes[name]
            if name not in exclusive:
                exclusive[name] = state.has_exclusive_storage(node)
            memory = memory_of(instance) if place == 0 else 0
            volumes = spindles if exclusive[name] else 0
            nodes[name] = replace(node, resources=_less(node.resources, sign * memory, sign * used, sign * volumes))
    return nodes


def memory_of(instance: Instance) -> int:
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
