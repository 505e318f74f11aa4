"""Texts of policies, and parts of them, that tests of rules are written with."""

from __future__ import annotations

from typing import Final

CLUSTER: Final = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SILVER: Final = GROUP.replace("gold", "silver")
EXCLUSIVE: Final = "gpolicy: v1\nkind: NodeGroup\nname: dedicated\nndparams: {exclusive_storage: true}\n"
HARDWARE: Final = "hardware: {memory: 256G, cpus: 32, pv_count: 12, pv_size: 1T}\n"
WHOLE_NODES: Final = "ipolicy:\n  vcpu-ratio: 1\n  disk-templates: [plain]\n  minmax:\n    - name: "


def bounds(memory: str, cpus: str, disk: str, spindles: str = "1 12") -> str:
    """Return a pair in YAML: each argument is `min max`, in Ganeti's units."""
    low, high = (
        f"{{memory-size: {memory.split()[end]}, cpu-count: {cpus.split()[end]}, disk-size: {disk.split()[end]},"
        f" disk-count: 1, nic-count: 1, spindle-use: {spindles.split()[end]}}}"
        for end in (0, 1)
    )
    return f"min: {low}\n      max: {high}\n"


def spec(name: str, memory: str, cpus: str, disk: str, spindles: str = "1 12") -> str:
    """Return a named pair as an entry of `minmax`."""
    return f"    - name: {name}\n      {bounds(memory, cpus, disk, spindles)}"


LARGE: Final = spec("large", "16G 64G", "4 16", "100G 1T")
SMALL: Final = spec("small", "1G 12G", "1 3", "10G 90G")


def group_with(*pairs: str) -> str:
    """Return a group with these specs."""
    return f"{GROUP}ipolicy:\n  minmax:\n{''.join(pairs)}"


FOUR: Final = f"{GROUP}nodes: [n1, n2, n3, n4]\n"


def node_set(name: str, nodes: str, more: str) -> str:
    """Return a document with a set of nodes, for behind others."""
    return f"---\ngpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: [{nodes}]\n{more}\n"
