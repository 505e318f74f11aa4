"""Changes become steps in an order in which Ganeti accepts each; each has its inverse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import Unreadable
from gpolicy.errors import RequestError
from gpolicy.ganeti.vocabulary import Level, Value, Values
from gpolicy.plan.step import StepWave
from gpolicy.plan.steps import rename_order
from tests.plan.planned import argv, cluster, plan_for, undo, with_group_tags
from tests.strategies import instance

ALLOWED = ("ipolicy", "disk-templates")
CLUSTER = "Cluster\nname: cluster.example.org\n"


def test_templates_are_enabled_first_and_disabled_after_groups_let_go() -> None:
    state = cluster({}, {"g": {ALLOWED: ["drbd", "plain"]}}, enabled=("plain", "drbd"))
    plan = plan_for(
        state,
        CLUSTER
        + "enabled_disk_templates: [plain, file]\nfile_storage_dir: /srv/files\nipolicy: {disk-templates: [plain]}",
        "NodeGroup\nname: g\nipolicy: {disk-templates: [file]}",
    )
    assert [(step.wave, step.object) for step in plan.steps] == [
        (StepWave.ENABLE, "cluster"),
        (StepWave.LET_GO, "group/g"),
        (StepWave.CLUSTER, "cluster"),
    ]
    assert argv(plan) == [
        "gnt-cluster modify --enabled-disk-templates=plain,file,drbd --file-storage-dir=/srv/files",
        "gnt-group modify --ipolicy-disk-templates=file g",
        "gnt-cluster modify --enabled-disk-templates=plain,file --ipolicy-disk-templates=plain",
    ]
    assert [undo(step) for step in plan.steps] == [
        ["gnt-cluster modify --enabled-disk-templates=plain,drbd --file-storage-dir=/srv/f"],
        ["gnt-group modify --ipolicy-disk-templates=drbd,plain g"],
        ["gnt-cluster modify --enabled-disk-templates=plain,file,drbd --ipolicy-disk-templates=drbd,plain"],
    ]


def test_storage_is_removed_only_with_the_templates_that_need_it() -> None:
    state = cluster({}, {"g": {ALLOWED: ["drbd"]}}, enabled=("plain", "drbd"))
    plan = plan_for(
        state,
        CLUSTER + "enabled_disk_templates: [file]\nvolume_group_name: ''\ndrbd_usermode_helper: ''\n"
        "ipolicy: {disk-templates: [file]}",
        "NodeGroup\nname: g\nipolicy: {disk-templates: [file]}",
    )
    first, last = argv(plan)[0], argv(plan)[-1]
    assert first == "gnt-cluster modify --enabled-disk-templates=file,plain,drbd"
    assert "--vg-name= " in last
    assert "--drbd-usermode-helper= " in last


def test_enabling_alone_is_one_step_before_the_groups() -> None:
    state = cluster({}, {"g": {}}, enabled=("plain",))
    plan = plan_for(
        state,
        CLUSTER + "enabled_disk_templates: [plain, file]\nipolicy: {disk-templates: [file, plain]}",
        "NodeGroup\nname: g\nipolicy: {disk-templates: [file]}",
    )
    assert [step.wave for step in plan.steps] == [StepWave.ENABLE, StepWave.GROUPS]
    assert argv(plan)[0] == "gnt-cluster modify --enabled-disk-templates=plain,file --ipolicy-disk-templates=file,plain"


def test_a_removed_group_releases_its_templates_and_the_rollback_restores_them_in_time() -> None:
    state = cluster({}, {"a": {}, "old": {ALLOWED: ["drbd"], ("ndparams", "ovs"): True}}, enabled=("plain", "drbd"))
    plan = plan_for(
        state,
        CLUSTER + "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}",
        "NodeGroup\nname: old\nremoved: true",
    )
    assert argv(plan) == [
        "gnt-group modify --ipolicy-disk-templates=default old",
        "gnt-cluster modify --enabled-disk-templates=plain --ipolicy-disk-templates=plain",
        "gnt-group remove old",
    ]
    assert undo(plan.steps[0]) == ["gnt-group modify --ipolicy-disk-templates=drbd old"]
    assert undo(plan.steps[2]) == ["gnt-group add --alloc-policy=preferred --node-parameters=ovs=true old"]


def test_all_changes_of_an_object_are_one_command() -> None:
    plan = plan_for(
        cluster(nodes={"n1": "default"}),
        CLUSTER + "max_running_jobs: 3\nndparams: {ssh_port: 23, ovs: true}\nbeparams: {vcpus: 2}",
        "NodeSet\nname: s\nnodes: [n1]\nndparams: {spindle_count: 2, cpu_speed: 2}\nhv_state: {kvm: {mem_hv: 4}}",
    )
    assert [line.split() for line in argv(plan)] == [
        [
            *("gnt-cluster", "modify", "--max-running-jobs=3"),
            *("--node-parameters=ovs=true,ssh_port=23", "--backend-parameters=vcpus=2"),
        ],
        [
            *("gnt-node", "modify", "--node-parameters=spindle_count=2,cpu_speed=2.0"),
            *("--hypervisor-state=kvm:mem_hv=4", "n1"),
        ],
    ]
    assert undo(plan.steps[1])[0].split() == [
        *("gnt-node", "modify", "--node-parameters=spindle_count=default,cpu_speed=default"),
        *("--hypervisor-state=kvm:mem_hv=default", "n1"),
    ]


def test_a_parameter_with_another_route_has_its_own_step() -> None:
    plan = plan_for(
        cluster(),
        CLUSTER + "compression_tools: [gzip]\nmax_running_jobs: 3\ndata_collector_interval: {drbd: 1000000}",
    )
    routes = [(step.command.argv is not None, step.command.rapi is not None) for step in plan.steps]
    assert sorted(routes) == [(False, True), (True, False), (True, True)]


def test_groups_are_renamed_made_changed_filled_and_removed_in_this_order() -> None:
    state = cluster({}, {"old": {}, "gone": {}, "kept": {}}, {"n1": "gone"})
    plan = plan_for(
        state,
        "NodeGroup\nname: new\nrenamed_from: old\nndparams: {ssh_port: 24}",
        "NodeGroup\nname: gone\nremoved: true",
        "NodeGroup\nname: added\nnodes: [n1]\ntags: [t]",
        "NodeGroup\nname: kept\nalloc_policy: unallocable",
    )
    assert argv(plan) == [
        "gnt-group rename old new",
        "gnt-group add added",
        "gnt-group modify --alloc-policy=unallocable kept",
        "gnt-group modify --node-parameters=ssh_port=24 new",
        "gnt-group assign-nodes added n1",
        "gnt-group remove gone",
        "gnt-group add-tags added t",
    ]
    assert [line for step in reversed(plan.steps) for line in undo(step)] == [
        "gnt-group remove-tags added t",
        "gnt-group add --alloc-policy=preferred gone",
        "gnt-group assign-nodes gone n1",
        "gnt-group modify --node-parameters=ssh_port=default new",
        "gnt-group modify --alloc-policy=preferred kept",
        "gnt-group remove added",
        "gnt-group rename new old",
    ]


@pytest.mark.parametrize(
    "renames",
    [
        {"a": "b"},
        {"a": "b", "b": "c"},
        {"b": "c", "a": "b", "c": "d"},
    ],
)
def test_renames_go_in_an_order_in_which_each_name_is_free(renames: dict[str, str]) -> None:
    groups = {name: name for name in (*renames, "other")}
    for old, new in rename_order(renames):
        assert new not in groups
        groups[new] = groups.pop(old)
    assert groups == {**{new: old for old, new in renames.items()}, "other": "other"}


def test_a_circle_of_renames_has_no_order() -> None:
    with pytest.raises(RequestError, match=r"in a circle: a, b$"):
        rename_order({"a": "b", "b": "a", "c": "d"})


def test_a_chain_of_renames_in_commands() -> None:
    state = cluster({}, {"a": {}, "b": {}})
    plan = plan_for(state, "NodeGroup\nname: b\nrenamed_from: a", "NodeGroup\nname: c\nrenamed_from: b")
    assert argv(plan) == ["gnt-group rename b c", "gnt-group rename a b"]


def test_both_nodes_of_a_pair_move_in_one_command_and_back() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a", "n2": "a"}, instance("i", "n1", "drbd", ("n2",)))
    plan = plan_for(state, "NodeGroup\nname: b\nnodes: ['n*']")
    assert argv(plan) == ["gnt-group assign-nodes b n1 n2"]
    assert undo(plan.steps[0]) == ["gnt-group assign-nodes a n1 n2"]


def test_nodes_from_several_groups_go_back_to_their_own_by_its_new_name() -> None:
    state = cluster({}, {"a": {}, "b": {}, "c": {}}, {"n1": "a", "n2": "b"})
    plan = plan_for(state, "NodeGroup\nname: c\nnodes: ['n*']", "NodeGroup\nname: x\nrenamed_from: a")
    assert undo(plan.steps[-1]) == ["gnt-group assign-nodes b n2", "gnt-group assign-nodes x n1"]


def test_a_pair_that_was_split_is_not_split_again_by_the_rollback() -> None:
    state = cluster(
        {},
        {"a": {}, "b": {}},
        {"n1": "a", "n2": "b", "n3": "a", "n4": "a"},
        instance("i", "n1", "drbd", ("n2",)),
        instance("j", "n1", "drbd", ("n3",)),
    )
    plan = plan_for(state, "NodeGroup\nname: b\nnodes: [n1, n3, n4]")
    step = plan.steps[0]
    assert undo(step) == ["gnt-group assign-nodes a n4"]
    assert [reason.split(":")[0] for reason in step.inverse.not_restored] == ["node n1 stays", "node n3 stays"]


def test_a_group_that_is_made_stays_when_nodes_stay_in_it() -> None:
    pair = instance("i", "n1", "drbd", ("n2",))
    state = cluster({}, {"a": {}, "b": {}, "c": {}}, {"n1": "a", "n2": "b", "n3": "c"}, pair)
    plan = plan_for(state, "NodeGroup\nname: new\nnodes: [n1, n2, n3]", "NodeGroup\nname: empty")
    undone = {step.title: (undo(step), step.inverse.not_restored) for step in plan.steps}
    assert undone["create group new"] == ([], ("group new stays: it has nodes that stay (n1, n2)",))
    assert undone["move n1, n2, n3 to group new"][0] == ["gnt-group assign-nodes c n3"]
    assert undone["create group empty"] == (["gnt-group remove empty"], ())


def test_the_rollback_does_not_give_a_group_a_name_in_use() -> None:
    """Group a becomes b, b becomes c, and a new a gets nodes that cannot leave it; d becomes e beside them."""
    pair = instance("i", "n1", "drbd", ("n2",))
    both: Value = ["file", "drbd"]
    groups: dict[str, Values] = {"a": {ALLOWED: both}, "b": {}, "d": {ALLOWED: both}, "rest": {}, "more": {}}
    plan = plan_for(
        cluster({ALLOWED: ["drbd"]}, groups, {"n1": "rest", "n2": "more"}, pair),
        CLUSTER + "enabled_disk_templates: [drbd]",
        "NodeGroup\nname: a\nnodes: [n1, n2]",
        "NodeGroup\nname: b\nrenamed_from: a\nipolicy: {disk-templates: [drbd]}",
        "NodeGroup\nname: c\nrenamed_from: b\nalloc_policy: last_resort",
        "NodeGroup\nname: e\nrenamed_from: d\nipolicy: {disk-templates: [drbd]}",
    )
    undone = {argv(plan)[number]: undo(step) for number, step in enumerate(plan.steps)}
    assert undone.pop("gnt-group rename b c") == undone.pop("gnt-group rename a b") == []
    assert undone.pop("gnt-group rename d e") == ["gnt-group rename e d"]
    assert undone.pop("gnt-group modify --ipolicy-disk-templates=drbd a") == []
    assert undone.pop("gnt-group modify --ipolicy-disk-templates=drbd d") != []
    assert undone.pop("gnt-group modify --alloc-policy=last_resort c") == [
        "gnt-group modify --alloc-policy=preferred c"
    ]
    kept = [step.inverse.not_restored for step in plan.steps if step.title == "rename group a to b"]
    assert kept == [("group b stays as it is: another group has its old name a",)]


def test_tags_are_added_before_any_is_removed() -> None:
    state = with_group_tags(cluster(tags=frozenset({"team:c"})), "default", "team:a")
    plan = plan_for(
        state,
        "TagRules\nowns: [{prefix: 'team:', on: [cluster, group]}]",
        CLUSTER + "tags: ['team:d']",
        "NodeGroup\nname: default\ntags: ['team:b']",
    )
    assert argv(plan) == [
        "gnt-cluster add-tags team:d",
        "gnt-group add-tags default team:b",
        "gnt-cluster remove-tags team:c",
        "gnt-group remove-tags default team:a",
    ]


def test_a_removed_group_comes_back_with_its_tags_and_says_what_does_not() -> None:
    state = with_group_tags(cluster({}, {"a": {}, "g": {("ipolicy", "vcpu-ratio"): 2.0}}), "g", "t")
    state = replace(state, unreadable=(Unreadable(level=Level.GROUP, prefix=("hv_state",)),))
    step = plan_for(state, "NodeGroup\nname: g\nremoved: true").steps[0]
    assert undo(step) == [
        "gnt-group add --alloc-policy=preferred --ipolicy-vcpu-ratio=2.0 g",
        "gnt-group add-tags g t",
    ]
    assert step.inverse.not_restored == (
        "hv_state of the group, which the source of the state cannot show",
        "networks that were connected to the group",
    )


def test_changes_that_no_command_can_undo_are_noted() -> None:
    plan = plan_for(cluster(), CLUSTER + "install_image: /image\nmax_running_jobs: 3\nhv_state: {kvm: {mem_hv: 1}}")
    step = plan.steps[0]
    assert "install_image" in step.inverse.not_restored[0]
    assert undo(step) == [
        "gnt-cluster modify --max-running-jobs=20 --hypervisor-state=kvm:mem_hv=0",
    ]
    absent = plan_for(cluster(), CLUSTER + "hv_state: {xen-pvm: {mem_hv: 1}}").steps[0]
    assert undo(absent) == ["gnt-cluster modify --hypervisor-state=xen-pvm:mem_hv=default"]
    assert absent.inverse.not_restored == (
        "hv_state.xen-pvm.mem_hv stays, with Ganeti's default: the cluster's entry cannot be removed",
    )


def test_a_change_without_a_command_has_no_step_and_fails_the_guard() -> None:
    plan = plan_for(cluster(), CLUSTER + "diskparams: {rbd: {user-id: x}}")
    assert plan.steps == ()
    assert [guard.name for guard in plan.guards if not guard.ok] == ["expressible"]


def test_the_candidate_pool_changes_alone_and_last_and_is_undone_last() -> None:
    plan = plan_for(cluster(), CLUSTER + "candidate_pool_size: 3\nndparams: {ssh_port: 23}\ntags: [t]")
    assert [step.wave for step in plan.steps] == [StepWave.CLUSTER, StepWave.TAGS_ADDED, StepWave.POOL]
    assert plan.steps[-1].command.argv == ("gnt-cluster", "modify", "--candidate-pool-size=3")


@pytest.mark.parametrize(("release", "by_command"), [("2.16.2", True), ("3.0.2", False), (None, False)])
def test_the_release_of_the_cluster_decides_how_a_step_is_made(release: str | None, *, by_command: bool) -> None:
    state = replace(cluster(), software_version=release)
    (step,) = plan_for(state, CLUSTER + "data_collector_interval: {drbd: 1000000}").steps
    assert (step.command.argv is not None) is by_command
