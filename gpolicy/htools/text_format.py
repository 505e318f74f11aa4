"""Reading htools' text format (`-t`, written by hscan and `-S`).

Sections are separated by an empty line: groups, nodes, instances, cluster tags and, optionally,
policies; the columns of a line by `|`. Columns that later versions added have defaults, and a node with a `?` in one
of its figures counts as offline (htools, Backend/Text).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import (
    DEFAULT_POLICY,
    ClusterData,
    Disk,
    Group,
    Instance,
    NodeData,
    Policy,
    Spec,
    SpecPair,
)
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate
from gpolicy.errors import InputError
from gpolicy.htools.enumerations import alloc_policy, disk_template, instance_status
from gpolicy.htools.haskell_text import shown_strings
from gpolicy.htools.scalars import parse_float, parse_int, split

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_cluster(text: str) -> ClusterData:
    """Read a cluster. Raises InputError with htools' own text."""
    sections = _sections(text)
    if len(sections) < 4:
        raise InputError(f"Invalid format of the input file: {len(sections)} sections instead of 4 or more")
    groups = [_group(index, line) for index, line in enumerate(sections[0])]
    by_uuid = {group.uuid: group.index for group in groups}
    nodes = [_node(index, line, by_uuid) for index, line in enumerate(sections[1])]
    by_name = {node.name: node.index for node in nodes}
    instances = [_instance(index, line, by_name) for index, line in enumerate(sections[2])]
    cluster_policy = DEFAULT_POLICY
    for line in sections[4] if len(sections) > 4 else []:
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
        tags=tuple(sections[3]),
        policy=cluster_policy,
    )


def _sections(text: str) -> list[list[str]]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return []
    sections: list[list[str]] = [[]]
    for line in lines:
        if line == "":
            sections.append([])
        else:
            sections[-1].append(line)
    return sections


def _group(index: int, line: str) -> Group:
    columns = line.split("|")
    if len(columns) < 4:
        raise InputError(f"Invalid/incomplete group data: '{shown_strings(columns)}'")
    return Group(
        index=index,
        name=columns[0],
        uuid=columns[1],
        alloc_policy=alloc_policy(columns[2]),
        tags=tuple(split(",", columns[3])),
        networks=tuple(split(",", columns[4])) if len(columns) > 4 else (),
    )


def _node(index: int, line: str, groups: Mapping[str, int]) -> NodeData:
    columns = line.split("|")
    if len(columns) < 9:
        raise InputError(f"Invalid/incomplete node data: '{shown_strings(columns)}'")
    defaults = ("1", "", "N", "0", "1", "1.0")
    columns = [*columns, *defaults[max(0, len(columns) - 9) :]]
    name = columns[0]
    if columns[8] not in groups:
        raise InputError(f"Unknown group '{columns[8]}' for node {name}")
    group = groups[columns[8]]
    if columns[11] not in {"Y", "N"}:
        raise InputError(f"Invalid exclusive_storage value for node '{name}': {columns[11]}")
    if "?" in columns[1:7]:
        return NodeData(index, name, group, 0.0, 0, 0, 0.0, 0, 0.0, 0, offline=True, spindles=0)
    return NodeData(
        index=index,
        name=name,
        group=group,
        total_memory=parse_float(name, columns[1]),
        node_memory=parse_int(name, columns[2]),
        free_memory=parse_int(name, columns[3]),
        total_disk=parse_float(name, columns[4]),
        free_disk=parse_int(name, columns[5]),
        total_cpus=parse_float(name, columns[6]),
        spindles=parse_int(name, columns[9]),
        free_spindles=parse_int(name, columns[12]),
        node_cpus=parse_int(name, columns[13]),
        cpu_speed=parse_float(name, columns[14]),
        offline=columns[7] == "Y",
        master=columns[7] == "M",
        exclusive_storage=columns[11] == "Y",
        tags=tuple(split(",", columns[10])),
    )


def _instance(index: int, line: str, nodes: Mapping[str, int]) -> Instance:
    columns = line.split("|")
    if len(columns) < 10:
        raise InputError(f"Invalid/incomplete instance data: '{shown_strings(columns)}'")
    columns = [*columns, *("1", "-", "N")[max(0, len(columns) - 10) :]]
    name, secondary = columns[0], columns[7]
    if columns[6] not in nodes:
        raise InputError(f"Unknown node '{columns[6]}' for instance {name}")
    if secondary and secondary not in nodes:
        raise InputError(f"Unknown node '{secondary}' for instance {name}")
    memory = parse_int(name, columns[1])
    disk = parse_int(name, columns[2])
    vcpus = parse_int(name, columns[3])
    status = instance_status(columns[4])
    if columns[5] not in {"Y", "N"}:
        raise InputError(f"Invalid auto_balance value '{columns[5]}' for instance {name}")
    try:
        template = disk_template(columns[8])
    except InputError as error:
        raise InputError(f"Instance {name}: {error}") from None
    spindle_use = parse_int(name, columns[10])
    spindles = None if columns[11] == "-" else parse_int(name, columns[11])
    if columns[12] not in {"Y", "N"}:
        raise InputError(f"Invalid forthcoming value '{columns[12]}' for instance {name}")
    if secondary and template is DiskTemplate.DRBD and secondary == columns[6]:
        raise InputError(f"Instance {name} has same primary and secondary node - {columns[6]}")
    return Instance(
        index=index,
        name=name,
        memory=memory,
        disk=disk,
        disks=(Disk(disk, spindles),),
        vcpus=vcpus,
        status=status,
        template=template,
        primary=nodes[columns[6]],
        secondary=nodes[secondary] if secondary else NO_NODE,
        auto_balance=columns[5] == "Y",
        spindle_use=spindle_use,
        tags=tuple(split(",", columns[9])),
        forthcoming=columns[12] == "Y",
    )


def _policy(line: str) -> tuple[str, Policy]:
    columns = line.split("|")
    if len(columns) < 6:
        raise InputError(f"Invalid ipolicy data: '{shown_strings(columns)}'")
    owner = columns[0]
    std = _spec(f"{owner}/stdspec", columns[1])
    minmax = split(";", columns[2])
    if len(minmax) % 2:
        raise InputError(f"Odd number of min/max specs for {owner}")
    pairs = tuple(
        SpecPair(_spec(f"{owner}/minspec", minmax[place]), _spec(f"{owner}/maxspec", minmax[place + 1]))
        for place in range(0, len(minmax), 2)
    )
    return owner, Policy(
        std=std,
        minmax=pairs,
        templates=tuple(disk_template(name) for name in split(",", columns[3])),
        vcpu_ratio=parse_float(f"{owner}/vcpu_ratio", columns[4]),
        spindle_ratio=parse_float(f"{owner}/spindle_ratio", columns[5]),
    )


def _spec(who: str, text: str) -> Spec:
    columns = split(",", text)
    if len(columns) != 6:
        raise InputError(f"Invalid ispec data for {who}: {shown_strings(columns)}")
    names = ("memsize", "cpucount", "disksize", "diskcount", "niccount", "spindleuse")
    return Spec(*(parse_int(f"{who}/{name}", column) for name, column in zip(names, columns, strict=True)))
