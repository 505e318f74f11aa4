"""Which losses are new, of which group, and what is said where a group cannot be examined."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.analysis.losses import Homeless, Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.cluster.state import Identity, LiveGroup
from gpolicy.cluster.terms import Limits, limited
from gpolicy.impact.impact import GroupRedundancyChange
from tests.impact.changes import redundancy_change
from tests.impact.test_capacity_change import cluster, exclusive

HOMELESS = (Homeless("web", "memory", "free memory", "none"),)
MEMBERS = frozenset({"n0", "n1", "n2"})


def _group(*losses: tuple[str, ...], nodes: int = 4, members: frozenset[str] | None = MEMBERS) -> GroupRedundancy:
    return GroupRedundancy("g", nodes, 2, 0, tuple(Loss(names, HOMELESS) for names in losses), (), 9, members=members)


def _newly_lost(before: GroupRedundancy | None, after: GroupRedundancy | None) -> list[tuple[str, ...]]:
    return [loss.nodes for loss in GroupRedundancyChange("g", before, after).newly_lost]


def test_a_loss_of_the_same_nodes_is_newly_lost() -> None:
    assert _newly_lost(_group(("n0",)), _group(("n0",), ("n1",))) == [("n1",)]
    assert _newly_lost(_group(("n0",)), None) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_group(), _group(("n0", "n3"))),  # n3 was not in the group
        (_group(), _group(("n0", "n1"), nodes=2)),  # no other node is left
    ],
)
def test_a_loss_that_cannot_be_compared_is_not_newly_lost(before: GroupRedundancy, after: GroupRedundancy) -> None:
    assert _newly_lost(before, after) == []
    assert all(GroupRedundancyChange("g", before, after).of_other_nodes(loss) for loss in after.losses)


def test_where_the_members_are_not_known_every_loss_counts() -> None:
    assert _newly_lost(_group(members=None), _group(("n9",))) == [("n9",)]
    assert _newly_lost(None, _group(("n9",))) == [("n9",)]


def test_a_renamed_group_is_examined_under_both_names() -> None:
    before = cluster()
    group = replace(before.groups["g"], identity=Identity(uuid="u-1"))
    before = replace(before, groups={"g": group})
    nodes = {name: replace(node, group="h") for name, node in before.nodes.items()}
    after = replace(before, groups={"h": replace(group, name="h")}, nodes=nodes)
    told: list[str] = []
    (item,) = redundancy_change(before, after, tell=told.append).groups
    assert (item.group, item.renamed_from) == ("h", "g")
    assert item.before is not None
    assert item.after is not None
    assert (item.before.group, item.after.group) == ("g", "h")
    assert told == ["group g, today: which losses of nodes it can absorb"]


def test_limits_of_a_group_ask_for_more_failures() -> None:
    change = redundancy_change(cluster(), limited(cluster(), Limits(max_node_failures=2)), failures=1)
    (item,) = change.groups
    assert item.after is not None
    assert (change.failures, item.after.asked) == (2, 2)


def test_a_group_that_cannot_be_examined_is_named() -> None:
    before = cluster()
    other = LiveGroup(name="other", own={}, effective=before.groups["g"].effective)
    nodes = {**before.nodes, "x": replace(before.nodes["n3"], name="x", group="other", position=4)}
    before = replace(before, groups={**before.groups, "other": other}, nodes=nodes)
    after = exclusive(before, spindles=None)
    change = redundancy_change(before, replace(after, nodes={**after.nodes, "x": before.nodes["x"]}))
    assert change.unavailable == {"g": "n0, n1, n2, n3 show no spindles"}
    assert change.notes[0] == "the cluster score is not known for the same reason"
    assert [item.group for item in change.groups] == ["other"]
