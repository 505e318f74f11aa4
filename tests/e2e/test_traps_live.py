"""Ganeti's traps, shown on a real cluster: what its commands do when they are given directly.

What gpolicy does about each is held by the tests with the same number. These leave nothing behind that could disturb
another; those that do are in test_traps_alone_live.py.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpolicy.cluster.state_files import read_config_file
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN
from tests.e2e.carried_out import Way, write_policy
from tests.e2e.given_directly import Real, bounds
from tests.e2e.live_cluster import LiveCluster, gpolicy
from tests.e2e.raw_rapi import ask, job
from tests.strategies import document

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def shared(cluster: LiveCluster) -> Iterator[Real]:
    """A cluster with an empty group `a`, for traps that leave nothing behind that could disturb another."""
    cluster.rewind()
    real = Real(cluster)
    real.taken("gnt-group", "add", "a")
    yield real
    cluster.rewind()


# --- commands ----------------------------------------------------------------------------------------------------


def test_t01_live_options_behind_the_name_are_no_options(shared: Real) -> None:
    assert "expects 1 argument" in shared.refused("gnt-group", "modify", "a", "--alloc-policy=last_resort")


def test_t02_t03_live_of_repeated_options_the_last_holds(shared: Real) -> None:
    shared.taken(
        "gnt-group", "modify", "-D", "drbd:resync-rate=7", "-D", "drbd:protocol=A",
        "--node-parameters=ssh_port=7", "--node-parameters=spindle_count=7", "a",
    )  # fmt: skip
    group = shared.config("a")
    assert (group["diskparams"], group["ndparams"]) == ({"drbd": {"protocol": "A"}}, {"spindle_count": 7})


def test_t04_live_bounds_are_all_or_nothing(shared: Real) -> None:
    assert "Missing" in shared.refused(
        "gnt-group", "modify", "--ipolicy-bounds-specs=min:cpu-count=1/max:cpu-count=2", "a"
    )


def test_t05_t06_live_std_is_for_the_cluster_and_merged_and_specs_are_for_init(shared: Real) -> None:
    before = shared.config()["ipolicy"]["std"]
    shared.taken("gnt-cluster", "modify", "--ipolicy-std-specs=cpu-count=3")
    assert shared.config()["ipolicy"]["std"] == {**before, "cpu-count": 3}
    assert "no such option" in shared.refused("gnt-group", "modify", "--ipolicy-std-specs=cpu-count=3", "a")
    assert "no such option" in shared.refused("gnt-cluster", "modify", "--specs-mem-size=min=1")


def test_t08_live_the_command_line_rounds_and_rapi_does_not(shared: Real) -> None:
    shared.taken("gnt-cluster", "modify", "--ipolicy-std-specs=memory-size=130")
    assert shared.config()["ipolicy"]["std"]["memory-size"] == 132
    body = {"ipolicy": {"std": {"memory-size": 130}}}
    assert job(shared.cluster, "PUT", "/2/modify", body)[0] == "success"
    assert shared.config()["ipolicy"]["std"]["memory-size"] == 130


def test_t09_t18_t19_live_words_that_are_refused(shared: Real) -> None:
    assert "not a valid boolean" in shared.refused("gnt-group", "modify", "--node-parameters=ovs=yes", "a").lower()
    shared.refused("gnt-group", "modify", "--ipolicy-disk-templates=plain, drbd", "a")
    assert "Invalid storage type" in shared.refused("gnt-group", "modify", "--disk-state=lvm/xenvg:disk_total=1", "a")
    shared.taken("gnt-group", "modify", "--disk-state=plain/xenvg:disk_total=1", "a")


def test_t10_live_a_level_of_backslashes_is_eaten(shared: Real) -> None:
    shared.taken("gnt-cluster", "modify", r"--reserved-lvs=a\.b,c\,d,e\\.f")
    assert shared.config()["reserved_lvs"] == ["a.b", "c,d", r"e\.f"]


def test_t11_t49_t50_live_resets(shared: Real, tmp_path: Path) -> None:
    shared.taken("gnt-group", "modify", "-D", "rbd:pool=p,access=userspace", "--ipolicy-vcpu-ratio=3", "a")
    assert "rbd:access" in shared.refused("gnt-group", "modify", "-D", "rbd:access=default", "a")
    shared.taken("gnt-group", "modify", "-D", "ext:access=userspace", "a")
    shared.taken("gnt-group", "modify", "-D", "rbd:pool=default", "-D", "plain:stripes=default", "a")
    assert shared.config("a")["diskparams"]["plain"] == {}
    state = read_config_file(shared.cluster.config_file).groups["a"]
    assert ("diskparams", "plain", "stripes") not in state.own
    shared.taken("gnt-group", "modify", "--ipolicy-vcpu-ratio=default", "a")
    assert "vcpu-ratio" not in shared.config("a")["ipolicy"]
    _, group = ask(shared.cluster, "GET", "/2/groups/a")
    assert group["custom_ipolicy"] == {}
    policy = write_policy(
        tmp_path / "policy.yaml",
        [document("NodeGroup", "a", {("diskparams", "rbd", "access"): "kernelspace"})],
    )
    assert Way(shared.cluster, "local").carry_out(policy, tmp_path / "plan.json")


def test_t12_live_a_group_query_merges_disk_parameters_per_template(shared: Real) -> None:
    shared.taken("gnt-group", "modify", "-D", "gluster:port=7", "a")
    _, group = ask(shared.cluster, "GET", "/2/groups/a")
    assert group["diskparams"]["gluster"] == {"port": 7}
    effective = shared.cluster.state("rapi").groups["a"].effective
    assert effective["diskparams", "gluster", "host"] == "127.0.0.1"


def test_t13_live_default_is_no_reset_on_the_cluster(shared: Real) -> None:
    assert "not a valid integer" in shared.refused("gnt-cluster", "modify", "-D", "drbd:resync-rate=default")
    shared.taken("gnt-cluster", "modify", "-D", "drbd:metavg=default")
    assert shared.config()["diskparams"]["drbd"]["metavg"] == "default"
    shared.taken("gnt-cluster", "modify", "-D", "drbd:metavg=xenvg")


def test_t14_t15_live_defaults_and_zero(shared: Real) -> None:
    shared.refused("gnt-group", "add", "--ipolicy-vcpu-ratio=default", "b")
    assert "Can't unset" in shared.refused("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=0")
    shared.taken("gnt-group", "modify", "--ipolicy-spindle-ratio=3", "a")
    shared.taken("gnt-group", "modify", "--ipolicy-spindle-ratio=0", "a")
    assert "spindle-ratio" not in shared.config("a")["ipolicy"]


def test_t16_t62_live_a_job_that_changes_nothing_raises_the_serial_number(shared: Real) -> None:
    before = shared.config("a")
    shared.taken("gnt-group", "modify", "a")
    once = shared.config("a")
    shared.taken("gnt-group", "modify", f"--alloc-policy={before['alloc_policy']}", "a")
    twice = shared.config("a")
    assert before["serial_no"] < once["serial_no"] < twice["serial_no"]
    assert before["mtime"] < once["mtime"] < twice["mtime"]


def test_t17_live_d_drains_a_node(shared: Real) -> None:
    shared.taken("gnt-node", "modify", "-D", "yes", "node5")
    assert shared.node("node5")["drained"] is True
    shared.taken("gnt-node", "modify", "-D", "no", "node5")


# --- what values mean --------------------------------------------------------------------------------------------


def test_t20_t48_live_an_equal_value_is_an_override_and_ratios_are_floats(shared: Real) -> None:
    shared.taken("gnt-group", "modify", "--ipolicy-vcpu-ratio=4", "a")
    assert (shared.config("a")["ipolicy"]["vcpu-ratio"], shared.config()["ipolicy"]["vcpu-ratio"]) == (4.0, 4.0)
    own = read_config_file(shared.cluster.config_file).groups["a"].own
    assert isinstance(own["ipolicy", "vcpu-ratio"], float)  # config.data has 4, Ganeti's Python side 4.0
    shared.taken("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=5")
    _, group = ask(shared.cluster, "GET", "/2/groups/a")
    assert group["ipolicy"]["vcpu-ratio"] == 4.0
    shared.taken("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=4")


def test_t29_live_the_cluster_warns_about_drbd_and_a_group_does_not(shared: Real) -> None:
    said = shared.taken("gnt-cluster", "modify", "-D", "drbd:resync-rate=61440")
    assert "only affects devices created in the future" in said
    assert "WARNING" not in shared.taken("gnt-group", "modify", "-D", "drbd:resync-rate=61440", "a")


def test_t32_live_an_image_cannot_be_emptied(shared: Real) -> None:
    shared.taken("gnt-cluster", "modify", "--install-image=/srv/image")
    shared.refused("gnt-cluster", "modify", "--install-image=")
    assert shared.config()["install_image"] == "/srv/image"


def test_t33_t34_live_data_collectors(shared: Real) -> None:
    shared.taken("gnt-cluster", "modify", "--enabled-data-collectors=drbd=yes")
    assert shared.config()["data_collectors"]["drbd"]["active"] is False
    shared.refused("gnt-cluster", "modify", "--data-collector-interval=drbd=10")
    body = {"data_collector_interval": {"drbd": 10_000_000}}
    assert job(shared.cluster, "PUT", "/2/modify", body)[0] == "success"
    assert shared.config()["data_collectors"]["drbd"]["interval"] == 10_000_000


# --- reading, and RAPI -------------------------------------------------------------------------------------------


def test_t35_live_states_are_shown_nowhere(shared: Real) -> None:
    shared.taken("gnt-group", "modify", "--hypervisor-state=fake:mem_node=777", "a")
    assert shared.config("a")["hv_state_static"]["fake"] == {"mem_node": 777}
    assert "777" not in shared.taken("gnt-group", "info", "a")
    assert "777" not in str(ask(shared.cluster, "GET", "/2/groups/a"))
    shared.taken("gnt-group", "modify", "--hypervisor-state=fake:mem_node=default", "a")
    assert shared.config("a")["hv_state_static"]["fake"] == {}


def test_t36_live_a_node_s_own_parameters_are_in_the_query_alone(shared: Real) -> None:
    shared.taken("gnt-node", "modify", "--node-parameters=spindle_count=9", "node3")
    _, node = ask(shared.cluster, "GET", "/2/nodes/node3")
    assert "custom_ndparams" not in node
    assert node["ndparams"]["spindle_count"] == 9
    _, query = ask(shared.cluster, "GET", "/2/query/node?fields=name,custom_ndparams")
    own = {row[0][1]: row[1][1] for row in query["data"]}
    assert (own["node3"], own["node2"]) == ({"spindle_count": 9}, {})


def test_t37_t38_t59_live_names_methods_and_types_of_rapi(shared: Real) -> None:
    _, info = ask(shared.cluster, "GET", "/2/info")
    assert info["volume_group_name"] == "xenvg"
    refused = [
        ask(shared.cluster, "PUT", "/2/modify", {"volume_group_name": "xenvg"})[0],
        ask(shared.cluster, "PUT", "/2/modify", {"candidate_pool_size": "1"})[0],
        ask(shared.cluster, "PUT", "/2/nodes/node3/modify", {"ndparams": {}})[0],
    ]
    assert refused[:2] == [400, 400]
    assert refused[2] in {405, 501}
    assert job(shared.cluster, "PUT", "/2/modify", {"vg_name": "xenvg"})[0] == "success"
    status, error = job(shared.cluster, "PUT", "/2/modify", {"ipolicy": {"vcpu-ratio": "x"}})
    assert (status, "Invalid value" in str(error)) == ("error", True)
    assert job(shared.cluster, "PUT", "/2/groups/a/tags?tag=t:1&tag=t:2")[0] == "success"
    assert sorted(shared.config("a")["tags"]) == ["t:1", "t:2"]


def test_t39_live_rapi_takes_a_standard_instance_of_a_new_group(shared: Real) -> None:
    body = {"group_name": "odd", "ipolicy": {"std": {**DEFAULT_MIN}}}
    assert job(shared.cluster, "POST", "/2/groups", body)[0] == "success"
    assert "std" in shared.config("odd")["ipolicy"]
    shared.taken("gnt-group", "remove", "odd")


def test_t45_live_an_absent_tag_fails_the_whole_removal(shared: Real) -> None:
    shared.taken("gnt-node", "add-tags", "node4", "there", "there")
    assert "not found" in shared.refused("gnt-node", "remove-tags", "node4", "there", "absent")
    assert shared.node("node4")["tags"] == ["there"]


def test_t47_live_nonsense_is_stored_and_found_by_check(shared: Real, tmp_path: Path) -> None:
    shared.taken("gnt-group", "modify", bounds().replace("cpu-count=1", "cpu-count=-5"), "a")
    assert shared.config("a")["ipolicy"]["minmax"][0]["min"]["cpu-count"] == -5
    pair = {"min": {**DEFAULT_MIN, "cpu-count": -5}, "max": DEFAULT_MAX}
    policy = write_policy(tmp_path / "p.yaml", [document("NodeGroup", "a", {("ipolicy", "minmax"): [pair]})])
    assert gpolicy("check", policy).code == 1
    shared.taken("gnt-group", "modify", "--ipolicy-bounds-specs=default", "a")


def test_t58_live_submit_writes_the_job_to_standard_error(shared: Real) -> None:
    done = shared.cluster.ganeti("gnt-cluster", "modify", "--submit", "--mac-prefix=aa:00:00")
    assert (done.stdout, "JobID" in done.stderr) == ("", True)


# --- jobs, groups and nodes --------------------------------------------------------------------------------------


def test_t40_live_a_change_of_the_cluster_waits_for_the_locks_of_others(shared: Real) -> None:
    seconds = 6
    long_job = subprocess.Popen(
        ["gnt-debug", "delay", "--no-master", "-n", "node2", str(seconds)],
        env=shared.cluster.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with long_job:
        time.sleep(seconds / 3)
        shared.taken("gnt-cluster", "modify", "--mac-prefix=aa:00:00")
        assert long_job.wait(timeout=30) == 0  # it had ended, or does so now
