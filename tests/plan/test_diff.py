"""What counts as a difference, and what a plan tells about it."""

from __future__ import annotations

import pytest

from gpolicy.cluster.state import Unreadable
from gpolicy.ganeti.vocabulary import Level, TakesEffect
from gpolicy.plan.changes import ChangeAction
from gpolicy.plan.diff import diff
from tests.plan.planned import change, cluster, failed, plan_for, policy_of, recorded, with_node

RATIO = ("ipolicy", "vcpu-ratio")
SPINDLES = ("ndparams", "spindle_count")


def codes(*documents: str, groups: tuple[str, ...] = ("a", "b"), nodes: dict[str, str] | None = None) -> list[str]:
    state = cluster({}, {name: {} for name in groups}, nodes or {"n1": "a", "n2": "b"})
    return [finding.code for finding in diff(policy_of(*documents), state).findings]


def test_own_value_is_compared_with_own_value() -> None:
    state = cluster({RATIO: 4.0}, {"g": {}})
    pinned = change(plan_for(state, "NodeGroup\nname: g\nipolicy: {vcpu-ratio: 4}"), "group/g", "ipolicy.vcpu-ratio")
    assert (pinned.action, pinned.before, pinned.after) == (ChangeAction.SET, None, 4.0)
    assert (pinned.effective_before, pinned.effective_after) == (4.0, 4.0)
    assert plan_for(cluster({}, {"g": {RATIO: 4.0}}), "NodeGroup\nname: g\nipolicy: {vcpu-ratio: 4}").changes == ()


def test_inherit_removes_the_own_value_and_follows_the_cluster_as_it_will_be() -> None:
    state = cluster({RATIO: 4.0}, {"g": {RATIO: 2.0}})
    plan = plan_for(
        state,
        "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 8}",
        "NodeGroup\nname: g\nipolicy: {vcpu-ratio: inherit}",
    )
    found = change(plan, "group/g", "ipolicy.vcpu-ratio")
    assert (found.action, found.before, found.after) == (ChangeAction.RESET, 2.0, None)
    assert (found.effective_before, found.effective_after) == (2.0, 8.0)
    assert plan_for(cluster(), "NodeGroup\nname: default\nipolicy: {vcpu-ratio: inherit}").changes == ()


def test_undeclared_values_are_not_compared() -> None:
    state = cluster({RATIO: 99.0}, {"g": {RATIO: 98.0}, "undeclared": {RATIO: 97.0}})
    assert plan_for(state, "Cluster\nname: cluster.example.org", "NodeGroup\nname: g").changes == ()


def test_a_change_of_the_cluster_names_who_follows_it() -> None:
    state = cluster({}, {"follows": {}, "own": {RATIO: 1.0}, "pins": {}, "frees": {RATIO: 1.0}, "goes": {}})
    plan = plan_for(
        state,
        "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 8}",
        "NodeGroup\nname: pins\nipolicy: {vcpu-ratio: 3}",
        "NodeGroup\nname: frees\nipolicy: {vcpu-ratio: inherit}",
        "NodeGroup\nname: goes\nremoved: true",
    )
    assert change(plan, "cluster", "ipolicy.vcpu-ratio").affects == ("group/follows", "group/frees")


def test_a_change_of_a_group_names_the_nodes_that_follow_it() -> None:
    state = with_node(cluster({}, {"g": {}}, {"n1": "g", "n2": "g"}), "n2", {SPINDLES: 5})
    plan = plan_for(state, "NodeGroup\nname: g\nndparams: {spindle_count: 3}")
    assert change(plan, "group/g", "ndparams.spindle_count").affects == ("node/n1",)
    same = plan_for(state, "NodeGroup\nname: g\nndparams: {spindle_count: 1}")
    assert change(same, "group/g", "ndparams.spindle_count").affects == ()


def test_each_change_tells_when_it_takes_effect_and_its_place() -> None:
    plan = plan_for(cluster(), "Cluster\nname: cluster.example.org\ndiskparams:\n  drbd: {resync-rate: 5}")
    found = change(plan, "cluster", "diskparams.drbd.resync-rate")
    assert found.takes_effect == TakesEffect.DISK_ACTIVATION
    assert found.span is not None
    assert (found.span.line, found.span.column) == (5, 23)


@pytest.mark.parametrize("family", ["hv_state", "disk_state"])
def test_unreadable_values_are_neither_changed_nor_unchanged(family: str) -> None:
    state = cluster(unreadable=tuple(Unreadable(level=level, prefix=(family,)) for level in Level))
    value = "{kvm: {mem_node: 1024}}" if family == "hv_state" else "{plain: {xenvg: {disk_reserved: 4}}}"
    plan = plan_for(
        state, f"NodeGroup\nname: default\n{family}: {value}", "NodeGroup\nname: new\n" + f"{family}: {value}"
    )
    assert [(item.object, item.path[0]) for item in plan.not_compared] == [("group/default", family)]
    assert [(item.object, item.path[0]) for item in plan.changes] == [("group/new", "name"), ("group/new", family)]


def test_a_new_group_starts_from_nothing() -> None:
    plan = plan_for(cluster(), "NodeGroup\nname: new\nalloc_policy: preferred\nndparams: {ovs: inherit, ssh_port: 22}")
    assert [(item.action, ".".join(item.path)) for item in plan.changes] == [
        (ChangeAction.CREATE, "name"),
        (ChangeAction.SET, "ndparams.ssh_port"),
    ]


def test_a_rename_keeps_the_group_and_compares_it_with_the_old_one() -> None:
    state = cluster({}, {"old": {RATIO: 2.0}})
    plan = plan_for(state, "NodeGroup\nname: new\nrenamed_from: old\nipolicy: {vcpu-ratio: 2}")
    assert [(item.action, item.before, item.after) for item in plan.changes] == [(ChangeAction.RENAME, "old", "new")]
    done = cluster({}, {"new": {RATIO: 2.0}})
    assert plan_for(done, "NodeGroup\nname: new\nrenamed_from: old\nipolicy: {vcpu-ratio: 2}").changes == ()


def test_a_chain_of_renames_is_understood_before_during_and_after() -> None:
    chain = ("NodeGroup\nname: b\nrenamed_from: a", "NodeGroup\nname: c\nrenamed_from: b")
    before = plan_for(cluster({}, {"a": {}, "b": {}}), *chain)
    assert {(item.before, item.after) for item in before.changes} == {("a", "b"), ("b", "c")}
    assert before.findings == ()
    during = plan_for(cluster({}, {"a": {}, "c": {}}), *chain)
    assert [(item.before, item.after) for item in during.changes] == [("a", "b")]
    after = plan_for(cluster({}, {"b": {}, "c": {}}), *chain)
    assert (after.changes, after.findings) == ((), ())


def test_the_old_name_can_go_to_a_new_group() -> None:
    documents = ("NodeGroup\nname: b\nrenamed_from: a", "NodeGroup\nname: a\nalloc_policy: last_resort")
    plan = plan_for(cluster({}, {"a": {}}), *documents)
    assert [(item.object, item.action) for item in plan.changes] == [
        ("group/a", ChangeAction.CREATE),
        ("group/a", ChangeAction.SET),
        ("group/b", ChangeAction.RENAME),
    ]
    done = cluster({}, {"b": {}, "a": {("alloc_policy",): "last_resort"}})
    assert (plan_for(done, *documents).changes, plan_for(done, *documents).findings) == ((), ())


def test_gp704_both_names_are_there() -> None:
    assert codes("NodeGroup\nname: b\nrenamed_from: a") == ["GP704"]


def test_gp704_two_groups_cannot_swap_names_since_nothing_would_show_that_it_is_done() -> None:
    assert codes("NodeGroup\nname: a\nrenamed_from: b", "NodeGroup\nname: b\nrenamed_from: a") == ["GP704", "GP704"]


def test_gp704_one_group_cannot_become_two() -> None:
    assert codes("NodeGroup\nname: c\nrenamed_from: a", "NodeGroup\nname: d\nrenamed_from: a") == ["GP704"]


def test_a_removed_group_is_found_by_its_own_name_only() -> None:
    state = cluster({}, {"a": {}, "b": {}})
    assert plan_for(state, "NodeGroup\nname: c\nrenamed_from: a\nremoved: true").changes == ()
    plan = plan_for(state, "NodeGroup\nname: a\nremoved: true")
    assert [(item.object, item.action) for item in plan.changes] == [("group/a", ChangeAction.REMOVE)]


def test_a_node_moves_and_takes_what_it_inherits_from_the_new_group() -> None:
    state = cluster({}, {"a": {}, "b": {SPINDLES: 8}}, {"n1": "a"})
    plan = plan_for(state, "NodeGroup\nname: b\nnodes: [n1]")
    moved = change(plan, "node/n1", "group")
    assert (moved.action, moved.before, moved.after) == (ChangeAction.MOVE, "a", "b")
    assert "spindle_count 1 → 8" in moved.reason


def test_a_name_wins_over_a_glob() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a", "n2": "a"})
    plan = plan_for(state, "NodeGroup\nname: a\nnodes: ['n*']", "NodeGroup\nname: b\nnodes: [n2]")
    assert [(item.object, item.after) for item in plan.changes] == [("node/n2", "b")]


def test_nodes_that_no_group_claims_stay() -> None:
    assert plan_for(cluster({}, {"a": {}}, {"n1": "a"}), "NodeGroup\nname: a\nnodes: []").changes == ()


def test_gp701_a_node_that_is_not_there() -> None:
    assert codes("NodeGroup\nname: a\nnodes: [n9]") == ["GP701"]
    assert codes("NodeSet\nname: s\nnodes: [n9]\nndparams: {ovs: true}") == ["GP701"]
    assert codes("NodeGroup\nname: a\nnodes: ['other*']") == []


@pytest.mark.parametrize("pattern", ["n1", "'n*'"])
def test_gp702_two_groups_claim_a_node(pattern: str) -> None:
    claims = [f"NodeGroup\nname: {name}\nnodes: [{pattern}]" for name in ("a", "b")]
    assert codes(*claims) == ["GP702"]


def test_gp703_two_sets_of_one_rank_disagree() -> None:
    sets = [f"NodeSet\nname: {n}\nnodes: ['n*']\nndparams: {{ssh_port: {n}}}" for n in (1, 2)]
    assert codes(*(item.replace("name: ", "name: s") for item in sets)) == ["GP703"]
    same = [f"NodeSet\nname: s{n}\nnodes: ['n*']\nndparams: {{ssh_port: 3}}" for n in (1, 2)]
    assert codes(*same) == []


def test_a_plan_with_such_a_finding_has_no_steps_and_is_not_safe() -> None:
    plan = plan_for(cluster(), "NodeGroup\nname: default\nnodes: [n9]\nndparams: {ssh_port: 3}")
    assert plan.changes
    assert plan.steps == ()
    assert not plan.safe


def test_a_node_by_name_wins_over_a_glob_and_a_glob_over_a_group() -> None:
    state = cluster({}, {"g": {}}, {"n1": "g", "n2": "g", "x": "g"})
    plan = plan_for(
        state,
        "NodeSet\nname: group\ngroups: [g]\nndparams: {ssh_port: 1, spindle_count: 7}",
        "NodeSet\nname: glob\nnodes: ['n*']\nndparams: {ssh_port: 2}",
        "NodeSet\nname: one\nnodes: [n1]\nndparams: {ssh_port: 3}",
    )
    assert {(item.object, item.after) for item in plan.changes if item.path[1] == "ssh_port"} == {
        ("node/n1", 3),
        ("node/n2", 2),
        ("node/x", 1),
    }
    assert len([item for item in plan.changes if item.path == SPINDLES]) == 3


def test_a_set_of_a_groups_nodes_means_the_group_as_it_will_be() -> None:
    state = cluster({}, {"old": {}, "b": {}}, {"n1": "old", "n2": "b", "n3": "old"})
    plan = plan_for(
        state,
        "NodeGroup\nname: new\nrenamed_from: old\nnodes: [n2]",
        "NodeGroup\nname: b\nnodes: [n3]",
        "NodeSet\nname: s\ngroups: [new]\nndparams: {ssh_port: 3}",
    )
    assert {item.object for item in plan.changes if item.path[0] == "ndparams"} == {"node/n1", "node/n2"}


def test_effective_values_of_a_node_come_from_the_group_that_it_will_be_in() -> None:
    state = with_node(cluster({}, {"a": {}, "b": {}}, {"n1": "a"}), "n1", {SPINDLES: 5})
    plan = plan_for(
        state,
        "NodeGroup\nname: b\nnodes: [n1]\nndparams: {spindle_count: 9}",
        "NodeSet\nname: s\nnodes: [n1]\nndparams: {spindle_count: inherit}",
    )
    found = change(plan, "node/n1", "ndparams.spindle_count")
    assert (found.before, found.after, found.effective_before, found.effective_after) == (5, None, 5, 9)


def test_tags_are_added_and_only_owned_ones_removed() -> None:
    state = with_node(cluster(nodes={"n1": "default"}), "n1", {}, frozenset({"team:a", "rack:1"}))
    rules = "TagRules\nowns: [{prefix: 'team:', on: [node]}]"
    nodes = "NodeSet\nname: s\nnodes: [n1]\ntags: ['team:b']"
    found = change(plan_for(state, rules, nodes), "node/n1", "tags")
    assert (found.before, found.after) == (["rack:1", "team:a"], ["rack:1", "team:b"])
    assert change(plan_for(state, nodes), "node/n1", "tags").after == ["rack:1", "team:a", "team:b"]
    assert plan_for(state, rules).changes == ()  # nothing is said about the tags of nodes


def test_an_owned_prefix_counts_only_where_it_is_owned() -> None:
    state = cluster(tags=frozenset({"team:a"}))
    rules = "TagRules\nowns: [{prefix: 'team:', on: [node]}]"
    assert plan_for(state, rules, "Cluster\nname: cluster.example.org\ntags: []").changes == ()


@pytest.mark.parametrize("name", ["base", "rich", "full", "exclusive"])
def test_a_policy_of_another_cluster_is_not_carried_out(name: str) -> None:
    assert failed(plan_for(recorded(name), "Cluster\nname: other"))["right-cluster"].startswith("the policy is for")
    assert failed(plan_for(recorded(name), "Cluster\nname: cluster")) == {}
