"""Snapshots: files with a cluster state, for plans without the cluster; and the digest of a state.

The format is JSON, `format_version` 1.x: a reader accepts every minor version of its own major version and ignores
unknown keys. Own values are nested by Ganeti's names; a group's `effective` is written only where it does not follow
from own values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path as FilePath
from typing import Any, TypeVar

from gpolicy.cluster.assembly import check_references, identity
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.own_values import own_values
from gpolicy.cluster.possible_numbers import check_numbers
from gpolicy.cluster.private_file import write_private
from gpolicy.cluster.record import Record, shown
from gpolicy.cluster.state import (
    ClusterObject,
    ClusterState,
    Disk,
    Group,
    Instance,
    Node,
    PhysicalVolume,
    Resources,
    Snapshot,
    Unreadable,
)
from gpolicy.cluster.unreadable import read_gap
from gpolicy.errors import GpolicyError, InputError, about
from gpolicy.ganeti.parameter import Level, Value, Values
from gpolicy.ganeti.parameters import position
from gpolicy.ganeti.values import fill, unflatten
from gpolicy.provenance import is_time

KIND = "gpolicy-snapshot"
FORMAT_VERSION = "1.3"
DIGEST_PREFIX = "sha256:"

_T = TypeVar("_T")


def write_snapshot(state: ClusterState, path: FilePath, *, taken_at: str | None = None) -> None:
    """Write the state to `path`, readable by its owner only. Raise GpolicyError, and change nothing, if that fails.

    `taken_at` is when the cluster was read, YYYY-MM-DDThh:mm:ssZ; a state from a snapshot keeps the time of the
    snapshot.
    """
    write_private(path, dump_snapshot(state, taken_at=taken_at))


def dump_snapshot(state: ClusterState, *, taken_at: str | None = None) -> bytes:
    """Return the state as the content of a snapshot file."""
    document = {
        "format_version": FORMAT_VERSION,
        "kind": KIND,
        "source": state.source,
        "taken_at": state.snapshot.taken_at if state.snapshot else taken_at,
        "name": state.name,
        "software_version": state.software_version,
        "notes": list(state.notes),
        "unreadable": [{"level": gap.level.value, "prefix": list(gap.prefix)} for gap in state.unreadable],
        "cluster": _object(state.cluster),
        "groups": {name: _group(group, state.cluster.own) for name, group in state.groups.items()},
        "nodes": {name: _node(node) for name, node in state.nodes.items()},
        "instances": {name: _instance(instance) for name, instance in state.instances.items()},
    }
    try:
        return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except ValueError:
        raise GpolicyError(about(state.address, "holds a number or text that JSON cannot carry")) from None


def read_snapshot(path: FilePath) -> ClusterState:
    """Return the state in the snapshot at `path`. Raise InputError if it is not a snapshot."""
    return parse_snapshot(read_bytes(path), str(path))


def parse_snapshot(data: bytes, where: str) -> ClusterState:
    """Return the state in `data`, the content of a snapshot. Raise InputError, which begins with `where`."""
    document = Record.of(parse_json(data, where), where)
    if document.fields.get("kind") != KIND:
        raise InputError(f"{where}: not a snapshot of gpolicy", hint="write one with: gpolicy snapshot")
    version = document.text("format_version")
    if version.split(".")[0] != FORMAT_VERSION.split(".", maxsplit=1)[0]:
        raise InputError(f"{where}: is of format {version!r}, this gpolicy reads {FORMAT_VERSION}")
    cluster = document.record("cluster")
    own = own_values(cluster.record("own").fields, cluster.where)
    state = ClusterState(
        source=document.text("source"),
        name=document.text("name"),
        software_version=document.text_or_none("software_version"),
        cluster=ClusterObject(own=own, tags=cluster.tags(), identity=identity(cluster.record("identity"))),
        groups={name: _read_group(name, group, own) for name, group in document.records("groups")},
        nodes={name: _read_node(name, node) for name, node in document.records("nodes")},
        instances={name: _read_instance(name, instance) for name, instance in document.records("instances")},
        unreadable=tuple(map(read_gap, document.objects("unreadable"))),
        notes=document.texts("notes"),
        snapshot=Snapshot(where, read_time(document, "taken_at")),  # new in format 1.3
    )
    check_references(state, where)
    check_numbers(state, where)
    return state


def state_digest(state: ClusterState, *, besides: Iterable[Unreadable] = ()) -> str:
    """Return "sha256:…" over what a plan depends on: own values, tags, membership, instances.

    Serial numbers, times, measurements, run-time states, order and the source itself do not count, so two reads of an
    unchanged cluster have the same digest. Values that the source cannot show do not count either. If `besides` names
    those of another source, both sources give one cluster the same digest.
    """
    gaps = (*state.unreadable, *besides)

    def own(values: Values, level: Level) -> list[Value]:
        return [
            [list(path), value]
            for path, value in sorted(values.items())
            if not any(gap.covers(level, path) for gap in gaps)
        ]

    content = {
        "name": state.name,
        "cluster": [own(state.cluster.own, Level.CLUSTER), sorted(state.cluster.tags)],
        "groups": {name: [own(group.own, Level.GROUP), sorted(group.tags)] for name, group in state.groups.items()},
        "nodes": {
            node.name: [
                own(node.own, Level.NODE), sorted(node.tags), node.group, node.offline, node.drained, node.vm_capable,
            ]
            for node in state.nodes.values()
        },
        "instances": {name: _for_digest(instance) for name, instance in state.instances.items()},
    }  # fmt: skip
    return DIGEST_PREFIX + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_NOT_IN_DIGEST = (
    *("identity", "status", "running", "hypervisor"),
    *("position", "oper_ram", "forthcoming", "summed_disk"),  # unknown to format 1.0: its digests must still match
)


_IN_DIGEST = tuple(item.name for item in fields(Instance) if item.name not in {"name", *_NOT_IN_DIGEST})


def _for_digest(instance: Instance) -> Value:
    content: dict[str, Value] = {name: getattr(instance, name) for name in _IN_DIGEST}
    content["tags"] = _texts(instance.tags)
    content["secondary_nodes"] = list(instance.secondary_nodes)
    content["disks"] = [asdict(disk) for disk in instance.disks]
    return content


def _object(item: ClusterObject | Group | Node) -> dict[str, Value]:
    return {"own": _tree(item.own), "tags": _texts(item.tags), "identity": asdict(item.identity)}


def _tree(values: Values) -> dict[str, Value]:
    return unflatten(dict(sorted(values.items(), key=lambda item: position(item[0]))))


def _texts(texts: Iterable[str]) -> list[Value]:
    return [*sorted(texts)]


def _group(group: Group, cluster: Values) -> dict[str, Value]:
    follows = group.effective == fill(group.own, cluster, Level.GROUP)
    effective = {} if follows else {"effective": _tree(group.effective)}
    return {**_object(group), **effective, "networks": list(group.networks), "position": group.position}


def _node(node: Node) -> dict[str, Value]:
    volumes = node.physical_volumes
    return {
        "group": node.group,
        **_object(node),
        "offline": node.offline,
        "drained": node.drained,
        "master": node.master,
        "master_candidate": node.master_candidate,
        "master_capable": node.master_capable,
        "vm_capable": node.vm_capable,
        "resources": asdict(node.resources),
        "physical_volumes": None if volumes is None else [asdict(volume) for volume in volumes],
        "position": node.position,
    }


def _instance(instance: Instance) -> dict[str, Value]:
    content: dict[str, Value] = asdict(instance)
    del content["name"]
    content["tags"] = _texts(instance.tags)
    content["secondary_nodes"] = list(instance.secondary_nodes)
    content["disks"] = [asdict(disk) for disk in instance.disks]
    return content


def read_time(record: Record, key: str) -> str | None:
    """Return a field that is a time, YYYY-MM-DDThh:mm:ssZ, or None. Raise InputError for anything else."""
    written = record.text_or_none(key)
    if written is not None and not is_time(written):
        record.refuse(key, "YYYY-MM-DDThh:mm:ssZ", f"is {shown(written)!r}")
    return written


_READERS: dict[str, Callable[[Record, str], object]] = {
    "str": Record.text,
    "str | None": Record.text_or_none,
    "int": Record.whole,
    "int | None": Record.whole_or_none,
    "bool": Record.flag,
    "bool | None": Record.flag_or_none,
    "frozenset[str]": lambda record, key: frozenset(record.texts(key)),
    "tuple[str, ...]": Record.texts,
}
"""The reader of a field, by its type in the model."""


@cache
def _fields(kind: Any) -> dict[str, Callable[[Record, str], object] | None]:
    return {item.name: _READERS.get(str(item.type)) for item in fields(kind)}


def _read(kind: type[_T], record: Record, **known: object) -> _T:
    """Return a part of the state from a record with its fields; `known` are fields that are already read."""
    plain: Any = kind
    read = {name: reader(record, name) for name, reader in _fields(plain).items() if reader and name not in known}
    found: _T = plain(**known, **read)
    return found


def _read_group(name: str, record: Record, cluster: Values) -> Group:
    own = own_values(record.record("own").fields, record.where)
    if "effective" in record.fields:
        effective = own_values(record.record("effective").fields, record.where)
    else:
        effective = fill(own, cluster, Level.GROUP)
    return Group(
        name=name,
        own=own,
        effective=effective,
        tags=record.tags(),
        identity=identity(record.record("identity")),
        networks=record.texts("networks"),
        position=record.whole_or_none("position"),
    )


def _read_node(name: str, record: Record) -> Node:
    return _read(
        Node,
        record,
        name=name,
        own=own_values(record.record("own").fields, record.where),
        identity=identity(record.record("identity")),
        resources=_read(Resources, record.record("resources")),
        physical_volumes=_read_volumes(record),
    )


def _read_volumes(record: Record) -> tuple[PhysicalVolume, ...] | None:
    if record.fields.get("physical_volumes") is None:  # not read, or from before format 1.2
        return None
    return tuple(_read(PhysicalVolume, item) for item in record.objects("physical_volumes"))


def _read_instance(name: str, record: Record) -> Instance:
    summed = record.fields.get("summed_disk")
    return _read(
        Instance,
        record,
        name=name,
        disks=tuple(_read(Disk, disk) for disk in record.objects("disks")),
        identity=identity(record.record("identity")),
        forthcoming=record.flag("forthcoming", default=False),
        summed_disk=None if summed is None else _read(Disk, record.record("summed_disk")),
    )
