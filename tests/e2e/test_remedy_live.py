"""A remedy, carried out: instances really move, and the conflicts that a policy brings are gone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import MASTER_ADDRESS, LiveCluster, gpolicy
from tests.e2e.test_interruptions_live import kill_when
from tests.strategies import document

pytestmark = pytest.mark.e2e

NAMES = ("web1", "web2", "web3")
POLICY = [
    document("Cluster", "cluster", {("ipolicy", "std", "memory-size"): "1G"}, tags=["htools:iextags:service:"]),
    document("NodeGroup", "default", {("alloc_policy",): "last_resort"}),
]
LEAST = {
    "memory-size": "512M",
    "disk-size": "1G",
    "cpu-count": 1,
    "disk-count": 1,
    "nic-count": 1,
    "spindle-use": 1,
}
MOST = {"memory-size": "8G", "disk-size": "1T", "cpu-count": 8, "disk-count": 16, "nic-count": 8, "spindle-use": 12}
NEW = ("-t", "sharedfile", "-o", "noop", "-n", "node1", "--disk=0:size=1g", "--no-name-check", "--no-ip-check")


@pytest.fixture
def crowded(fresh: LiveCluster) -> Iterator[LiveCluster]:
    """The cluster with three instances of one service on one node, on shared storage: they can really move here."""
    try:
        for name in NAMES:
            fresh.ganeti("gnt-instance", "add", *NEW, "-B", "memory=256,vcpus=1", "--tags", "service:web", name)
        yield fresh
    finally:
        for name in NAMES:
            fresh.ganeti("gnt-instance", "remove", "-f", name, check=False)


def remedy(*words: str | Path) -> dict[str, Any]:
    done = gpolicy("remedy", *words, "--state", "local:", "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def homes(cluster: LiveCluster) -> dict[str, str]:
    """Return the primary node of each of the instances, as the configuration has it."""
    config = cluster.config()
    nodes = {uuid: node["name"] for uuid, node in config["nodes"].items()}
    return {
        item["name"]: nodes[item["primary_node"]]
        for item in config["instances"].values()
        if item["name"] in NAMES or item["name"].startswith("old")
    }


def run(cluster: LiveCluster, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(script), *words]
    return subprocess.run(
        command, env=cluster.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_a_remedy_ends_the_conflicts_that_a_policy_brings(crowded: LiveCluster, tmp_path: Path) -> None:
    way, plan, script = Way(crowded, "local"), tmp_path / "plan.json", tmp_path / "remedy.sh"
    policy = write_policy(tmp_path / "policy.yaml", POLICY)
    assert way.plan(policy, plan).code == 2
    before = homes(crowded)
    assert set(before.values()) == {"node1"}
    foretold = remedy(plan)
    assert way.apply(plan).code == 0
    found = remedy(policy, "--script", script)
    assert [step["commands"] for step in found["steps"]] == [step["commands"] for step in foretold["steps"]]
    conflicts = [fault for fault in found["faults"] if fault["kind"] == "exclusion"]
    assert [fault["key"] for fault in conflicts] == [["service:web", "node node1"]]
    assert {step["instance"] for step in found["steps"]} <= set(NAMES)
    assert not any(step["downtime"] for step in found["steps"])
    done = run(crowded, script)
    assert done.returncode == 0, done.stdout + done.stderr
    after = homes(crowded)
    assert after == before | {step["instance"]: step["nodes_after"][0] for step in found["steps"]}
    assert len(set(after.values())) == len(NAMES)
    again = remedy(policy)
    assert (again["steps"], [fault["kind"] for fault in again["faults"] if fault["kind"] == "exclusion"]) == ([], [])
    assert way.plan(policy, plan).code == 0
    assert run(crowded, script).stdout.count("done already") == len(found["steps"])
    undone = run(crowded, script, "--back")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert homes(crowded) == before


def balanced() -> set[str]:
    """Return which of the instances hbal would move; it must find nothing that is bad."""
    done = gpolicy("htools", "hbal", "-m", MASTER_ADDRESS, "-C")
    assert done.code == 0, done.err
    assert "0 bad nodes, 0 bad instances" in done.out, done.out
    return {name for name in NAMES if name in done.out}


def lines(journal: Path, event: str) -> int:
    """Return how many events of this kind a journal has."""
    return journal.read_text(encoding="utf-8").count(f'"event": "{event}"') if journal.exists() else 0


@pytest.mark.parametrize("route", ROUTES)
def test_a_remedy_is_applied_killed_resumed_and_taken_back(
    crowded: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setenv("GPOLICY_RAPI_CA", str(crowded.certificate))
    way, plan, cure = Way(crowded, route), tmp_path / "plan.json", tmp_path / "remedy.json"
    journal, before = tmp_path / "remedy.journal.jsonl", homes(crowded)
    policy = write_policy(tmp_path / "policy.yaml", POLICY)
    assert way.plan(policy, plan).code == 2
    steps = remedy(plan, "--save", cure)["steps"]
    assert len(steps) > 1
    early = way.apply(cure)
    assert (early.code, journal.exists()) == (1, False), early.out + early.err
    assert f"the remedy is for the cluster as plan {plan} makes it, and that plan was not applied" in early.err
    assert way.apply(plan).code == 0
    assert balanced() != set()
    assert kill_when(way, cure, lambda: lines(journal, "step-job-submitted") > 0)
    assert lines(journal, "step-done") < len(steps)
    done = way.apply(cure, "--resume")
    assert done.code == 0, done.out + done.err
    assert f"done: {len(steps)} instances are where the remedy puts them" in done.out
    after = homes(crowded)
    assert after == before | {step["instance"]: step["nodes_after"][0] for step in steps}
    assert lines(journal, "step-started") == len(steps)
    assert way.plan(policy).code == 0
    assert [fault for fault in remedy(policy)["faults"] if fault["kind"] == "exclusion"] == []
    assert balanced() == set()
    back = way.apply(cure, "--rollback")
    assert back.code == 0, back.out + back.err
    assert homes(crowded) == before
    assert lines(journal, "step-started") == 2 * len(steps)


@pytest.mark.parametrize("route", ROUTES)
def test_a_node_is_emptied_for_a_reboot_and_filled_again(
    crowded: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setenv("GPOLICY_RAPI_CA", str(crowded.certificate))
    way, moves, before = Way(crowded, route), tmp_path / "moves.json", homes(crowded)
    node = before[NAMES[0]]
    words = ("evacuate", node, "--primary-only", "--state", "local:", "--save", moves, "--format", "json")
    found = json.loads(gpolicy(*words).out)
    after = {item["instance"]: item["after"][0] for item in found["moved"]}
    assert {name for name, home in before.items() if home == node} <= after.keys()
    done = way.apply(moves)
    assert done.code == 0, done.out + done.err
    assert homes(crowded) == before | {name: home for name, home in after.items() if name in NAMES}
    assert node not in homes(crowded).values()
    back = way.apply(moves, "--rollback")
    assert back.code == 0, back.out + back.err
    assert homes(crowded) == before


@pytest.fixture
def filled(fresh: LiveCluster) -> Iterator[tuple[LiveCluster, int]]:
    """The cluster with two fifths of each node taken by one instance, and that much memory (MiB).

    Of its instances those are left that have no local disks: with them, hail refuses all others (Ganeti tells it of no
    disk of the nodes when it asks for instances on shared storage).
    """
    config = json.loads(fresh.kept.read_bytes())
    local = {"inst1", "inst2", "inst5"}
    config["instances"] = {key: item for key, item in config["instances"].items() if item["name"] not in local}
    config["serial_no"] += 1
    (fresh.base / "emptied.config.data").write_text(json.dumps(config))
    fresh.rgn("rewind", fresh.base / "emptied.config.data")
    least = min(node.resources.memory_free or 0 for node in fresh.state("local").nodes.values())
    taken = least * 2 // 5
    homes = [(f"old{number}", node) for number, node in enumerate(fresh.state().nodes)]
    try:
        for name, node in homes:
            words = [node if word == "node1" else word for word in NEW]
            fresh.ganeti("gnt-instance", "add", *words, "-B", f"memory={taken},vcpus=1", name)
        yield fresh, taken
    finally:
        for name in (*(name for name, _ in homes), *NAMES):
            fresh.ganeti("gnt-instance", "remove", "-f", name, check=False)


def test_room_is_made_and_ganeti_adds_what_was_wanted(filled: tuple[LiveCluster, int], tmp_path: Path) -> None:
    cluster, taken = filled
    memory, moves = taken * 15 // 8, tmp_path / "room.json"  # three quarters of a node
    bounds = [{"min": LEAST, "max": MOST | {"memory-size": memory}}]
    documents = [document("Cluster", "cluster", {("ipolicy", "minmax"): bounds, ("ipolicy", "std"): LEAST})]
    policy = write_policy(tmp_path / "policy.yaml", [*documents, document("NodeGroup", "default", {})])
    assert Way(cluster, "local").carry_out(policy, tmp_path / "plan.json")

    def add(name: str) -> subprocess.CompletedProcess[str]:
        place = ["hail" if word == "node1" else "-I" if word == "-n" else word for word in NEW]
        return cluster.ganeti("gnt-instance", "add", *place, "-B", f"memory={memory},vcpus=1", name, check=False)

    assert "FailMem" in add("web1").stderr
    found = remedy("--want", f"1x memory={memory}M vcpus=1 disk=1G template=sharedfile", "--save", moves)
    assert len(found["steps"]) == 2  # one node for it, and one where it could start anew
    done = Way(cluster, "local").apply(moves)
    assert done.code == 0, done.out + done.err
    added = add("web1")
    assert added.returncode == 0, added.stdout + added.stderr


def test_all_nodes_go_in_turn_and_every_instance_comes_home(filled: tuple[LiveCluster, int], tmp_path: Path) -> None:
    cluster, _ = filled
    words = ("evacuate", "--in-turn", "--state", "local:", "--save", tmp_path / "waves", "--format", "json")
    waves = json.loads(gpolicy(*words).out)["waves"]
    assert sorted(node for wave in waves for node in wave["nodes"]) == sorted(cluster.state().nodes)
    before = homes(cluster)
    for number, wave in enumerate(waves, 1):
        out, back = (tmp_path / "waves" / f"wave-{number}-{way}.json" for way in ("out", "back"))
        applied = Way(cluster, "local").apply(out)
        assert applied.code == 0, applied.out + applied.err
        assert not set(wave["nodes"]) & set(homes(cluster).values())
        applied = Way(cluster, "local").apply(back)
        assert applied.code == 0, applied.out + applied.err
    assert homes(cluster) == before


def test_legal_sizes_are_accepted_and_end_the_violations(crowded: LiveCluster, tmp_path: Path) -> None:
    values: dict[tuple[str, ...], Any] = {
        ("ipolicy", "minmax"): [{"min": LEAST, "max": MOST}],
        ("ipolicy", "std"): {**LEAST, "memory-size": "1G"},
    }
    policy = write_policy(
        tmp_path / "policy.yaml", [document("Cluster", "cluster", values), document("NodeGroup", "default", {})]
    )
    way, plan = Way(crowded, "local"), tmp_path / "plan.json"
    assert way.carry_out(policy, plan)
    found = {item["instance"]: item for item in remedy(policy)["sizes"]}
    assert set(NAMES) <= set(found)
    for name in NAMES:
        (command,) = found[name]["commands"]
        assert command["argv"] == ["gnt-instance", "modify", "-B", "maxmem=512M,minmem=512M", name]
        crowded.ganeti(*command["argv"])
    assert not set(NAMES) & {item["instance"] for item in remedy(policy)["sizes"]}
