"""The guards that an adopted policy begins with: its cluster passes each, and comments name what it would not pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpolicy.adopt.adopting import adopt_cluster
from gpolicy.adopt.soundness import file_names
from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode, Resources
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.forecast.bridge import FORECAST
from gpolicy.impact.declared_guards import verdicts_on
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.writing.documents import GUARDS_FILE
from gpolicy.writing.new_files import write_files
from tests.cli.command_line import ROOT, gpolicy
from tests.mistakes import find_mistakes

SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"


def adopted(state: ClusterState, directory: Path) -> tuple[Policy, str]:
    """Return the adopted policy and its comments on guards; the cluster passes them and check finds nothing in them."""
    files = adopt_cluster(state).files
    write_files(files, directory)
    policy = load_policy(directory)
    verdicts, _ = verdicts_on(policy, planned_sides(policy, state))
    assert [item for item in verdicts if not item.ok] == []
    found = find_mistakes(policy, state=state, today=date(2026, 1, 1), forecast=FORECAST)
    assert [item for item in found if item.span and item.span.file.endswith(GUARDS_FILE)] == []
    return policy, " ".join(files[GUARDS_FILE].replace("\n#", "").split())


def measures(policy: Policy) -> list[tuple[str, str | None]]:
    return [(guard.measure.value, guard.group.value if guard.group else None) for guard in policy.guards]


@pytest.fixture(name="state")
def recorded() -> ClusterState:
    return read_snapshot(SNAPSHOT)


def test_guards_are_about_all_groups_where_all_pass(state: ClusterState, tmp_path: Path) -> None:
    policy, text = adopted(state, tmp_path)
    assert measures(policy) == [("newly_violating", None), ("capacity_loss", None), ("node_failures", None)]
    assert "Left out" not in text


def test_a_node_that_does_not_answer_takes_its_group_out(state: ClusterState, tmp_path: Path) -> None:
    name = "node2.example.org"
    state = replace(state, nodes={**state.nodes, name: replace(state.nodes[name], resources=Resources())})
    policy, text = adopted(state, tmp_path)
    assert ("capacity_loss", "default") not in measures(policy)
    assert ("capacity_loss", "dedicated") in measures(policy)
    assert "- capacity_loss of group default: cannot be measured: node2.example.org does not answer" in text


def test_a_group_that_does_not_survive_today_has_no_guard_for_it(state: ClusterState, tmp_path: Path) -> None:
    lost = "node4.example.org"
    state = replace(state, nodes={**state.nodes, lost: replace(state.nodes[lost], offline=True)})
    memory = {
        name: replace(node, resources=replace(node.resources, memory_free=256)) if node.group == "default" else node
        for name, node in state.nodes.items()
    }
    policy, text = adopted(replace(state, nodes=memory), tmp_path)
    assert ("node_failures", "default") not in measures(policy)
    assert "- node_failures of group default: survives 0 node failures" in text
    assert "- node_failures of group spare: it has one node" in text


def test_without_a_guard_only_comments_are_written(tmp_path: Path) -> None:
    state = ClusterState(
        source="config:made",
        name="c.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own={}),
        groups={"default": LiveGroup(name="default", own={}, effective={})},
        nodes={"node1": LiveNode(name="node1", group="default", own={})},
        instances={},
    )
    policy, text = adopted(state, tmp_path)
    assert policy.guards == ()
    assert "- newly_violating of group default: cannot be measured: " in text


def test_a_slip_in_the_policy_is_stopped(tmp_path: Path) -> None:
    source = f"snapshot:{SNAPSHOT}"
    assert gpolicy("adopt", "--save", tmp_path / "p", "-s", source).returncode == 0
    file = tmp_path / "p" / "cluster.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("disk-size: 1T") == 1
    file.write_text(text.replace("disk-size: 1T", "disk-size: 1024"), encoding="utf-8")
    done = gpolicy("plan", tmp_path / "p", "-s", source)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].startswith("Not to be applied: ")
    assert "FAILS nothing-newly-violates: 1" in done.stdout


_names = st.lists(st.text(max_size=20) | st.sampled_from(["a", "A", "a-2", "A-2", ".a", "-a", "con", "x.yaml"]))


def test_a_plain_name_stays() -> None:
    assert file_names(["default", "gold-2", "a.b_c"]) == {"default": "default", "gold-2": "gold-2", "a.b_c": "a.b_c"}


def test_other_names_become_plain() -> None:
    names = ["../etc", ".hidden", "-rf", "a/b", "\u00fc", "con", "x.yaml", "", "g" * 300]
    found = file_names(names)
    assert [found[name] for name in names] == [
        "etc", "hidden", "rf", "a-b", "group-2", "group-con", "x", "group", "g" * 100,
    ]  # fmt: skip


def test_file_names_differ_in_more_than_case() -> None:
    assert sorted(file_names(["Gold", "gold", "GOLD"]).values()) == ["GOLD", "Gold-2", "gold-3"]


@given(_names)
def test_file_names_are_unique_visible_and_in_the_directory(names: list[str]) -> None:
    result = file_names(names)
    assert result.keys() == set(names)
    assert len({file.lower() for file in result.values()}) == len(result)
    for file in result.values():
        assert file.isascii()
        assert file
        assert file[0] not in ".-"
        assert not set(file) & set("/\\: \n\0")
