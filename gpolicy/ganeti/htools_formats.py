"""The formats in which hspace and hail are told of a cluster, as words: which stands where, what is left out means.

Nothing is judged here. `cluster/` and `htools/` read the same words: the one is strict and names lines, the other takes
and refuses what the original does, in its words. (htools, Backend/Text and Backend/Simu)
"""

# ruff: noqa: PYI024 (all columns are text: their names say the rest)

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# Sizes are MiB, tags and networks parted by commas; later versions of htools added the columns that have defaults.

GroupLine = namedtuple("GroupLine", "name uuid alloc_policy tags networks", defaults=("",))
NodeLine = namedtuple(
    "NodeLine",
    "name total_memory node_memory free_memory total_disk free_disk total_cpus role group"
    " spindles tags exclusive_storage free_spindles node_cpus cpu_speed",
    defaults=("1", "", "N", "0", "1", "1.0"),
)
"""`role` is Y for an offline node, M for the master, N for others; `group` is a UUID."""
InstanceLine = namedtuple(
    "InstanceLine",
    "name memory disk vcpus status auto_balance primary secondary template tags spindle_use spindles forthcoming",
    defaults=("1", "-", "N"),
)
"""Spindles are `-` where they are not known."""
PolicyLine = namedtuple("PolicyLine", "owner std minmax templates vcpu_ratio spindle_ratio")
"""Specs are six numbers each, pairs of them parted by `;`. The cluster is the owner without a name."""


def columns_of(kind: Any, text: str) -> tuple[Any | None, int]:
    """Return the columns of a line by name, None if there are too few, and how many there are: some may be surplus."""
    columns, most = text.split("|"), len(kind._fields)
    enough = len(columns) >= most - len(kind._field_defaults)
    return (kind(*columns[:most]) if enough else None), len(columns)


def is_silent(line: NodeLine) -> bool:
    """Return whether a `?` stands for one of a node's figures: the node does not answer."""
    return "?" in line[1:7]


def sections(lines: list[str]) -> list[list[tuple[int, str]]]:
    """Return the sections of a file with the numbers of their lines, from 1. A last empty line ends the one before."""
    if not lines[-1]:
        lines = lines[:-1]
    found: list[list[tuple[int, str]]] = [[]] if lines else []
    for number, line in enumerate(lines, start=1):
        if line:
            found[-1].append((number, line))
        else:
            found.append([])
    return found


Specification = namedtuple(
    "Specification", "policy node_count disk memory cpus spindles exclusive", defaults=("1", "False")
)
"""A group of equal nodes. Disk and memory may have a unit, `exclusive` is True or False."""


def specification_in(text: str) -> tuple[int, Specification | None]:
    """Return the number of sections in `text`, and the specification that they are if there are 5 to 7."""
    sections = text.split(",") if text else []
    return len(sections), Specification(*sections) if 5 <= len(sections) <= 7 else None


ALLOC_POLICIES: Final = {"p": "preferred", "a": "last_resort", "u": "unallocable"}
"""Short names of allocation policies in a specification."""


def group_name(number: int) -> str:
    """Return the name of a simulated group, numbered from 1."""
    return f"group-{number:02d}"


def node_name(group: int, number: int) -> str:
    """Return the name of a simulated node; groups and their nodes are numbered from 1."""
    return f"node-{group:02d}-{number:03d}"


MIB: Final = 1024**2
_UNITS: Final = {"": MIB, "m": MIB, "g": MIB * 1024, "t": MIB * 1024**2, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_LONG_UNITS: Final = {"mib": MIB, "gib": MIB * 1024, "tib": MIB * 1024**2, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}


def bytes_of(unit: str) -> int | None:
    """Return the bytes of a unit, None for an unknown one. Small letters are binary, capital ones decimal.

    Units of several letters are what they say, small or capital; none means MiB.
    """
    return _UNITS.get(unit) or _LONG_UNITS.get(unit.lower())
