"""Bounds of the numbers in sources and policies: gpolicy refuses larger ones before it counts anything.

The bounds are generous: no hardware and no hypervisor comes near them. They keep out typing errors and hostile input,
with which counting would take hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gpolicy.ganeti.units import exact_size, parse_size_exact


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and the most that a number may be; `unit` is for people.

    A number that is not 0 is at least `finest` away from it.
    """

    least: int
    most: int
    unit: str = ""
    finest: float = 0.0

    def refusal(self, number: float) -> str:
        """Return in words why the number is refused; nothing if it is within the bound."""
        if self.least <= number <= self.most and (number == 0 or abs(number) >= self.finest):
            return ""
        unit = f" {self.unit}" if self.unit else ""
        if number < self.least:
            return f"no cluster has less than {self.least}{unit}"
        if number <= self.most:
            return f"no cluster has so little; the minimum is {self.finest:f}{unit}"
        return f"no cluster has more than {self.most}{unit}"

    @property
    def signed(self) -> Bound:
        """The same for a number that may be below zero."""
        return Bound(-self.most, self.most, self.unit)


MEMORY: Final = Bound(0, 2**30, "MiB")  # 1 PiB; x86-64 addresses 64 TiB, with five levels of page tables 4 PiB
DISK: Final = Bound(0, 2**40, "MiB")  # 1 EiB, the largest file system of most kernels
CPUS: Final = Bound(0, 8192)  # of a node: the most that a Linux kernel can be built for
COUNT: Final = Bound(0, 100_000)  # of an instance: some ten times what QEMU takes; 99999 is written for "any number"
RATIO: Final = Bound(-100_000, 100_000, finest=0.00001)  # Ganeti stores any ratio and speed, also below zero
LEAST_RATIO: Final = 0.001
"""Of a ratio or speed in a policy: with much less, the score of the cluster would be no number."""

GREATEST_OVERSUBSCRIPTION: Final = 100
"""Of memory; a greater ratio must be a mistake: it would not limit anything."""
MOST_NODE_FAILURES: Final = 8
"""The greatest number of nodes of a group that may fail at once."""

BOUNDS: Final[dict[str, Bound]] = {
    # what a node measures. Free amounts are differences, and Ganeti reports them below zero as well
    "memory_total": MEMORY,
    "memory_node": MEMORY.signed,
    "memory_free": MEMORY.signed,
    "disk_free": DISK.signed,
    "spindles_total": COUNT,
    "spindles_free": COUNT.signed,
    # a physical volume, and a disk
    **dict.fromkeys(("size", "free", "used"), DISK),
    "spindles": COUNT,
    # an instance, and the backend parameters
    **dict.fromkeys(("minmem", "maxmem", "oper_ram"), MEMORY),
    **dict.fromkeys(("vcpus", "spindle_use", "nic_count"), COUNT),
    # a spec
    "memory-size": MEMORY,
    "disk-size": DISK,
    **dict.fromkeys(("cpu-count", "disk-count", "nic-count", "spindle-use"), COUNT),
    # ratios, and what a node is declared to have; Ganeti stores any spindle_count (GP726 says what comes of it)
    **dict.fromkeys(("vcpu-ratio", "spindle-ratio", "cpu_speed"), RATIO),
    "spindle_count": COUNT.signed,
    **dict.fromkeys(("mem_total", "mem_node", "mem_hv"), MEMORY),
    **dict.fromkeys(("disk_total", "disk_reserved", "disk_overhead"), DISK),
    **dict.fromkeys(("cpu_total", "cpu_node"), CPUS),
    # hardware that a policy promises, or a test simulates
    "memory": MEMORY,
    **dict.fromkeys(("disk", "disks", "pv_size", "pvs"), DISK),
    "cpus": CPUS,
    "pv_count": COUNT,
}
"""By the name of the field, key or parameter, wherever it stands."""

BOUNDED_FAMILIES: Final = frozenset({"ipolicy", "ndparams", "beparams", "hv_state", "disk_state"})
"""The parameters that counting depends on. Others (of hypervisors, of disk templates) are passed on as they are."""


def parse_bounded_size(text: str | float, name: str) -> Fraction | int:
    """Return the size in MiB, unrounded, that `text` names as the value of `name`.

    Raise ValueError with a readable reason if it is no size, or more than `BOUNDS` has for this name.
    """
    size = parse_size_exact(text)
    bound = BOUNDS.get(name)
    if bound is not None and size > bound.most:
        raise ValueError(f"no cluster has more than {exact_size(bound.most)}")
    return size
