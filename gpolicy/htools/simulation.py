"""Empty clusters described on the command line (`--simulate`; htools, Backend/Simu)."""

from __future__ import annotations

from collections.abc import Sequence

from gpolicy.allocator.cluster_data import AllocPolicy, Group, NodeData
from gpolicy.allocator.merge import ClusterData
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_formats import ALLOC_POLICIES, group_name, node_name, specification_in
from gpolicy.ganeti.htools_reading import named, parse_int, parse_size
from gpolicy.light_dataclasses import replace


def simulate(specs: Sequence[str]) -> ClusterData:
    """Return a cluster of one group per specification; the last one given becomes the first group.

    A specification is `policy,count,disk,memory,cpus[,spindles[,exclusive storage]]`, disk and memory
    with units. Raises InputError with htools' own text.
    """
    groups: list[Group] = []
    nodes: list[NodeData] = []
    for number, spec in enumerate(reversed(specs), start=1):
        policy, count, each = _parse(spec)
        groups.append(Group(number, group_name(number), f"fake-uuid-{number:02d}", policy))
        for place in range(1, count + 1):
            index, master = len(nodes) + 1, number == 1 and place == 1
            nodes.append(replace(each, index=index, name=node_name(number, place), group=number, master=master))
    return ClusterData(tuple(groups), tuple(nodes), ())


def _parse(spec: str) -> tuple[AllocPolicy, int, NodeData]:
    """Return the policy of the group, how many nodes it has, and what they are alike in."""
    sections, found = specification_in(spec)
    if found is None:
        raise InputError(
            "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, node"
            f" count, disk size, memory size, number of CPUs, spindles) but got {sections}: '{spec}'"
        )
    try:
        policy = named(AllocPolicy, ALLOC_POLICIES.get(found.policy, found.policy))
    except InputError as error:
        raise InputError(f"{error}; Cannot parse AllocPolicy abbreviation '{found.policy}'") from None
    count = parse_int("node count", found.node_count)
    disk, memory = parse_size("disk size", found.disk), parse_size("memory size", found.memory)
    cpus, spindles = parse_int("cpu count", found.cpus), parse_int("spindles", found.spindles)
    if found.exclusive not in {"True", "False"}:
        raise InputError(f"exclusive storage: cannot parse string '{found.exclusive}'")
    node = NodeData(0, "", 0, total_memory=float(memory), free_memory=memory, total_disk=float(disk), free_disk=disk)
    exclusive = found.exclusive == "True"
    return policy, count, replace(node, total_cpus=float(cpus), spindles=spindles, exclusive=exclusive)
