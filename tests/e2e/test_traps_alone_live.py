"""Ganeti's traps on a real cluster, those that leave it in a state that would disturb other tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN
from tests.e2e.carried_out import Way, write_policy
from tests.e2e.given_directly import WARNING, Real, bounds
from tests.e2e.live_cluster import LiveCluster
from tests.e2e.raw_rapi import ask
from tests.strategies import document

pytestmark = pytest.mark.e2e


@pytest.fixture
def real(fresh: LiveCluster) -> Real:
    """A cluster of its own."""
    return Real(fresh)


def test_t07_live_bounds_and_std_depend_on_one_another(real: Real, tmp_path: Path) -> None:
    high = bounds().replace("min:memory-size=128", "min:memory-size=4096")
    assert "Invalid std" in real.refused("gnt-cluster", "modify", high)
    pair = {"min": {**DEFAULT_MIN, "memory-size": 4096}, "max": DEFAULT_MAX}
    wanted = {("ipolicy", "minmax"): [pair], ("ipolicy", "std", "memory-size"): 4096}
    policy = write_policy(tmp_path / "policy.yaml", [document("Cluster", "cluster", wanted)])
    assert Way(real.cluster, "local").carry_out(policy, tmp_path / "plan.json")


def test_t21_t22_t23_t24_t54_live_templates(real: Real, tmp_path: Path) -> None:
    """A group's stale list is cut to nothing when its template is disabled, and then blocks the group."""
    enabled = ["file", "drbd", "plain", "diskless"]
    for allowed in ("plain,diskless,drbd,file", "drbd,file,plain,diskless"):
        real.taken("gnt-cluster", "modify", f"--ipolicy-disk-templates={allowed}")
        assert real.config()["ipolicy"]["disk-templates"] == allowed.split(",")
    real.taken("gnt-group", "add", "--ipolicy-disk-templates=rbd", "a")  # which the cluster's policy does not allow
    policy = write_policy(
        tmp_path / "policy.yaml", [document("Cluster", "cluster", {("enabled_disk_templates",): enabled})]
    )
    planned = Way(real.cluster, "local").plan(policy)
    assert planned.code == 1
    assert "ipolicy.disk-templates of group a" in planned.err
    real.taken("gnt-cluster", "modify", f"--enabled-disk-templates={','.join(enabled)}")
    assert real.config()["enabled_disk_templates"] == enabled
    said = real.refused("gnt-group", "modify", "--ipolicy-vcpu-ratio=2", "a")
    assert "at least one disk template" in said
    real.taken("gnt-group", "modify", "--ipolicy-disk-templates=default", "--ipolicy-vcpu-ratio=2", "a")
    real.taken("gnt-cluster", "modify", "-D", "rbd:pool=p")  # not enabled any more, and taken all the same
    assert real.config()["diskparams"]["rbd"]["pool"] == "p"


def test_t25_t26_t56_live_violations_are_a_warning_about_what_is_new(real: Real) -> None:
    said = real.taken("gnt-group", "modify", bounds(memory_size=1024), "default")
    assert WARNING in said
    assert all(f"inst{number}" in said for number in range(1, 6))
    assert WARNING not in real.taken("gnt-group", "modify", bounds(memory_size=1000), "default")
    assert WARNING not in real.taken("gnt-group", "modify", "--ipolicy-vcpu-ratio=0.01", "default")


def test_t28_t61_live_exclusive_storage_is_not_checked_and_silences_nodes(real: Real) -> None:
    real.taken("gnt-group", "modify", "--node-parameters=exclusive_storage=true", "default")
    state = real.cluster.state("local")
    assert all(node.resources.disk_total is None for node in state.nodes.values())
    assert any("exclusive_storage is on for node1" in note for note in state.notes)


def test_t31_live_the_pool_promotes_and_never_demotes(real: Real, tmp_path: Path) -> None:
    def candidates() -> int:
        return sum(node["master_candidate"] for node in real.cluster.config()["nodes"].values())

    assert candidates() == 1
    for _ in range(3):  # the first job may only store the number, the one that promotes may die (Corrupt configuration)
        real.cluster.ganeti("gnt-cluster", "modify", "-C", "2", check=False)
        if candidates() == 2:
            break
    assert candidates() == 2
    real.taken("gnt-cluster", "modify", "-C", "1")
    assert candidates() == 2
    policy = write_policy(tmp_path / "policy.yaml", [document("Cluster", "cluster", {("candidate_pool_size",): 4})])
    assert Way(real.cluster, "local").carry_out(policy, tmp_path / "plan.json")
    assert candidates() == 4


def test_t42_t43_t51_t52_t60_live_groups_and_their_nodes(real: Real) -> None:
    real.taken("gnt-group", "add", bounds(memory_size=512), "--node-parameters=spindle_count=5", "strict")
    assert WARNING not in real.taken("gnt-group", "assign-nodes", "strict", "node4", "node5")  # inst5 has 2 GiB
    _, node = ask(real.cluster, "GET", "/2/nodes/node4")
    assert node["ndparams"]["spindle_count"] == 5
    assert "not empty" in real.refused("gnt-group", "remove", "strict")
    real.taken("gnt-group", "assign-nodes", "strict")  # no node is named
    assert set(real.groups_of_nodes().values()) == {"strict"}
    uuid = real.config("default")["uuid"]
    real.taken("gnt-group", "add-tags", "default", "kept")
    real.taken("gnt-group", "remove", "default")
    real.taken("gnt-group", "add", "default")
    assert real.config("default")["uuid"] != uuid
    assert real.config("default")["tags"] == []
    real.taken("gnt-group", "remove", "default")
    real.refused("gnt-group", "remove", "strict")  # the last one


def test_t55_live_adding_a_node_again_empties_its_parameters(real: Real) -> None:
    real.taken("gnt-node", "modify", "--node-parameters=spindle_count=9", "node5")
    assert real.node("node5")["ndparams"] == {"spindle_count": 9}
    real.cluster.rgn("run", "gnt-node", "add", "--readd", "--no-ssh-key-check", "node5")
    assert real.node("node5")["ndparams"] == {}


def test_t57_live_a_change_of_the_cluster_may_be_half_done(real: Real) -> None:
    before = real.config()["enabled_disk_templates"]
    turned = before[::-1]
    real.refused("gnt-cluster", "modify", f"--enabled-disk-templates={','.join(turned)}", "--zeroing-image=no/path")
    assert real.config()["enabled_disk_templates"] == turned
