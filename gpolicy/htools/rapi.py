"""A cluster as Ganeti's remote API describes it (`-m`; htools, Backend/Rapi).

`file://DIR` reads `groups.json`, `nodes.json`, `instances.json` and `info.json` from a directory; any
other address is asked over HTTPS (port 5080 unless the address says otherwise), read-only.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import ClusterData, Disk, Group, Instance, NodeData
from gpolicy.allocator.enumerations import NO_NODE
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import RAPI_PORT, RAPI_READS
from gpolicy.htools.backends import read_file
from gpolicy.htools.json_fields import (
    Fields,
    Json,
    as_alloc_policy,
    as_bool,
    as_disk_template,
    as_float,
    as_int,
    as_list,
    as_object,
    as_policy,
    as_text,
    parse_json,
    plain_object,
)
from gpolicy.htools.text_values import instance_status

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_GROUP = "00000000-0000-0000-0000-000000000000"
TIMEOUT = 60
"""Seconds to wait for an answer."""
LARGEST_ANSWER = 512 * 1024**2
"""Bytes."""
CERTIFICATE_VARIABLE = "GPOLICY_RAPI_CA"
"""Environment variable with the name of a file (PEM) with the trusted certificate: htools has no option for it."""


def read_rapi(address: str) -> ClusterData:
    """Read the cluster from `address`. Raises InputError."""
    if address.startswith("file://"):
        folder = address.removeprefix("file://").rstrip("/")
        texts = [read_file(f"{folder}/{name}.json") for name in RAPI_READS]
    else:
        base = _base_url(address)
        texts = [_fetch(base + path) for path in RAPI_READS.values()]
    return parse_rapi(*texts)


def parse_rapi(groups: str, nodes: str, instances: str, info: str) -> ClusterData:
    """Read a cluster from the four documents. Raises InputError."""
    group_list = [_group(index, entry) for index, entry in enumerate(_entries("group data", groups))]
    by_uuid = {group.uuid: group.index for group in group_list}
    node_list = [_node(index, entry, by_uuid) for index, entry in enumerate(_entries("node data", nodes))]
    by_name = {node.name: node.index for node in node_list}
    instance_list = [
        _instance(index, entry, by_name) for index, entry in enumerate(_entries("instance data", instances))
    ]
    cluster = Fields("Parsing cluster info: ", plain_object(parse_json("cluster info", info)))
    master = cluster.text("master")
    tags = cluster.texts("tags")
    policy = cluster.get("ipolicy", as_policy)
    hypervisor = cluster.optional("default_hypervisor", as_text, None)
    return ClusterData(
        groups=tuple(group_list),
        nodes=tuple(replace(node, master=node.name == master) for node in node_list),
        instances=tuple(instance_list),
        tags=tags,
        policy=policy,
        hypervisor=hypervisor,
    )


def _entries(what: str, text: str) -> list[dict[str, Json]]:
    value = parse_json(what, text)
    try:
        return [as_object(entry) for entry in as_list(value)]
    except InputError as error:
        raise InputError(f"Parsing {what}: {error}") from None


def _named(entry: dict[str, Json], kind: str) -> tuple[str, Fields]:
    name = Fields(f"Parsing {kind}: ", entry).text("name")
    return name, Fields(f"{kind.capitalize()} '{name}', error while parsing data: ", entry)


def _group(index: int, entry: dict[str, Json]) -> Group:
    name, fields = _named(entry, "group")
    return Group(
        index=index,
        name=name,
        uuid=fields.text("uuid"),
        alloc_policy=fields.get("alloc_policy", as_alloc_policy),
        policy=fields.get("ipolicy", as_policy),
        tags=fields.texts("tags"),
    )


def _node(index: int, entry: dict[str, Json], groups: Mapping[str, int]) -> NodeData:
    name, fields = _named(entry, "node")
    offline, drained = fields.flag("offline"), fields.flag("drained")
    vm_capable = fields.optional("vm_capable", as_bool, True)
    uuid = fields.optional("group.uuid", as_text, DEFAULT_GROUP)
    if uuid not in groups:
        raise InputError(f"Unknown group '{uuid}' for node {name}")
    parameters = fields.record("ndparams")
    exclusive = parameters.flag("exclusive_storage")
    tags = fields.texts("tags")
    if offline or not vm_capable:
        return NodeData(
            index=index,
            name=name,
            group=groups[uuid],
            node_cpus=0,
            offline=True,
            spindles=0 if exclusive else parameters.whole("spindle_count"),
            exclusive_storage=exclusive,
            tags=tags,
        )
    return NodeData(
        index=index,
        name=name,
        group=groups[uuid],
        total_memory=fields.number("mtotal"),
        node_memory=fields.whole("mnode"),
        free_memory=fields.whole("mfree"),
        total_disk=fields.optional("dtotal", as_float, 0.0),
        free_disk=fields.optional("dfree", as_int, 0),
        total_cpus=fields.number("ctotal"),
        node_cpus=fields.optional("cnos", as_int, 0),
        offline=drained,
        spindles=fields.whole("sptotal") if exclusive else parameters.whole("spindle_count"),
        free_spindles=fields.optional("spfree", as_int, 0),
        exclusive_storage=exclusive,
        tags=tags,
    )


def _instance(index: int, entry: dict[str, Json], nodes: Mapping[str, int]) -> Instance:
    name, fields = _named(entry, "instance")
    disk = fields.whole("disk_usage")
    sizes = [as_int(size) for size in fields.get("disk.sizes", as_list)]
    spindles = fields.optional("disk.spindles", as_list, [None] * len(sizes))
    parameters = fields.record("beparams")
    memory = _memory(fields, parameters)
    vcpus = parameters.whole("vcpus")
    primary = _node_index(fields.text("pnode"), name, nodes)
    secondaries = fields.texts("snodes")
    status = fields.get("status", lambda value: instance_status(as_text(value)))
    return Instance(
        index=index,
        name=name,
        memory=memory,
        disk=disk,
        disks=tuple(
            Disk(size, None if count is None else as_int(count)) for size, count in zip(sizes, spindles, strict=False)
        ),
        vcpus=vcpus,
        status=status,
        template=fields.get("disk_template", as_disk_template),
        primary=primary,
        secondary=_node_index(secondaries[0], name, nodes) if secondaries else NO_NODE,
        auto_balance=parameters.flag("auto_balance"),
        spindle_use=parameters.whole("spindle_use"),
        tags=fields.texts("tags"),
        forthcoming=fields.optional("forthcoming", as_bool, False),
    )


def _memory(fields: Fields, parameters: Fields) -> int:
    measured = fields.fields.get("oper_ram")
    if isinstance(measured, int | float) and not isinstance(measured, bool):
        return as_int(measured)
    key = "memory" if parameters.fields.get("memory") is not None else "maxmem"
    return parameters.whole(key)


def _node_index(node: str, instance: str, nodes: Mapping[str, int]) -> int:
    if node not in nodes:
        raise InputError(f"Unknown node '{node}' for instance {instance}")
    return nodes[node]


def _base_url(address: str) -> str:
    if "@" in address:  # the text before it may be a password and is not shown
        raise InputError("the address of the remote API must not contain a user or password: reading needs none")
    scheme, found, rest = address.partition("://")
    if not found:
        scheme, rest = "https", address
    host = rest.rstrip("/")
    if ":" not in host.rpartition("]")[2]:
        host = f"{host}:{RAPI_PORT}"
    if scheme not in {"http", "https"}:
        raise InputError(f"{address}: cannot read from '{scheme}', use https://, http:// or file://")
    return f"{scheme}://{host}"


def _fetch(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only needed for a cluster over the network

    try:
        address = urlsplit(url)
        port = address.port or RAPI_PORT
    except ValueError:
        raise InputError(f"{url}: no such port") from None
    status, body = _ask(url, address.scheme, address.hostname or "", port, url.partition(address.netloc)[2])
    if status != 200:
        raise InputError(f"{url}: HTTP status {status}")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{url}: {error}") from None


def _ask(url: str, scheme: str, host: str, port: int, path: str) -> tuple[int, bytes]:
    """Return the status and the body of an answer. Unlike htools, certificates are verified."""
    from gpolicy.cluster.https import Request, ask, make_trust  # noqa: PLC0415
    from gpolicy.errors import GpolicyError  # noqa: PLC0415

    named = os.environ.get(CERTIFICATE_VARIABLE)
    try:
        ca_file = None if named is None else Path(named)
        trust = make_trust(ca_file=ca_file, insecure=False) if scheme == "https" else None
        answer = ask(Request("GET", host, port, path), trust=trust, seconds=TIMEOUT, limit=LARGEST_ANSWER)
    except GpolicyError as error:
        unnamed = named is None and scheme == "https"
        hint = f" (name the file with the cluster's certificate in {CERTIFICATE_VARIABLE})" if unnamed else ""
        raise InputError(f"{url}: {error.message}{hint}") from None
    return answer.status, answer.body
