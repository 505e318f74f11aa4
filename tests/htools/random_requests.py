"""Random questions to hspace, hail, hbal and hroller, with options: `make_case(kind, seed)` is always the same one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpolicy.allocator.cluster_data import NO_NODE, Group, Instance, InstanceStatus, NodeData
from gpolicy.allocator.merge import ClusterData
from gpolicy.htools.text_format import parse_cluster
from tests.htools import rapi_documents
from tests.htools.random_balancing import balancing_files, balancing_options
from tests.htools.random_clusters import INSTANCE_TAGS, TEMPLATES, RandomCluster, random_cluster
from tests.htools.random_reboots import rolling_options, with_master_and_room

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

MIRRORED = ["sharedfile", "ext", "rbd", "gluster", "blockdev", "diskless"]
_STATES = {InstanceStatus.STATUS_DOWN: "down", InstanceStatus.STATUS_OFFLINE: "offline"}


@dataclass(frozen=True, slots=True)
class Case:
    """One question: a program, its arguments, the texts of the files `c.data` and `r.json` that they name.

    `rapi` holds the answers of the remote API that stand in files of their own, `files` the texts of further files.
    """

    kind: str
    seed: int
    program: str
    arguments: tuple[str, ...]
    cluster: str
    document: str = ""
    rapi: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def make_case(kind: str, seed: int, most_nodes: int = 7) -> Case:
    """Return the question of this kind and seed, on a cluster of `most_nodes` nodes at most."""
    rng = random.Random(f"{kind} {seed} {most_nodes}")
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "drbd", "plain", "plain"])
    if kind == "allocate-secondary":  # needs instances without a secondary
        template = rng.choice(["plain", "plain", "plain", "ext", "file", template])
    cluster = random_cluster(rng, template, most_nodes)
    if kind == "hspace":
        arguments = ("-t", "c.data", *hspace_options(rng, template), "-S", "saved")
        return Case(kind, seed, "hspace", arguments, cluster.text)
    if kind == BALANCE:
        return _balancing_case(rng, seed, template, cluster)
    if kind == ROLL:
        return _rolling_case(rng, seed, template, cluster)
    data = parse_cluster(cluster.text)
    if kind in FROM_DOCUMENT:
        text = json.dumps(document(rng, data, allocation(rng, template, cluster)))
        if kind == BALANCE_DOCUMENT:
            more, files = balancing_files(rng, cluster)
            arguments = ("-I", "r.json", *balancing_options(rng, cluster), *more, "-C", "-S", "saved")
            return Case(kind, seed, "hbal", arguments, cluster.text, text, files=files)
        # the default policy of such a cluster takes the real hspace minutes
        size = rng.choice(["2000,1500,4,3", "1300,5000,2,1", "4g,2g,3", "512,1g,8"])
        arguments = ("-I", "r.json", f"--tiered-alloc={size}", *hspace_options(rng, template), "-S", "saved")
        return Case(kind, seed, "hspace", arguments, cluster.text, text)
    if kind == FROM_RAPI:
        arguments = ("-m", "file://.", *hspace_options(rng, template)[rng.random() < 0.3 :], "-S", "saved")
        return Case(kind, seed, "hspace", arguments, "", rapi=rapi_documents.documents(rng, data))
    request = REQUESTS[kind](rng, template, cluster, data)
    source = ("-t", "c.data") if rng.random() < 0.5 else ()
    arguments = (*source, *hail_options(rng, cluster), "r.json")
    return Case(kind, seed, "hail", arguments, cluster.text, json.dumps(document(rng, data, request)))


def _balancing_case(rng: random.Random, seed: int, template: str, cluster: RandomCluster) -> Case:
    more, files = balancing_files(rng, cluster)
    arguments = [*balancing_options(rng, cluster), *more]
    if rng.random() < 0.4:
        arguments.append(rng.choice(["-C", "-C", "-Csaved.sh"]))
    if rng.random() < 0.3:
        arguments += ["-S", "saved"]
    if rng.random() < 0.1:
        answers = rapi_documents.documents(rng, parse_cluster(cluster.text))
        return Case(BALANCE, seed, "hbal", ("-m", "file://.", *arguments), "", files=files, rapi=answers)
    if rng.random() < 0.9:
        return Case(BALANCE, seed, "hbal", ("-t", "c.data", *arguments), cluster.text, files=files)
    request = allocation(rng, template, cluster)
    text = json.dumps(document(rng, parse_cluster(cluster.text), request))
    return Case(BALANCE, seed, "hbal", ("-I", "r.json", *arguments), cluster.text, text, files=files)


def _rolling_case(rng: random.Random, seed: int, template: str, cluster: RandomCluster) -> Case:
    arguments = rolling_options(rng, cluster)
    text = with_master_and_room(rng, cluster)
    if rng.random() < 0.8:
        return Case(ROLL, seed, "hroller", ("-t", "c.data", *arguments), text)
    data = parse_cluster(text)
    if rng.random() < 0.5:
        answers = rapi_documents.documents(rng, data)
        return Case(ROLL, seed, "hroller", ("-m", "file://.", *arguments), "", rapi=answers)
    request = json.dumps(document(rng, data, allocation(rng, template, cluster)))
    arguments = [option for option in arguments if option != "--full-evacuation"]
    return Case(ROLL, seed, "hroller", ("-I", "r.json", *arguments), text, request)


def hspace_options(rng: random.Random, template: str) -> list[str]:
    """Return random options for hspace."""
    options = [f"--disk-template={template}"]
    if rng.random() < 0.9:
        options.append("--machine-readable")
    if rng.random() < 0.3:
        options.append("--accept-existing-errors")
    if rng.random() < 0.25:
        options.append("--independent-groups")
    if rng.random() < 0.3:
        options.append("--no-capacity-checks")
    if rng.random() < 0.25:
        options += ["-l", str(rng.choice([0, 1, 3, 7, 20]))]
    if rng.random() < 0.15:
        options.append(f"--max-cpu={rng.choice([0.5, 1, 2.5, 16])}")
    if rng.random() < 0.15:
        options.append(f"--min-disk={rng.choice([0.1, 0.25])}")
    if rng.random() < 0.15:
        options.append(f"--spindle-use={rng.choice([0, 1, 3])}")
    if rng.random() < 0.1:
        options.append("-O" + "node0.example.com")
    if rng.random() < 0.15:
        options.append("--tiered-alloc=2000,1500,4,3")
    if rng.random() < 0.15:
        options.append("--standard-alloc=1g,250,1")
    return options + (["-p"] if rng.random() < 0.1 else []) + verbosity(rng)


def verbosity(rng: random.Random) -> list[str]:
    """Return at times that more is to be said."""
    return ["-v"] * rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 2, 3])


def hail_options(rng: random.Random, cluster: RandomCluster) -> list[str]:
    """Return random options for hail."""
    options = []
    if rng.random() < 0.4:
        options.append("--no-capacity-checks")
    if rng.random() < 0.3:
        options.append("--ignore-soft-errors")
    if rng.random() < 0.25:
        options += ["-S", "saved"]
    if rng.random() < 0.05:
        options.append("--ignore-dynu")
    if rng.random() < 0.05:
        options.append("--static-kvm-node-memory=64")
    if rng.random() < 0.05:
        options.append(f"--restrict-allocation-to={','.join(_some_nodes(rng, cluster))}")
    return options + verbosity(rng)


def _some_nodes(rng: random.Random, cluster: RandomCluster) -> list[str]:
    names = [node.name for node in cluster.nodes]
    return rng.sample(names, rng.randrange(1, len(names) + 1))


def _wanted(rng: random.Random, template: str, name: str, *, odd: bool = True) -> dict[str, Any]:
    """Return what requests say of a new instance; `odd`: at times not what its template wants, or absurd."""
    if odd and rng.random() < 0.1:
        template = rng.choice(TEMPLATES)
    sizes = [rng.choice([512, 700, 1024]) for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2, 2, 9]))]
    count, memory = 2 if template == "drbd" else 1, rng.choice([64, 128, 300, 512, 1024])
    if odd and rng.random() < 0.05:
        count, memory = rng.choice([1, 2, 3]), rng.choice([0, memory, memory, 2**40])
    return {
        "name": name,
        "memory": memory,
        "vcpus": rng.choice([1, 1, 2]),
        "disks": [{"size": size, "spindles": 1} if rng.random() < 0.9 else {"size": size} for size in sizes],
        "disk_space_total": rng.choice([640, 1024, 2048]),
        "disk_template": template,
        "spindle_use": rng.choice([1, 1, 2]),
        "tags": [tag for tag in INSTANCE_TAGS if rng.random() < 0.3],
        "nics": [{"network": rng.choice(["net1", "net2", None])}] if rng.random() < 0.2 else [],
        "required_nodes": count,
    }


def allocation(rng: random.Random, template: str, cluster: RandomCluster, *, odd: bool = False) -> dict[str, Any]:
    """Return a request to place one instance."""
    request = {"type": "allocate", **_wanted(rng, template, "new.example.com", odd=odd)}
    if rng.random() < 0.3:
        request["group_name"] = _group_name(rng, cluster)
    if rng.random() < 0.15:
        request["restrict-to-nodes"] = _some_nodes(rng, cluster)
    return request


def _group_name(rng: random.Random, cluster: RandomCluster) -> str:
    return rng.choice(["g", "g", "g", "uuid-"]) + str(rng.randrange(cluster.groups))


def _allocate(rng: random.Random, template: str, cluster: RandomCluster, _: ClusterData) -> dict[str, Any]:
    return allocation(rng, template, cluster, odd=True)


def _multi_allocate(rng: random.Random, template: str, cluster: RandomCluster, _: ClusterData) -> dict[str, Any]:
    wanted = [_wanted(rng, template, f"new{number}.example.com") for number in range(rng.choice([0, 1, 2, 3, 5]))]
    request: dict[str, Any] = {"type": "multi-allocate", "instances": wanted}
    if rng.random() < 0.5:
        request["group_name"] = _group_name(rng, cluster)
    return request


def _one_of(rng: random.Random, data: ClusterData, likely: Callable[[Instance], bool]) -> Instance | None:
    """Return an instance, more likely one that the request can be granted for; None where there is none at all."""
    able = [item for item in data.instances if likely(item)]
    return rng.choice(able if able and rng.random() < 0.95 else data.instances) if data.instances else None


def _secondary(rng: random.Random, _: str, __: RandomCluster, data: ClusterData) -> dict[str, Any]:
    chosen = _one_of(rng, data, lambda item: item.secondary == NO_NODE)
    return {"type": "allocate-secondary", "name": chosen.name if chosen else "nobody.example.com"}


def _movable(item: Instance) -> bool:
    return item.template.value in {"drbd", *MIRRORED}


def _relocate(rng: random.Random, _: str, __: RandomCluster, data: ClusterData) -> dict[str, Any]:
    chosen = _one_of(rng, data, _movable)
    leaving: list[str] = []
    if chosen is not None:
        place = chosen.secondary if chosen.template.value == "drbd" else chosen.primary
        leaving = [data.nodes[place if rng.random() < 0.97 else chosen.primary].name]
    return {
        "type": "relocate",
        "name": chosen.name if chosen else "nobody.example.com",
        "required_nodes": 1 if rng.random() < 0.98 else 2,
        "relocate_from": leaving,
    }


def _several(rng: random.Random, data: ClusterData) -> list[str]:
    """Return names of instances: of one node, or any; a few times one twice."""
    if not data.instances:
        return []
    if rng.random() < 0.5:
        node = rng.choice(data.instances).primary
        names = [item.name for item in data.instances if node in {item.primary, item.secondary}]
    else:
        likely = [item.name for item in data.instances if _movable(item) or rng.random() < 0.2]
        names = rng.sample(likely, min(len(likely), rng.choice([0, 1, 1, 2, 3, 6])))
    return names + names[:1] if rng.random() < 0.05 else names


def _evacuate(mode: str, rng: random.Random, _: str, __: RandomCluster, data: ClusterData) -> dict[str, Any]:
    return {"type": "node-evacuate", "instances": _several(rng, data), "evac_mode": mode}


def _change_group(rng: random.Random, _: str, cluster: RandomCluster, data: ClusterData) -> dict[str, Any]:
    groups = [f"g{number}" for number in range(cluster.groups)]
    targets = rng.sample(groups, rng.randrange(len(groups) + 1)) if rng.random() < 0.5 else []
    return {"type": "change-group", "instances": _several(rng, data), "target_groups": targets}


REQUESTS: dict[str, Callable[[random.Random, str, RandomCluster, ClusterData], dict[str, Any]]] = {
    "allocate": _allocate,
    "multi-allocate": _multi_allocate,
    "allocate-secondary": _secondary,
    "relocate": _relocate,
    "evacuate primary-only": partial(_evacuate, "primary-only"),
    "evacuate secondary-only": partial(_evacuate, "secondary-only"),
    "evacuate all": partial(_evacuate, "all"),
    "change-group": _change_group,
}
FROM_RAPI = "hspace from RAPI"
BALANCE = "hbal"
ROLL = "hroller"
BALANCE_DOCUMENT = "hbal -I"
FROM_DOCUMENT = ("hspace -I", BALANCE_DOCUMENT)
"""The two programs load the instances of an iallocator document twice."""
KINDS = ("hspace", FROM_RAPI, BALANCE, ROLL, *FROM_DOCUMENT, *REQUESTS)


def document(rng: random.Random, data: ClusterData, request: dict[str, Any]) -> dict[str, Any]:
    """Return the iallocator document of a cluster; nodes that are not in use are offline, drained or not capable."""
    return {
        "cluster_tags": list(data.tags),
        "enabled_hypervisors": [rng.choice(["fake", "kvm"])],
        "nodegroups": {group.uuid: _group(group) for group in data.groups},
        "nodes": {node.name: _node(rng, node, data.groups[node.group].uuid) for node in data.nodes},
        "instances": {item.name: _instance(item, data) for item in data.instances},
        "request": request,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "alloc_policy": group.alloc_policy.value,
        "networks": list(group.networks),
        "tags": list(group.tags),
        "ipolicy": rapi_documents.policy(group.policy),
    }


def _node(rng: random.Random, node: NodeData, group: str) -> dict[str, Any]:
    why = rng.choice(["offline", "drained", "vm_capable"]) if node.offline else ""
    return {
        "total_memory": int(node.total_memory),
        "reserved_memory": node.node_memory,
        "free_memory": node.free_memory,
        "total_disk": int(node.total_disk),
        "free_disk": node.free_disk,
        "total_cpus": int(node.total_cpus),
        "reserved_cpus": node.node_cpus,
        "offline": why == "offline",
        "drained": why == "drained",
        "vm_capable": why != "vm_capable",
        "group": group,
        "tags": list(node.tags),
        "total_spindles": node.spindles,
        "free_spindles": node.free_spindles,
        "ndparams": {"spindle_count": node.spindles, "exclusive_storage": node.exclusive},
    }


def _instance(item: Instance, data: ClusterData) -> dict[str, Any]:
    return {
        "memory": item.memory,
        "vcpus": item.vcpus,
        "disk_space_total": item.disk,
        "disks": [
            {"size": disk.size} if disk.spindles is None else {"size": disk.size, "spindles": disk.spindles}
            for disk in item.disks
        ],
        "admin_state": _STATES.get(item.status, "up"),
        "nodes": [data.nodes[place].name for place in (item.primary, item.secondary) if place != NO_NODE],
        "disk_template": item.template.value,
        "tags": list(item.tags),
        "spindle_use": item.spindle_use,
        "forthcoming": item.forthcoming,
        "nics": [],
    }
