"""Ganeti's remote API (RAPI): one consistent read, in seven requests for a cluster of any size.

It never shows hv_state, disk_state and modify_etc_hosts, and a node's own parameters only to users with a password. The
list of nodes holds their measurements.
"""

import time
from dataclasses import replace
from typing import Any, Final

from gpolicy.cluster import assembly, state
from gpolicy.cluster.rapi_client import Client, netloc
from gpolicy.cluster.record import Record, kind_of, shown
from gpolicy.cluster.state_files import forthcoming_note
from gpolicy.errors import InputError, UnreachableError
from gpolicy.ganeti.parameters import FAMILIES, fill
from gpolicy.ganeti.vocabulary import RAPI_READS, Level, Value, Values
from gpolicy.printable import some

NODE_OWN_FIELDS: Final = ("name", "serial_no", "custom_ndparams")
_VERSION: Final = ("name", "serial_no", "uuid")
CONFIGURATION_FIELDS: Final = (*_VERSION, "group.uuid", "tags", "offline", "drained", "vm_capable", "custom_ndparams")
PLACE_FIELDS: Final = (*_VERSION, "pnode", "snodes", "admin_state", "disk_template", "beparams", "tags")
NO_NODE_OWN: Final = (
    "own parameters of nodes are not known: the remote API shows them only to users with a password;"
    " values that differ from the group's are shown as own"
)


class _RapiObject(Record):
    """An object of an answer. Ganeti sends each list and mapping, if only an empty one."""

    __slots__ = ()
    absent_is_empty = False


class ChangedError(InputError):
    """The answers do not belong together: something changed between two of them."""


def state_of(
    source: str, *, info: Value, groups: Value, nodes: Value, instances: Value, node_own: Value | None = None
) -> state.ClusterState:
    """Return the state that the documents of one cluster describe.

    `node_own` is the query of `NODE_OWN_FIELDS`, None for users without a password. Raise InputError that begins with
    `source`, ChangedError among them.
    """
    frame = _frame(info, groups, source)
    by_uuid = {group.identity.uuid: group for group in frame.groups.values()}
    own: dict[str, tuple[int, Values]] | None = None  # serial number and own parameters
    if node_own is not None:
        where = f"{source}: /2/query/node"
        rows = _rows(node_own, NODE_OWN_FIELDS, where)
        own = {row.name("name"): (row.whole("serial_no"), _node_values(row, where)) for row in rows}
    found = [_node_from_rapi(record, by_uuid, own) for record in records_of(nodes, f"{source}: /2/nodes")]
    records = records_of(instances, f"{source}: /2/instances")
    placed = [record for record in records if _has_place(record)]
    cluster = replace(
        frame,
        nodes=assembly.by_name(found, f"{source}: /2/nodes", in_order=True),
        instances=assembly.by_name(map(_instance, placed), f"{source}: /2/instances", in_order=True),
        unreadable=(*frame.unreadable, *(() if node_own is not None else (state.HIDDEN_OWN,))),
    )
    try:
        assembly.check_references(cluster, source)
    except InputError as error:
        raise ChangedError(error.message) from None
    assembly.check_numbers(cluster, source)
    notes = [] if node_own is not None else [NO_NODE_OWN]
    notes += forthcoming_note(len(records) - len(placed))
    if mixed := [name for name, instance in cluster.instances.items() if instance.disk_template == "mixed"]:
        notes.append(f"the disks of {some(mixed)} have several templates; the remote API does not tell which")
    return replace(cluster, notes=(*notes, *assembly.missing_notes(cluster)))


def configuration_of(
    info_answer: Value, groups_answer: Value, nodes_answer: Value, instances_answer: Value, source: str
) -> state.ClusterState:
    """Return the configuration of a cluster, without measurements and disks.

    `nodes_answer` is the query of `CONFIGURATION_FIELDS`, `instances_answer` that of `PLACE_FIELDS`, None if instances
    do not matter. Raise as `state_of` does.
    """
    frame = _frame(info_answer, groups_answer, source)
    by_uuid = {group.identity.uuid: group for group in frame.groups.values()}
    where = f"{source}: /2/query/node"
    nodes = _rows(nodes_answer, CONFIGURATION_FIELDS, where)
    configured = (_configured(record, _group_of(record, by_uuid), _node_values(record, where)) for record in nodes)
    cluster = replace(frame, nodes=assembly.by_name(configured, where))
    if instances_answer is not None:
        where = f"{source}: /2/query/instance"
        placed = [record for record in _rows(instances_answer, PLACE_FIELDS, where) if _has_place(record)]
        instances = (_placed(record, record.name("disk_template")) for record in placed)
        cluster = replace(cluster, instances=assembly.by_name(instances, where))
    assembly.check_numbers(cluster, source)
    return cluster


def _has_place(instance: Record) -> bool:
    """Return whether an instance has a name and a node; a forthcoming one may have neither yet."""
    return bool(instance.text_or_none("name") and instance.text_or_none("pnode"))


def _frame(info_answer: Value, groups_answer: Value, source: str) -> state.ClusterState:
    info, where = _RapiObject.of(info_answer, f"{source}: /2/info"), f"{source}: /2/groups"
    families = {
        family: assembly.default_of(info, family) if family in ("beparams", "nicparams") else info.record(family).fields
        for family in _SENT_FAMILIES
        if family in info.fields
    }
    own = assembly.cluster_values(info, families)
    groups = records_of(groups_answer, where)
    # the parameters that no server sends, or not this one, perhaps of an older release
    known = {*info.fields, "modify_etc_hosts"}
    absent = (key for key in (*assembly.CLUSTER_SINGLES, *_SENT_FAMILIES) if key not in known)
    missing = (state.Unreadable(level=Level.CLUSTER, prefix=(key,)) for key in absent)
    hidden = [family for family in _OF_GROUPS if any(f"custom_{family}" not in group.fields for group in groups)]
    of_groups = (state.Unreadable(level=Level.GROUP, prefix=(family,)) for family in hidden)
    return state.ClusterState(
        source=source,
        name=info.name("name"),
        software_version=info.text_or_none("software_version"),
        cluster=state.ClusterObject(own=own, tags=info.tags(), identity=assembly.read(state.Identity, info)),
        groups=assembly.by_name((_group_from_rapi(record, own) for record in groups), where, in_order=True),
        nodes={},
        instances={},
        unreadable=(*state.HIDDEN_BY_RAPI, *missing, *of_groups),
    )


def _node_values(record: Record, where: str) -> Values:
    return assembly.own_values({"ndparams": record.record("custom_ndparams").fields}, where)


def _configured(record: Record, group: state.LiveGroup, own: Values) -> state.LiveNode:
    """Return what every answer says of a node."""
    return state.LiveNode(
        name=record.name("name"),
        group=group.name,
        own=own,
        tags=record.tags(),
        identity=assembly.read(state.Identity, record),
        offline=record.flag("offline"),
        drained=record.flag("drained"),
        vm_capable=record.flag("vm_capable", default=True),
    )


def records_of(value: Value, where: str) -> list[Record]:
    """Return the objects of a list, each with its name in messages. Raise InputError that begins with `where`."""
    if not isinstance(value, list):
        raise InputError(f"{where}: should be a list, but is {kind_of(value)}")
    records: list[Record] = [_RapiObject.of(item, where) for item in value]
    return [replace(record, where=f"{where}: {shown(str(record.fields.get('name')))}") for record in records]


_OF_GROUPS = ("ipolicy", "diskparams", "ndparams")
_SENT_FAMILIES = sorted(FAMILIES - {"hv_state", "disk_state"})


def _group_from_rapi(record: Record, cluster: Values) -> state.LiveGroup:
    sent = [family for family in _OF_GROUPS if f"custom_{family}" in record.fields]
    families: dict[str, Value] = {family: record.record(f"custom_{family}").fields for family in sent}
    own = assembly.own_values({**families, "alloc_policy": record.text("alloc_policy")}, record.where)
    group = assembly.filled_group(record.name("name"), own, cluster, record)
    hidden = [family for family in _OF_GROUPS if family in record.fields and family not in sent]
    shown_filled = assembly.own_values({family: record.record(family).fields for family in hidden}, record.where)
    return replace(group, effective={**group.effective, **shown_filled})


def _rows(answer: Value, names: tuple[str, ...], where: str) -> list[Record]:
    """Return the rows of a query. Every field comes as [status, value]; status 0 is good."""
    rows: list[Record] = []
    for row in _RapiObject.of(answer, where).items("data"):
        cells = [cell[1] for cell in row if isinstance(cell, list) and len(cell) == 2 and cell[0] == 0] if isinstance(
            row, list) else []  # fmt: skip
        if len(cells) != len(names):
            raise InputError(f"{where}: should answer with {', '.join(names)} of every object")
        rows.append(_RapiObject(where, dict(zip(names, cells, strict=True))))
    return rows


def _node_from_rapi(
    record: Record, groups: dict[str | None, state.LiveGroup], node_own: dict[str, tuple[int, Values]] | None
) -> state.LiveNode:
    name, group = record.name("name"), _group_of(record, groups)
    if node_own is None:  # what differs from the group's is the node's own; some of that may be missing
        filled = assembly.own_values({"ndparams": record.record("ndparams").fields}, record.where)
        inherited = fill({}, group.effective, Level.NODE)
        own = {path: value for path, value in filled.items() if inherited.get(path) != value}
    else:
        serial, own = node_own.get(name, (-1, {}))
        if serial != record.whole("serial_no"):
            raise ChangedError(f"{record.where}: changed while it was read")
    node = _configured(record, group, own)
    return replace(
        node,
        master=record.text_or_none("role") == "M",
        master_candidate=record.flag_or_none("master_candidate"),
        master_capable=record.flag_or_none("master_capable"),
        # figures of a node that may hold no instance count for nothing (htools, Rapi: `eitherLive`)
        resources=assembly.resources(record) if node.is_measured else state.Resources(),
    )


def _group_of(node: Record, groups: dict[str | None, state.LiveGroup]) -> state.LiveGroup:
    uuid = node.text("group.uuid")
    if uuid not in groups:
        raise ChangedError(f"{node.where}: is in an unknown group: {shown(uuid)!r}")
    return groups[uuid]


def _placed(record: Record, template: str, **more: Any) -> state.LiveInstance:
    """Return an instance with its nodes; `more` is what this answer has besides."""
    nodes = {"primary_node": record.text("pnode"), "secondary_nodes": record.texts("snodes")}
    return assembly.instance_of(record, record.record("beparams"), disk_template=template, **nodes, **more)


def _instance(record: Record) -> state.LiveInstance:
    template = record.name("disk_template")
    sizes = Record(record.where, {f"disk {number}": size for number, size in enumerate(record.items("disk.sizes"))})
    counts = record.items("disk.spindles") if "disk.spindles" in record.fields else []  # releases before 2.9: none
    spindles = Record(record.where, dict(zip(sizes.fields, counts, strict=False)))
    return _placed(
        record,
        template,
        disks=tuple(
            state.LiveDisk(size=sizes.whole(key), template=template, spindles=spindles.whole_or_none(key))
            for key in sizes.fields
        ),
        nic_count=len(record.items("nic.macs")),
        status=record.text_or_none("status"),
        running=record.flag_or_none("oper_state"),
        oper_ram=record.whole_or_none("oper_ram"),
    )


_ATTEMPTS = 4
_WHOLE_READ = 4  # times the time limit of one answer: only the node list can be slow
_PAUSE = 0.5  # seconds before reading a changed cluster again
_INFO, _GROUPS, _NODES, _INSTANCES = (RAPI_READS[name] for name in ("info", "groups", "nodes", "instances"))
_NODE_OWN = f"/2/query/node?fields={','.join(NODE_OWN_FIELDS)}"
_NODE_CONFIGURATION = f"/2/query/node?fields={','.join(CONFIGURATION_FIELDS)}"
_INSTANCE_PLACES = f"/2/query/instance?fields={','.join(PLACE_FIELDS)}"


def read_rapi(client: Client, *, insecure: bool = False) -> state.ClusterState:
    """Return the state of the cluster behind `client`.

    The cluster and its groups are read again at the end, and everything once more when they have changed, or when the
    parts do not fit together. Raise UnreachableError after a few attempts, or when the read takes longer than four
    times the client's timeout.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    until = time.monotonic() + _WHOLE_READ * client.timeout
    first = _read_frame(client, until)
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        nodes = client.get(_NODES, until=until)
        node_own = client.get_if_allowed(_NODE_OWN, until=until)
        instances = client.get(_INSTANCES, until=until)
        last = _read_frame(client, until)
        why = ""
        if first == last:
            try:
                answers = {"nodes": nodes, "instances": instances, "node_own": node_own}
                cluster = state_of(source, info=first[0], groups=first[1], **answers)
            except ChangedError as error:
                why = f" (at last: {error.message})"
            else:
                notes = (state.NOT_VERIFIED,) if insecure else ()
                return replace(cluster, notes=(*notes, *cluster.notes))
        first = last
    message = f"{source}: the cluster changed while it was read, {_ATTEMPTS} times in a row{why}"
    raise UnreachableError(message, hint="try again when fewer jobs are running")


def read_rapi_configuration(client: Client, *, instances: bool = False) -> state.ClusterState:
    """Return the configuration of the cluster, without measurements: no node is asked.

    It takes three requests, or four with the places of `instances`, even if nodes are down, and a user with a password.
    Raise as `read_rapi` does.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        answers = client.get(_INFO), client.get(_GROUPS), client.get(_NODE_CONFIGURATION)
        placed = client.get(_INSTANCE_PLACES) if instances else None
        try:
            return configuration_of(*answers, placed, source)
        except ChangedError as error:
            why = error.message
    raise UnreachableError(f"{source}: the cluster changed while it was read (at last: {why})", hint="try again")


def _read_frame(client: Client, until: float) -> tuple[Value, Value]:
    """Return the parts that are read first and last, to detect a change: the cluster and its groups."""
    return client.get(_INFO, until=until), client.get(_GROUPS, until=until)
