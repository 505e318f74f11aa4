"""Simulated nodes of which some quarters are in use.

A quarter of a node is a quarter of what instances can have of it: memory, virtual CPUs under the group's vcpu-ratio,
disk or physical volumes, each rounded down. What is in use counts as the node's own, not as instances: those would be
of no size that the policy has, and then htools could move them nowhere and would find no redundancy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.testing.outcome import CannotRunError

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState, Node
    from gpolicy.policy.scenario import SimulatedNode


def filled(state: ClusterState, node: Node, simulated: SimulatedNode) -> Node:
    """Return the (still empty) `node` with as many quarters in use as `simulated` says."""
    quarters, resources = simulated.filled, node.resources
    if not quarters:
        return node
    ratio = state.groups[node.group].effective.get(("ipolicy", "vcpu-ratio"))
    cpu_node = resources.cpu_node or 0
    cpus = (resources.cpu_total or 0) * (ratio if isinstance(ratio, int | float) else 1) - cpu_node
    volumes, disk, memory = resources.spindles_total, resources.disk_total, resources.memory_free or 0
    if volumes is not None and volumes % 4:
        message = f"node {node.name} has {volumes} physical volumes: no quarter of them can be in use"
        raise CannotRunError(message, simulated.span, hint="name the instances that are there instead")
    used = replace(
        resources,
        memory_node=(resources.memory_node or 0) + quarters * (memory // 4),
        memory_free=memory - quarters * (memory // 4),
        disk_free=None if disk is None else disk - quarters * (disk // 4),
        cpu_node=cpu_node + quarters * max(0, int(cpus // 4)),
        spindles_free=None if volumes is None else volumes - quarters * (volumes // 4),
    )
    return replace(node, resources=used)
