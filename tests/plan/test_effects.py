"""Effects on leaves, by hand: what a command changes, what undoes it, how much of it a state shows."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.expressible import RESET
from gpolicy.ganeti.vocabulary import Path, Value
from gpolicy.plan.changes import MEMBERSHIP, NAME, NODES, TAGS
from gpolicy.plan.effects import (
    Contents,
    Effect,
    Progress,
    assigned,
    carried_out,
    effects_between,
    moved,
    progress_of,
    relocated,
    tagged,
    value_at,
    written,
)

A: Path = ("ndparams", "spindle_count")
B: Path = ("ndparams", "oob_program")
GROUP, OTHER, NODE = "group/a", "group/b", "node/n"


def _effect(before: Value, after: Value, path: Path = A, name: str = GROUP) -> Effect:
    return Effect(name, path, before, after)


def test_tags_are_added_and_removed() -> None:
    assert tagged(NODE, ["x", "y"], added=True) == (
        Effect(NODE, (*TAGS, "x"), None, True),
        Effect(NODE, (*TAGS, "y"), None, True),
    )
    assert tagged(NODE, ["x"], added=False) == (Effect(NODE, (*TAGS, "x"), True, None),)


def test_nodes_and_instances_move() -> None:
    assert moved({"n": "a"}, "b") == (Effect(NODE, MEMBERSHIP, "a", "b"),)
    assert relocated("i", ("n1",), ("n2", "n3")) == (Effect("instance/i", NODES, ["n1"], ["n2", "n3"]),)


def test_a_value_that_is_reset_is_gone() -> None:
    assert assigned(GROUP, {A: 2}, {A: RESET, B: "x"}) == (_effect(2, None), _effect(None, "x", B))


def test_what_undoes_a_rename_is_of_the_new_name() -> None:
    rename = _effect("a", "b", NAME)
    assert rename.renames
    assert rename.reversed() == Effect(OTHER, NAME, "b", "a")
    for effect in (_effect(None, "a", NAME), _effect("a", None, NAME), _effect(1, 2)):
        assert not effect.renames
        assert effect.reversed() == Effect(GROUP, effect.path, effect.after, effect.before)


def test_ganeti_writes_both_groups_of_a_node_that_moves() -> None:
    assert written([_effect(1, 2), Effect(NODE, MEMBERSHIP, "a", "b")]) == {GROUP, OTHER, NODE}
    assert written([Effect(NODE, MEMBERSHIP, None, "b")]) == {OTHER, NODE}
    assert written([Effect(NODE, A, "a", "b")]) == {NODE}


def test_effects_between_two_contents() -> None:
    before: Contents = {GROUP: {NAME: "a", A: 1, B: "x"}, NODE: {A: 1, B: "z"}}
    after: Contents = {OTHER: {NAME: "b", A: 1}, NODE: {A: 2, B: "z"}}
    assert list(effects_between(before, after)) == [
        Effect(GROUP, NAME, "a", None),
        Effect(NODE, A, 1, 2),
        Effect(OTHER, NAME, None, "b"),
        Effect(OTHER, A, None, 1),
    ]


@pytest.mark.parametrize(
    ("there", "value"),
    [
        ({GROUP: {NAME: "a"}}, "a"),
        ({OTHER: {NAME: "b"}}, "b"),
        ({GROUP: {NAME: "a"}, OTHER: {NAME: "b"}}, None),
        ({}, None),
    ],
)
def test_a_rename_is_seen_where_one_name_is_there(there: Contents, value: Value) -> None:
    assert value_at(_effect("a", "b", NAME), there) == value


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, "x", Progress.NOT_BEGUN),
        (2, "y", Progress.DONE),
        (2, "x", Progress.PARTLY),
        (1, "y", Progress.PARTLY),
        (3, "y", Progress.PARTLY),
        (3, "x", Progress.PARTLY),
    ],
)
def test_progress(first: Value, second: Value, expected: Progress) -> None:
    effects = [_effect(1, 2), _effect("x", "y", B), _effect(7, 7, ("alloc_policy",))]
    assert progress_of(effects, {GROUP: {A: first, B: second}}) is expected


def test_effects_are_carried_out() -> None:
    before: Contents = {GROUP: {NAME: "a", A: 1}, NODE: {MEMBERSHIP: "a"}, "node/m": {MEMBERSHIP: "c"}}
    kept = {name: dict(values) for name, values in before.items()}
    effects = [_effect("a", "b", NAME), Effect(OTHER, A, 1, None), Effect(NODE, A, None, 3)]
    assert carried_out(effects, before) == {
        OTHER: {NAME: "b"},
        NODE: {MEMBERSHIP: "b", A: 3},
        "node/m": {MEMBERSHIP: "c"},
    }
    assert carried_out([_effect("a", None, NAME)], before) == {name: kept[name] for name in (NODE, "node/m")}
    assert carried_out([Effect(OTHER, NAME, None, "b")], {}) == {OTHER: {("alloc_policy",): "preferred", NAME: "b"}}
    assert before == kept
