"""Adopting into a policy that is there: what is new is added, what it says stays."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.adopt.adopting import Addition, adopt_cluster, adopt_new
from gpolicy.cli.running import run
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.plan.diff import diff
from gpolicy.policy.loading import load_policy
from gpolicy.writing.new_files import write_files, write_texts
from tests.laws import examples
from tests.strategies import cluster_states

SNAPSHOT = Path(__file__).resolve().parents[2] / "policies" / "two-groups.snapshot.json"
STATE = f"snapshot:{SNAPSHOT}"


def without(state: ClusterState, groups: Collection[str], nodes: Collection[str]) -> ClusterState:
    """Return a cluster before it had these groups (with their nodes) and nodes."""
    kept = {name: node for name, node in state.nodes.items() if name not in nodes and node.group not in groups}
    found = {name: group for name, group in state.groups.items() if name not in groups}
    instances = {
        name: item
        for name, item in state.instances.items()
        if item.primary_node in kept and kept.keys() >= {*item.secondary_nodes}
    }
    return replace(state, groups=found, nodes=kept, instances=instances)


def add(directory: Path, state: ClusterState) -> Addition:
    policy = load_policy(directory)
    addition = adopt_new(policy, state, date.min)
    write_texts(addition.texts, policy)
    return addition


def texts_in(directory: Path) -> dict[Path, str]:
    return {file: file.read_text(encoding="utf-8") for file in directory.rglob("*.yaml")}


def test_a_group_a_node_of_a_group_and_values_of_nodes_are_added(tmp_path: Path) -> None:
    state = read_state(STATE)
    policy = tmp_path / "prod"
    write_files(adopt_cluster(without(state, ["spare"], ["node4.example.org", "node6.example.org"])).files, policy)
    before = texts_in(policy)
    addition = add(policy, state)
    assert addition.added == (
        *("group/spare", "node/node4.example.org", "node/node6.example.org", "node/node8.example.org"),
    )
    after = texts_in(policy)
    new = {file.relative_to(policy).as_posix() for file in after.keys() - before.keys()}
    assert new == {"groups/spare.yaml", "nodes-2.yaml"}
    for name, node in (("default", "node4"), ("dedicated", "node6")):
        file = policy / "groups" / f"{name}.yaml"
        was = before.pop(file).splitlines()
        assert [line for line in after.pop(file).splitlines() if line not in was] == [f"  - {node}.example.org"]
    assert all(after[file] == text for file, text in before.items())
    assert after[policy / "groups" / "spare.yaml"] == adopt_cluster(state).files["groups/spare.yaml"]
    assert add(policy, state) == Addition()
    assert diff(load_policy(policy), state).changes == []


def test_drift_and_what_is_not_managed_stay(tmp_path: Path) -> None:
    state = read_state(STATE)
    policy = tmp_path / "prod"
    policy.mkdir()
    text = (
        f"gpolicy: v1\nkind: Cluster\nname: {state.name}\n---\ngpolicy: v1\nkind: NodeGroup\nname: default\n"
        "alloc_policy: last_resort\n---\ngpolicy: v1\nkind: NodeGroup\nname: dedicated\n---\n"
        'gpolicy: v1\nkind: NodeSet\nname: all\nnodes: ["*"]\n'
    )
    (policy / "policy.yaml").write_text(text, encoding="utf-8")
    assert add(policy, state).added == ("group/spare", "node/node8.example.org")
    assert (policy / "policy.yaml").read_text(encoding="utf-8") == text
    assert "$schema" not in (policy / "groups" / "spare.yaml").read_text(encoding="utf-8")
    assert [change.object for change in diff(load_policy(policy), state).changes] == ["group/default"]


def test_a_name_that_is_taken_is_not_overwritten(tmp_path: Path) -> None:
    state = read_state(STATE)
    policy = tmp_path / "prod"
    write_files(adopt_cluster(without(state, ["spare"], ())).files, policy)
    other = policy / "groups" / "spare.yaml"
    other.write_text("gpolicy: v1\nkind: Guards\nguards:\n  - {name: g, max_changes: 3}\n", encoding="utf-8")
    add(policy, state)
    assert other.read_text(encoding="utf-8").endswith("max_changes: 3}\n")
    assert "name: spare" in (policy / "groups" / "spare-2.yaml").read_text(encoding="utf-8")


def test_the_verb_adds_to_a_policy_and_refuses_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = read_state(STATE)
    policy, other = tmp_path / "prod", tmp_path / "other"
    write_files(adopt_cluster(without(state, ["spare"], ())).files, policy)
    assert run(["adopt", "--state", STATE, "--save", str(policy)]) == 0
    assert f"wrote {policy}/groups/spare.yaml\nadded to {policy}: group/spare" in capsys.readouterr().out
    assert run(["adopt", "--state", STATE, "--save", str(policy)]) == 0
    assert f"nothing is new for {policy}" in capsys.readouterr().out
    before = texts_in(policy)
    (policy / "bad.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: x\nbogus: 1\n", encoding="utf-8")
    (policy / "groups" / "spare.yaml").unlink()
    assert run(["adopt", "--state", STATE, "--save", str(policy)]) == 1
    assert texts_in(policy).keys() - before.keys() == {policy / "bad.yaml"}
    other.mkdir()
    (other / "notes.txt").write_text("mine", encoding="utf-8")
    assert run(["adopt", "--state", STATE, "--save", str(other)]) == 3
    assert [file.name for file in other.iterdir()] == ["notes.txt"]


@given(st.data())
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
def test_what_is_added_makes_no_plan_and_is_added_once(data: st.DataObject) -> None:
    state = data.draw(cluster_states())
    groups = data.draw(st.sets(st.sampled_from(sorted(state.groups)), max_size=len(state.groups) - 1))
    nodes = data.draw(st.sets(st.sampled_from(sorted(state.nodes)))) if state.nodes else set[str]()
    earlier = without(state, groups, nodes)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name, "policy")
        write_files(adopt_cluster(earlier).files, directory)
        before, drift = texts_in(directory), diff(load_policy(directory), state)
        if any(finding.severity == "error" for finding in drift.findings):
            return
        addition = add(directory, state)
        policy = load_policy(directory)
        assert policy.findings == ()
        assert diff(policy, state).changes == drift.changes
        left = {item.object for item in addition.left_out}
        assert {f"group/{group}" for group in groups} <= {*addition.added, *left}
        lists = {str(directory / "groups" / file.name) for file in directory.glob("groups/*.yaml")}
        changed = {str(file) for file, text in before.items() if file.read_text(encoding="utf-8") != text}
        assert changed <= lists
        assert add(directory, state).added == ()
