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


def group(name: str, nodes: str, more: str = "") -> str:
    """Return the document of a group with these nodes, for behind others."""
    return f"---\ngpolicy: v1\nkind: NodeGroup\nname: {name}\nnodes: [{nodes}]\n{more}"


def in_test(body: str) -> str:
    """Return a document with one test, for behind others."""
    return f"---\ngpolicy: v1\nkind: Test\ntests:\n  - name: t\n{body}"


def dedicated(volumes: str, size: str) -> str:
    """Return a group with exclusive storage, these volumes and one size."""
    hardware = f"hardware: {{memory: 64G, cpus: 16, {volumes}}}\n"
    return f"{EXCLUSIVE}{hardware}ipolicy:\n  vcpu-ratio: 1\n  minmax:\n{size}"


def sized(name: str, *sizes: str) -> str:
    """Return a group of two nodes with these sizes."""
    return group(name, f"{name}1, {name}2", f"ipolicy:\n  disk-templates: [plain]\n  minmax:\n{''.join(sizes)}")


def asking(sizes: str) -> str:
    """Return a test that an instance of these sizes is not refused."""
    instance = sizes if "spec" in sizes else f"{sizes}, disks: [20G]"
    return in_test(f"    check_instance: {{{instance}, disk-template: plain}}\n    expect: {{refused: false}}\n")


def two_sets(nodes: str, first: str, second: str, domain: str, head: str = "") -> str:
    """Return a group with these nodes, and two sets whose tags are two values of a domain."""
    sets = (node_set(name, names, f"tags: ['{domain}:{name}']") for name, names in (("a", first), ("b", second)))
    return head + group("north", nodes) + "".join(sets)
