"""Snapshots: files with a cluster state, for plans without the cluster; and the digest of a state.

The format is JSON, `format_version` 1.x: a reader accepts every minor version of its own major version and ignores
unknown keys. Own values are nested by Ganeti's names; a group's `effective` is written only where it does not follow
from own values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path as FilePath
from typing import Final

from gpolicy.cluster.assembly import checked, own_values, read_part
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import Record, shown
from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveInstance, LiveNode, Snapshot, Unreadable
from gpolicy.errors import GpolicyError, InputError, about
from gpolicy.ganeti.parameters import fill, position, unflatten
from gpolicy.ganeti.vocabulary import Level, Value, Values
from gpolicy.json_values import plain
from gpolicy.opening import write_private
from gpolicy.provenance import is_time

KIND = "gpolicy-snapshot"
FORMAT_VERSION = "1.3"
DIGEST_PREFIX = "sha256:"


def write_snapshot(state: ClusterState, path: FilePath, *, taken_at: str | None = None) -> None:
    """Write the state to `path`, readable by its owner only. Raise GpolicyError, and change nothing, if that fails.

    `taken_at` is when the cluster was read, YYYY-MM-DDThh:mm:ssZ; a state from a snapshot keeps the time of the
    snapshot.
    """
    write_private(path, dump_snapshot(state, taken_at=taken_at))


def dump_snapshot(state: ClusterState, *, taken_at: str | None = None) -> bytes:
    """Return the state as the content of a snapshot file."""
    groups = {name: _nameless(group) for name, group in state.groups.items()}
    for name, group in state.groups.items():
        if group.effective == fill(group.own, state.cluster.own, Level.GROUP):
            del groups[name]["effective"]
    document = {
        "format_version": FORMAT_VERSION,
        "kind": KIND,
        "source": state.source,
        "taken_at": state.snapshot.taken_at if state.snapshot else taken_at,
        "name": state.name,
        "software_version": state.software_version,
        "notes": list(state.notes),
        "unreadable": [{"level": gap.level.value, "prefix": list(gap.prefix)} for gap in state.unreadable],
        "cluster": _plain(state.cluster),
        "groups": groups,
        "nodes": {name: _nameless(node) for name, node in state.nodes.items()},
        "instances": {name: _nameless(instance) for name, instance in state.instances.items()},
    }
    try:
        return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except ValueError:
        raise GpolicyError(about(state.address, "holds a number or text that JSON cannot carry")) from None


_WRITE_ONE: Final = "write one with: gpolicy snapshot --state SRC FILE"


def read_snapshot(path: FilePath) -> ClusterState:
    """Return the state in the snapshot at `path`. Raise InputError if it is not a snapshot."""
    return parse_snapshot(read_bytes(path), str(path))


def parse_snapshot(data: bytes, where: str) -> ClusterState:
    """Return the state in `data`, the content of a snapshot. Raise InputError, which begins with `where`."""
    try:
        document = Record.of(parse_json(data, where), where)
    except InputError as error:
        raise InputError(error.message, hint=error.hint or _WRITE_ONE) from None
    if document.fields.get("kind") != KIND:
        kind = document.fields.get("kind")
        found = f", but {shown(kind)}" if isinstance(kind, str) else ""
        raise InputError(f"{where}: not a snapshot of gpolicy{found}", hint=_WRITE_ONE)
    version = document.text("format_version")
    if version.split(".")[0] != FORMAT_VERSION.split(".", maxsplit=1)[0]:
        raise InputError(f"{where}: is of format {version!r}, this gpolicy reads {FORMAT_VERSION}")
    cluster = read_part(ClusterObject, document.record("cluster"))
    state = ClusterState(
        source=document.text("source"),
        name=document.text("name"),
        software_version=document.text_or_none("software_version"),
        cluster=cluster,
        groups={name: _read_group(name, group, cluster.own) for name, group in document.records("groups")},
        nodes={name: read_part(LiveNode, node, name=name) for name, node in document.records("nodes")},
        instances={
            name: read_part(LiveInstance, item, name=name, forthcoming=item.flag("forthcoming", default=False))
            for name, item in document.records("instances")
        },
        unreadable=tuple(read_part(Unreadable, gap) for gap in document.objects("unreadable")),
        notes=document.texts("notes"),
        snapshot=Snapshot(where, read_time(document, "taken_at")),  # new in format 1.3
    )
    return checked(state, where)


def state_digest(state: ClusterState, *, besides: Iterable[Unreadable] = ()) -> str:
    """Return "sha256:…" over what a plan depends on: own values, tags, membership, instances.

    Serial numbers, times, measurements, run-time states, order and the source itself do not count, so two reads of an
    unchanged cluster have the same digest. Values that the source cannot show do not count either. If `besides` names
    those of another source, both sources give one cluster the same digest.
    """
    gaps = (*state.unreadable, *besides)

    def own(values: Values, level: Level) -> list[Value]:
        shown = (item for item in sorted(values.items()) if not any(gap.covers(level, item[0]) for gap in gaps))
        return [[list(path), value] for path, value in shown]

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
        "instances": {
            name: {key: _plain(getattr(item, key)) for key in _IN_DIGEST} for name, item in state.instances.items()
        },
    }  # fmt: skip
    return DIGEST_PREFIX + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_NOT_IN_DIGEST = (
    *("identity", "status", "running", "hypervisor"),
    *("position", "oper_ram", "forthcoming", "summed_disk"),  # unknown to format 1.0: its digests must still match
)


_IN_DIGEST = tuple(item.name for item in fields(LiveInstance) if item.name not in {"name", *_NOT_IN_DIGEST})


def _nested(values: Values) -> dict[str, Value]:
    return unflatten(dict(sorted(values.items(), key=lambda item: position(item[0]))))


_plain = partial(plain, forms={dict: _nested, frozenset: sorted})
"""Makes JSON types of a part of the state: own values nested, tags sorted."""


def _nameless(item: object) -> dict[str, Value]:
    """Return an object without its name, which is the key that it stands under."""
    return {key: value for key, value in _plain(item).items() if key != "name"}


def read_time(record: Record, key: str) -> str | None:
    """Return a field that is a time, YYYY-MM-DDThh:mm:ssZ, or None. Raise InputError for anything else."""
    written = record.text_or_none(key)
    if written is not None and not is_time(written):
        record.refuse(key, "YYYY-MM-DDThh:mm:ssZ", f"is {shown(written)!r}")
    return written


def _read_group(name: str, record: Record, cluster: Values) -> LiveGroup:
    own = own_values(record.record("own").fields, record.where)
    known = {} if "effective" in record.fields else {"effective": fill(own, cluster, Level.GROUP)}
    return read_part(LiveGroup, record, name=name, own=own, **known)
