"""Where nodes, tags and groups that drifted are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.drift.test_comparing import RATIO
from tests.drift.written import (
    CLUSTER,
    RULES,
    SPINDLES,
    files_of,
    gold,
    group_with,
    one_file,
    reasons,
    text_of,
    with_nodes,
    write,
)
from tests.plan.planned import cluster

# --- nodes ------------------------------------------------------------------------------------------------------------


SET = "gpolicy: v1\nkind: NodeSet\nname: all\nnodes: [{}]\nndparams: {{spindle_count: 2}}\n"


def test_a_set_all_of_whose_nodes_changed_is_written(tmp_path: Path) -> None:
    state = with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 4}})
    assert one_file(tmp_path, SET.format("n1, n2"), state) == SET.format("n1, n2").replace("count: 2", "count: 4")


def test_one_node_of_a_glob_gets_a_set_of_its_own(tmp_path: Path) -> None:
    state = with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 2}})
    new = "---\ngpolicy: v1\nkind: NodeSet\nname: n1\nnodes: [n1]\nndparams:\n  spindle_count: 4\n"
    after = one_file(tmp_path, SET.format('"n*"'), state)
    assert after == SET.format('"n*"') + new
    state = with_nodes({"n1": {SPINDLES: 4, ("ndparams", "ssh_port"): 2222}, "n2": {SPINDLES: 2}})
    with_port = SET.format('"n*"').replace("2}", "2, ssh_port: inherit}")
    after = one_file(tmp_path, with_port + new, state)
    assert after == with_port + new + "  ssh_port: 2222\n"


def test_one_node_of_a_list_is_named_and_stays(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": SET.format("n1, n2")})
    wrote = write(tmp_path, with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 2}}))
    assert wrote.texts == {}
    assert "names n1 together with other nodes" in reasons(wrote)["node/n1:ndparams.spindle_count"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("nodes:\n  - n1\n  - n2\n", "nodes: [n3]\n"), ("nodes:\n  - n2\n", "nodes: [n3, n1]\n")),
        (("nodes: [n1, n2]\n", ""), ("nodes: [n2]\n", "")),
        (("nodes:\n  - n1\n", "nodes: []\n"), ("nodes: []\n", "nodes: [n1]\n")),
        (('nodes: ["n[12]*"]\n', "nodes:\n  - n3\n"), ('nodes: ["n[12]*"]\n', "nodes:\n  - n3\n  - n1\n")),
        (("nodes: [n1]\n", 'nodes: ["n*"]\n'), ("nodes: []\n", 'nodes: ["n*"]\n')),
    ],
)
def test_a_moved_node_is_in_the_list_of_its_group(
    tmp_path: Path, before: tuple[str, str], after: tuple[str, str]
) -> None:
    state = cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver", "n2": "gold", "n3": "silver"})
    was, now = (f"{group_with('gold', one)}---\n{group_with('silver', other)}" for one, other in (before, after))
    if "n*" in before[1]:
        state = cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver"})
    assert one_file(tmp_path, was, state) == now


def test_a_node_that_a_range_of_another_group_lists_is_named_and_stays(tmp_path: Path) -> None:
    """Its name would win over the range, but `check` warns of such a pair, and no draft may bring a warning."""
    was = group_with("gold", 'nodes: ["n[12]"]\n') + "---\n" + group_with("silver", "nodes: [n3]\n")
    files_of(tmp_path, {"policy.yaml": was})
    nodes = {"n1": "silver", "n2": "gold", "n3": "silver"}
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}, nodes=nodes))
    assert wrote.texts == {}
    assert "GP611" in reasons(wrote)["node/n1:group"]


def test_a_node_that_a_glob_claims_is_named_and_stays(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", 'nodes: ["n*"]\n')})
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver", "n2": "gold"}))
    assert wrote.texts == {}
    assert "claims the node by `n*`" in reasons(wrote)["node/n1:group"]


# --- tags -------------------------------------------------------------------------------------------------------------


def test_tags_of_the_cluster_become_rules_where_they_mean_one(tmp_path: Path) -> None:
    state = cluster(tags=frozenset({"htools:iextags:db:", "htools:iextags:web:", "team:x", "other"}))
    files_of(tmp_path, {"cluster.yaml": CLUSTER, "tags.yaml": RULES})
    assert reasons(write(tmp_path, state)) == {}
    assert text_of(tmp_path, "tags.yaml").endswith("exclusion:\n  - db\n  - web\n")
    assert text_of(tmp_path, "cluster.yaml").endswith('name: cluster.example.org\ntags: ["team:x"]\n')


def test_a_rule_that_is_missing_is_removed_with_its_key(tmp_path: Path) -> None:
    files_of(tmp_path, {"tags.yaml": RULES.replace("      - db\n", "")})
    assert reasons(write(tmp_path, cluster())) == {}
    assert "exclusion" not in text_of(tmp_path, "tags.yaml")


def test_tags_of_a_group_and_of_nodes(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: NodeGroup\nname: default\ntags:\n  - team:a  # ours\n  - keep\n---\n"
        'gpolicy: v1\nkind: NodeSet\nname: all\nnodes: ["n*"]\ntags: ["team:n", "team:m"]\n'
    )
    state = with_nodes({"n1": {}, "n2": {}}, {"n1": {"team:n", "team:z"}, "n2": {"team:n"}})
    state = replace(
        state, groups={"default": replace(state.groups["default"], tags=frozenset({"team:a", "team:b", "keep"}))}
    )
    files_of(tmp_path, {"policy.yaml": text, "tags.yaml": RULES.partition("exclusion")[0]})
    wrote = write(tmp_path, state)
    assert "gives the missing tags to 2 nodes: take n1 out of it" in reasons(wrote)["node/n1:tags"]
    assert "  - team:a  # ours\n  - keep\n  - team:b\n" in text_of(tmp_path, "policy.yaml")
    both = replace(state, nodes={name: replace(node, tags=frozenset({"team:n"})) for name, node in state.nodes.items()})
    write(tmp_path, both)
    assert 'tags: ["team:n"]' in text_of(tmp_path, "policy.yaml")
    assert reasons(write(tmp_path, state)) == {}
    assert text_of(tmp_path, "policy.yaml").endswith('name: n1\nnodes: [n1]\ntags: ["team:z"]\n')


def test_a_comment_that_would_be_lost_keeps_its_item(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\ntags:\n  # since March\n  - team:a\n  - team:b\n"
    files_of(tmp_path, {"policy.yaml": text})
    state = gold({})
    state = replace(state, groups={"gold": replace(state.groups["gold"], tags=frozenset({"team:b"}))})
    wrote = write(tmp_path, state)
    assert wrote.texts == {}
    assert "a comment would be lost" in reasons(wrote)["group/gold:tags"]


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_group_that_is_gone(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("default", "") + "---\n" + group_with("gold", "")})
    assert [item.drift.name for item in write(tmp_path, cluster()).written] == ["name"]
    assert text_of(tmp_path, "policy.yaml").endswith("name: gold\nremoved: true\n")


def test_a_group_that_may_have_another_name_now(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", "ipolicy: {vcpu-ratio: 2}\n")})
    wrote = write(tmp_path, cluster(groups={"silver": {RATIO: 2.0}}))
    assert wrote.texts == {}
    assert "if it is silver now, write that as its `name`" in reasons(wrote)["group/gold:name"]


def test_a_group_that_should_have_gone_or_another_name(tmp_path: Path) -> None:
    renamed = group_with("new", "renamed_from: gold\n")
    files_of(tmp_path, {"policy.yaml": f"{renamed}---\n{group_with('silver', 'removed: true')}\n"})
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}))
    assert "take `renamed_from` out" in reasons(wrote)["group/new:name"]
    assert text_of(tmp_path, "policy.yaml") == f"{renamed}---\n{group_with('silver', '')}"
