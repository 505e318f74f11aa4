"""Random clusters as the answers of Ganeti's remote API: what a server of Ganeti 2.15 to 3.1 sends."""

from __future__ import annotations

import random
from typing import Any

from gpolicy.allocator.cluster_data import (
    NO_NODE,
    DiskTemplate,
    Instance,
    InstancePolicy,
    InstanceStatus,
    NodeData,
    Spec,
)
from gpolicy.allocator.merge import ClusterData

Json = dict[str, Any]

LIVE = ("mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos", "cnodes", "csockets", "sptotal", "spfree")
_RUNNING = {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP, InstanceStatus.WRONG_NODE}
_ADMIN_STATES = {
    InstanceStatus.STATUS_DOWN: "down",
    InstanceStatus.ERROR_UP: "down",
    InstanceStatus.STATUS_OFFLINE: "offline",
}


def documents(rng: random.Random, data: ClusterData) -> dict[str, Any]:
    """Return the four documents of a cluster, by the names of their files without `.json`.

    Nodes that are not in use are offline, drained or may hold no instances. Some servers are old and lack fields, some
    have no volume group.
    """
    old, volumes = rng.random() < 0.2, rng.random() < 0.95
    cluster_parameters = {"spindle_count": rng.choice([1, 2]), "exclusive_storage": False, "cpu_speed": 1.0}
    uuids = [group.uuid for group in data.groups]
    nodes = [_node(rng, node, uuids[node.group], volumes=volumes) for node in data.nodes]
    master = rng.choice(nodes)
    master["role"] = "M"
    groups = [
        {
            "name": group.name,
            "uuid": group.uuid,
            "serial_no": 1,
            "alloc_policy": group.alloc_policy.value,
            "tags": sorted(group.tags),
            "ipolicy": policy(group.policy),
            "ndparams": cluster_parameters,
            "node_cnt": 0,
            "node_list": [],
            **({} if old else _own_of_group(group.policy, data.policy)),
        }
        for group in data.groups
    ]
    for entry in nodes:
        if old or rng.random() < 0.1:
            del entry["vm_capable"]
    instances = [_instance(rng, item, data) for item in data.instances]
    info = {
        "name": "cluster.example.com",
        "master": master["name"],
        "software_version": "2.15.2" if old else "3.0.2",
        "default_hypervisor": (hypervisor := rng.choice(["fake", "fake", "xen-pvm", "kvm"])),
        "enabled_hypervisors": [hypervisor, "chroot"],
        "tags": sorted(data.tags),
        "ipolicy": policy(data.policy),
        "ndparams": cluster_parameters,
        "beparams": {"default": {"maxmem": 128, "minmem": 128, "vcpus": 1, "auto_balance": True, "spindle_use": 1}},
        "mtime": 1795228560.25,
    }
    return {"groups": groups, "nodes": nodes, "instances": instances, "info": info}


def _own_of_group(own: InstancePolicy, cluster: InstancePolicy) -> Json:
    """Return the group's own values: those in which it differs from the cluster."""
    shown, above = policy(own), policy(cluster)
    different = {key: value for key, value in shown.items() if value != above[key] and key != "std"}
    return {"custom_ipolicy": different, "custom_diskparams": {}, "custom_ndparams": {}, "diskparams": {"plain": {}}}


def spec(found: Spec) -> Json:
    """Return a spec in Ganeti's JSON."""
    return {
        "memory-size": found.memory,
        "cpu-count": found.cpus,
        "disk-size": found.disk_size,
        "disk-count": found.disk_count,
        "nic-count": found.nic_count,
        "spindle-use": found.spindle_use,
    }


def policy(found: InstancePolicy) -> Json:
    """Return an instance policy in Ganeti's JSON."""
    return {
        "minmax": [{"min": spec(pair.min), "max": spec(pair.max)} for pair in found.minmax],
        "std": spec(found.std),
        "disk-templates": [template.value for template in found.templates],
        "vcpu-ratio": found.vcpu_ratio,
        "spindle-ratio": found.spindle_ratio,
    }


def _node(rng: random.Random, node: NodeData, group: str, *, volumes: bool) -> Json:
    why = rng.choice(["offline", "drained", "vm_capable"]) if node.offline else ""
    measured = {
        "mtotal": int(node.total_memory),
        "mnode": node.node_memory,
        "mfree": node.free_memory,
        "dtotal": int(node.total_disk) if volumes else None,
        "dfree": node.free_disk if volumes else None,
        "ctotal": int(node.total_cpus),
        "cnos": node.node_cpus,
        "cnodes": 1,
        "csockets": 1,
        "sptotal": node.spindles if node.exclusive else 0,
        "spfree": node.free_spindles if node.exclusive else 0,
    }
    if why == "offline" or (why == "vm_capable" and rng.random() < 0.5):
        measured = dict.fromkeys(LIVE)
    return {
        "name": node.name,
        "uuid": f"uuid-of-{node.name}",
        "serial_no": 1,
        "offline": why == "offline",
        "drained": why == "drained",
        "vm_capable": why != "vm_capable",
        "role": {"offline": "O", "drained": "D"}.get(why, "C"),
        "master_candidate": not why,
        "master_capable": True,
        "group.uuid": group,
        "tags": sorted(node.tags),
        "ndparams": {
            "spindle_count": node.spindles,
            "exclusive_storage": node.exclusive,
            "cpu_speed": node.cpu_speed,
            "oob_program": rng.choice([None, ""]),
        },
        **measured,
    }


def _instance(rng: random.Random, item: Instance, data: ClusterData) -> Json:
    kind = item.template
    running = item.status in _RUNNING and not item.forthcoming
    ballooned = running and rng.random() < 0.3
    sizes = _sizes(rng, item)
    if kind in (DiskTemplate.DISKLESS, DiskTemplate.BLOCK):
        usage = 0
    else:
        usage = sum(sizes) + (128 * len(sizes) if kind is DiskTemplate.DRBD else 0)
    most = item.memory + rng.choice([64, 256]) if ballooned else item.memory
    entry = {
        "name": item.name,
        "uuid": f"uuid-of-{item.name}",
        "serial_no": 1,
        "admin_state": _ADMIN_STATES.get(item.status, "up"),
        "status": item.status.value,
        "oper_state": running,
        "oper_ram": item.memory if running else None,
        "oper_vcpus": item.vcpus if running else None,
        "pnode": data.nodes[item.primary].name,
        "snodes": [] if item.secondary == NO_NODE else [data.nodes[item.secondary].name],
        "disk_template": kind.value,
        "disk.sizes": sizes,
        "disk.spindles": [item.disks[0].spindles for _ in sizes],
        "disk_usage": usage,
        "nic.macs": ["aa:00:00:ed:09:9e"],
        "beparams": {
            "minmem": min(item.memory, 64),
            "maxmem": most,
            "memory": most,
            "vcpus": item.vcpus,
            "spindle_use": item.spindle_use,
            "auto_balance": item.auto_balance,
            "always_failover": False,
        },
        "tags": sorted(item.tags),
    }
    if rng.random() < 0.3:
        del entry["beparams"]["memory"]  # type: ignore[attr-defined]  # not sent by every release
    if item.forthcoming or rng.random() < 0.3:
        entry["forthcoming"] = item.forthcoming
    return entry


def _sizes(rng: random.Random, item: Instance) -> list[int]:
    """Return the sizes of the disks of an instance, together about what the cluster says."""
    if item.template is DiskTemplate.DISKLESS:
        return []
    count = rng.choice([1, 1, 1, 2])
    extra = 128 * count if item.template is DiskTemplate.DRBD else 0
    least = max(item.disk - extra, count)
    return [least // count] * (count - 1) + [least - least // count * (count - 1)]
