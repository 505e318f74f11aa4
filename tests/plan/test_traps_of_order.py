"""The traps of Ganeti's commands: the order and grouping of changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import Unreadable
from gpolicy.ganeti.vocabulary import DEFAULT_MIN, Level, TakesEffect, Value
from gpolicy.plan.changes import ChangeAction, Risk
from gpolicy.plan.diff import TOOL_TAGS
from gpolicy.plan.step import StepWave
from tests.plan.planned import argv, change, cluster, complaints, failed, plan_for, undo, with_group_tags, with_node
from tests.strategies import instance

CLUSTER = "Cluster\nname: cluster.example.org\n"
ALLOWED = ("ipolicy", "disk-templates")
HIGH = {**DEFAULT_MIN, "cpu-count": 8, "memory-size": 4096}


def test_t04_one_changed_bound_sends_the_whole_list() -> None:
    pairs: Value = [{"min": {**DEFAULT_MIN}, "max": {**HIGH}}, {"min": {**HIGH}, "max": {**HIGH}}]
    state = cluster({("ipolicy", "minmax"): pairs})
    wanted = [{"min": DEFAULT_MIN, "max": {**HIGH, "cpu-count": 9}}, {"min": HIGH, "max": HIGH}]
    command = argv(plan_for(state, CLUSTER + f"ipolicy: {{minmax: {wanted}}}"))[0]
    assert command.count("memory-size=") == 4
    assert command.count("//") == 1


def test_t05_one_value_of_std_goes_alone() -> None:
    plan = plan_for(cluster(), CLUSTER + "ipolicy: {std: {cpu-count: 2}}")
    assert argv(plan) == ["gnt-cluster modify --ipolicy-std-specs=cpu-count=2"]


def test_t07_bounds_and_std_go_in_one_command_and_come_back_in_one() -> None:
    wanted = f"ipolicy: {{minmax: [{{min: {HIGH}, max: {HIGH}}}], std: {HIGH}}}"
    plan = plan_for(cluster(), CLUSTER + wanted)
    assert plan.safe
    assert len(plan.steps) == 1
    for command in (argv(plan)[0], undo(plan.steps[0])[0]):
        assert "--ipolicy-bounds-specs=" in command
        assert "--ipolicy-std-specs=" in command


def test_t21_a_group_may_allow_what_the_clusters_policy_does_not() -> None:
    state = cluster({ALLOWED: ["plain"]}, enabled=("plain", "file"))
    plan = plan_for(state, "NodeGroup\nname: default\nipolicy: {disk-templates: [file]}")
    assert plan.safe
    assert argv(plan) == ["gnt-group modify --ipolicy-disk-templates=file default"]
    state = cluster(enabled=("plain",))
    assert "templates-enabled" in failed(plan_for(state, "NodeGroup\nname: default\nipolicy: {disk-templates: [file]}"))


def test_t22_groups_let_go_before_a_template_is_disabled() -> None:
    state = cluster({}, {"g": {ALLOWED: ["file", "plain"]}}, enabled=("plain", "file"))
    cut = CLUSTER + "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}"
    for wanted, option in (("[plain]", "plain"), ("inherit", "default")):
        plan = plan_for(state, cut, f"NodeGroup\nname: g\nipolicy: {{disk-templates: {wanted}}}")
        assert argv(plan) == [
            f"gnt-group modify --ipolicy-disk-templates={option} g",
            "gnt-cluster modify --enabled-disk-templates=plain --ipolicy-disk-templates=plain",
        ]


def test_t22_a_group_that_nobody_edits_stops_the_plan() -> None:
    """Ganeti itself does not check groups when the cluster's list shrinks."""
    state = cluster({}, {"g": {ALLOWED: ["file"]}}, enabled=("plain", "file"))
    plan = plan_for(state, CLUSTER + "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}")
    assert "group g allows file" in failed(plan)["templates-enabled"]


@pytest.mark.parametrize("stale", [["file"], []])
def test_t23_a_stale_list_is_mended_before_the_policy_of_the_group_changes(stale: list[Value]) -> None:
    state = cluster({}, {"g": {ALLOWED: stale}}, enabled=("plain",))
    wanted = "NodeGroup\nname: g\nipolicy: {vcpu-ratio: 2%s}"
    assert "group g" in failed(plan_for(state, wanted % ""))["templates-enabled"]
    fixed = plan_for(state, wanted % ", disk-templates: inherit")
    assert fixed.safe
    assert argv(fixed) == ["gnt-group modify --ipolicy-vcpu-ratio=2.0 --ipolicy-disk-templates=default g"] or (
        argv(fixed) == ["gnt-group modify --ipolicy-disk-templates=default --ipolicy-vcpu-ratio=2.0 g"]
    )
    assert failed(plan_for(state, "NodeGroup\nname: g\nndparams: {ovs: true}")) == {}


def test_t25_new_bounds_are_marked_since_ganeti_only_warns() -> None:
    found = change(
        plan_for(cluster(), f"NodeGroup\nname: default\nipolicy: {{minmax: [{{min: {HIGH}, max: {HIGH}}}]}}"),
        "group/default",
        "ipolicy.minmax",
    )
    assert (found.risk, "Ganeti warns" in found.reason) == (Risk.MEDIUM, True)
    assert found.takes_effect == TakesEffect.NEW_INSTANCES


def test_t28_exclusive_storage_with_disks_that_are_not_plain() -> None:
    state = cluster({}, {"g": {}}, {"n1": "g", "n2": "g"}, instance("web", "n1", "drbd", ("n2",)), instance("db", "n1"))
    message = failed(plan_for(state, "NodeGroup\nname: g\nndparams: {exclusive_storage: true}"))["exclusive-storage"]
    assert "web have disks there that are not plain" in message
    assert "db" not in message
    assert complaints("NodeSet\nname: s\nnodes: [n]\nndparams: {exclusive_storage: true}")[0].startswith("error ")


def test_t29_drbd_waits_for_a_restart_and_a_pool_redirects_at_once() -> None:
    state = cluster({}, {"g": {}}, {"n1": "g"}, instance("i", "n1", "rbd"))
    plan = plan_for(state, "NodeGroup\nname: g\ndiskparams: {drbd: {protocol: A}, rbd: {pool: p}}")
    assert change(plan, "group/g", "diskparams.drbd.protocol").takes_effect == TakesEffect.DISK_ACTIVATION
    assert change(plan, "group/g", "diskparams.rbd.pool").takes_effect == TakesEffect.EXISTING_DISKS_AT_ONCE
    assert list(failed(plan)) == ["disks-stay"]


def test_t31_the_candidate_pool_grows_by_itself_and_never_shrinks() -> None:
    grows = change(plan_for(cluster(), CLUSTER + "candidate_pool_size: 11"), "cluster", "candidate_pool_size")
    shrinks = change(plan_for(cluster(), CLUSTER + "candidate_pool_size: 9"), "cluster", "candidate_pool_size")
    assert (grows.risk, shrinks.risk) == (Risk.MEDIUM, Risk.LOW)
    assert "demotes no node" in shrinks.reason


def test_t32_images_are_not_emptied_and_the_masters_network_wants_a_word() -> None:
    plan = plan_for(cluster(), CLUSTER + "install_image: /i")
    assert undo(plan.steps[0]) == []
    assert "install_image" in plan.steps[0].inverse.not_restored[0]
    emptied = cluster({("install_image",): "/i"})
    assert any("error" in item for item in complaints(CLUSTER + "install_image: ''")) or (
        "expressible" in failed(plan_for(emptied, CLUSTER + "install_image: ''"))
    )
    assert list(failed(plan_for(cluster(), CLUSTER + "master_netdev: eth1"))) == ["master-network"]


def test_t33_t34_collectors() -> None:
    plan = plan_for(cluster(), CLUSTER + "enabled_data_collectors: {drbd: false, lv: true}")
    assert argv(plan) == ["gnt-cluster modify --enabled-data-collectors=drbd=false"]
    interval = plan_for(cluster(), CLUSTER + "data_collector_interval: {drbd: 1000000}")
    assert argv(interval) == ["RAPI only"]


def test_t40_the_cluster_is_modified_once_in_a_wave() -> None:
    state = cluster({}, {"g": {ALLOWED: ["drbd"]}}, enabled=("plain", "drbd"))
    plan = plan_for(
        state,
        CLUSTER
        + "enabled_disk_templates: [file]\nipolicy: {disk-templates: [file], vcpu-ratio: 3}\nndparams: {ovs: true}\n"
        "volume_group_name: ''\nmax_running_jobs: 3",
        "NodeGroup\nname: g\nipolicy: {disk-templates: [file]}",
    )
    assert [step.wave for step in plan.steps if step.object == "cluster"] == [StepWave.ENABLE, StepWave.CLUSTER]


def test_t42_t43_a_move_says_what_comes_with_it() -> None:
    state = cluster({}, {"a": {}, "b": {("ndparams", "ssh_port"): 24}, "c": {}}, {"n1": "a"})
    moved = change(plan_for(state, "NodeGroup\nname: b\nnodes: [n1]"), "node/n1", "group")
    assert (moved.risk, "ssh_port 22 → 24" in moved.reason) == (Risk.MEDIUM, True)
    plain = change(plan_for(state, "NodeGroup\nname: c\nnodes: [n1]"), "node/n1", "group")
    assert "Ganeti checks neither" in plain.reason


def test_t45_only_tags_that_are_there_are_removed() -> None:
    state = with_group_tags(cluster(), "default", "team:a", "keep")
    rules = "TagRules\nowns: [{prefix: 'team:', on: [group]}]"
    plan = plan_for(state, rules, "NodeGroup\nname: default\ntags: [keep, new]")
    assert argv(plan) == ["gnt-group add-tags default new", "gnt-group remove-tags default team:a"]


@pytest.mark.parametrize("prefix", TOOL_TAGS)
def test_t45_tags_of_ganetis_own_tools_stay_whatever_is_owned(prefix: str) -> None:
    state = with_node(cluster(nodes={"n1": "default"}), "n1", {}, frozenset({f"{prefix}x", "htools:mine"}))
    rules = "TagRules\nowns: [{prefix: 'htools:', on: [node]}, {prefix: 'ganeti:', on: [node]}]"
    plan = plan_for(state, rules, "NodeSet\nname: s\nnodes: [n1]\ntags: []")
    assert argv(plan) == ["gnt-node remove-tags n1 htools:mine"]


def test_t46_a_prefix_ends_in_a_colon_unless_it_is_meant_raw() -> None:
    plan = plan_for(
        cluster(),
        "TagRules\nexclusion: [service, {raw: a}]\nfailure_domains: [rack]\nmigration: {domains: [hv]}\n"
        "desired_location: [power]",
    )
    assert plan.changes[0].after == [
        "htools:desiredlocation:power:",
        "htools:iextags:a",
        "htools:iextags:service:",
        "htools:migration:hv",
        "htools:nlocation:rack",
    ]


def test_t51_a_renamed_group_is_never_made_anew() -> None:
    plan = plan_for(cluster({}, {"old": {}}, {"n1": "old"}), "NodeGroup\nname: new\nrenamed_from: old\nnodes: [n1]")
    assert argv(plan) == ["gnt-group rename old new"]


def test_t52_a_group_is_emptied_first_and_the_last_one_stays() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a"})
    gone = "NodeGroup\nname: a\nremoved: true"
    assert argv(plan_for(state, gone, "NodeGroup\nname: b\nnodes: [n1]")) == [
        "gnt-group assign-nodes b n1",
        "gnt-group remove a",
    ]
    assert "groups-empty" in failed(plan_for(state, gone))
    assert "groups-empty" in failed(plan_for(cluster({}, {"a": {}}), gone))


def test_t57_what_is_saved_first_is_what_a_retry_finds_done() -> None:
    """The execution of a cluster modify is not atomic; a new plan from the half-done state asks for the rest."""
    wanted = (
        CLUSTER + "enabled_disk_templates: [plain, file]\nipolicy: {disk-templates: [plain, file]}\nzeroing_image: /z"
    )
    half_done = cluster({ALLOWED: ["plain"]}, enabled=("plain", "file"))
    assert argv(plan_for(half_done, wanted)) == [
        "gnt-cluster modify --zeroing-image=/z --ipolicy-disk-templates=plain,file"
    ]


@pytest.mark.parametrize("nodes", ["[]", "['none*']"])
def test_t60_no_node_named_is_no_command(nodes: str) -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a"})
    plan = plan_for(state, f"NodeGroup\nname: b\nnodes: {nodes}", f"NodeGroup\nname: new\nnodes: {nodes}")
    assert argv(plan) == ["gnt-group add new"]


def test_t61_a_state_that_lacks_disk_space_is_compared_all_the_same() -> None:
    state = replace(cluster(nodes={"n1": "default"}), notes=("node n1: no disk space known",))
    plan = plan_for(state, "NodeSet\nname: s\nnodes: [n1]\nndparams: {ovs: true}")
    assert plan.notes == ("node n1: no disk space known",)
    assert len(plan.steps) == 1


# --- what a real cluster did that nobody expects --------------------------------------------------------------------


def test_surprise_a_repeated_option_drops_the_earlier_one() -> None:
    plan = plan_for(
        cluster(),
        "NodeGroup\nname: default\nndparams: {ovs: true, ssh_port: 24}\nhv_state: {kvm: {mem_hv: 4, mem_node: 8}}\n"
        "diskparams: {drbd: {metavg: a, protocol: B}, plain: {stripes: 2}}",
    )
    words = argv(plan)[0].split()
    names = [
        word.split(":")[0] if "parameters=" in word and "node" not in word else word.split("=")[0] for word in words
    ]
    assert len(names) == len(set(names))


def test_surprise_a_group_with_a_strange_name_is_no_option() -> None:
    plan = plan_for(cluster({}, {"-g x": {}}), "NodeGroup\nname: '-g x'\nndparams: {ovs: true}")
    assert plan.steps[0].command.argv == ("gnt-group", "modify", "--node-parameters=ovs=true", "--", "-g x")


def test_surprise_alloc_policy_has_no_default_word() -> None:
    state = cluster({}, {"g": {("alloc_policy",): "unallocable"}})
    assert complaints("NodeGroup\nname: g\nalloc_policy: inherit")[0].startswith("error ")
    plan = plan_for(state, "NodeGroup\nname: g\nalloc_policy: preferred")
    assert (plan.changes[0].action, argv(plan)) == (ChangeAction.SET, ["gnt-group modify --alloc-policy=preferred g"])


def test_surprise_a_split_pair_is_never_forced() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a", "n2": "a"}, instance("i", "n1", "drbd", ("n2",)))
    plan = plan_for(state, "NodeGroup\nname: b\nnodes: [n1]", allow=("pairs-together",))
    assert argv(plan) == ["gnt-group assign-nodes b n1"]


def test_surprise_unreadable_values_do_not_stop_the_rest() -> None:
    gap = Unreadable(level=Level.CLUSTER, prefix=("disk_state",))
    plan = plan_for(
        cluster(unreadable=(gap,)), CLUSTER + "disk_state: {plain: {xenvg: {disk_total: 4}}}\nmax_running_jobs: 3"
    )
    assert len(plan.not_compared) == len(plan.steps) == 1
