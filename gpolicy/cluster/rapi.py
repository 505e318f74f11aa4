"""Ganeti's remote API (RAPI): one consistent read, in seven requests for a cluster of any size.

It never shows hv_state, disk_state and modify_etc_hosts, and a node's own parameters only to users with a password. The
list of nodes holds their measurements.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.cluster import unreadable
from gpolicy.cluster.assembly import by_name, check_references, filled_group, identity, instance_of, numbered
from gpolicy.cluster.config_data import forthcoming_note
from gpolicy.cluster.live import join_names, missing_notes, resources
from gpolicy.cluster.numbers import check_numbers
from gpolicy.cluster.own_values import CLUSTER_SINGLES, cluster_values, default_of, own_values
from gpolicy.cluster.rapi_client import Client, netloc
from gpolicy.cluster.record import Record, kind_of
from gpolicy.cluster.state import ClusterObject, ClusterState, Disk, Group, Instance, Node, Unreadable
from gpolicy.errors import InputError, UnreachableError
from gpolicy.ganeti.parameter import Level, Value, Values
from gpolicy.ganeti.values import FAMILIES, fill
from gpolicy.ganeti.vocabulary import RAPI_READS

_ATTEMPTS = 4
_WHOLE_READ = 4  # times the time limit of one answer: only the node list can be slow
_PAUSE = 0.5  # seconds before reading a changed cluster again
_INFO, _GROUPS, _NODES, _INSTANCES = (RAPI_READS[name] for name in ("info", "groups", "nodes", "instances"))
_NODE_OWN = "/2/query/node?fields=name,serial_no,custom_ndparams"
_NODE_FIELDS = (
    "name",
    "serial_no",
    "uuid",
    "group.uuid",
    "tags",
    "offline",
    "drained",
    "vm_capable",
    "custom_ndparams",
)
_NODE_CONFIGURATION = f"/2/query/node?fields={','.join(_NODE_FIELDS)}"

NO_NODE_OWN: Final = (
    "own parameters of nodes are not known: the remote API shows them only to users with a password;"
    " values that differ from the group's are shown as own"
)


def read_rapi(client: Client, *, insecure: bool = False) -> ClusterState:
    """Return the state of the cluster behind `client`.

    The cluster and its groups are read again at the end, and everything once more when they have changed, or when the
    parts do not fit together. Raise UnreachableError after a few attempts, or when the read takes longer than four
    times the client's timeout.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    until = time.monotonic() + _WHOLE_READ * client.timeout
    first = _frame(client, until)
    for attempt in range(_ATTEMPTS):
        parts = _Parts(
            first,
            client.get(_NODES, until=until),
            client.get_if_allowed(_NODE_OWN, until=until),
            client.get(_INSTANCES, until=until),
        )
        last = _frame(client, until)
        if first == last:
            try:
                state = _assemble(parts, source)
            except _ChangedError:
                pass
            else:
                notes = ("the server's TLS certificate was not verified",) if insecure else ()
                return replace(state, notes=(*notes, *state.notes))
        first = last
        if attempt + 1 < _ATTEMPTS:
            time.sleep(_PAUSE)
    raise UnreachableError(
        f"{source}: the cluster changed while it was read, {_ATTEMPTS} times in a row",
        hint="try again when fewer jobs are running",
    )


def read_rapi_configuration(client: Client) -> ClusterState:
    """Return the configuration of the cluster, without instances and measurements: no node is asked.

    It takes three requests, even if nodes are down, and a user with a password. Raise as `read_rapi` does.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    for attempt in range(_ATTEMPTS):
        info = Record.of(client.get(_INFO), f"{source}: /2/info")
        own = _cluster_own(info)
        groups = [_group(record, own) for record in _records(client.get(_GROUPS), f"{source}: /2/groups")]
        names = {group.identity.uuid: group.name for group in groups}
        nodes = _rows(client.get(_NODE_CONFIGURATION), _NODE_FIELDS, f"{source}: /2/query/node")
        if all(record.fields.get("group.uuid") in names for record in nodes):
            break
        if attempt + 1 == _ATTEMPTS:
            raise UnreachableError(f"{source}: the cluster changed while it was read", hint="try again")
        time.sleep(_PAUSE)
    state = ClusterState(
        source=source,
        name=info.name("name"),
        software_version=info.text_or_none("software_version"),
        cluster=ClusterObject(own=own, tags=info.tags(), identity=identity(info)),
        groups=by_name(groups, f"{source}: /2/groups"),
        nodes=by_name((_configured(record, names) for record in nodes), f"{source}: /2/query/node"),
        instances={},
        unreadable=_gaps(info),
    )
    check_numbers(state, source)
    return state


def _configured(record: Record, groups: dict[str | None, str]) -> Node:
    return Node(
        name=record.name("name"),
        group=groups[record.text("group.uuid")],
        own=own_values({"ndparams": record.record("custom_ndparams").fields}, record.where),
        tags=record.tags(),
        identity=identity(record),
        offline=record.flag("offline"),
        drained=record.flag("drained"),
        vm_capable=record.flag("vm_capable"),
    )


class _ChangedError(Exception):
    """The answers do not belong together: something changed between two of them."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The parts that are read first and last, to detect a change."""

    info: Value
    groups: Value


def _frame(client: Client, until: float) -> _Frame:
    return _Frame(client.get(_INFO, until=until), client.get(_GROUPS, until=until))


@dataclass(frozen=True, slots=True)
class _Parts:
    frame: _Frame
    nodes: Value
    node_own: Value | None
    instances: Value


def _assemble(parts: _Parts, source: str) -> ClusterState:
    info = Record.of(parts.frame.info, f"{source}: /2/info")
    own = _cluster_own(info)
    groups = [_group(record, own) for record in _records(parts.frame.groups, f"{source}: /2/groups")]
    group_names = {group.identity.uuid: group for group in groups}
    node_own = None if parts.node_own is None else _node_own(parts.node_own, f"{source}: /2/query/node")
    nodes = [_node(record, group_names, node_own) for record in _records(parts.nodes, f"{source}: /2/nodes")]
    records = _records(parts.instances, f"{source}: /2/instances")
    placed = [record for record in records if record.fields.get("name") and record.fields.get("pnode")]
    state = ClusterState(
        source=source,
        name=info.name("name"),
        software_version=info.text_or_none("software_version"),
        cluster=ClusterObject(own=own, tags=info.tags(), identity=identity(info)),
        groups=by_name(numbered(groups), f"{source}: /2/groups"),
        nodes=by_name(numbered(nodes), f"{source}: /2/nodes"),
        instances=by_name(numbered(_instance(record) for record in placed), f"{source}: /2/instances"),
        unreadable=(*_gaps(info), *(() if node_own is not None else (unreadable.NODE_OWN,))),
        notes=(*(() if node_own is not None else (NO_NODE_OWN,)), *forthcoming_note(len(records) - len(placed))),
    )
    try:
        check_references(state, source)
    except InputError as error:
        raise _ChangedError from error
    check_numbers(state, source)
    return replace(state, notes=(*state.notes, *_mixed_note(state), *missing_notes(state)))


def _mixed_note(state: ClusterState) -> tuple[str, ...]:
    mixed = [name for name, instance in state.instances.items() if instance.disk_template == "mixed"]
    return (f"the disks of {join_names(mixed)} have several templates; the remote API does not tell which",) * bool(
        mixed
    )


def _records(value: Value, where: str) -> list[Record]:
    if not isinstance(value, list):
        raise InputError(f"{where}: should be a list, but is {kind_of(value)}")
    return [Record.of(item, where) for item in value]


_SENT_FAMILIES = sorted(FAMILIES - {"hv_state", "disk_state"})


def _not_shown(info: Record) -> list[str]:
    """Return the parameters that this server, perhaps of an older release, does not send."""
    return [key for key in (*CLUSTER_SINGLES, *_SENT_FAMILIES) if key not in info.fields and key != "modify_etc_hosts"]


def _gaps(info: Record) -> tuple[Unreadable, ...]:
    missing = (Unreadable(level=Level.CLUSTER, prefix=(key,)) for key in _not_shown(info))
    return (*unreadable.RAPI, *missing)


def _cluster_own(info: Record) -> Values:
    families: dict[str, Value] = {family: info.record(family).fields for family in _SENT_FAMILIES}
    defaults = {family: default_of(info, family) for family in ("beparams", "nicparams")}
    return cluster_values(info, {**families, **defaults})


def _group(record: Record, cluster: Values) -> Group:
    families: dict[str, Value] = {
        family: record.record(f"custom_{family}").fields for family in ("ipolicy", "diskparams", "ndparams")
    }
    own = own_values({**families, "alloc_policy": record.text("alloc_policy")}, record.where)
    return filled_group(record.name("name"), own, cluster, record)


def _node_own(answer: Value, where: str) -> dict[str, tuple[int, Values]]:
    """Return serial number and own parameters of each node."""
    found: dict[str, tuple[int, Values]] = {}
    for fields in _rows(answer, ("name", "serial_no", "custom_ndparams"), where):
        own = own_values({"ndparams": fields.record("custom_ndparams").fields}, where)
        found[fields.name("name")] = (fields.whole("serial_no"), own)
    return found


def _rows(answer: Value, names: tuple[str, ...], where: str) -> list[Record]:
    """Return the rows of a query. Every field comes as [status, value]; status 0 is good."""
    rows: list[Record] = []
    for row in Record.of(answer, where).items("data"):
        cells = [cell[1] for cell in row if isinstance(cell, list) and len(cell) == 2 and cell[0] == 0] if isinstance(
            row, list) else []  # fmt: skip
        if len(cells) != len(names):
            raise InputError(f"{where}: should answer with {', '.join(names)} of every node")
        rows.append(Record(where, dict(zip(names, cells, strict=True))))
    return rows


def _node(record: Record, groups: dict[str | None, Group], node_own: dict[str, tuple[int, Values]] | None) -> Node:
    name, group = record.name("name"), groups.get(record.text("group.uuid"))
    if group is None:
        raise _ChangedError
    if node_own is None:
        own = _overrides(record, group)
    else:
        serial, own = node_own.get(name, (-1, {}))
        if serial != record.whole("serial_no"):
            raise _ChangedError
    role = record.text_or_none("role")
    return Node(
        name=name,
        group=group.name,
        own=own,
        tags=record.tags(),
        identity=identity(record),
        offline=record.flag("offline"),
        drained=record.flag("drained"),
        master=role == "M",
        master_candidate=record.flag_or_none("master_candidate"),
        master_capable=record.flag_or_none("master_capable"),
        vm_capable=record.flag("vm_capable", default=True),
        resources=resources(record),
    )


def _overrides(record: Record, group: Group) -> Values:
    """Return the filled parameters that differ from the group's: all are the node's own, but some may be missing."""
    filled = own_values({"ndparams": record.record("ndparams").fields}, record.where)
    inherited = fill({}, group.effective, Level.NODE)
    return {path: value for path, value in filled.items() if inherited.get(path) != value}


def _instance(record: Record) -> Instance:
    beparams = record.record("beparams")
    template = record.name("disk_template")
    sizes = Record(record.where, {f"disk {number}": size for number, size in enumerate(record.items("disk.sizes"))})
    spindles = Record(record.where, dict(zip(sizes.fields, record.items("disk.spindles"), strict=False)))
    return instance_of(
        record,
        beparams,
        primary_node=record.text("pnode"),
        secondary_nodes=record.texts("snodes"),
        disk_template=template,
        disks=tuple(
            Disk(size=sizes.whole(key), template=template, spindles=spindles.whole_or_none(key)) for key in sizes.fields
        ),
        nic_count=len(record.items("nic.macs")),
        status=record.text_or_none("status"),
        running=record.flag_or_none("oper_state"),
        oper_ram=record.whole_or_none("oper_ram"),
    )
