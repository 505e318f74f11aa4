"""Ganeti's arithmetic of exclusive storage: physical volumes are spindles, and disks take whole ones.

Sizes are MiB. The floating-point operations are Ganeti's own, in its order, so that the answers are the same on
every edge (partitioned Ganeti, "Exclusive use of disks"). Margin and reserve are shares: Ganeti's own are fixed
(PART_MARGIN, PART_RESERVED), a policy may count with others (`gpolicy.cluster.terms`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gpolicy.ganeti.amounts import compared_sizes, exact_size
from gpolicy.printable import count

MARGIN: Final = 0.01
"""How far the sizes of a group's volumes may lie from one another's middle."""

RESERVED: Final = 0.02
"""Share of each volume that is not counted."""


def sizes_differ(smallest: int, largest: int, margin: float = MARGIN) -> bool:
    """Return whether volumes of these sizes are too different to count as equal."""
    return smallest * (1 + margin) < largest * (1 - margin)


@dataclass(frozen=True, slots=True)
class VolumeSize:
    """How the volumes of a node count: all as the `smallest` (MiB), less margin and reserve."""

    smallest: int
    margin: float = MARGIN
    reserve: float = RESERVED

    @property
    def usable(self) -> int:
        """How much of each volume is counted."""
        return int(self.smallest // (1 + self.margin + self.reserve))

    def needed(self, size: int) -> int:
        """Return how many volumes a disk takes. `usable` must be at least 1: the smallest has at least 2 in Ganeti."""
        return math.ceil(float(size) / float(self.usable))

    def largest_disk(self, volumes: int) -> int:
        """Return the size of the largest disk that `volumes` volumes hold."""
        return volumes * self.usable


def is_empty(size: int, free: int) -> bool:
    """Return whether a volume counts as empty: Ganeti lets 1 MiB pass, for the rounding of LVM's figures."""
    return size <= free + 1


class SpindleFault(Enum):
    """What is wrong with the spindles of a disk."""

    MISSING = "missing"
    TOO_FEW = "too few"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class SpindleRefusal:
    """A disk (MiB) that Ganeti refuses. TOO_FEW: it needs `needed` volumes, the smallest of which has `volume` MiB."""

    fault: SpindleFault
    size: int
    spindles: int | None
    needed: int | None = None
    volume: int | None = None

    def __str__(self) -> str:
        match self.fault, self.volume:
            case SpindleFault.TOO_FEW, int(volume):
                size, each = compared_sizes(self.size, volume)
                return (
                    f"a disk of {size} on {count(self.spindles or 0, 'spindle')} needs"
                    f" {count(self.needed or 0, 'physical volume')} of {each}"
                )
            case SpindleFault.MISSING, _:
                return f"a disk of {exact_size(self.size)} has no spindles, but exclusive storage is on"
        return f"a disk of {exact_size(self.size)} has {count(self.spindles or 0, 'spindle')}, but storage is shared"


def spindle_refusal(
    size: int, spindles: int | None, *, exclusive: bool, volume: VolumeSize | None
) -> SpindleRefusal | None:
    """Return why Ganeti refuses a disk of `size` with so many spindles on a node, None if it makes it.

    `volume` is how the physical volumes of the node count, None where it is not known: the spindles are then not held
    against it.
    """
    if not exclusive:
        return None if spindles is None else SpindleRefusal(SpindleFault.SHARED, size, spindles)
    if volume is not None and volume.usable < 1:  # a volume of 1 MiB counts as nothing
        volume = None
    needed = None if volume is None else volume.needed(size)
    smallest = None if volume is None else volume.smallest
    if spindles is None:
        return SpindleRefusal(SpindleFault.MISSING, size, None, needed, smallest)
    if needed is not None and spindles < needed:
        return SpindleRefusal(SpindleFault.TOO_FEW, size, spindles, needed, smallest)
    return None
