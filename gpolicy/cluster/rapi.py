"""Ganeti's remote API (RAPI): one consistent read, in seven requests however large the cluster is.

hv_state, disk_state and modify_etc_hosts are shown to nobody; a node's own parameters only to users with a
password. What nodes measured comes with the node list.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gpolicy.cluster import https, unreadable
from gpolicy.cluster.assembly import by_name, check_references, filled_group, identity, numbered
from gpolicy.cluster.config_data import forthcoming_note
from gpolicy.cluster.credentials import PASSWORD_VARIABLE, USER_VARIABLE, Credentials
from gpolicy.cluster.json_input import Record, kind_of, parse_json
from gpolicy.cluster.live import join_names, missing_notes, resources
from gpolicy.cluster.own_values import CLUSTER_SINGLES, cluster_values, default_of, own_values
from gpolicy.cluster.state import ClusterObject, ClusterState, Disk, Group, Instance, Node, Unreadable
from gpolicy.errors import GpolicyError, InputError, UnreachableError, UsageError
from gpolicy.ganeti.parameter import Level, Value, Values
from gpolicy.ganeti.values import FAMILIES, fill

DEFAULT_PORT: Final = 5080
LARGEST_ANSWER: Final = 256 * 1024**2
_ATTEMPTS = 4
_WHOLE_READ = 4  # times the time limit of one answer: only the node list is ever slow
_PAUSE = 0.5  # seconds before reading again what has changed under our hands
_INFO, _GROUPS, _NODES, _INSTANCES = "/2/info", "/2/groups?bulk=1", "/2/nodes?bulk=1", "/2/instances?bulk=1"
_NODE_OWN = "/2/query/node?fields=name,serial_no,custom_ndparams"
_LONGEST_REASON = 200

NO_NODE_OWN: Final = (
    "own parameters of nodes are not known: the remote API shows them only to users with a password;"
    " those that differ from their group's are shown as own"
)


@dataclass(frozen=True, slots=True)
class Client:
    """Asks one server. Its credentials go into the request header and nowhere else."""

    host: str
    port: int
    trust: https.Trust
    credentials: Credentials | None = None
    timeout: float = 60.0  # seconds for each answer: nodes that are down make the node list slow
    limit: int = LARGEST_ANSWER

    def get(self, path: str, *, until: float | None = None) -> Value:
        """Return the JSON answer to a GET, had before the monotonic time `until`.

        Raise UnreachableError or InputError if there is none.
        """
        answer = self._ask(path, until)
        if answer.status != 200:
            raise self._refusal(path, answer)
        return parse_json(answer.body, self._where(path))

    def get_if_allowed(self, path: str, *, until: float | None = None) -> Value | None:
        """Return the JSON answer to a GET, or None if we may not see it."""
        answer = self._ask(path, until)
        if answer.status in (401, 403):
            return None
        if answer.status != 200:
            raise self._refusal(path, answer)
        return parse_json(answer.body, self._where(path))

    def _ask(self, path: str, until: float | None) -> https.Answer:
        seconds = self.timeout if until is None else min(self.timeout, until - time.monotonic())
        if seconds <= 0:
            raise UnreachableError(f"{self._where(path)}: the cluster could not be read in time")
        headers: dict[str, str] = {}
        if self.credentials:
            pair = f"{self.credentials.user}:{self.credentials.password}".encode()
            headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        return https.get(self.host, self.port, path, headers, trust=self.trust, seconds=seconds, limit=self.limit)

    def _where(self, path: str) -> str:
        return f"rapi://{_netloc(self.host, self.port)}: {path.partition('?')[0]}"

    def _refusal(self, path: str, answer: https.Answer) -> GpolicyError:
        where = self._where(path)
        match answer.status:
            case 401 if self.credentials is None:
                return UnreachableError(
                    f"{where}: asks for a user and a password (HTTP 401)",
                    hint=f"give --rapi-credentials FILE, or {USER_VARIABLE} and {PASSWORD_VARIABLE}, or a netrc entry",
                )
            case 401:
                return UnreachableError(f"{where}: refuses the user or the password (HTTP 401)")
            case 403:
                return UnreachableError(f"{where}: this user may not read it (HTTP 403)")
            case 404:
                return UnreachableError(
                    f"{where}: not found (HTTP 404)", hint="is this the remote API of a Ganeti cluster, version 2?"
                )
            case status if 300 <= status < 400:
                return UnreachableError(f"{where}: answers with a redirect (HTTP {status}), which is not followed")
            case status:
                return UnreachableError(f"{where}: answers HTTP {status}{_reason(answer.body)}")


def _reason(body: bytes) -> str:
    """Return what Ganeti says about an error, cut and made printable; nothing when the body is not Ganeti's."""
    try:
        value = parse_json(body[:65536], "")
    except InputError:
        return ""
    told = value.get("explain") or value.get("message") if isinstance(value, dict) else None
    if not isinstance(told, str):
        return ""
    return ": " + "".join(char if char.isprintable() else " " for char in told[:_LONGEST_REASON])


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `rapi://host[:port]`. Raise UsageError if it is anything else."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError("rapi: not a host and port", hint="write rapi://host or rapi://host:5080") from None
    if parts.username is not None or parts.password is not None:
        hint = "credentials come from --rapi-credentials FILE, the environment or netrc"
        raise UsageError("rapi: no user or password belongs into the address", hint=hint)
    extra = parts.path.strip("/") or parts.query or parts.fragment
    if not host or extra or host.startswith("-") or not host.isprintable() or " " in host or port == 0:
        raise UsageError(f"{address!r}: not a host and port", hint="write rapi://host or rapi://host:5080")
    return host, port or DEFAULT_PORT


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_client(
    address: str,
    credentials: Credentials | None,
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    timeout: float = 60.0,
) -> Client:
    """Return a client of the server that `address` (`rapi://host[:port]`) names; nothing is sent yet."""
    host, port = parse_address(address)
    return Client(host, port, https.make_trust(ca_file=ca_file, insecure=insecure), credentials, timeout)


def read_rapi(client: Client, *, insecure: bool = False) -> ClusterState:
    """Return the state of the cluster behind `client`.

    The cluster and its groups are read again at the end, and everything once more when they have changed
    meanwhile, or when the parts do not fit together. Raise UnreachableError after a few attempts, or when all of it
    takes longer than four times the client's timeout.
    """
    source = f"rapi://{_netloc(client.host, client.port)}"
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


class _ChangedError(Exception):
    """The answers do not belong together: something changed between two of them."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """What is read first and last, to see that it is the same."""

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
    missing = tuple(Unreadable(level=Level.CLUSTER, prefix=(key,)) for key in _not_shown(info))
    state = ClusterState(
        source=source,
        name=info.name("name"),
        software_version=info.text_or_none("software_version"),
        cluster=ClusterObject(own=own, tags=info.tags(), identity=identity(info)),
        groups=by_name(numbered(groups), f"{source}: /2/groups"),
        nodes=by_name(numbered(nodes), f"{source}: /2/nodes"),
        instances=by_name(numbered(_instance(record) for record in placed), f"{source}: /2/instances"),
        unreadable=(*unreadable.RAPI, *missing, *(() if node_own is not None else (unreadable.NODE_OWN,))),
        notes=(*(() if node_own is not None else (NO_NODE_OWN,)), *forthcoming_note(len(records) - len(placed))),
    )
    try:
        check_references(state, source)
    except InputError as error:
        raise _ChangedError from error
    return replace(state, notes=(*state.notes, *_mixed_note(state), *missing_notes(state)))


def _mixed_note(state: ClusterState) -> tuple[str, ...]:
    mixed = [name for name, instance in state.instances.items() if instance.disk_template == "mixed"]
    return (f"the disks of {join_names(mixed)} are of several templates, the remote API does not tell which",) * bool(
        mixed
    )


def _records(value: Value, where: str) -> list[Record]:
    if not isinstance(value, list):
        raise InputError(f"{where}: should be a list, but is {kind_of(value)}")
    return [Record.of(item, where) for item in value]


_SENT_FAMILIES = sorted(FAMILIES - {"hv_state", "disk_state"})


def _not_shown(info: Record) -> list[str]:
    """Return the parameters that this server, perhaps of an older release, does not send at all."""
    return [key for key in (*CLUSTER_SINGLES, *_SENT_FAMILIES) if key not in info.fields and key != "modify_etc_hosts"]


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
    """Return serial number and own parameters of each node. Every field comes as [status, value]; status 0 is good."""
    found: dict[str, tuple[int, Values]] = {}
    for row in Record.of(answer, where).items("data"):
        cells = [cell[1] for cell in row if isinstance(cell, list) and len(cell) == 2 and cell[0] == 0] if isinstance(
            row, list) else []  # fmt: skip
        if len(cells) != 3:
            raise InputError(f"{where}: should answer with name, serial_no and custom_ndparams of every node")
        fields = Record(where, dict(zip(("name", "serial_no", "ndparams"), cells, strict=True)))
        own = own_values({"ndparams": fields.record("ndparams").fields}, where)
        found[fields.name("name")] = (fields.whole("serial_no"), own)
    return found


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
    """Return the filled parameters that differ from the group's: surely the node's own, perhaps not all of them."""
    filled = own_values({"ndparams": record.record("ndparams").fields}, record.where)
    inherited = fill({}, group.effective, Level.NODE)
    return {path: value for path, value in filled.items() if inherited.get(path) != value}


def _instance(record: Record) -> Instance:
    beparams = record.record("beparams")
    template = record.name("disk_template")
    sizes = Record(record.where, {f"disk {number}": size for number, size in enumerate(record.items("disk.sizes"))})
    spindles = Record(record.where, dict(zip(sizes.fields, record.items("disk.spindles"), strict=False)))
    return Instance(
        name=record.name("name"),
        primary_node=record.text("pnode"),
        secondary_nodes=tuple(record.texts("snodes")),
        disk_template=template,
        disks=tuple(
            Disk(size=sizes.whole(key), template=template, spindles=spindles.whole_or_none(key)) for key in sizes.fields
        ),
        minmem=beparams.whole("minmem"),
        maxmem=beparams.whole("maxmem"),
        vcpus=beparams.whole("vcpus"),
        spindle_use=beparams.whole("spindle_use"),
        nic_count=len(record.items("nic.macs")),
        auto_balance=beparams.flag("auto_balance"),
        always_failover=beparams.flag_or_none("always_failover"),
        admin_state=record.text("admin_state"),
        status=record.text_or_none("status"),
        running=record.flag_or_none("oper_state"),
        hypervisor=record.text_or_none("hypervisor"),
        tags=record.tags(),
        identity=identity(record),
        oper_ram=record.whole_or_none("oper_ram"),
        forthcoming=record.flag("forthcoming", default=False),
    )
