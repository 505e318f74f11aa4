"""htools' text format, read (`-t`) and written with all columns and sections (`-S`), and `--simulate`.

Source: htools, Backend/Text and Backend/Simu. A node with a `?` in one of its figures counts as offline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpolicy.allocator import cluster_data
from gpolicy.allocator.ghc_numbers import fixed, shown_float, shown_strings
from gpolicy.allocator.merge import Cluster, ClusterData
from gpolicy.errors import InputError
from gpolicy.ganeti import htools_formats
from gpolicy.ganeti.htools_reading import named, parse_float, parse_int, parse_size, split
from gpolicy.htools.backends import node_name
from gpolicy.light_dataclasses import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse_cluster(text: str) -> ClusterData:
    """Read a cluster. Raises InputError with htools' own text."""
    found = [[line for _, line in section] for section in htools_formats.sections(text.split("\n"))]
    if len(found) < 4:
        raise InputError(f"Invalid format of the input file: {len(found)} sections instead of 4 or more")
    groups = [_group_of_line(index, line) for index, line in enumerate(found[0])]
    by_uuid = {group.uuid: group.index for group in groups}
    nodes = [_node_of_line(index, line, by_uuid) for index, line in enumerate(found[1])]
    by_name = {node.name: node.index for node in nodes}
    instances = [_instance_of_line(index, line, by_name) for index, line in enumerate(found[2])]
    cluster_policy = cluster_data.DEFAULT_POLICY
    for line in found[4] if len(found) > 4 else []:
        owner, policy = _policy(line)
        if owner == "":
            cluster_policy = policy
            continue
        matching = [group for group in groups if owner in {group.name, group.uuid}]
        if len(matching) != 1:
            raise InputError(f"Wrong number of elems found with name {owner}")
        groups[matching[0].index] = replace(matching[0], policy=policy)
    return ClusterData(
        groups=tuple(groups),
        nodes=tuple(nodes),
        instances=tuple(instances),
        tags=tuple(found[3]),
        policy=cluster_policy,
    )


def _parsed(kind: Any, text: str, what: str) -> Any:
    """Return the columns of a line by name; missing ones have defaults, surplus ones are ignored."""
    words, _ = htools_formats.columns_of(kind, text)
    if words is None:
        raise InputError(f"Invalid{what}: '{shown_strings(text.split('|'))}'")
    return words


def _group_of_line(index: int, text: str) -> cluster_data.Group:
    line = _parsed(htools_formats.GroupLine, text, "/incomplete group data")
    return cluster_data.Group(
        index=index,
        name=line.name,
        uuid=line.uuid,
        alloc_policy=named(cluster_data.AllocPolicy, line.alloc_policy),
        tags=tuple(split(",", line.tags)),
        networks=tuple(split(",", line.networks)),
    )


def _node_of_line(index: int, text: str, groups: Mapping[str, int]) -> cluster_data.NodeData:
    line = _parsed(htools_formats.NodeLine, text, "/incomplete node data")
    name = line.name
    if line.group not in groups:
        raise InputError(f"Unknown group '{line.group}' for node {name}")
    group = groups[line.group]
    if line.exclusive_storage not in {"Y", "N"}:
        raise InputError(f"Invalid exclusive_storage value for node '{name}': {line.exclusive_storage}")
    if htools_formats.is_silent(line):
        return cluster_data.NodeData(index, name, group, node_cpus=0, offline=True, spindles=0)
    return cluster_data.NodeData(
        index=index,
        name=name,
        group=group,
        total_memory=parse_float(name, line.total_memory),
        node_memory=parse_int(name, line.node_memory),
        free_memory=parse_int(name, line.free_memory),
        total_disk=parse_float(name, line.total_disk),
        free_disk=parse_int(name, line.free_disk),
        total_cpus=parse_float(name, line.total_cpus),
        spindles=parse_int(name, line.spindles),
        free_spindles=parse_int(name, line.free_spindles),
        node_cpus=parse_int(name, line.node_cpus),
        cpu_speed=parse_float(name, line.cpu_speed),
        offline=line.role == "Y",
        master=line.role == "M",
        exclusive=line.exclusive_storage == "Y",
        tags=tuple(split(",", line.tags)),
    )


def _instance_of_line(index: int, text: str, nodes: Mapping[str, int]) -> cluster_data.Instance:
    line = _parsed(htools_formats.InstanceLine, text, "/incomplete instance data")
    name, primary, secondary = line.name, line.primary, line.secondary
    if primary not in nodes:
        raise InputError(f"Unknown node '{primary}' for instance {name}")
    if secondary and secondary not in nodes:
        raise InputError(f"Unknown node '{secondary}' for instance {name}")
    memory = parse_int(name, line.memory)
    disk = parse_int(name, line.disk)
    vcpus = parse_int(name, line.vcpus)
    status = named(cluster_data.InstanceStatus, line.status)
    if line.auto_balance not in {"Y", "N"}:
        raise InputError(f"Invalid auto_balance value '{line.auto_balance}' for instance {name}")
    try:
        template = named(cluster_data.DiskTemplate, line.template)
    except InputError as error:
        raise InputError(f"Instance {name}: {error}") from None
    spindle_use = parse_int(name, line.spindle_use)
    spindles = None if line.spindles == "-" else parse_int(name, line.spindles)
    if line.forthcoming not in {"Y", "N"}:
        raise InputError(f"Invalid forthcoming value '{line.forthcoming}' for instance {name}")
    if secondary and template is cluster_data.DiskTemplate.DRBD and secondary == primary:
        raise InputError(f"Instance {name} has same primary and secondary node - {primary}")
    return cluster_data.Instance(
        index=index,
        name=name,
        memory=memory,
        disk=disk,
        disks=(cluster_data.Disk(disk, spindles),),
        vcpus=vcpus,
        status=status,
        template=template,
        primary=nodes[primary],
        secondary=nodes[secondary] if secondary else cluster_data.NO_NODE,
        auto_balance=line.auto_balance == "Y",
        spindle_use=spindle_use,
        tags=tuple(split(",", line.tags)),
        forthcoming=line.forthcoming == "Y",
    )


def _policy(text: str) -> tuple[str, cluster_data.InstancePolicy]:
    line = _parsed(htools_formats.PolicyLine, text, " ipolicy data")
    owner, minmax = line.owner, split(";", line.minmax)
    std = _spec(f"{owner}/stdspec", line.std)
    if len(minmax) % 2:
        raise InputError(f"Odd number of min/max specs for {owner}")
    pairs = tuple(
        cluster_data.SpecPair(_spec(f"{owner}/minspec", minmax[place]), _spec(f"{owner}/maxspec", minmax[place + 1]))
        for place in range(0, len(minmax), 2)
    )
    return owner, cluster_data.InstancePolicy(
        std=std,
        minmax=pairs,
        templates=tuple(named(cluster_data.DiskTemplate, name) for name in split(",", line.templates)),
        vcpu_ratio=parse_float(f"{owner}/vcpu_ratio", line.vcpu_ratio),
        spindle_ratio=parse_float(f"{owner}/spindle_ratio", line.spindle_ratio),
    )


def _spec(who: str, text: str) -> cluster_data.Spec:
    columns = split(",", text)
    if len(columns) != 6:
        raise InputError(f"Invalid ispec data for {who}: {shown_strings(columns)}")
    names = ("memsize", "cpucount", "disksize", "diskcount", "niccount", "spindleuse")
    return cluster_data.Spec(*(parse_int(f"{who}/{name}", column) for name, column in zip(names, columns, strict=True)))


def format_cluster(cluster: Cluster) -> str:
    """Return the cluster in the text format, as `-S` writes it."""
    groups, nodes = cluster.groups.values(), cluster.nodes
    lines = [_line(one.name, one.uuid, one.alloc_policy.value, one.tags, one.networks) for one in groups]
    lines += ["", *(_format_node(node, cluster.groups[node.facts.group].uuid) for node in nodes.values())]
    lines += ["", *(_format_instance(instance, nodes) for instance in cluster.instances.values())]
    lines += ["", *cluster.tags, "", _format_policy("", cluster.policy)]
    lines += [_format_policy(group.name, group.policy) for group in groups]
    return "".join(f"{line}\n" for line in lines)


def _line(*cells: str | bool | tuple[str, ...] | int) -> str:
    texts = (("Y" if cell else "N") if isinstance(cell, bool) else cell for cell in cells)
    return "|".join(",".join(text) if isinstance(text, tuple) else str(text) for text in texts)


def _format_node(node: cluster_data.Node, group: str) -> str:
    own = node.facts
    flag: str | bool = "M" if own.master and not own.offline else own.offline
    return _line(
        *(own.name, fixed(own.total_memory, 0), own.node_memory, own.free_memory, fixed(own.total_disk, 0)),
        *(node.free_disk, fixed(own.total_cpus, 0), flag, group, own.spindles, own.tags, own.exclusive),
        *(node.free_spindles, own.node_cpus, shown_float(own.cpu_speed)),
    )


def _format_instance(instance: cluster_data.Instance, nodes: Mapping[int, cluster_data.Node]) -> str:
    where = [node_name(nodes, instance, index) for index in (instance.primary, instance.secondary)]
    spindles = instance.total_spindles
    return _line(
        *(instance.name, instance.memory, instance.disk, instance.vcpus, instance.status.value, instance.auto_balance),
        *(*where, instance.template.value, instance.tags, instance.spindle_use),
        *("-" if spindles is None else spindles, instance.forthcoming),
    )


def _format_policy(owner: str, policy: cluster_data.InstancePolicy) -> str:
    specs = ";".join(f"{_format_spec(pair.min)};{_format_spec(pair.max)}" for pair in policy.minmax)
    templates = ",".join(template.value for template in policy.templates)
    ratios = f"{shown_float(policy.vcpu_ratio)}|{shown_float(policy.spindle_ratio)}"
    return f"{owner}|{_format_spec(policy.std)}|{specs}|{templates}|{ratios}"


def _format_spec(spec: cluster_data.Spec) -> str:
    return f"{spec.memory},{spec.cpus},{spec.disk_size},{spec.disk_count},{spec.nic_count},{spec.spindle_use}"


def simulate(specs: Sequence[str]) -> ClusterData:
    """Return a cluster of one group per specification; the last one given becomes the first group.

    A specification is `policy,count,disk,memory,cpus[,spindles[,exclusive storage]]`, disk and memory
    with units. Raises InputError with htools' own text.
    """
    groups: list[cluster_data.Group] = []
    nodes: list[cluster_data.NodeData] = []
    for number, spec in enumerate(reversed(specs), start=1):
        policy, count, each = _parse(spec)
        groups.append(cluster_data.Group(number, htools_formats.group_name(number), f"fake-uuid-{number:02d}", policy))
        for place in range(1, count + 1):
            index, master = len(nodes) + 1, number == 1 and place == 1
            name = htools_formats.node_name(number, place)
            nodes.append(replace(each, index=index, name=name, group=number, master=master))
    return ClusterData(tuple(groups), tuple(nodes), ())


def _parse(spec: str) -> tuple[cluster_data.AllocPolicy, int, cluster_data.NodeData]:
    """Return the policy of the group, how many nodes it has, and what they are alike in."""
    columns, found = htools_formats.specification_in(spec)
    if found is None:
        raise InputError(
            "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, node"
            f" count, disk size, memory size, number of CPUs, spindles) but got {columns}: '{spec}'"
        )
    try:
        policy = named(cluster_data.AllocPolicy, htools_formats.ALLOC_POLICIES.get(found.policy, found.policy))
    except InputError as error:
        raise InputError(f"{error}; Cannot parse AllocPolicy abbreviation '{found.policy}'") from None
    count = parse_int("node count", found.node_count)
    disk, memory = parse_size("disk size", found.disk), parse_size("memory size", found.memory)
    cpus, spindles = parse_int("cpu count", found.cpus), parse_int("spindles", found.spindles)
    if found.exclusive not in {"True", "False"}:
        raise InputError(f"exclusive storage: cannot parse string '{found.exclusive}'")
    node = cluster_data.NodeData(
        0, "", 0, total_memory=float(memory), free_memory=memory, total_disk=float(disk), free_disk=disk
    )
    exclusive = found.exclusive == "True"
    return policy, count, replace(node, total_cpus=float(cpus), spindles=spindles, exclusive=exclusive)
