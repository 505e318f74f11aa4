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
    """The sum of the resources of online nodes for instances."""

    memory: int
    """MiB, free and not reserved for failovers."""
    disk: int
    """MiB, free in the volume group."""
    cpus: int
    """Virtual CPUs that the vcpu-ratio allows beside those in use."""
    spindles: int | None
    """Free physical volumes; None where no node has exclusive storage."""
    spindle_use: int | None
    """What the spindle-ratio allows beside what is in use; None where all nodes have exclusive storage."""


@dataclass(frozen=True, slots=True)
class Stranded:
    """What online nodes have for instances, summed."""

    free: Room
    """What is free now."""
    left: Room
    """What is left when no more fit."""


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
