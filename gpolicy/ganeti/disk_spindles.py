"""Whether Ganeti makes a disk with these spindles (design document "partitioned Ganeti", "Spindles as a resource").

Ganeti checks it itself (cmdlib/instance_storage.py: CheckSpindlesExclusiveStorage; storage/bdev.py:
LogicalVolume.Create). htools does not: hail and hspace accept such disks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gpolicy.ganeti.units import compared_sizes, exact_size
from gpolicy.ganeti.volume_arithmetic import VolumeSize
from gpolicy.printable import count


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
