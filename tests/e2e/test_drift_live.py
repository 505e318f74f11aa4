"""What somebody changes by hand is drift, dated by Ganeti; through every source that shows it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.live_cluster import LiveCluster, gpolicy

pytestmark = pytest.mark.e2e

BY_HAND = {
    ("cluster", "ipolicy.vcpu-ratio"): ("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=9"),
    ("group/default", "tags"): ("gnt-group", "remove-tags", "default", "team:x"),
    ("node/node2", "ndparams.spindle_count"): ("gnt-node", "modify", "--node-parameters=spindle_count=9", "node2"),
    ("node/node4", "group"): ("gnt-group", "assign-nodes", "--force", "other", "node4"),
}


def test_changes_by_hand_are_drift_since_they_were_made(fresh: LiveCluster, tmp_path: Path) -> None:
    fresh.ganeti("gnt-group", "add", "other")
    fresh.ganeti("gnt-group", "add-tags", "default", "team:x")
    fresh.ganeti("gnt-node", "modify", "--node-parameters=spindle_count=2", "node2")
    policy = tmp_path / "policy"
    assert gpolicy("adopt", "--state", "local:", "--save", policy).code == 0
    for address in fresh.sources.values():
        assert gpolicy("drift", policy, "--state", address, *fresh.rapi_options(address)).code == 0
    made: dict[tuple[str, str], float] = {}
    for what, command in BY_HAND.items():
        time.sleep(1.1)  # times are told in seconds
        fresh.ganeti(*command)
        made[what] = time.time()
    for source, address in fresh.sources.items():
        drift = gpolicy("drift", policy, "--state", address, "--format", "json", *fresh.rapi_options(address))
        assert drift.code == 2, drift
        report = json.loads(drift.out)
        since = {(item["object"], item["path"]): item["since_at_latest"] for item in report["drift"]}
        assert since.keys() == made.keys(), source
        for what, when in made.items():
            told = datetime.strptime(since[what], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
            # at the latest: a later write to the same object moves its time
            assert when - 30 < told <= max(made.values()), (source, what)


def test_what_was_changed_by_hand_is_written_into_the_policy(fresh: LiveCluster, tmp_path: Path) -> None:
    """Through every source: afterwards the plan is empty, and check finds no more than before."""
    fresh.ganeti("gnt-group", "add", "other")
    fresh.ganeti("gnt-group", "add-tags", "default", "team:x")
    fresh.ganeti("gnt-node", "modify", "--node-parameters=spindle_count=2", "node2")
    policy = tmp_path / "policy"
    assert gpolicy("adopt", "--state", "local:", "--save", policy).code == 0
    (policy / "guards.yaml").unlink()  # a group of one node survives no failure
    checked = gpolicy("check", policy).out
    originals = {file: file.read_bytes() for file in policy.rglob("*.yaml")}
    for command in BY_HAND.values():
        fresh.ganeti(*command)
    for source, address in fresh.sources.items():
        for file, text in originals.items():
            file.write_bytes(text)
        options = ("--state", address, *fresh.rapi_options(address))
        wrote = gpolicy("drift", policy, *options, "--write", "--format", "json")
        assert wrote.code == 0, f"{source} {wrote.out}"
        values = json.loads(wrote.out)["written"]["values"]
        assert {(item["object"], item["path"]) for item in values} == BY_HAND.keys(), source
        assert gpolicy("plan", policy, *options, "--detailed-exitcode").code == 0, source
        assert gpolicy("check", policy).out == checked, source
        changed = {file.name for file, text in originals.items() if file.read_bytes() != text}
        assert changed == {"cluster.yaml", "default.yaml", "other.yaml", "nodes.yaml"}, source


def test_a_new_group_is_adopted_into_the_policy(fresh: LiveCluster, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    assert gpolicy("adopt", "--state", "local:", "--save", policy).code == 0
    before = {file: file.read_bytes() for file in policy.rglob("*.yaml")}
    fresh.ganeti("gnt-group", "add", "--node-parameters=spindle_count=3", "late")
    fresh.ganeti("gnt-group", "add-tags", "late", "team:x")
    adopted = gpolicy("adopt", "--state", "local:", "--save", policy)
    assert adopted.code == 0, adopted
    assert {file.name for file in policy.rglob("*.yaml")} - {file.name for file in before} == {"late.yaml"}
    assert all(file.read_bytes() == text for file, text in before.items())
    assert "spindle_count: 3" in (policy / "groups" / "late.yaml").read_text()
    assert gpolicy("plan", policy, "--state", "local:", "--detailed-exitcode").code == 0
    fresh.ganeti("gnt-group", "modify", "--node-parameters=spindle_count=5", "late")
    assert gpolicy("drift", policy, "--state", "local:", "--write").code == 0
    assert gpolicy("plan", policy, "--state", "local:", "--detailed-exitcode").code == 0
    assert "spindle_count: 5" in (policy / "groups" / "late.yaml").read_text()
