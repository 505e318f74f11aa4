"""The process that judges by schemas says what jsonschema says, within its limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft7Validator

from gpolicy.checking import value_schema as asking
from gpolicy.checking.schema_worker import breaches
from gpolicy.checking.value_schema import Breach, judge
from gpolicy.errors import UnreachableError
from gpolicy.policy.conformance import compile_schema
from scripts.schemas.rules import value_schema
from tests.laws import examples

IS_SCHEMA = compile_schema({"$ref": "#/definitions/valueSchema", "definitions": {"valueSchema": value_schema()}})
PATTERNS = ["a", "^a", "b$", "^[ab]+$", "(a|bc)*d", "x{2,3}", "^$", "^(ab?)+$"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), st.sampled_from([0.5, 1.0, 2.5]), st.text("abcdx", max_size=4)
)
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=4) | st.dictionaries(st.text("abx", min_size=1, max_size=2), below, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.text("abx", min_size=1, max_size=2)
COUNTS = st.integers(0, 3)


def schemas(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    by_name = st.dictionaries(NAMES, below, max_size=3)
    lists = st.lists(below, min_size=1, max_size=3)
    types = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": types | st.lists(types, min_size=1, max_size=2, unique=True),
        "const": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.integers(-2, 4)),
        "multipleOf": st.integers(1, 3),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), COUNTS),
        "pattern": st.sampled_from(PATTERNS),
        **dict.fromkeys(("items", "contains", "propertyNames", "not", "if", "then", "else"), below),
        "additionalProperties": below | st.booleans(),
        "properties": by_name,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), below, max_size=2),
        "required": st.lists(NAMES, max_size=2),
        "uniqueItems": st.booleans(),
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), lists),
        "$ref": st.sampled_from(["#/definitions/one", "#/definitions/two"]),
    }
    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen})
    )


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(st.just({}), schemas, max_leaves=6)


@settings(max_examples=examples(150))
@given(SCHEMAS, SCHEMAS, VALUES)
def test_the_judge_says_what_jsonschema_says(schema: dict[str, Any], one: dict[str, Any], value: Any) -> None:
    whole = {**schema, "definitions": {"one": one, "two": {"type": "string"}}}
    assert IS_SCHEMA(whole)
    found = breaches(whole, {0: value})
    if found is not None:  # else a definition refers to itself
        assert (found == []) == Draft7Validator(whole).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"required": ["a", "b", "c"]}, {"b": 1}, Breach((), "required", ["a", "c"], {"b": 1})),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, Breach(("ab",), "propertyNames", {"maxLength": 1}, "ab")),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1, "b": 2}, Breach(("b",), "false", False, 2)),
        ({"additionalProperties": {"const": 1}}, {"a": 1, "b": 2}, Breach(("b",), "const", 1, 2)),
        ({"items": {"pattern": "^(?!x)"}}, ["a", "x"], Breach((1,), "pattern", "^(?!x)", "x")),
    ],
)
def test_breaches_have_their_place_and_their_part(schema: dict[str, Any], value: Any, expected: Breach) -> None:
    assert list(judge([None, value], [(schema, [1])])) == [([], [(1, expected)])]


LONG = "a" * 60 + "!"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, LONG),
        ({"patternProperties": {"(a|a)*b": {}}}, {LONG: 1}),
        ({"items": {"enum": ["x" * 40_000_000]}}, [1] * 20),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"allOf": [{"$ref": "#/definitions/a"}]}}}, 1),
    ],
)
def test_a_schema_that_takes_too_much_is_useless_alone(
    schema: dict[str, Any], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SECONDS", 0)
    sound = ({"items": {"const": 2}}, [1])
    before, costly, after = judge([value, [1]], [sound, (schema, [0]), sound])
    assert before == after == ([], [(1, Breach((0,), "const", 2, 1))])
    assert [message for _, message, _ in costly[0]] == ["its schema takes too much time, memory or depth"]


@pytest.mark.parametrize("pattern", ["(", ")", "[a", "*a", "a{3,2}", "\\", "(?<!a+)b", "a{99999999999}"])
def test_what_is_no_pattern_is_a_mistake(pattern: str) -> None:
    (found,) = judge([], [({"not": {"pattern": pattern}}, [])])
    assert [pointer for pointer, _, _ in found[0]] == [("not", "pattern")]


def test_one_process_judges_for_all_policies() -> None:
    workers = [[*judge(["a"], [({"const": "a"}, [0])])] and dict(asking._workers) for _ in range(2)]
    assert workers[0] == workers[1]


def test_a_process_that_cannot_begin_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_PROGRAM", "exit()")
    monkeypatch.setattr(asking, "_workers", {})
    with pytest.raises(UnreachableError, match="cannot begin"):
        list(judge([1], [({"const": 1}, [0])]))
