"""Exclusive storage on real nodes, planned end to end with numbers: Ganeti 3.0 reports none for such nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.crowded import second_group
from tests.e2e.live_cluster import LiveCluster, gpolicy

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("exclusive-storage")]

# Each node has four volumes of 256 GiB, of which 262144 / 1.03 = 254508 MiB count: 248 GiB fit on one, 249 GiB do not.
# With plain disks N+1 asks where all instances go when a node fails, so a group of two nodes takes those of one.
POLICY = """
gpolicy: v1
kind: NodeGroup
name: gold
nodes: [node4, node5]
ipolicy:
  minmax:
    - name: volume
      min: {{memory-size: 4G, cpu-count: 1, disk-size: 1G, disk-count: 1, nic-count: 1, spindle-use: 1}}
      max: {{memory-size: 4G, cpu-count: 1, disk-size: {size}, disk-count: 1, nic-count: 1, spindle-use: {spindles}}}
  disk-templates: [plain]
  vcpu-ratio: 4
  spindle-ratio: 32
ndparams: {{exclusive_storage: true}}
hv_state:
  fake: {{mem_total: 64G, mem_node: 1G, mem_hv: 0, cpu_total: 16, cpu_node: 1}}
hardware: {{memory: 64G, cpus: 16, pv_size: 256G, pv_count: 4}}
---
gpolicy: v1
kind: Guards
guards:
  - {{name: room, group: gold, spec: volume, at_least: {room}}}
"""


def two_groups(cluster: LiveCluster) -> None:
    """Put node4 and node5 into a group gold, and take their instance away."""
    config = json.loads(cluster.kept.read_bytes())
    names = {node["name"]: key for key, node in config["nodes"].items()}
    second_group(config, [names["node4"], names["node5"]], exclusive_storage=False)
    (there,) = [key for key, item in config["instances"].items() if item["primary_node"] == names["node4"]]
    for disk in config["instances"].pop(there)["disks"]:
        del config["disks"][disk]
    config["serial_no"] += 1
    file = cluster.base / "two-groups.config.data"
    file.write_text(json.dumps(config))
    cluster.rgn("rewind", file)


def answer(*arguments: str | Path) -> Any:
    done = gpolicy(*arguments, "--format", "json")
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


def test_exclusive_storage_is_planned_applied_and_counted_with_numbers(fresh: LiveCluster, tmp_path: Path) -> None:
    two_groups(fresh)
    policy, plan = tmp_path / "policy.yaml", tmp_path / "plan.json"
    policy.write_text(POLICY.format(size="248G", spindles=1, room=4))
    planned = answer("plan", policy, "--state", "local:", "--save", plan, "--allow", "exclusive-storage")
    (gold,) = [item for item in planned["impact"]["capacity"]["groups"] if item["group"] == "gold"]
    assert [(row["name"], row["after"]["fits"]) for row in gold["rows"] if row["after"]] == [("volume", 8)]
    assert planned["impact"]["basis"]["declared"]["disk and spindles"] == ["node4", "node5"]
    assert [(guard["name"], guard["ok"]) for guard in planned["guards"]] == [
        ("exclusive-storage", True),
        ("room", True),
    ]
    done = gpolicy("apply", plan, "--to", "local:", "--yes")
    assert done.code == 0, done.err

    state = fresh.state("local")
    assert {state.nodes[name].resources.disk_total for name in ("node4", "node5")} == {None}
    assert answer("plan", policy, "--state", "local:")["summary"]["changes"] == 0
    for source in ("local:", f"config:{fresh.config_file}"):
        counted = answer("capacity", "--group", "gold", "--state", source, policy)
        assert [spec["fits"] for spec in counted["groups"][0]["specs"]] == [8], source
        assert counted["basis"]["declared"]["disk and spindles"] == ["node4", "node5"]
    placed = answer("place", "volume", "group=gold", "--state", "local:", "--policy", policy)
    assert placed["ok"]
    assert placed["group"] == "gold"


def test_measured_volumes_count_without_a_promise(fresh: LiveCluster, tmp_path: Path) -> None:
    two_groups(fresh)
    fresh.ganeti("gnt-group", "modify", "--node-parameters=exclusive_storage=true", "gold")
    snapshot, policy = tmp_path / "now.json", tmp_path / "policy.yaml"
    done = gpolicy("snapshot", "--state", "local:", "--physical-volumes", "--save", snapshot)
    assert done.code == 0, done.err
    text = POLICY.format(size="248G", spindles=1, room=4).partition("hardware:")[0]
    policy.write_text(text)
    counted = answer("capacity", "--group", "gold", "--state", f"snapshot:{snapshot}", policy)
    # the volumes of the instance that was taken away are still there: one physical volume of each node is used in part
    assert [spec["fits"] for spec in counted["groups"][0]["specs"]] == [6]
    assert "disk and spindles" not in counted["basis"]["declared"]
    policy.write_text(text.replace("248G", "249G"))
    too_large = answer("capacity", "--group", "gold", "--state", f"snapshot:{snapshot}", policy)
    assert [spec["fits"] for spec in too_large["groups"][0]["specs"]] == [0]
