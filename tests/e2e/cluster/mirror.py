"""Turn instances of a stopped cluster into DRBD ones: mirror.py BASE INSTANCE=SECONDARY_NODE ...

It changes only the configuration, and the list of volumes that the pretended LVM of `rgn` keeps: policy checks,
queries, RAPI and htools see mirrored instances; there is no block device behind them.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

METADATA_MIB = 128


def volume(group: str, name: str, size: int, nodes: list[str]) -> dict[str, Any]:
    """Return a plain volume as config.data has it below a DRBD disk."""
    return {
        "dev_type": "plain",
        "logical_id": [group, name],
        "size": size,
        "params": {},
        "children": [],
        "nodes": nodes,
        "iv_name": "",
        "mode": "rw",
        "uuid": str(uuid.uuid4()),
        "serial_no": 1,
        "ctime": 1700000000.0,
        "mtime": 1700000000.0,
    }


def replace_volume(file: Path, old: str, new: list[tuple[str, int]]) -> None:
    """Let the pretended LVM of a node have the volumes `new` instead of `old`."""
    text = file.read_text() if file.exists() else ""
    text = re.sub(f"(?m)^{re.escape(old)} .*\n", "", text)
    file.write_text(text + "".join(f"{name} {size} -\n" for name, size in new))


def mirror(base: Path, config: dict[str, Any], name: str, secondary: str, number: int, minors: dict[str, int]) -> int:
    """Make all disks of one instance DRBD ones; return how many there are. `number` counts disks of all instances."""
    group = config["cluster"]["volume_group_name"]
    names = {node["uuid"]: node["name"] for node in config["nodes"].values()}
    uuids = {node: key for key, node in names.items()}
    instance = next(item for item in config["instances"].values() if item["name"] == name)
    ends = [instance["primary_node"], uuids[secondary]]
    for index, key in enumerate(instance["disks"]):
        disk = config["disks"][key]
        data, meta = f"{name}.disk{index}_data", f"{name}.disk{index}_meta"
        for end in ends:
            minors[end] = minors.get(end, -1) + 1
            lvs = base / "facts" / names[end] / "lvs"
            replace_volume(lvs, disk["logical_id"][1], [(data, disk["size"]), (meta, METADATA_MIB)])
        port = 11001 + number + index
        disk["logical_id"] = [*ends, port, minors[ends[0]], minors[ends[1]], uuid.uuid4().hex]
        disk["dev_type"], disk["nodes"] = "drbd", ends
        disk["children"] = [volume(group, data, disk["size"], ends), volume(group, meta, METADATA_MIB, ends)]
        disk.pop("params", None)
        config["cluster"]["highest_used_port"] = max(port, config["cluster"]["highest_used_port"])
    instance["serial_no"] += 1
    return len(instance["disks"])


def main() -> None:
    """Change the configuration in place: its owner and mode are kept."""
    base = Path(sys.argv[1])
    file = base / "v/node1/var/lib/ganeti/config.data"
    config = json.loads(file.read_text())
    minors: dict[str, int] = {}
    number = 0
    for argument in sys.argv[2:]:
        name, _, secondary = argument.partition("=")
        number += mirror(base, config, name, secondary, number, minors)
    config["serial_no"] += 1
    file.write_text(json.dumps(config))


if __name__ == "__main__":
    main()
