"""A cluster as Ganeti's remote API describes it (`-m`; htools, Backend/Rapi).

`file://DIR` holds the answers in `groups.json`, `nodes.json`, `instances.json` and `info.json`; any other address is
asked over HTTPS (port 5080 unless the address says otherwise), read-only. `gpolicy.cluster.rapi` reads the
answers. Here stands only what htools does otherwise: what it takes as it was sent, and what it refuses to do without.
User and password may stand in the address, as for htools; else they come from the environment or netrc.
"""

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from gpolicy.allocator.cluster_data import Group, Instance, NodeData
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.cluster.credentials import Credentials, find_credentials
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.rapi import records_of, state_of
from gpolicy.cluster.rapi_client import Client, make_trust, parse_address
from gpolicy.errors import GpolicyError, InputError, UnreachableError
from gpolicy.ganeti.vocabulary import RAPI_READS, Value
from gpolicy.htools.json_fields import Fields, as_hypervisor, as_policy
from gpolicy.light_dataclasses import replace

CERTIFICATE_VARIABLE = "GPOLICY_RAPI_CA"
"""Environment variable with the name of a file (PEM) with the trusted certificate: htools has no option for it."""

_IN_PROCESS_LIST: Final = (
    "the process list shows this password to all users of this machine; write user and password to ~/.netrc"
    " (chmod 600), and only -m {host} here"
)
_MEASURED: Final = ("mtotal", "mnode", "mfree", "ctotal", "cnos")
_ADDED_LATER: Final = {"cnos": 0, "disk.spindles": 0}
"""Fields that releases before 2.9 do not send."""


def read_rapi(address: str) -> ClusterData:
    """Read the cluster from `address`. Raises InputError."""
    try:
        if not address.startswith("file://"):
            login, address = _login_in(address)
            return parse_rapi(_ask(address, login), address)
        files = {name: Path(address.removeprefix("file://")) / f"{name}.json" for name in RAPI_READS}
        return parse_rapi({name: parse_json(read_bytes(file), str(file)) for name, file in files.items()}, address)
    except GpolicyError as error:
        raise InputError(error.message) from None


def parse_rapi(answers: Mapping[str, Value], source: str) -> ClusterData:
    """Read a cluster from the answers to `RAPI_READS`. Raises GpolicyError."""
    state = state_of(source, **answers)
    info = Fields(f"{source}: ", Fields.of(answers["info"], source).fields)
    groups, nodes, instances = (
        [Fields(f"{record.where}: ", record.fields) for record in records_of(answers[kind], f"{source}: {kind}")]
        for kind in ("groups", "nodes", "instances")
    )
    master = info.text("master")
    if master not in state.nodes:
        raise InputError(f"{source}: the master is an unknown node: {master!r}")
    if len(state.instances) < len(instances):
        raise InputError(f"{source}: htools count no forthcoming instance that has no name or no node yet")
    data = cluster_data(state)
    return replace(
        data,
        groups=tuple(map(_with_fields_of_group, data.groups, groups)),
        nodes=tuple(_with_fields_of_node(node, fields, master) for node, fields in zip(data.nodes, nodes, strict=True)),
        instances=tuple(map(_with_fields_of_instance, data.instances, instances)),
        tags=info.texts("tags"),
        policy=info.get("ipolicy", as_policy),
        hypervisor=info.get("default_hypervisor", as_hypervisor),
    )


def _require(fields: Fields, names: Iterable[str], reason: str = "is null") -> None:
    for name in names:
        if fields.fields.get(name, _ADDED_LATER.get(name)) is None:
            fields.refuse(name, "", reason)


def _with_fields_of_group(group: Group, fields: Fields) -> Group:
    return replace(group, uuid=fields.text("uuid"), policy=fields.get("ipolicy", as_policy), tags=fields.texts("tags"))


def _with_fields_of_node(node: NodeData, fields: Fields, master: str) -> NodeData:
    """Return a node as htools reads it: over RAPI it does not ask for its `cpu_speed`."""
    _require(fields.record("ndparams"), ("exclusive_storage", "spindle_count"))
    if not fields.flag("offline") and fields.flag("vm_capable", default=True):
        figures = (*_MEASURED, "sptotal") if node.exclusive else _MEASURED
        _require(fields, figures, "Ganeti cannot measure this node; mark it offline if it is down")
    return replace(node, master=node.name == master, cpu_speed=1.0, tags=fields.texts("tags"))


def _with_fields_of_instance(instance: Instance, fields: Fields) -> Instance:
    _require(fields, ("snodes", "disk.sizes", "disk.spindles", "status"))
    fields.get("oper_ram")  # may be null, but not missing
    return replace(instance, disk=fields.whole("disk_usage"), tags=fields.texts("tags"))


def _login_in(address: str) -> tuple[Credentials | None, str]:
    """Return user and password of an address (`https://user:password@host`), and the address without them."""
    found = re.fullmatch(r"((?:[a-z]+://)?)(.*)@(.*)", address, re.DOTALL | re.IGNORECASE)  # curl's: up to the last @
    if found is None:
        return None, address
    scheme, login, host = found.groups()
    warnings.warn(_IN_PROCESS_LIST.format(host=host), stacklevel=2)
    user, _, password = login.partition(":")
    return Credentials(unquote(user), unquote(password)), f"{scheme}{host}"


def _ask(address: str, login: Credentials | None) -> dict[str, Value]:
    """Return the answers of a server. Unlike htools, certificates are verified."""
    url = address if "://" in address else f"https://{address}"
    host, port = parse_address(url)
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{address}: should begin with https://, http:// or file://")
    named = os.environ.get(CERTIFICATE_VARIABLE)
    try:
        ca_file = None if named is None else Path(named)
        trust = make_trust(ca_file=ca_file, insecure=False) if url.startswith("https://") else None
        if login is None and trust is not None:
            login = find_credentials(host, file=None, environ=os.environ)
        client = Client(host, port, trust, login)
        return {name: client.get(path) for name, path in RAPI_READS.items()}
    except UnreachableError as error:
        unnamed = named is None and url.startswith("https://")
        hint = f" (name the file with the cluster's certificate in {CERTIFICATE_VARIABLE})" if unnamed else ""
        raise InputError(f"{error.message}{hint}") from None
