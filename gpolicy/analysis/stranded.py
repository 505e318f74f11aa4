"""What is free, and what of it no allowed instance can use.

Stranded is what is left on the online nodes after everything has been placed that fits: the tiered run, and then the
least size of each pair of the policy, as often as it fits (with one disk; pairs without memory are left out). After
that not even the least instance of any pair has a place, so nothing that the policy allows can use the rest. Room that
has to stay free so that the loss of a node can be made good is part of it, unless it is memory that DRBD reserves (that
is not free in the first place). All instances are of the one template that is counted with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.allocator.node import Node


@dataclass(frozen=True, slots=True)
class Room:
    """What online nodes have for instances, summed.

    `memory` (MiB) is free and not reserved for failovers, `disk` (MiB) free in the volume group, `cpus` virtual CPUs
    that the vcpu-ratio allows beside those in use, `spindles` free physical volumes (None: no node has exclusive
    storage), `spindle_use` what the spindle-ratio allows beside what is in use (None: all nodes have exclusive storage,
    where it does not count).
    """

    memory: int
    disk: int
    cpus: int
    spindles: int | None
    spindle_use: int | None


@dataclass(frozen=True, slots=True)
class Stranded:
    """What is free now, and what is left of it when nothing more fits."""

    free: Room
    left: Room


def room(nodes: Iterable[Node]) -> Room:
    """Return what the online ones of `nodes` have left."""
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
