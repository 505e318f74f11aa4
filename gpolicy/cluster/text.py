"""The text format of htools, as `hscan` and `hspace -S` write it.

Sections, parted by an empty line: groups, nodes, instances, cluster tags, policies; columns parted by `|`.
All sizes are MiB. It holds effective policies and no own values but the groups' alloc_policy (and the cluster's
ipolicy, which is all its own); so almost everything is unreadable, and what it shows serves capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path as FilePath

from gpolicy.cluster import unreadable
from gpolicy.cluster.assembly import by_name, check_references, numbered
from gpolicy.cluster.json_input import decode_text, read_bytes, shown
from gpolicy.cluster.numbers import check_numbers
from gpolicy.cluster.own_values import own_values
from gpolicy.cluster.state import ClusterObject, ClusterState, Disk, Group, Identity, Instance, Node, Resources
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Level, Value, Values
from gpolicy.ganeti.parameters import parameters_of
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, DRBD_METADATA

_SPEC_COLUMNS = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
_LARGEST = 2**63
_YES_NO = {"Y": True, "N": False}

_STATES: dict[str, tuple[str, bool | None]] = {
    "running": ("up", True),
    "ADMIN_down": ("down", False),
    "ADMIN_offline": ("offline", False),
    "ERROR_up": ("down", True),
    "ERROR_down": ("up", False),
    "ERROR_wrongnode": ("up", True),
    "ERROR_nodedown": ("up", None),
    "ERROR_nodeoffline": ("up", None),
    "USER_down": ("up", False),
}
"""Ganeti's status of an instance: what it should be, and whether it runs."""

_NOTES = (
    "a text file does not name its cluster: the name is taken from the file's, which hscan calls after the cluster",
    "a text file shows effective policies: own values of groups and nodes are not known from it",
    "a text file gives one disk for all disks of an instance, and no network interfaces",
    "a text file does not tell an offline node from a drained one or one that may hold no instances",
)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line's columns, and where it stands."""

    where: str
    columns: list[str]

    def text(self, column: int) -> str:
        return self.columns[column - 1] if column <= len(self.columns) else ""

    def whole(self, column: int) -> int:
        """Return a size or count; htools prints some as `65536.0`."""
        number = self.number(column)
        if not number.is_integer():
            raise InputError(f"{self.where}: column {column} should be a whole number, but is {self.text(column)!r}")
        return int(number)

    def number(self, column: int) -> float:
        return _number(self.text(column), f"{self.where}: column {column}")

    def choice(self, column: int, choices: dict[str, bool]) -> bool:
        if self.text(column) not in choices:
            wanted = " or ".join(choices)
            raise InputError(f"{self.where}: column {column} should be {wanted}, but is {self.text(column)!r}")
        return choices[self.text(column)]

    def tags(self, column: int) -> frozenset[str]:
        return frozenset(tag for tag in self.text(column).split(",") if tag)


def read_text_file(path: FilePath, *, source: str | None = None) -> ClusterState:
    """Return the state in the htools text file at `path`. Raise InputError if it is none."""
    text = decode_text(read_bytes(path), str(path))
    return parse_text(text, where=str(path), source=source or f"text:{path}", name=path.stem)


def parse_text(text: str, *, where: str, source: str, name: str) -> ClusterState:
    """Return the state that `text` describes, of a cluster called `name` (the format holds no name).

    Raise InputError, which begins with `where` and the line's number.
    """
    groups_lines, node_lines, instance_lines, tag_lines, policy_lines = _sections(text, where)
    uuids: dict[str, str] = {}
    for line in groups_lines:
        _check_columns(line, 4, 5)
        uuids[line.text(2)] = line.text(1)
    policies = _policies(policy_lines, uuids)
    cluster = policies.get("", {})
    state = ClusterState(
        source=source,
        name=name,
        software_version=None,
        cluster=ClusterObject(own=cluster, tags=frozenset(line.columns[0] for line in tag_lines)),
        groups=by_name(numbered(_group(line, policies) for line in groups_lines), f"{where}: groups"),
        nodes=by_name(numbered(_node(line, uuids) for line in node_lines), f"{where}: nodes"),
        instances=by_name(numbered(_instance(line) for line in instance_lines), f"{where}: instances"),
        unreadable=unreadable.text(cluster_policy=bool(cluster)),
        notes=_NOTES,
    )
    check_references(state, where)
    check_numbers(state, where)
    return state


def _sections(text: str, where: str) -> tuple[list[_Line], ...]:
    sections: list[list[_Line]] = [[]]
    lines = text.split("\n")
    if not lines[-1]:  # a line ends with a line feed: behind the last one there is none
        lines.pop()
    for number, ended in enumerate(lines, start=1):
        line = ended.removesuffix("\r")
        if line:
            sections[-1].append(_Line(f"{where}:{number}", line.split("|")))
        else:
            sections.append([])
    if len(sections) < 4:
        raise InputError(
            f"{where}: not a text file of htools: {len(sections)} sections, not 4 or more",
            hint="hscan and hspace -S write such files",
        )
    return tuple([*sections[:5], [], []][:5])


def _check_columns(line: _Line, least: int, most: int) -> None:
    if not least <= len(line.columns) <= most:
        raise InputError(f"{line.where}: has {len(line.columns)} columns, not {least} to {most}")


def _group(line: _Line, policies: dict[str, Values]) -> Group:
    name = line.text(1)
    own = own_values({"alloc_policy": line.text(3)}, line.where)
    return Group(
        name=name,
        own=own,
        effective={**own, **policies.get(name, _BUILT_IN)},
        tags=line.tags(4),
        identity=Identity(uuid=line.text(2) or None),
        networks=tuple(line.text(5).split(",")) if line.text(5) else (),
    )


def _node(line: _Line, uuids: dict[str, str]) -> Node:
    _check_columns(line, 9, 15)
    if line.text(9) not in uuids:
        raise InputError(f"{line.where}: is in a group that is not there: {line.text(9)!r}")
    silent = any(line.text(column) == "?" for column in range(2, 8))
    shown: dict[str, Value] = {"spindle_count": 1, "cpu_speed": 1.0}
    exclusive = False
    if len(line.columns) >= 12:
        exclusive = line.choice(12, _YES_NO)
        shown["exclusive_storage"] = exclusive
    if len(line.columns) >= 15:
        shown["cpu_speed"] = line.number(15)
    if len(line.columns) >= 10:
        shown["spindle_count"] = line.whole(10)
    return Node(
        name=line.text(1),
        group=uuids[line.text(9)],
        own={("ndparams", key): value for key, value in shown.items()},
        tags=line.tags(11),
        offline=silent or line.text(8) == "Y",
        master=line.text(8) == "M",
        resources=Resources() if silent else _resources(line, exclusive=exclusive),
    )


def _resources(line: _Line, *, exclusive: bool) -> Resources:
    return Resources(
        memory_total=line.whole(2),
        memory_node=line.whole(3),
        memory_free=line.whole(4),
        disk_total=line.whole(5),
        disk_free=line.whole(6),
        cpu_total=line.whole(7),
        cpu_node=line.whole(14) if len(line.columns) >= 14 else 1,
        spindles_total=line.whole(10) if exclusive else None,
        spindles_free=line.whole(13) if exclusive and len(line.columns) >= 13 else None,
    )


def _instance(line: _Line) -> Instance:
    _check_columns(line, 10, 13)
    status, template, memory = line.text(5), line.text(9), line.whole(2)
    forthcoming = len(line.columns) >= 13 and line.choice(13, _YES_NO)
    if status not in _STATES:
        raise InputError(f"{line.where}: no such instance status: {status!r}")
    if template not in DISK_TEMPLATES:
        raise InputError(f"{line.where}: no such disk template: {template!r}")
    summed = line.whole(3)
    size = max(summed - DRBD_METADATA, 0) if template == "drbd" else summed
    if line.text(7) == line.text(8):
        raise InputError(f"{line.where}: has the same primary and secondary node: {line.text(7)!r}")
    spindles = None if line.text(12) in ("", "-") else line.whole(12)
    admin_state, running = _STATES[status]
    return Instance(
        name=line.text(1),
        primary_node=line.text(7),
        secondary_nodes=(line.text(8),) if line.text(8) else (),
        disk_template=template,
        disks=() if template == "diskless" else (Disk(size=size, template=template, spindles=spindles),),
        minmem=memory,
        maxmem=memory,
        vcpus=line.whole(4),
        spindle_use=line.whole(11) if len(line.columns) >= 11 else 1,
        auto_balance=line.choice(6, _YES_NO),
        admin_state=admin_state,
        status=status,
        running=running,
        tags=line.tags(10),
        forthcoming=forthcoming,
        summed_disk=Disk(size=summed, template=template, spindles=spindles),
    )


def _policies(lines: list[_Line], uuids: dict[str, str]) -> dict[str, Values]:
    """Return the effective policies by the name of the group; the cluster's is under the empty name."""
    policies: dict[str, Values] = {}
    for line in lines:
        _check_columns(line, 6, 6)
        owner = uuids.get(line.text(1), line.text(1))
        if owner and owner not in uuids.values():
            raise InputError(f"{line.where}: a policy of a group that is not there: {owner!r}")
        specs = [_spec(text, line.where) for text in line.text(3).split(";")]
        if len(specs) % 2:
            raise InputError(f"{line.where}: column 3 should hold pairs of specs, but one has no partner")
        ipolicy: dict[str, Value] = {
            "minmax": [{"min": low, "max": high} for low, high in zip(specs[::2], specs[1::2], strict=True)],
            "std": _spec(line.text(2), line.where),
            "disk-templates": [name for name in line.text(4).split(",") if name],
            "vcpu-ratio": line.number(5),
            "spindle-ratio": line.number(6),
        }
        policies[owner] = own_values({"ipolicy": ipolicy}, line.where)
    return policies


def _spec(text: str, where: str) -> dict[str, Value]:
    numbers = [_number(number, where) for number in text.split(",")]
    if len(numbers) != len(_SPEC_COLUMNS) or not all(number.is_integer() for number in numbers):
        raise InputError(f"{where}: a spec is six whole numbers, but this is {text[:60]!r}")
    return {name: int(number) for name, number in zip(_SPEC_COLUMNS, numbers, strict=True)}


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{where}: should be a number, but is {text[:60]!r}")
    if abs(number) >= _LARGEST:
        raise InputError(f"{where}: is {shown(text)}: no cluster has so much")
    return number


_BUILT_IN: Values = {
    parameter.path: parameter.default for parameter in parameters_of(Level.CLUSTER) if parameter.family == "ipolicy"
}
"""What a group without a policy line is governed by: Ganeti's defaults, and not the cluster's policy."""
