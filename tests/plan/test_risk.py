"""The risk of a change: what Ganeti does without asking."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.vocabulary import Path, Value
from gpolicy.plan.changes import STANDS_IN, Risk
from tests.plan.planned import change, cluster, plan_for
from tests.strategies import instance

CLUSTER = "Cluster\nname: cluster.example.org\n"


@pytest.mark.parametrize(
    ("wanted", "path", "risk", "reason"),
    [
        ("candidate_pool_size: 20", "candidate_pool_size", Risk.MEDIUM, "promotes nodes"),
        ("candidate_pool_size: 2", "candidate_pool_size", Risk.LOW, "demotes no node"),
        ("master_netdev: eth1", "master_netdev", Risk.HIGH, "takes the master address down"),
        ("ndparams: {exclusive_storage: true}", "ndparams.exclusive_storage", Risk.HIGH, "converts no existing disk"),
        ("ndparams: {ssh_port: 24}", "ndparams.ssh_port", Risk.MEDIUM, "answer on the new port"),
        ("enabled_hypervisors: [kvm]", "enabled_hypervisors", Risk.MEDIUM, "on every node"),
        ("volume_group_name: vg", "volume_group_name", Risk.MEDIUM, "on every node"),
        ("ipolicy: {disk-templates: [plain]}", "ipolicy.disk-templates", Risk.MEDIUM, "refuses to modify"),
        ("enabled_disk_templates: [rbd, plain, drbd, file]", "enabled_disk_templates", Risk.LOW, ""),
        ("enabled_disk_templates: [rbd]", "enabled_disk_templates", Risk.MEDIUM, "disables drbd, file, plain"),
        ("ipolicy: {vcpu-ratio: 3}", "ipolicy.vcpu-ratio", Risk.LOW, ""),
        ("diskparams: {rbd: {pool: x}}", "diskparams.rbd.pool", Risk.HIGH, "1 instance has rbd disks"),
        ("diskparams: {gluster: {host: h}}", "diskparams.gluster.host", Risk.LOW, "no instance has gluster disks"),
    ],
)
def test_risk_and_reason(wanted: str, path: str, risk: Risk, reason: str) -> None:
    state = cluster({}, None, {"n1": "default"}, instance("i", "n1", "rbd"))
    found = change(plan_for(state, CLUSTER + wanted), "cluster", path)
    assert found.risk is risk
    assert reason in found.reason
    assert bool(found.reason) is bool(reason)


@pytest.mark.parametrize(
    ("after", "risk"),
    [
        ([("128", "4G"), ("8G", "16G")], Risk.LOW),
        ([("8G", "16G"), ("64", "6G")], Risk.LOW),
        ([("128", "3G"), ("8G", "16G")], Risk.MEDIUM),
        ([("256", "4G"), ("8G", "16G")], Risk.MEDIUM),
        ([("128", "2G"), ("2G", "4G")], Risk.MEDIUM),
    ],
)
def test_spec_pairs_are_a_risk_only_where_they_may_forbid_what_was_allowed(
    after: list[tuple[str, str]], risk: Risk
) -> None:
    rest = "cpu-count: 1, disk-size: 1G, disk-count: 1, nic-count: 1, spindle-use: 1"
    old = plan_for(cluster(), CLUSTER + _minmax([("128", "4G")], rest))
    own = {item.path: item.after for item in old.changes}
    found = change(plan_for(cluster(own), CLUSTER + _minmax(after, rest)), "cluster", "ipolicy.minmax")
    assert (found.risk, bool(found.reason)) == (risk, risk is not Risk.LOW)


def test_more_disk_templates_are_no_risk() -> None:
    state = cluster({("ipolicy", "disk-templates"): ["plain"]})
    found = change(
        plan_for(state, f"{CLUSTER}ipolicy: {{disk-templates: [drbd, plain]}}"), "cluster", "ipolicy.disk-templates"
    )
    assert found.risk is Risk.LOW


def _minmax(pairs: list[tuple[str, str]], rest: str) -> str:
    lines = [
        f"    - {{min: {{memory-size: {low}, {rest}}}, max: {{memory-size: {high}, {rest}}}}}" for low, high in pairs
    ]
    return "ipolicy:\n  minmax:\n" + "\n".join(lines) + "\n"


def test_a_change_without_effect_is_not_a_risk() -> None:
    pinned = change(
        plan_for(cluster(), "NodeGroup\nname: default\nndparams: {ssh_port: 22}"), "group/default", "ndparams.ssh_port"
    )
    assert (pinned.risk, pinned.reason) == (Risk.LOW, "")


def test_groups_that_come_and_go() -> None:
    state = cluster({}, {"a": {}, "b": {}, "c": {}}, {"n1": "a"})
    plan = plan_for(
        state,
        "NodeGroup\nname: new\nndparams: {exclusive_storage: true}\nnodes: [n1]",
        "NodeGroup\nname: b\nremoved: true",
        "NodeGroup\nname: d\nrenamed_from: c",
    )
    risks = {(item.object, item.path[0]): item.risk for item in plan.changes}
    assert risks["group/b", "name"] is Risk.HIGH
    assert risks["group/new", "name"] is risks["group/d", "name"] is Risk.LOW
    assert risks["group/new", "ndparams"] is Risk.LOW  # nothing is in it yet; the move is what counts
    assert risks["node/n1", "group"] is Risk.MEDIUM


def test_the_risk_of_a_renamed_group_is_that_of_what_is_in_it() -> None:
    state = cluster({}, {"old": {}}, {"n1": "old"}, instance("i", "n1", "rbd"))
    plan = plan_for(state, "NodeGroup\nname: new\nrenamed_from: old\ndiskparams: {rbd: {pool: x}}")
    assert change(plan, "group/new", "diskparams.rbd.pool").risk is Risk.HIGH


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("ipolicy", "vcpu-ratio"), 2.0, ""),
        (("diskparams", "rbd", "access"), "userspace", STANDS_IN),
    ],
)
def test_only_a_value_that_cannot_be_removed_is_replaced(path: Path, value: Value, reason: str) -> None:
    text = f"NodeGroup\nname: gold\n{': {'.join(path)}: inherit{'}' * (len(path) - 1)}"
    (found,) = plan_for(cluster(groups={"gold": {path: value}}), text).changes
    assert found.reason == reason
