"""Free resources, and the part that no allowed instance can use.

Stranded resources are those left on the online nodes after a tiered run and then as many instances as fit at the
minimum of each pair (with one disk; pairs without memory are skipped). Then not even the smallest instance of any pair
fits, so no allowed instance can use the rest. Room that must stay free for N+1 counts as stranded, but memory that DRBD
reserves does not (it is not free). All instances have the same template.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, isfinite

from gpolicy.allocator.node import Node


@dataclass(frozen=True, slots=True)
class Room:
    """The sum of the resources of online nodes for instances.

    `memory` (MiB) is free and not reserved for failovers, `disk` (MiB) is free in the volume group. `cpus` are the
    virtual CPUs that the vcpu-ratio still allows, `spindles` free physical volumes (None: no node has exclusive
    storage), `spindle_use` is what the spindle-ratio still allows (None: all nodes have exclusive storage, where it
    does not count).
    """

    memory: int
    disk: int
    cpus: int
    spindles: int | None
    spindle_use: int | None


@dataclass(frozen=True, slots=True)
class Stranded:
    """The free resources now, and those left when nothing more fits."""

    free: Room
    left: Room


def room(nodes: Iterable[Node]) -> Room:
    """Return the free resources of the online ones of `nodes`."""
    online = [node for node in nodes if not node.facts.offline]
    exclusive = [node for node in online if node.facts.exclusive]
    ordinary = [node for node in online if not node.facts.exclusive]
    return Room(
        memory=sum(node.available_memory for node in online),
        disk=sum(node.available_disk for node in online),
        cpus=sum(node.available_cpus for node in online),
        spindles=sum(max(0, node.free_spindles) for node in exclusive) if exclusive else None,
        spindle_use=sum(_spindle_use(node) for node in ordinary) if ordinary or not online else None,
    )


def _spindle_use(node: Node) -> int:
    left = node.facts.high_spindles - node.instance_spindles
    return max(0, floor(left)) if isfinite(left) else 0
