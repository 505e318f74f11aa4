"""Parts of the examples of rules."""

from __future__ import annotations

from typing import Final

CLUSTER: Final = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"


def bounds(memory: str, cpus: str, disk: str, spindles: str = "1 12") -> str:
    """Return a pair in YAML for an example: each argument is `min max`, in Ganeti's units."""
    low, high = (
        f"{{memory-size: {memory.split()[end]}, cpu-count: {cpus.split()[end]}, disk-size: {disk.split()[end]},"
        f" disk-count: 1, nic-count: 1, spindle-use: {spindles.split()[end]}}}"
        for end in (0, 1)
    )
    return f"min: {low}\n      max: {high}\n"


def spec(name: str, memory: str, cpus: str, disk: str, spindles: str = "1 12") -> str:
    """Return a named pair as an entry of `minmax`."""
    return f"    - name: {name}\n      {bounds(memory, cpus, disk, spindles)}"
