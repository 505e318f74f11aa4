"""The traps of Ganeti's values: stored values, effective values and differences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import Identity, Unreadable
from gpolicy.cluster.state_files import state_digest
from gpolicy.ganeti.parameters import flatten
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Level, TakesEffect, Value, Values
from gpolicy.plan.changes import ChangeAction, Risk
from tests.plan.planned import argv, change, cluster, complaints, failed, plan_for, recorded, undo, with_node
from tests.strategies import instance

CLUSTER = "Cluster\nname: cluster.example.org\n"
RATIO = ("ipolicy", "vcpu-ratio")
ALLOWED = ("ipolicy", "disk-templates")
MINMAX = ("ipolicy", "minmax")


def test_t08_sizes_are_compared_as_the_command_line_would_store_them() -> None:
    wanted = CLUSTER + "ipolicy: {std: {memory-size: 130}}"
    assert plan_for(cluster({("ipolicy", "std", "memory-size"): 132}), wanted).changes == ()
    by_rapi = plan_for(cluster({("ipolicy", "std", "memory-size"): 130}), wanted)
    assert [(item.before, item.after) for item in by_rapi.changes] == [(130, 132)]
    rapi = by_rapi.steps[0].command.rapi
    assert rapi is not None
    assert rapi.body == {"ipolicy": {"std": {"memory-size": 132}}}


@pytest.mark.parametrize("template", ["rbd", "ext", "gluster"])
def test_t11_inherited_access_becomes_the_clusters_value_and_the_plan_converges(template: str) -> None:
    path = ("diskparams", template, "access")
    wanted = f"NodeGroup\nname: default\ndiskparams: {{{template}: {{access: inherit}}}}"
    plan = plan_for(cluster({}, {"default": {path: "userspace"}}), wanted)
    found = change(plan, "group/default", ".".join(path))
    assert (found.action, found.after) == (ChangeAction.SET, "kernelspace")
    assert "cannot remove" in found.reason
    assert argv(plan) == [f"gnt-group modify --disk-parameters={template}:access=kernelspace default"]
    assert plan_for(cluster({}, {"default": {path: "kernelspace"}}), wanted).changes == ()


def test_t11_rollback_of_access_gives_the_value_in_force_back_and_says_that_it_stays() -> None:
    plan = plan_for(cluster(), "NodeGroup\nname: default\ndiskparams: {rbd: {access: userspace}}")
    assert undo(plan.steps[0]) == ["gnt-group modify --disk-parameters=rbd:access=kernelspace default"]
    assert "diskparams.rbd.access stays an own value" in plan.steps[0].inverse.not_restored[0]


def test_t12_disk_parameters_in_force_are_filled_one_by_one() -> None:
    state = cluster({}, {"g": {("diskparams", "drbd", "metavg"): "fast"}})
    plan = plan_for(state, "NodeGroup\nname: g\ndiskparams: {drbd: {resync-rate: 5}}")
    assert change(plan, "group/g", "diskparams.drbd.resync-rate").effective_before == 61440


def test_t13_the_cluster_has_nothing_to_inherit() -> None:
    for value in ("inherit", "default"):
        assert complaints(CLUSTER + f"diskparams: {{drbd: {{metavg: {value}}}}}")[0].startswith("error ")
        assert complaints(CLUSTER + f"ndparams: {{spindle_count: {value}}}")[0].startswith("error ")
    undone = plan_for(cluster(), CLUSTER + "diskparams: {drbd: {metavg: a}}").steps[0]
    assert undo(undone) == ["gnt-cluster modify --disk-parameters=drbd:metavg=xenvg"]


def test_t14_a_new_group_gets_no_reset() -> None:
    plan = plan_for(cluster(), "NodeGroup\nname: new\ndiskparams: {drbd: {metavg: inherit}}\nndparams: {ovs: true}")
    assert argv(plan) == ["gnt-group add --node-parameters=ovs=true new"]


def test_t15_a_ratio_of_zero_is_no_policy() -> None:
    for text in (CLUSTER, "NodeGroup\nname: g\n"):
        for ratio in ("0", "-1", ".nan", ".inf"):
            assert complaints(text + f"ipolicy: {{vcpu-ratio: {ratio}}}")[0].startswith("error ")
    stored = cluster({}, {"g": {RATIO: 0.0}})
    assert argv(plan_for(stored, "NodeGroup\nname: g\nipolicy: {vcpu-ratio: inherit}")) == [
        "gnt-group modify --ipolicy-vcpu-ratio=default g"
    ]


def test_t16_nothing_to_change_is_no_command() -> None:
    plan = plan_for(cluster(), CLUSTER, "NodeGroup\nname: default\nndparams: {ovs: inherit}\ntags: []")
    assert (plan.changes, plan.steps) == ((), ())


def test_t20_an_equal_value_is_still_an_override() -> None:
    state = cluster({RATIO: 4.0}, {"g": {RATIO: 4.0}, "follows": {}})
    assert change(plan_for(state, CLUSTER + "ipolicy: {vcpu-ratio: 8}"), "cluster", "ipolicy.vcpu-ratio").affects == (
        "group/follows",
    )
    assert [item.action for item in plan_for(state, "NodeGroup\nname: g\nipolicy: {vcpu-ratio: inherit}").changes] == [
        ChangeAction.RESET
    ]
    assert [item.object for item in plan_for(state, "NodeGroup\nname: follows\nipolicy: {vcpu-ratio: 4}").changes] == [
        "group/follows"
    ]


def test_t20_a_key_of_the_policy_is_replaced_and_the_others_follow() -> None:
    state = cluster({}, {"g": {RATIO: 2.0}})
    plan = plan_for(state, CLUSTER + f"ipolicy: {{minmax: [{{min: {DEFAULT_MIN}, max: {DEFAULT_MIN}}}]}}")
    assert change(plan, "cluster", "ipolicy.minmax").affects == ("group/g",)


def test_t24_order_counts_for_enabled_and_for_allowed_templates() -> None:
    state = cluster({}, {"g": {ALLOWED: ["drbd", "plain"]}}, enabled=("plain", "drbd"))
    for document, command in (("NodeGroup\nname: g\n", "gnt-group modify"), (CLUSTER, "gnt-cluster modify")):
        assert plan_for(state, document + "ipolicy: {disk-templates: [drbd, plain]}").changes == ()
        turned = plan_for(state, document + "ipolicy: {disk-templates: [plain, drbd]}")
        assert argv(turned)[0].startswith(f"{command} --ipolicy-disk-templates=plain,drbd")
        (undo,) = turned.steps[0].inverse.commands
        assert undo.argv is not None
        assert "--ipolicy-disk-templates=drbd,plain" in undo.argv
    turned = plan_for(state, CLUSTER + "enabled_disk_templates: [drbd, plain]")
    assert argv(turned) == ["gnt-cluster modify --enabled-disk-templates=drbd,plain"]
    assert turned.safe


def test_t26_ratios_are_told_to_count_in_htools_only() -> None:
    plan = plan_for(cluster(), CLUSTER + "ipolicy: {vcpu-ratio: 1, spindle-ratio: 1}")
    assert {item.takes_effect for item in plan.changes} == {TakesEffect.CAPACITY_ONLY}


def test_t27_five_kinds_of_spindles_are_five_paths() -> None:
    assert {DEFAULT_MIN["spindle-use"], DEFAULT_MAX["spindle-use"]} == {1, 12}
    wanted = {
        "ipolicy: {spindle-ratio: 5}": ["ipolicy.spindle-ratio"],
        "ipolicy: {std: {spindle-use: 5}}": ["ipolicy.std.spindle-use"],
        "beparams: {spindle_use: 5}": ["beparams.spindle_use"],
        "ndparams: {spindle_count: 5}": ["ndparams.spindle_count"],
    }
    for text, paths in wanted.items():
        assert [".".join(item.path) for item in plan_for(cluster(), CLUSTER + text).changes] == paths
    assert complaints(CLUSTER + "spindles: 5")[0].startswith("error unknown-key")  # a disk's own: no policy


def test_t30_the_metadata_group_of_the_cluster_is_not_taken_for_granted() -> None:
    state = cluster({("diskparams", "drbd", "metavg"): "vg0"})
    assert plan_for(state, CLUSTER + "diskparams: {drbd: {protocol: C}}").changes == ()
    assert change(
        plan_for(state, CLUSTER + "diskparams: {drbd: {metavg: xenvg}}"), "cluster", "diskparams.drbd.metavg"
    ).before == "vg0"  # fmt: skip


def test_t35_states_that_nobody_shows_are_a_third_answer() -> None:
    gaps = tuple(Unreadable(level=level, prefix=("hv_state",)) for level in Level)
    plan = plan_for(cluster(unreadable=gaps), CLUSTER + "hv_state: {kvm: {mem_node: 4}}")
    assert (plan.changes, plan.steps) == ((), ())
    assert [(item.object, item.wanted) for item in plan.not_compared] == [("cluster", 4)]


def test_t35_states_have_no_effect_and_a_reset_of_the_clusters_is_its_default() -> None:
    plan = plan_for(cluster(), CLUSTER + "hv_state: {xen-pvm: {mem_node: 4}}")
    assert plan.changes[0].takes_effect == TakesEffect.NOTHING
    assert undo(plan.steps[0]) == ["gnt-cluster modify --hypervisor-state=xen-pvm:mem_node=default"]
    assert "stays" in plan.steps[0].inverse.not_restored[0]
    state = cluster({}, {"g": {("hv_state", "kvm", "mem_node"): 4}})
    reset = plan_for(state, "NodeGroup\nname: g\nhv_state: {kvm: {mem_node: inherit}}")
    assert argv(reset) == ["gnt-group modify --hypervisor-state=kvm:mem_node=default g"]


def test_t36_own_node_parameters_that_the_source_leaves_out_are_not_guessed() -> None:
    gap = Unreadable(level=Level.NODE, prefix=("ndparams",))
    state = cluster(nodes={"n1": "default"}, unreadable=(gap,))
    plan = plan_for(state, "NodeSet\nname: s\nnodes: [n1]\nndparams: {ssh_port: 22}")
    assert [(item.object, item.path) for item in plan.not_compared] == [("node/n1", ("ndparams", "ssh_port"))]
    assert plan.changes == ()


def test_t37_paths_have_the_names_that_are_read_and_commands_those_that_are_written() -> None:
    plan = plan_for(cluster(), CLUSTER + "volume_group_name: vg\ndrbd_usermode_helper: /h")
    assert {item.path[0] for item in plan.changes} == {"volume_group_name", "drbd_usermode_helper"}
    rapi = plan.steps[0].command.rapi
    assert rapi is not None
    assert rapi.body == {"vg_name": "vg", "drbd_helper": "/h"}


def test_t39_a_standard_instance_of_a_group_is_never_sent() -> None:
    assert complaints("NodeGroup\nname: g\nipolicy: {std: {cpu-count: 1}}")[0].startswith("error ")
    state = cluster({}, {"a": {}, "g": {("ipolicy", "std", "cpu-count"): 3}})
    step = plan_for(state, "NodeGroup\nname: g\nremoved: true").steps[0]
    assert undo(step) == ["gnt-group add --alloc-policy=preferred g"]
    assert "ipolicy.std.cpu-count" in step.inverse.not_restored[0]


@pytest.mark.parametrize(
    ("pairs", "finding"),
    [
        ([({**DEFAULT_MIN, "cpu-count": -5}, DEFAULT_MAX)], "error"),
        ([(DEFAULT_MAX, DEFAULT_MIN)], "error spec-min-above-max"),
        ([({"cpu-count": 1}, DEFAULT_MAX)], "error"),
        ([(DEFAULT_MIN, DEFAULT_MAX)] * 2, "spec-duplicate"),
    ],
)
def test_t47_what_ganeti_lets_through_is_found_before(
    pairs: list[tuple[dict[str, int], dict[str, int]]], finding: str
) -> None:
    wanted = [{"min": low, "max": high} for low, high in pairs]
    assert any(finding in item for item in complaints(CLUSTER + f"ipolicy: {{minmax: {wanted}}}"))


def test_t48_ratios_are_numbers() -> None:
    assert plan_for(cluster({RATIO: 4.0}), CLUSTER + "ipolicy: {vcpu-ratio: 4}").changes == ()
    assert plan_for(cluster({RATIO: 4.0}), CLUSTER + "ipolicy: {vcpu-ratio: 4.0}").changes == ()


def test_t49_an_emptied_template_is_absent() -> None:
    own = flatten({"alloc_policy": "preferred", "diskparams": {"drbd": {}}, "ipolicy": {}, "ndparams": {}})
    assert own == {("alloc_policy",): "preferred"}
    state = cluster({}, {"g": own})
    assert plan_for(state, "NodeGroup\nname: g\ndiskparams: {drbd: {metavg: inherit}}").changes == ()


def test_t50_a_reset_is_the_absence_of_the_key() -> None:
    bounds: Value = [{"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}]
    plan = plan_for(cluster({}, {"g": {MINMAX: bounds}}), "NodeGroup\nname: g\nipolicy: {minmax: inherit}")
    found = change(plan, "group/g", "ipolicy.minmax")
    assert (found.before, found.after, found.effective_after) == (bounds, None, found.effective_before)
    assert argv(plan) == ["gnt-group modify --ipolicy-bounds-specs=default g"]


def test_t53_parameters_that_the_table_does_not_know_are_left_alone() -> None:
    state = cluster({("diskparams", "rbd", "shiny"): 1, ("diskparams", "rbd", "user-id"): ""})
    plan = plan_for(state, CLUSTER + "diskparams: {rbd: {pool: x}}")
    assert [".".join(item.path) for item in plan.changes] == ["diskparams.rbd.pool"]


def test_t54_parameters_of_a_template_that_is_not_enabled_can_be_set() -> None:
    plan = plan_for(cluster(enabled=("plain",)), CLUSTER + "diskparams: {drbd: {metavg: x}}")
    assert argv(plan) == ["gnt-cluster modify --disk-parameters=drbd:metavg=x"]
    assert plan.safe


def test_t55_a_node_that_lost_its_parameters_gets_them_back() -> None:
    wanted = "NodeSet\nname: s\nnodes: [n1]\nndparams: {ssh_port: 24}"
    state = cluster(nodes={"n1": "default"})
    assert plan_for(with_node(state, "n1", {("ndparams", "ssh_port"): 24}), wanted).changes == ()
    assert argv(plan_for(state, wanted)) == ["gnt-node modify --node-parameters=ssh_port=24 n1"]


def test_t56_a_raised_bound_of_the_cluster_names_the_groups_that_it_reaches() -> None:
    own: Values = {MINMAX: [{"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}]}
    plan = plan_for(
        cluster({}, {"own": own, "follows": {}}),
        CLUSTER + f"ipolicy: {{minmax: [{{min: {DEFAULT_MIN}, max: {DEFAULT_MIN}}}]}}",
    )
    found = change(plan, "cluster", "ipolicy.minmax")
    assert found.affects == ("group/follows",)
    assert (found.risk, "Ganeti warns" in found.reason) == (Risk.MEDIUM, True)


def test_t59_bodies_hold_json_types() -> None:
    plan = plan_for(cluster(), CLUSTER + "max_running_jobs: 3\nndparams: {ovs: true}\nipolicy: {vcpu-ratio: 3}")
    rapi = plan.steps[0].command.rapi
    assert rapi is not None
    assert repr(rapi.body) == repr({"max_running_jobs": 3, "ipolicy": {"vcpu-ratio": 3.0}, "ndparams": {"ovs": True}})


@pytest.mark.parametrize("name", ["rich", "exclusive"])
def test_t62_a_job_that_changed_nothing_is_no_difference(name: str) -> None:
    state = recorded(name)
    later = replace(state, cluster=replace(state.cluster, identity=Identity(serial_no=999, mtime=1e9)))
    assert state_digest(later) == state_digest(state)
    text = "Cluster\nname: cluster\nipolicy: {vcpu-ratio: %s}" % state.cluster.own[RATIO]  # noqa: UP031 (braces)
    assert plan_for(later, text).changes == ()


def test_t61_a_source_without_disk_space_is_told_of_before() -> None:
    state = cluster({}, {"g": {}}, {"n1": "g"}, instance("i", "n1"))
    message = failed(plan_for(state, "NodeGroup\nname: g\nndparams: {exclusive_storage: true}"))["exclusive-storage"]
    assert "cannot report the disk space" in message
