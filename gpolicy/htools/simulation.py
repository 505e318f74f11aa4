"""Empty clusters described on the command line (`--simulate`; htools, Backend/Simu)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import ClusterData, Group, NodeData
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.errors import InputError
from gpolicy.htools.enumerations import alloc_policy
from gpolicy.htools.scalars import parse_int, parse_size, split

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABBREVIATIONS = {
    "p": AllocPolicy.PREFERRED,
    "a": AllocPolicy.LAST_RESORT,
    "u": AllocPolicy.UNALLOCABLE,
}


def simulate(specs: Sequence[str]) -> ClusterData:
    """Return a cluster of one group per specification; the last one given becomes the first group.

    A specification is `policy,count,disk,memory,cpus[,spindles[,exclusive storage]]`, disk and memory
    with units. Raises InputError with htools' own text.
    """
    groups: list[Group] = []
    nodes: list[NodeData] = []
    for number, spec in enumerate(reversed(specs), start=1):
        policy, count, facts = _parse(spec)
        groups.append(Group(number, f"group-{number:02d}", f"fake-uuid-{number:02d}", policy))
        for place in range(1, count + 1):
            nodes.append(_node(len(nodes) + 1, number, place, facts))
    return ClusterData(tuple(groups), tuple(nodes), ())


def _parse(spec: str) -> tuple[AllocPolicy, int, tuple[int, int, int, int, bool]]:
    parts = split(",", spec)
    if not 5 <= len(parts) <= 7:
        raise InputError(
            "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, node"
            f" count, disk size, memory size, number of CPUs, spindles) but got {len(parts)}: '{spec}'"
        )
    policy = _policy(parts[0])
    count = parse_int("node count", parts[1])
    disk = parse_size("disk size", parts[2])
    memory = parse_size("memory size", parts[3])
    cpus = parse_int("cpu count", parts[4])
    spindles = parse_int("spindles", parts[5]) if len(parts) > 5 else 1
    if len(parts) > 6 and parts[6] not in {"True", "False"}:
        raise InputError(f"exclusive storage: cannot parse string '{parts[6]}'")
    return policy, count, (disk, memory, cpus, spindles, len(parts) > 6 and parts[6] == "True")


def _policy(text: str) -> AllocPolicy:
    if text in _ABBREVIATIONS:
        return _ABBREVIATIONS[text]
    try:
        return alloc_policy(text)
    except InputError as error:
        raise InputError(f"{error}; Cannot parse AllocPolicy abbreviation '{text}'") from None


def _node(index: int, group: int, place: int, facts: tuple[int, int, int, int, bool]) -> NodeData:
    disk, memory, cpus, spindles, exclusive = facts
    return NodeData(
        index=index,
        name=f"node-{group:02d}-{place:03d}",
        group=group,
        total_memory=float(memory),
        node_memory=0,
        free_memory=memory,
        total_disk=float(disk),
        free_disk=disk,
        total_cpus=float(cpus),
        master=group == 1 and place == 1,
        spindles=spindles,
        exclusive_storage=exclusive,
    )
