"""Requests of hail and the means to ask the installed hail, as Ganeti asks it: with one document of all it knows."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpolicy.allocator.cluster_data import Disk, Spec
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Value

HSPACE = shutil.which("hspace")
HTOOLS = Path(HSPACE).resolve() if HSPACE else Path("htools")


def requested(request: dict[str, Any]) -> PlaceRequest:
    """Return the request of an allocator document in our words."""
    return PlaceRequest(
        name=request["name"],
        memory=request["memory"],
        vcpus=request["vcpus"],
        disks=tuple(Disk(disk["size"], disk.get("spindles")) for disk in request["disks"]),
        spindle_use=request["spindle_use"],
        template=request["disk_template"],
        tags=tuple(request["tags"]),
        group=request.get("group_name"),
        nodes=tuple(request["restrict-to-nodes"]) if request.get("restrict-to-nodes") else None,
        networks=tuple(nic["network"] for nic in request["nics"] if nic.get("network")),
        spindles_given=False,  # hail accepts spindles on shared storage, which Ganeti never asks of it
    )


def document(state: ClusterState, request: dict[str, Any]) -> str:
    """Return what Ganeti gives to its allocator for this cluster and request.

    As Ganeti 3.0 and 3.1 do (masterd/iallocator.py), it reports no disk of the nodes in a request for a template whose
    storage cannot be asked; where a request names no template, it is the one that is enabled first.
    """
    data = cluster_data(state)
    enabled = state.cluster.own.get(("enabled_disk_templates",))
    template = request.get("disk_template") or (enabled[0] if isinstance(enabled, list) and enabled else "drbd")
    reported = template in {"drbd", "plain", "file"}
    groups = {group.index: group for group in data.groups}
    names = {node.index: node.name for node in data.nodes}
    return json.dumps(
        {
            "cluster_tags": list(data.tags),
            "enabled_hypervisors": [data.hypervisor or "fake"],
            "nodegroups": {
                group.uuid: {
                    "name": group.name,
                    "alloc_policy": group.alloc_policy.value,
                    "tags": list(group.tags),
                    "networks": list(group.networks),
                    "ipolicy": {
                        "minmax": [{"min": _spec(pair.min), "max": _spec(pair.max)} for pair in group.policy.minmax],
                        "std": _spec(group.policy.std),
                        "disk-templates": [template.value for template in group.policy.templates],
                        "vcpu-ratio": group.policy.vcpu_ratio,
                        "spindle-ratio": group.policy.spindle_ratio,
                    },
                }
                for group in data.groups
            },
            "nodes": {
                node.name: _node(node, groups[node.group].uuid, state.nodes[node.name], reported=reported)
                for node in data.nodes
            },
            "instances": {item.name: _instance(state, item, names) for item in data.instances},
            "request": request,
        }
    )


def _spec(spec: Spec) -> dict[str, int]:
    values = (spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use)
    return dict(zip(SPEC_PARAMETERS, values, strict=True))


def _node(node: Any, group: str, observed: LiveNode, *, reported: bool) -> dict[str, Any]:
    return {
        "group": group,
        "offline": observed.offline,
        "drained": observed.drained,
        "vm_capable": observed.vm_capable,
        "tags": list(node.tags),
        "ndparams": {
            "exclusive_storage": node.exclusive,
            "spindle_count": node.spindles,
            "cpu_speed": node.cpu_speed,
        },
        "total_memory": int(node.total_memory),
        "reserved_memory": node.node_memory,
        "free_memory": node.free_memory,
        "total_disk": int(node.total_disk) if reported else 0,
        "free_disk": node.free_disk if reported else 0,
        "total_cpus": int(node.total_cpus),
        "reserved_cpus": node.node_cpus,
        "total_spindles": node.spindles,
        "free_spindles": node.free_spindles,
    }


def _instance(state: ClusterState, item: Any, names: dict[int, str]) -> dict[str, Any]:
    return {
        "memory": state.instances[item.name].maxmem,
        "vcpus": item.vcpus,
        "disk_space_total": item.disk,
        "disks": [
            {"size": disk.size} | ({} if disk.spindles is None else {"spindles": disk.spindles}) for disk in item.disks
        ],
        "tags": list(item.tags),
        "disk_template": item.template.value,
        "spindle_use": item.spindle_use,
        "nics": [],
        "nodes": [names[index] for index in (item.primary, item.secondary) if index in names],
        "admin_state": state.instances[item.name].admin_state,
        "forthcoming": item.forthcoming,
    }


def with_parameters(state: ClusterState, stored: dict[str, Value], *hypervisors: str) -> ClusterState:
    """Return `state` with parameters for its allocator, as Ganeti stores them, and with these hypervisors if any."""
    own: dict[tuple[str, ...], Value] = {**state.cluster.own, ("default_iallocator_params",): stored}
    if hypervisors:
        own["enabled_hypervisors",] = [*hypervisors]
    return replace(state, cluster=replace(state.cluster, own=own))


def passed(stored: Mapping[str, Value]) -> list[str]:
    """Return the options that Ganeti's node daemon makes of the parameters."""
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in stored.items()]


def random_parameters(rng: random.Random, state: ClusterState) -> dict[str, Value]:
    """Return some of the parameters that change what hail does, and some that change nothing."""
    nodes = rng.sample(list(state.nodes), rng.randrange(1, len(state.nodes) + 1))
    every: dict[str, Value] = {
        "no-capacity-checks": None,
        "ignore-soft-errors": None,
        "restrict-allocation-to": ",".join(nodes),
        "static-kvm-node-memory": str(rng.choice([0, 512, 2048, 8192])),
        rng.choice(["ignore-dynu", "verbose", "mond-xen"]): None,
    }
    return {name: value for name, value in every.items() if rng.random() < 0.4}


def data_of(state: ClusterState) -> ClusterData:
    return cluster_data(state)


def real_hail(text: str, folder: Path, *options: str) -> dict[str, Any] | None:
    """Return hail's answer to an allocator document, None where it dies. The file comes first, as from Ganeti."""
    file = folder / "request.json"
    file.write_text(text)
    done = subprocess.run(
        [str(HTOOLS), str(file), *options],
        env={**os.environ, "HTOOLS": "hail", "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    answer: dict[str, Any] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return answer
