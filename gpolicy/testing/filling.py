"""Instances that fill a simulated node by quarters.

A quarter of a node is a quarter of what instances can have of it: memory, virtual CPUs under the group's vcpu-ratio,
disk or physical volumes, each rounded down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.cluster.state import ClusterState, Disk, Instance, Node
from gpolicy.testing.outcome import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpolicy.policy.scenario import SimulatedNode


def filler(state: ClusterState, node: Node, simulated: SimulatedNode) -> Iterator[Instance]:
    """Yield one plain instance for each quarter that is in use on the (still empty) `node`."""
    if not simulated.filled:
        return
    resources = node.resources
    ratio = state.groups[node.group].effective.get(("ipolicy", "vcpu-ratio"))
    cpus = (resources.cpu_total or 0) * (ratio if isinstance(ratio, int | float) else 1) - (resources.cpu_node or 0)
    volumes = resources.spindles_total
    if volumes is not None and volumes % 4:
        message = f"node {node.name} has {volumes} physical volumes: no quarter of them can be in use"
        raise CannotRunError(message, simulated.span, hint="name the instances that are there instead")
    if resources.disk_total is None:
        hint = "write `disk`, or pv_size and pv_count"
        raise CannotRunError(f"not known of node {node.name}: its disk", simulated.span, hint=hint)
    spindles = None if volumes is None else volumes // 4
    for number in range(1, simulated.filled + 1):
        yield Instance(
            name=f"{node.name}-quarter-{number}",
            primary_node=node.name,
            disk_template="plain",
            disks=(Disk(size=resources.disk_total // 4, template="plain", spindles=spindles),),
            minmem=(resources.memory_free or 0) // 4,
            maxmem=(resources.memory_free or 0) // 4,
            vcpus=max(0, int(cpus // 4)),
            spindle_use=1 if spindles is None else spindles,
            nic_count=1,
            status="running",
            running=True,
            position=None,
        )
