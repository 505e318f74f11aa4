"""A live cluster with many more instances, of all shapes: written into its configuration, as mirror.py does."""

from __future__ import annotations

import copy
import json
import random
import uuid
from collections.abc import Mapping
from typing import Any, Final

from gpolicy.cluster.state import LiveDisk, LiveInstance
from tests.e2e.cluster.mirror import METADATA_MIB, volume
from tests.e2e.live_cluster import LiveCluster
from tests.impact.policy_cases import instances_of

COUNT: Final = 18
_TIMES: Final = {"ctime": 1700000000.0, "mtime": 1700000000.0, "serial_no": 1}


def crowd(cluster: LiveCluster, seed: int, *, exclusive_storage: bool) -> None:
    """Add random instances to those of the cluster, in two groups: default (node1 to node3) and gold.

    With `exclusive_storage`, gold has it: the spindles of its disks count instead of the instances' spindle use.
    """
    config = json.loads(cluster.kept.read_bytes())
    rnd = random.Random(seed)  # noqa: S311 (no secret)
    names = {node["name"]: key for key, node in config["nodes"].items()}
    second_group(config, [names["node4"], names["node5"]], exclusive_storage=exclusive_storage)
    for home in (["node1", "node2", "node3"], ["node4", "node5"]):
        for name, instance in instances_of(rnd, home, COUNT // 2).items():
            _add(config, f"{name}-{home[0]}", instance, names)
    config["serial_no"] += 1
    file = cluster.base / "crowded.config.data"
    file.write_text(json.dumps(config))
    cluster.rgn("rewind", file)


def second_group(config: dict[str, Any], nodes: list[str], *, exclusive_storage: bool) -> None:
    """Put nodes (by UUID) into a second group, gold, in a configuration."""
    (first,) = config["nodegroups"].values()
    gold = {**copy.deepcopy(first), "name": "gold", "uuid": str(uuid.uuid4())}
    gold["ndparams"] = {"exclusive_storage": True} if exclusive_storage else {}
    config["nodegroups"][gold["uuid"]] = gold
    for node in nodes:
        config["nodes"][node]["group"] = gold["uuid"]


def _add(config: dict[str, Any], name: str, instance: LiveInstance, nodes: Mapping[str, str]) -> None:
    like = next(iter(config["instances"].values()))
    ends = [nodes[end] for end in (instance.primary_node, *instance.secondary_nodes)]
    disks = [_add_disk(config, disk, ends, name, number) for number, disk in enumerate(instance.disks)]
    key = str(uuid.uuid4())
    config["instances"][key] = {
        **copy.deepcopy(like),
        "name": name,
        "uuid": key,
        "primary_node": ends[0],
        "admin_state": "down",
        "disks_active": False,
        "beparams": {
            "minmem": instance.minmem,
            "maxmem": instance.maxmem,
            "vcpus": instance.vcpus,
            "spindle_use": instance.spindle_use,
        },
        "nics": [
            {
                "mac": f"aa:00:01:00:{len(config['instances']):02x}:{number:02x}",
                "nicparams": {},
                "uuid": str(uuid.uuid4()),
            }
            for number in range(instance.nic_count or 0)
        ],
        "disks": disks,
        **_TIMES,
    }


def _add_disk(config: dict[str, Any], disk: LiveDisk, ends: list[str], instance: str, number: int) -> str:
    name, group = f"{instance}.disk{number}", config["cluster"]["volume_group_name"]
    made = {**volume(group, name, disk.size, ends), "dev_type": disk.template, "iv_name": f"disk/{number}"}
    if disk.spindles is not None:
        made["spindles"] = disk.spindles
    match disk.template:
        case "drbd":
            config["cluster"]["highest_used_port"] += 1
            minors = [_free_minor(config, end) for end in ends]
            made["logical_id"] = [*ends, config["cluster"]["highest_used_port"], *minors, uuid.uuid4().hex]
            sizes = ((disk.size, "data"), (METADATA_MIB, "meta"))
            made["children"] = [volume(group, f"{name}_{what}", size, ends) for size, what in sizes]
        case "file":
            made["logical_id"] = ["loop", f"{config['cluster']['file_storage_dir']}/{name}"]
        case "rbd":
            made["logical_id"] = ["rbd", name]
    config["disks"][made["uuid"]] = made
    return str(made["uuid"])


def _free_minor(config: dict[str, Any], node: str) -> int:
    drbd = [disk["logical_id"] for disk in config["disks"].values() if disk["dev_type"] == "drbd"]
    return 1 + max([-1, *(int(ids[3 + ids.index(node)]) for ids in drbd if node in ids[:2])])
