"""A guard fails in advance for what Ganeti would refuse half-way or do without asking."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import LiveInstance, Unreadable
from gpolicy.errors import RequestError
from gpolicy.findings import Located, Span
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Level, Value, Values
from gpolicy.plan.built_in_guards import GUARDS, OVERRIDABLE, check_allowed
from gpolicy.policy.kinds import BUILT_IN, Guard, Measure, Policy
from tests.plan.planned import cluster, failed, plan_for, recorded, with_node
from tests.strategies import instance

ALLOWED = ("ipolicy", "disk-templates")
POOL = ("diskparams", "rbd", "pool")
EXCLUSIVE = ("ndparams", "exclusive_storage")
CLUSTER = "Cluster\nname: cluster.example.org\n"
MORE = "{memory-size: 256, cpu-count: 2, disk-size: 1024, disk-count: 1, nic-count: 1, spindle-use: 1}"
MOST = "{memory-size: 4096, cpu-count: 4, disk-size: 4096, disk-count: 1, nic-count: 1, spindle-use: 1}"


def test_a_guard_that_is_allowed_passes_and_says_so() -> None:
    plan = plan_for(cluster(), CLUSTER + "master_netmask: 24", allow=("master-network",))
    assert plan.safe
    assert [(guard.name, guard.allowed) for guard in plan.guards] == [("master-network", True)]


def test_the_guard_expressible_cannot_be_allowed() -> None:
    overridable = ["disks-stay", "exclusive-storage", "master-network", "right-cluster", "takes-instances"]
    assert sorted(OVERRIDABLE) == overridable
    plan = plan_for(cluster(), CLUSTER + "diskparams: {rbd: {user-id: x}}", allow=tuple(GUARDS))
    assert list(failed(plan)) == ["expressible"]


def test_only_a_guard_that_can_be_overridden_may_be_allowed() -> None:
    here = Span("g.yaml", 1, 1, 1, 1)
    mine = Guard(name=Located("mine", here), measure=Measure.MAX_CHANGES, limit=1, span=here)
    policy = Policy(paths=(), guards=(mine,))
    check_allowed(frozenset({"mine", *OVERRIDABLE}), policy)
    with pytest.raises(RequestError, match="there is no guard 'other'") as unknown:
        check_allowed(frozenset({"other"}), policy)
    assert unknown.value.hint == f"the guards are {', '.join(sorted([*BUILT_IN, 'mine']))}"
    with pytest.raises(
        RequestError, match="guard expressible cannot be passed: Ganeti would refuse the step"
    ) as futile:
        check_allowed(frozenset({"expressible"}), policy)
    assert futile.value.hint == f"guards that can be passed: {', '.join(sorted(OVERRIDABLE))}, mine"


def test_a_list_that_names_a_template_that_would_not_be_enabled() -> None:
    state = cluster({}, {"g": {ALLOWED: ["file"]}})
    assert (
        "the cluster's policy allows file"
        in failed(plan_for(state, CLUSTER + "enabled_disk_templates: [plain, drbd, rbd]"))["templates-enabled"]
    )
    plan = plan_for(state, CLUSTER + "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}")
    assert failed(plan)["templates-enabled"].startswith("group g allows file")
    assert "ext" in failed(plan_for(state, "NodeGroup\nname: g\nipolicy: {disk-templates: [ext]}"))["templates-enabled"]
    assert "ext" in failed(plan_for(state, "NodeGroup\nname: n\nipolicy: {disk-templates: [ext]}"))["templates-enabled"]
    removed = CLUSTER + "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}"
    state = cluster({}, {"default": {}, "g": {ALLOWED: ["file"]}})
    assert failed(plan_for(state, removed, "NodeGroup\nname: g\nremoved: true")) == {}


@pytest.mark.parametrize(
    ("template", "used", "wanted"),
    [("file", "file", ["plain"]), ("plain", "drbd", ["file"]), ("diskless", "diskless", ["plain"])],
)
def test_a_template_in_use_cannot_be_disabled(template: str, used: str, wanted: list[str]) -> None:
    pair = ("n2",) if used == "drbd" else ()
    state = cluster(
        {},
        None,
        {"n1": "default", "n2": "default"},
        instance("i", "n1", used, pair),
        enabled=("plain", "drbd", "file", "diskless"),
    )
    wanted = [*wanted, *({"drbd"} if used == "drbd" else ())]
    plan = plan_for(state, CLUSTER + f"enabled_disk_templates: {wanted}\nipolicy: {{disk-templates: {wanted}}}")
    assert f"{template} cannot be disabled, i use it" in failed(plan)["templates-in-use"]


def test_the_standard_instance_needs_a_pair_around_it() -> None:
    bounds = f"ipolicy:\n  minmax: [{{min: {MORE}, max: {MOST}}}]\n"
    assert "std" in failed(plan_for(cluster(), CLUSTER + bounds))["std-in-bounds"]
    assert failed(plan_for(cluster(), CLUSTER + bounds + f"  std: {MORE}")) == {}
    low: Value = {"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MIN, "cpu-count": 2}}
    high: Value = {"min": {**DEFAULT_MIN, "cpu-count": 3}, "max": {**DEFAULT_MAX}}
    half: Values = {("ipolicy", "minmax"): [low, high]}
    inside_both_halves_of_none = CLUSTER + "ipolicy: {std: {cpu-count: 2, memory-size: 256}}"
    assert "std-in-bounds" in failed(plan_for(cluster(half), inside_both_halves_of_none))


def test_a_group_with_nodes_is_not_removed_and_neither_is_the_last() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a"})
    assert "n1" in failed(plan_for(state, "NodeGroup\nname: a\nremoved: true"))["groups-empty"]
    assert failed(plan_for(state, "NodeGroup\nname: a\nremoved: true", "NodeGroup\nname: b\nnodes: [n1]")) == {}
    both = ("NodeGroup\nname: a\nremoved: true", "NodeGroup\nname: b\nremoved: true")
    assert "last group" in failed(plan_for(cluster({}, {"a": {}, "b": {}}), *both))["groups-empty"]


def test_a_pair_is_not_split() -> None:
    state = cluster({}, {"a": {}, "b": {}}, {"n1": "a", "n2": "a"}, instance("i", "n1", "drbd", ("n2",)))
    assert "i would be in two groups" in failed(plan_for(state, "NodeGroup\nname: b\nnodes: [n1]"))["pairs-together"]
    split = cluster({}, {"a": {}, "b": {}}, {"n1": "a", "n2": "b"}, instance("i", "n1", "drbd", ("n2",)))
    assert failed(plan_for(split, "NodeGroup\nname: b\nnodes: [n2]")) == {}


@pytest.mark.parametrize(
    ("own", "wanted", "guarded"),
    [
        ({}, "enabled_disk_templates: [plain]\nipolicy: {disk-templates: [plain]}", True),
        ({}, "enabled_disk_templates: [plain]\nvolume_group_name: vg\nipolicy: {disk-templates: [plain]}", False),
        ({("volume_group_name",): "vg"}, "volume_group_name: ''\ndrbd_usermode_helper: /bin/x", False),
    ],
)
def test_templates_have_what_they_need(own: Values, wanted: str, guarded: bool) -> None:
    state = cluster({("volume_group_name",): "", **own}, enabled=("file",))
    assert ("storage-set-up" in failed(plan_for(state, CLUSTER + wanted))) is guarded


RBD = instance("i", "n1", "rbd")


def test_existing_disks_are_redirected_by_a_change_of_the_group_that_they_are_in() -> None:
    state = cluster({}, {"a": {}, "b": {POOL: "other"}}, {"n1": "a"}, RBD)
    wanted = "diskparams: {rbd: {pool: new}}"
    assert "disks of i are redirected" in failed(plan_for(state, CLUSTER + wanted))["disks-stay"]
    assert "disks of i are redirected" in failed(plan_for(state, f"NodeGroup\nname: a\n{wanted}"))["disks-stay"]
    assert failed(plan_for(state, f"NodeGroup\nname: b\n{wanted}")) == {}
    pinned = "NodeGroup\nname: a\ndiskparams: {rbd: {pool: rbd}}"
    assert failed(plan_for(state, CLUSTER + wanted, pinned)) == {}


def test_existing_disks_are_redirected_by_a_move_too() -> None:
    state = cluster({}, {"a": {}, "b": {POOL: "other"}, "c": {}}, {"n1": "a"}, RBD)
    assert "diskparams.rbd.pool" in failed(plan_for(state, "NodeGroup\nname: b\nnodes: [n1]"))["disks-stay"]
    assert failed(plan_for(state, "NodeGroup\nname: c\nnodes: [n1]")) == {}


def test_a_group_whose_own_values_nobody_can_read_is_judged_by_what_is_in_force() -> None:
    gap = Unreadable(level=Level.GROUP, prefix=("diskparams",))
    state = cluster({}, {"a": {POOL: "own"}}, {"n1": "a"}, RBD, unreadable=(gap,))
    assert failed(plan_for(state, CLUSTER + "diskparams: {rbd: {pool: new}}")) == {}
    state = cluster({}, {"a": {}}, {"n1": "a"}, RBD, unreadable=(gap,))
    assert "disks-stay" in failed(plan_for(state, CLUSTER + "diskparams: {rbd: {pool: new}}"))


@pytest.mark.parametrize(
    ("item", "names_it"), [(instance("i", "n1", "file"), True), (instance("i", "n1", "plain"), False)]
)
def test_exclusive_storage_is_told_of_before_it_is_turned_on(item: LiveInstance, names_it: bool) -> None:
    state = cluster({}, {"a": {}, "es": {EXCLUSIVE: True}}, {"n1": "a"}, item)
    for wanted in ("NodeGroup\nname: a\nndparams: {exclusive_storage: true}", "NodeGroup\nname: es\nnodes: [n1]"):
        message = failed(plan_for(state, wanted))["exclusive-storage"]
        assert ("i have disks there that are not plain" in message) is names_it
        assert "cannot report the disk space" in message
    assert failed(plan_for(state, "NodeGroup\nname: es\nndparams: {exclusive_storage: false}")) == {}
    pinned = "NodeGroup\nname: a\nndparams: {exclusive_storage: false}"
    assert failed(plan_for(state, CLUSTER + "ndparams: {exclusive_storage: true}", pinned)) == {}


def test_exclusive_storage_counts_the_secondary_node_too() -> None:
    pair = instance("i", "n1", "drbd", ("n2",))
    state = cluster({}, {"a": {}, "es": {EXCLUSIVE: True}}, {"n1": "es", "n2": "a"}, pair)
    assert "i have disks" in failed(plan_for(state, "NodeGroup\nname: es\nnodes: [n2]"))["exclusive-storage"]


@pytest.mark.parametrize("key", ["master_netdev: eth9", "master_netmask: 24"])
def test_the_network_of_the_master(key: str) -> None:
    assert list(failed(plan_for(cluster(), CLUSTER + key))) == ["master-network"]


@pytest.mark.parametrize("name", ["base", "rich", "full", "exclusive"])
def test_guards_are_silent_when_there_is_nothing_to_do(name: str) -> None:
    assert plan_for(recorded(name), "Cluster\nname: cluster").guards == ()


def test_a_node_with_a_flag_of_its_own_must_not_move_among_others() -> None:
    state = cluster({}, {"a": {}, "es": {EXCLUSIVE: True}}, {"n1": "es", "n2": "a"})
    own = replace(state.nodes["n2"], own={EXCLUSIVE: False})
    state = replace(state, nodes={**state.nodes, "n2": own})
    assert failed(plan_for(state, "NodeGroup\nname: es\nnodes: [n1, n2]"))["exclusive-storage"] == (
        "nodes of group es would differ in exclusive storage (on: n1; off: n2), which Ganeti does not check and"
        " `gnt-cluster verify` reports: remove the nodes' own value"
    )
    pinned = "NodeGroup\nname: a\nndparams: {exclusive_storage: false}"
    assert failed(plan_for(state, pinned)) == {}


def test_nodes_of_one_group_that_come_to_differ_in_exclusive_storage() -> None:
    """n1 has a value of its own. What differs already is left as it is."""
    pinned = with_node(cluster(groups={"a": {}}, nodes={"n1": "a", "n2": "a"}), "n1", {EXCLUSIVE: False})
    turned_on = "NodeGroup\nname: a\nndparams: {exclusive_storage: true}"
    assert "nodes of group a would differ in exclusive storage (on: n2; off: n1)" in failed(
        plan_for(pinned, turned_on)
    ).get("exclusive-storage", "")
    mixed = with_node(cluster(groups={"a": {}}, nodes={"n1": "a", "n2": "a"}), "n1", {EXCLUSIVE: True})
    assert failed(plan_for(mixed, "NodeGroup\nname: a\nalloc_policy: last_resort")) == {}
