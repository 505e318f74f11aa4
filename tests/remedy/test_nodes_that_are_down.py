"""Remedies where nodes are offline: nothing is copied from them, and what was on them starts elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.printable import Tone
from gpolicy.remedy.remedy import RemedyReport
from gpolicy.report.remedy_answer import remedy_answer
from gpolicy.what_if.load import moved, offline
from tests.remedy.broken_clusters import remedied

SNAPSHOT = Path(__file__).resolve().parents[2] / "policies/two-groups.snapshot.json"


def cluster() -> ClusterState:
    return read_state(f"snapshot:{SNAPSHOT}", SourceOptions())


def without(*names: str) -> ClusterState:
    return offline(cluster(), [f"{name}.example.org" for name in names])


def reasons(report: RemedyReport) -> dict[str, str]:
    return {item.fault.key[0].partition(".")[0]: item.reason for item in report.left}


def test_all_instances_leave_a_node_that_is_offline() -> None:
    report = remedied(without("node1"))
    assert (len(report.steps), report.cured, report.faults_after) == (7, len(report.faults), ())
    down = [step for step in report.steps if step.nodes_before[0] == "node1.example.org"]
    assert {step.commands[0].argv[1] for step in down if step.commands[0].argv} == {"failover"}
    said = {step.instance.partition(".")[0]: step.downtime for step in report.steps}
    assert said["ci1"] == "is down now, and starts on node2.example.org"
    assert said["web1"] == "is down now; starts on node3.example.org, then stops and starts on node4.example.org"
    assert said["git"] == said["staging1"] == ""  # it runs on node3; it is stopped


def test_no_disk_is_copied_from_nodes_that_are_offline() -> None:
    report = remedied(without("node1", "node2"))
    why = "its only disks are on node2.example.org and node1.example.org, which are offline"
    assert reasons(report)["build1"] == f"build1.example.org: {why}"
    for step in report.steps:
        first = step.commands[0].argv or ()
        assert step.nodes_before[0] not in {"node1.example.org", "node2.example.org"} or first[1] == "failover"


@pytest.mark.parametrize("status", ["running", "ERROR_nodeoffline"])
def test_what_ran_on_a_node_that_a_plan_takes_offline_fails_over(status: str) -> None:
    state = without("node1")
    ci1 = replace(state.instances["ci1.example.org"], status=status)
    report = remedied(replace(state, instances={**state.instances, ci1.name: ci1}))
    (step,) = (step for step in report.steps if step.instance == ci1.name)
    assert [command.argv[1] for command in step.commands if command.argv] == ["failover", "replace-disks"]


def test_only_a_crowded_group_is_why_a_tag_stays() -> None:
    state = cluster()
    tagged = {name: replace(item, tags=frozenset({"service:all"})) for name, item in state.instances.items()}
    said = {item.fault.key[1]: item.reason for item in remedied(replace(state, instances=tagged)).left}
    assert said["node node1.example.org"] == "17 instances of group default have the tag, for 4 nodes"
    assert "default" not in said["node node6.example.org"]


def test_a_group_without_figures_is_not_said_to_be_well() -> None:
    state = cluster()
    nodes = {
        name: replace(node, resources=Resources()) if node.group == "dedicated" else node
        for name, node in state.nodes.items()
    }
    answer = remedy_answer(remedied(replace(state, nodes=nodes)))
    assert answer.first_line.startswith("No instance has to move; ")
    assert answer.first_line.endswith(
        "; not known for group dedicated: node5.example.org, node6.example.org, node7.example.org do not answer"
    )
    assert answer.colour is Tone.CAREFUL


def test_moves_into_a_group_that_takes_no_instances_are_told() -> None:
    report = remedied(moved(cluster(), "node4.example.org", "spare"))
    brought = sorted(
        {step.instance for step in report.steps if {"node4.example.org", "node8.example.org"} == {*step.nodes_after}}
    )
    assert brought
    (said,) = [note for note in report.notes if "unallocable" in note]
    assert said.endswith("into group spare, which is unallocable")
    assert brought[0] in said
    assert not any("unallocable" in note for note in remedied(without("node1")).notes)
