"""Empty clusters described on the command line (`--simulate`; htools, Backend/Simu)."""

from __future__ import annotations

from gpolicy.allocator.cluster_data import ClusterData, Group, NodeData
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_formats import ALLOC_POLICIES, group_name, node_name, specification_in
from gpolicy.ganeti.htools_reading import named, parse_int, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def simulate(specs: Sequence[str]) -> ClusterData:
    """Return a cluster of one group per specification; the last one given becomes the first group.

    A specification is `policy,count,disk,memory,cpus[,spindles[,exclusive storage]]`, disk and memory
    with units. Raises InputError with htools' own text.
    """
    groups: list[Group] = []
    nodes: list[NodeData] = []
    for number, spec in enumerate(reversed(specs), start=1):
        policy, count, facts = _parse(spec)
        groups.append(Group(number, group_name(number), f"fake-uuid-{number:02d}", policy))
        for place in range(1, count + 1):
            nodes.append(_node(len(nodes) + 1, number, place, facts))
    return ClusterData(tuple(groups), tuple(nodes), ())


def _parse(spec: str) -> tuple[AllocPolicy, int, tuple[int, int, int, int, bool]]:
    sections, found = specification_in(spec)
    if found is None:
        raise InputError(
            "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, node"
            f" count, disk size, memory size, number of CPUs, spindles) but got {sections}: '{spec}'"
        )
    policy = _policy(found.policy)
    count = parse_int("node count", found.node_count)
    disk = parse_size("disk size", found.disk)
    memory = parse_size("memory size", found.memory)
    cpus = parse_int("cpu count", found.cpus)
    spindles = parse_int("spindles", found.spindles)
    if found.exclusive not in {"True", "False"}:
        raise InputError(f"exclusive storage: cannot parse string '{found.exclusive}'")
    return policy, count, (disk, memory, cpus, spindles, found.exclusive == "True")


def _policy(text: str) -> AllocPolicy:
    try:
        return named(AllocPolicy, ALLOC_POLICIES.get(text, text))
    except InputError as error:
        raise InputError(f"{error}; Cannot parse AllocPolicy abbreviation '{text}'") from None


def _node(index: int, group: int, place: int, facts: tuple[int, int, int, int, bool]) -> NodeData:
    disk, memory, cpus, spindles, exclusive = facts
    return NodeData(
        index=index,
        name=node_name(group, place),
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
