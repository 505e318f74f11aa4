"""Which groups and nodes of a cluster a policy means: renames, globs, node sets, and what does not match."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding
from gpolicy.guessing import MOST_GUESSES
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import matches
from gpolicy.resolve.desired import Desired, members, resolve
from tests.impact.clusters_by_hand import cluster

NODES = {"node1": "old", "node2": "old", "other1": "spare"}


def policy_of(folder: Path, *documents: str) -> Policy:
    (folder / "policy.yaml").write_text("---\n".join(f"gpolicy: v1\n{text}\n" for text in documents))
    policy = load_policy(folder / "policy.yaml")
    assert [item.message for item in policy.findings if item.severity == "error"] == []
    return policy


def state_of(*groups: str, nodes: dict[str, str] | None = None) -> ClusterState:
    return cluster({}, {name: {} for name in groups or ("old", "spare")}, NODES if nodes is None else nodes)


def group_document(name: str, more: str = "") -> str:
    return f"kind: NodeGroup\nname: {name}\n{more}"


def _node_set(name: str, more: str, spindles: int) -> str:
    return f"kind: NodeSet\nname: {name}\n{more}\nndparams: {{spindle_count: {spindles}}}"


def _renamed(new: str, old: str) -> str:
    return group_document(new, f"renamed_from: {old}")


def _current(desired: Desired) -> dict[str, str | None]:
    return {name: group.current for name, group in desired.groups.items()}


def _said(desired: Desired) -> list[str]:
    return [item.message for item in desired.findings]


class TestRenames:
    @pytest.mark.parametrize(
        ("groups", "wanted", "current"),
        [
            (["old"], [group_document("old")], {"old": "old"}),
            (["old"], [group_document("new")], {"new": None}),
            (["old"], [_renamed("new", "old")], {"new": "old"}),
            (["new"], [_renamed("new", "old")], {"new": "new"}),  # it is done
            (["a", "b"], [_renamed("b", "a"), _renamed("c", "b")], {"b": "a", "c": "b"}),
            (["a", "b"], [_renamed("c", "b"), _renamed("b", "a")], {"b": "a", "c": "b"}),
            (["old"], [_renamed("new", "old"), group_document("old")], {"new": "old", "old": None}),  # and a new one
            (
                ["new", "old"],
                [_renamed("new", "old"), group_document("old")],
                {"new": "new", "old": "old"},
            ),  # both are done
        ],
    )
    def test_the_present_name_of_each_group(
        self, groups: list[str], wanted: list[str], current: dict[str, str | None], tmp_path: Path
    ) -> None:
        desired = resolve(policy_of(tmp_path, *wanted), state_of(*groups, nodes={}))
        assert (_current(desired), _said(desired)) == (current, [])

    def test_a_name_that_another_group_has_is_a_clash(self, tmp_path: Path) -> None:
        desired = resolve(policy_of(tmp_path, _renamed("new", "old")), state_of("new", "old", nodes={}))
        assert _said(desired) == ["old is to become new, but the cluster has a group new"]
        assert _current(desired) == {"new": "new"}
        assert "remove renamed_from if the rename is done" in (desired.findings[0].hint or "")

    def test_one_group_cannot_become_two(self, tmp_path: Path) -> None:
        desired = resolve(policy_of(tmp_path, _renamed("a", "old"), _renamed("b", "old")), state_of("old", nodes={}))
        assert _said(desired) == ["old is to become b, but also another group"]
        assert _current(desired) == {"a": "old", "b": None}

    def test_groups_that_exchange_their_names_wait_for_one_another(self, tmp_path: Path) -> None:
        desired = resolve(policy_of(tmp_path, _renamed("a", "b"), _renamed("b", "a")), state_of("a", "b", nodes={}))
        assert _said(desired) == [
            "b is to become a, but the cluster has a group a",
            "a is to become b, but the cluster has a group b",
        ]

    def test_the_name_after(self, tmp_path: Path) -> None:
        desired = resolve(policy_of(tmp_path, _renamed("new", "old")), state_of())
        assert [desired.name_after(name) for name in ("old", "spare")] == ["new", "spare"]


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("node1", "node1", True),
        ("node1", "node10", False),
        ("node*", "node10", True),
        ("node?", "node10", False),
        ("node[12]", "node2", True),
        ("node[12]", "node3", False),
        ("NODE*", "node1", False),
    ],
)
def test_a_pattern_matches_a_name_or_a_glob(pattern: str, name: str, found: bool) -> None:
    assert matches(pattern, name) is found


class TestNodesOfGroups:
    def test_a_name_wins_over_a_glob(self, tmp_path: Path) -> None:
        policy = policy_of(
            tmp_path, group_document("old", 'nodes: ["node*"]'), group_document("spare", "nodes: [node2]")
        )
        desired = resolve(policy, state_of())
        assert {name: node.group and node.group.value for name, node in desired.nodes.items()} == {
            "node1": "old",
            "node2": "spare",
        }
        assert _said(desired) == []

    def test_nodes_that_two_groups_claim_are_one_finding(self, tmp_path: Path) -> None:
        policy = policy_of(
            tmp_path, group_document("old", 'nodes: ["node*"]'), group_document("spare", 'nodes: ["node?"]')
        )
        (finding,) = self._findings(policy)
        assert finding.code == "GP702"
        assert finding.message == "node node1 and 1 more are claimed by the groups old and spare"
        assert [(item.message, item.span.line) for item in finding.related] == [("also claimed here", 4)]
        assert finding.span is not None
        assert finding.span.line > 4

    @pytest.mark.parametrize("wide", ["*", "n*", "[no]*"])
    def test_the_glob_that_takes_in_nodes_of_another_group_is_wrong(self, wide: str, tmp_path: Path) -> None:
        spare = group_document("spare", f'nodes: ["{wide}"]')
        (finding,) = self._findings(policy_of(tmp_path, group_document("old", 'nodes: ["node*"]'), spare))
        assert finding.span is not None
        assert (finding.span.line, [item.span.line for item in finding.related]) == (9, [4])
        assert finding.hint.startswith("is other* meant? Else name the node in one of them")

    def test_a_narrower_glob_is_asked_for(self, tmp_path: Path) -> None:
        policy = policy_of(
            tmp_path, group_document("old", 'nodes: ["*o*"]'), group_document("spare", 'nodes: ["other*"]')
        )
        (finding,) = self._findings(policy)
        assert finding.hint.startswith("is node* meant? Else name the node in one of them")

    def test_one_node_is_told_by_its_name(self, tmp_path: Path) -> None:
        policy = policy_of(
            tmp_path, group_document("old", "nodes: [node1, node2]"), group_document("spare", "nodes: [node1, other1]")
        )
        (finding,) = self._findings(policy)
        assert finding.message == "node node1 is claimed by the groups old and spare"

    def test_a_group_that_claims_a_node_twice_is_no_mistake(self, tmp_path: Path) -> None:
        assert self._findings(policy_of(tmp_path, group_document("old", 'nodes: ["node*", "node?"]'))) == []

    def test_a_group_that_is_to_go_claims_nothing(self, tmp_path: Path) -> None:
        gone = group_document("spare", 'removed: true\nnodes: ["*"]')
        desired = resolve(policy_of(tmp_path, group_document("old", 'nodes: ["*"]'), gone), state_of())
        assert {name for name, node in desired.nodes.items() if node.group} == {"node1", "node2", "other1"}

    def test_an_unknown_node_is_named_with_a_guess(self, tmp_path: Path) -> None:
        (finding,) = self._findings(policy_of(tmp_path, group_document("old", 'nodes: [node9, node1, "x*"]')))
        assert (finding.code, finding.message) == ("GP701", "the cluster has no node 'node9'")
        assert "Did you mean" in (finding.hint or "")

    def test_only_the_first_unknown_nodes_have_a_guess(self, tmp_path: Path) -> None:
        names = ", ".join(f"node1{number}" for number in range(MOST_GUESSES + 1))
        found = self._findings(
            policy_of(tmp_path, group_document("old", f"nodes: [{names}]"), _node_set("set", "nodes: [node1]", 1))
        )
        assert ["Did you mean" in (item.hint or "") for item in found] == [True] * MOST_GUESSES + [False]

    def _findings(self, policy: Policy) -> list[Finding]:
        return resolve(policy, state_of()).findings


class TestNodeSets:
    def test_a_name_wins_over_a_glob_and_that_over_a_group(self, tmp_path: Path) -> None:
        sets = [
            _node_set("group", "groups: [old]", 1),
            _node_set("glob", 'nodes: ["node*"]', 2),
            _node_set("name", "nodes: [node2]", 3),
        ]
        for documents in (sets, sets[::-1]):
            desired = resolve(policy_of(tmp_path, group_document("old"), *documents), state_of())
            assert _said(desired) == []
            found = {name: [leaf.value for leaf in node.leaves.values()] for name, node in desired.nodes.items()}
            assert found == {"node1": [2], "node2": [3]}

    def test_the_rank_of_a_node_is_that_of_its_best_match(self, tmp_path: Path) -> None:
        text = _node_set("all", 'groups: [old]\nnodes: [node2, "node*"]', 1)
        policy = policy_of(tmp_path, group_document("old"), text)
        assert members(policy.node_sets[0], state_of(), Desired()) == {"node1": 1, "node2": 0}

    def test_a_group_means_its_nodes_after_the_plan(self, tmp_path: Path) -> None:
        documents = group_document("new", "renamed_from: old\nnodes: [node1, node2, other1]"), group_document("spare")
        policy = policy_of(tmp_path, *documents, _node_set("all", "groups: [new]", 1))
        desired = resolve(policy, state_of())
        assert members(policy.node_sets[0], state_of(), desired) == {"node1": 2, "node2": 2, "other1": 2}
        policy = policy_of(tmp_path, _renamed("new", "old"), _node_set("all", "groups: [new]", 1))
        assert members(policy.node_sets[0], state_of(), resolve(policy, state_of())) == {"node1": 2, "node2": 2}

    def test_sets_of_one_rank_that_disagree_are_one_finding(self, tmp_path: Path) -> None:
        sets = _node_set("few", 'nodes: ["node*"]', 2), _node_set("many", 'nodes: ["*"]', 8)
        (finding,) = resolve(policy_of(tmp_path, *sets), state_of()).findings
        assert finding.code == "GP703"
        said = "node node1 and 1 more are in two node sets that disagree about ndparams.spindle_count"
        assert finding.message == said
        assert [item.message for item in finding.related] == ["the other value"]

    def test_sets_that_agree_are_no_mistake(self, tmp_path: Path) -> None:
        sets = _node_set("few", 'nodes: ["node*"]', 2), _node_set("many", 'nodes: ["*"]', 2)
        assert resolve(policy_of(tmp_path, *sets), state_of()).findings == []

    def test_tags_of_all_sets_are_joined(self, tmp_path: Path) -> None:
        sets = 'kind: NodeSet\nname: a\nnodes: ["*"]\ntags: [x]', "kind: NodeSet\nname: b\nnodes: [node1]\ntags: [y]"
        desired = resolve(policy_of(tmp_path, *sets, _node_set("c", "nodes: [node2]", 1)), state_of())
        tags = {name: None if node.tags is None else sorted(node.tags) for name, node in desired.nodes.items()}
        assert tags == {"node1": ["x", "y"], "node2": ["x"], "other1": ["x"]}
        alone = resolve(policy_of(tmp_path, _node_set("c", "nodes: [node2]", 1)), state_of())
        assert alone.nodes["node2"].tags is None
