"""Nodes above a ratio: moves bring them below it where there is room, and else the remedy says why not."""

from __future__ import annotations

import pytest

from gpolicy.analysis.violations import node_verdicts
from gpolicy.remedy.faults import FaultKind
from gpolicy.remedy.remedy import RemedyReport
from tests.analysis.full_nodes import instances, node, state
from tests.remedy.broken_clusters import remedied
from tests.remedy.test_remedy_laws import moved

THREE = [node("n1"), node("n2"), node("n3")]


def left(report: RemedyReport) -> dict[str, str]:
    return {f"{item.fault.key[0]} {item.fault.kind.value}": item.reason for item in report.left}


@pytest.mark.parametrize(
    ("vms", "ratios", "faults"),
    [
        (instances(20, vcpus=2), "4|32", ["n1 vcpu-ratio"]),
        (instances(20, "n1:n2", vcpus=2, template="drbd"), "4|32", ["n1 vcpu-ratio"]),
        (instances(20), "8|16", ["n1 spindle-ratio"]),
        (instances(20, "n1:n2", template="drbd"), "8|16", ["n1 spindle-ratio", "n2 spindle-ratio"]),
    ],
)
def test_moves_bring_nodes_below_their_ratios(vms: list[str], ratios: str, faults: list[str]) -> None:
    before = state(THREE, vms, ratios)
    report = remedied(before)
    found = [f"{item.key[0]} {item.kind.value}" for item in report.faults if item.kind is not FaultKind.LOSS]
    assert (found, report.faults_after) == (faults, ())
    after = node_verdicts(moved(before, report))
    assert not any(verdict.breaches for verdict in after.values())


@pytest.mark.parametrize(("status", "verb"), [("running", "migrate"), ("ERROR_down", "failover")])
def test_what_is_down_does_not_migrate(status: str, verb: str) -> None:
    report = remedied(state(THREE, instances(20, "n1:n2", vcpus=2, template="drbd", status=status)))
    verbs = {argv[1] for step in report.steps for command in step.commands if (argv := command.argv)}
    assert verbs - {"replace-disks"} == {verb}
    assert {step.downtime for step in report.steps} == {""}


def test_a_group_that_has_too_much_in_all_says_so() -> None:
    cpus = remedied(state(THREE, instances(20, vcpus=2), "1|32"))
    assert left(cpus)["n1 vcpu-ratio"] == (
        "43 virtual CPUs are in use, the nodes of its group may have 24 together: raise the ratio, or add nodes"
    )
    spindles = remedied(state(THREE, instances(20, "n1:n2", template="drbd"), "8|6"))
    assert left(spindles)["n2 spindle-ratio"].startswith("40 spindles are in use, the nodes of its group may have 18")
    assert spindles.steps == cpus.steps == ()


def test_what_the_other_nodes_lack_is_told() -> None:
    full = [*instances(12, "n2", first=20), *instances(12, "n3", first=40)]
    crowded = remedied(state(THREE, [*instances(2, use=8), *full], "8|15"))
    assert left(crowded) == {
        "n1 spindle-ratio": "of 4 moves of vm1, vm0, 4 would exceed their spindle-ratio",
    }
    fixed = remedied(state(THREE, instances(20, balanced="N"), "8|16"))
    assert left(fixed)["n1 spindle-ratio"] == "vm0: its auto_balance is off, so nothing may move it by itself"


def test_an_instance_leaves_a_node_that_is_offline_even_to_one_that_is_then_too_full() -> None:
    nodes = [node("n1", role="Y"), node("n2", own_cpus=32), node("n3", own_cpus=32)]
    before = state(nodes, instances(1, "n1:n2", template="drbd"))
    report = remedied(before)
    assert [step.nodes_before[0] for step in report.steps] == ["n1"]
    assert FaultKind.NODE not in {fault.kind for fault in report.faults_after}
    assert FaultKind.VCPU_RATIO in {fault.kind for fault in report.new}


def test_of_an_offline_node_only_its_instances_are_wrong() -> None:
    nodes = [node("n1", role="Y"), node("n2"), node("n3")]
    report = remedied(state(nodes, instances(40, "n1:n2", template="drbd")))
    assert {fault.kind for fault in report.faults} >= {FaultKind.NODE, FaultKind.SPINDLE_RATIO}
    assert all(fault.key != ("n1",) for fault in report.faults if fault.kind is FaultKind.SPINDLE_RATIO)


def test_a_ratio_below_zero_is_exceeded_by_every_node() -> None:
    nodes = [node("n1", exclusive="Y"), node("n2", exclusive="Y")]
    report = remedied(state(nodes, instances(1), "4|-1"))
    assert left(report)["n2 spindle-ratio"].startswith("0 spindles are in use, the nodes of its group may have -2")
