"""The leaves of a state, by hand."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.cluster.state import Unreadable
from gpolicy.ganeti.vocabulary import Level
from gpolicy.plan.changes import MEMBERSHIP, NAME, NODES, TAGS
from gpolicy.plan.effects import ADMIN_STATE, contents, identities, is_own_value, observed_in, shown_by, tags_of
from tests.plan.planned import cluster, with_group_tags
from tests.strategies import instance

RATIO = ("ipolicy", "vcpu-ratio")
STATE = with_group_tags(
    cluster({("max_running_jobs",): 7}, {"gold": {RATIO: 4.0}}, {"n1": "gold"}, instance("i", "n1", "drbd", ("n2",))),
    "gold",
    "b",
    "a",
)


def test_every_object_has_its_own_values_tags_and_place() -> None:
    found = contents(STATE)
    assert found["cluster"]["max_running_jobs",] == 7
    assert found["group/gold"] == {
        NAME: "gold",
        ("alloc_policy",): "preferred",
        RATIO: 4.0,
        (*TAGS, "a"): True,
        (*TAGS, "b"): True,
    }
    assert found["node/n1"] == {MEMBERSHIP: "gold"}
    assert "instance/i" not in found
    assert contents(STATE, instances=True)["instance/i"] == {NODES: ["n1", "n2"], ADMIN_STATE: "up"}
    assert tags_of(found["group/gold"]) == ["a", "b"]
    assert identities(STATE).keys() == {"cluster", "group/gold", "node/n1", "instance/i"}


def test_what_is_observed_is_what_the_source_shows() -> None:
    state = replace(STATE, unreadable=(Unreadable(level=Level.GROUP, prefix=("ipolicy",)),))
    found = observed_in(state, ["group/gold", "group/none", "instance/i"])
    assert found.keys() == {"group/gold", "instance/i"}
    assert RATIO not in found["group/gold"].values
    assert found["group/gold"].values[NAME] == "gold"
    assert found["group/gold"].identity == state.groups["gold"].identity


def test_a_gap_hides_own_values_only() -> None:
    gaps = (Unreadable(level=Level.GROUP, prefix=()),)
    assert [shown_by(gaps, "group/gold", path) for path in (RATIO, NAME, (*TAGS, "a"))] == [False, True, True]
    assert shown_by(gaps, "node/n1", RATIO)
    assert [is_own_value(path) for path in (RATIO, NAME, MEMBERSHIP, NODES, (*TAGS, "a"))] == [True] + [False] * 4
