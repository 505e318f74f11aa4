"""The model of a cluster in Ganeti's own forms: config.data, and the answers of the remote API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from gpolicy.cluster.state import LiveDisk, LiveInstance
from gpolicy.ganeti.parameters import flatten
from gpolicy.ganeti.vocabulary import Level
from tests.plan.ganeti_model import ModelCluster

_STATES: Final = ("hv_state", "disk_state")
_HIDDEN: Final = (*_STATES, "modify_etc_hosts")


def instance_of(name: str, node: str, secondaries: tuple[str, ...]) -> LiveInstance:
    """Return an instance with one disk."""
    template = "drbd" if secondaries else "plain"
    return LiveInstance(
        name=name,
        primary_node=node,
        secondary_nodes=secondaries,
        disk_template=template,
        disks=(LiveDisk(size=1024, template=template),),
        minmem=128,
        maxmem=128,
        vcpus=1,
        spindle_use=1,
    )


def uuid_of(name: str, uuids: Mapping[str, str]) -> str:
    """Return the UUID of an object (`group/gold`): made of its name unless something else is known."""
    return uuids.get(name, f"uuid-{name.replace('/', '-')}")


def config_data(
    model: ModelCluster,
    serials: Mapping[str, int],
    uuid: str,
    *,
    name: str | None = None,
    uuids: Mapping[str, str] | None = None,
    offline: frozenset[str] = frozenset(),
) -> bytes:
    """Return the content of config.data."""
    uuids = uuids or {}
    own = dict(model.own)
    cluster: dict[str, Any] = {
        **{key: value for key, value in own.items() if key not in (*_STATES, "beparams", "nicparams")},
        **{f"{key}_static": own.get(key, {}) for key in _STATES},
        "beparams": {"default": own.get("beparams", {})},
        "nicparams": {"default": own.get("nicparams", {})},
        "data_collectors": _collectors(own),
        "cluster_name": name or model.state.name,
        "master_node": uuid_of("node/node1", uuids),
        "uuid": uuid,
        "serial_no": serials.get("cluster", 1),
        "tags": sorted(model.tags["cluster", None]),
    }
    groups = {}
    for label, tree in model.groups.items():
        mine = {key: value for key, value in tree.items() if key not in _STATES}
        states = {f"{key}_static": tree.get(key, {}) for key in _STATES}
        known = uuid_of(f"group/{label}", uuids)
        groups[known] = {
            "alloc_policy": "preferred", **mine, **states, "name": label, "uuid": known, "members": [],
            "serial_no": serials.get(f"group/{label}", 1), "tags": sorted(model.tags["nodegroup", label]),
        }  # fmt: skip
    nodes = {}
    for label, tree in model.nodes.items():
        known = uuid_of(f"node/{label}", uuids)
        nodes[known] = {
            "name": label, "uuid": known, "group": uuid_of(f"group/{model.home[label]}", uuids),
            "ndparams": tree.get("ndparams", {}), **{f"{key}_static": tree.get(key, {}) for key in _STATES},
            "serial_no": serials.get(f"node/{label}", 1), "tags": sorted(model.tags["node", label]),
            "offline": label in offline, "drained": False, "vm_capable": True, "master_capable": True,
            "master_candidate": label in model.candidates,
        }  # fmt: skip
    instances, disks = _stored_instances(model, uuids)
    return json.dumps(
        {
            "version": 3000000,
            "cluster": cluster,
            "nodegroups": groups,
            "nodes": nodes,
            "instances": instances,
            "disks": disks,
            "networks": {},
            "serial_no": 1,
        }
    ).encode()


def _collectors(own: dict[str, Any]) -> dict[str, Any]:
    names = {*own.get("enabled_data_collectors", {}), *own.get("data_collector_interval", {})}
    return {
        name: {
            "active": own.get("enabled_data_collectors", {}).get(name, True),
            "interval": own.get("data_collector_interval", {}).get(name, 5000000),
        }
        for name in sorted(names)
    }


def _stored_instances(model: ModelCluster, uuids: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    instances, disks = {}, {}
    for item in model.state.instances.values():
        primary = uuid_of(f"node/{item.primary_node}", uuids)
        ends = [primary, *(uuid_of(f"node/{name}", uuids) for name in item.secondary_nodes)]
        disk = f"disk-{item.name}"
        drbd = item.disk_template == "drbd"
        disks[disk] = {
            "dev_type": item.disk_template, "size": 1024, "uuid": disk, "children": [],
            "logical_id": [*ends, 11000, 0, 0, "x"] if drbd else ["xenvg", disk],
        }  # fmt: skip
        instances[f"uuid-{item.name}"] = {
            "name": item.name, "uuid": f"uuid-{item.name}", "primary_node": primary, "disks": [disk], "nics": [],
            "beparams": {"minmem": 128, "maxmem": 128, "vcpus": 1, "spindle_use": 1, "auto_balance": True},
            "admin_state": "up", "hypervisor": "kvm", "serial_no": 1, "tags": [],
        }  # fmt: skip
    return instances, disks


# --- the remote API --------------------------------------------------------------------------------------------------


def info(model: ModelCluster, uuid: str, name: str | None) -> Any:
    """Return the answer to /2/info."""
    shown: dict[str, Any] = {
        "software_version": "3.0.2",
        "name": name or model.state.name,
        "uuid": uuid,
        "tags": sorted(model.tags["cluster", None]),
    }
    for key, value in model.own.items():
        if key in ("beparams", "nicparams"):
            shown[key] = {"default": value}
        elif key not in _HIDDEN:
            shown[key] = value
    for key in ("nicparams", "enabled_data_collectors", "data_collector_interval"):
        shown.setdefault(key, {"default": {}} if key == "nicparams" else {})
    return shown


def groups(model: ModelCluster, serials: Mapping[str, int], uuids: Mapping[str, str]) -> Any:
    """Return the answer to /2/groups?bulk=1."""
    return [
        {
            "name": name,
            "uuid": uuid_of(f"group/{name}", uuids),
            "serial_no": serials.get(f"group/{name}", 1),
            "tags": sorted(model.tags["nodegroup", name]),
            "alloc_policy": tree.get("alloc_policy", "preferred"),
            **{f"custom_{key}": tree.get(key, {}) for key in ("ipolicy", "diskparams", "ndparams")},
        }
        for name, tree in model.groups.items()
    ]


def nodes(
    model: ModelCluster, serials: Mapping[str, int], uuids: Mapping[str, str], offline: frozenset[str]
) -> list[dict[str, Any]]:
    """Return what /2/nodes and /2/query/node choose from."""
    return [
        {
            "name": name,
            "uuid": uuid_of(f"node/{name}", uuids),
            "serial_no": serials.get(f"node/{name}", 1),
            "group.uuid": uuid_of(f"group/{model.home[name]}", uuids),
            "tags": sorted(model.tags["node", name]),
            "offline": name in offline,
            "drained": False,
            "vm_capable": True,
            "master_capable": True,
            "master_candidate": name in model.candidates,
            "role": "M" if name == "node1" else "C" if name in model.candidates else "R",
            "custom_ndparams": tree.get("ndparams", {}),
            "ndparams": {**model.own["ndparams"], **tree.get("ndparams", {})},
            **dict.fromkeys(("dtotal", "dfree", "mtotal", "mnode", "mfree", "ctotal", "cnodes", "cnos"), 1024),
        }
        for name, tree in model.nodes.items()
    ]


def instances(model: ModelCluster) -> Any:
    """Return the answer to /2/instances?bulk=1."""
    return [
        {
            "name": item.name, "uuid": f"uuid-{item.name}", "pnode": item.primary_node,
            "snodes": list(item.secondary_nodes), "disk_template": item.disk_template, "disk.sizes": [1024],
            "disk.spindles": [None], "nic.macs": [], "serial_no": 1, "tags": [], "admin_state": "up",
            "status": "running", "oper_state": True, "oper_ram": 128,
            "beparams": {"minmem": 128, "maxmem": 128, "vcpus": 1, "spindle_use": 1, "auto_balance": True,
                         "always_failover": False},
        }
        for item in model.state.instances.values()
    ]  # fmt: skip


def own_leaves(tree: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return a tree of own values by path."""
    return flatten(dict(tree))


LEVELS: Final = {"cluster": Level.CLUSTER, "group": Level.GROUP, "node": Level.NODE}
