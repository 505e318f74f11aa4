"""The bounded judge of schemas says what jsonschema says; patterns are matched as `re` does, in one pass."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from gpolicy.checking.linear_pattern import LONGEST, PatternError, linear_pattern
from gpolicy.checking.value_schema import Budget, SchemaReader, TooCostlyError, breaches
from gpolicy.policy.conformance import compile_schema
from gpolicy.policy.schema_rules import value_schema
from tests.laws import examples
from tests.processor_time import takes_less

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
    if SchemaReader(whole).mistakes:
        return  # a definition that refers to itself
    assert (list(breaches(whole, value, Budget())) == []) == Draft7Validator(whole).is_valid(value)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\.", "(a|b)", "(?:ab)", "^", "$", "(a|)", "[a-c0]"])
QUANTIFIERS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "{0,3}"])
REGULAR = st.lists(st.tuples(ATOMS, QUANTIFIERS), max_size=6).map(
    lambda parts: "".join(atom + ("" if atom in "^$" else how) for atom, how in parts)
)


@settings(max_examples=examples(300))
@given(st.lists(REGULAR, min_size=1, max_size=3).map("|".join), st.text("ab.c1\n", max_size=8))
def test_a_pattern_matches_as_re_does(pattern: str, text: str) -> None:
    expected = re.search(
        pattern.replace("$", "\\Z").replace(".", "[^\\n\\r]").replace("\\[^\\n\\r]", "\\."), text, re.ASCII
    )
    assert linear_pattern(pattern).is_in(text, lambda _: None) == (expected is not None)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(a|a)*b", "a*a*a*a*a*a*a*b", "(.*,){20}x", "((a?){30}){30}b"])
def test_no_pattern_takes_long(pattern: str) -> None:
    def refuse() -> None:
        assert not linear_pattern(pattern).is_in("a" * 20_000 + "!", lambda _: None)

    assert takes_less(3, refuse)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "[a", "*a", "a**", "a{3}{4}", "a{3,2}", "\\", "\\b", "\\1", "(?=a)", "(?P<n>a)", "(?i)a", "[[a]]"),
        *(
            "[a--b]",
            "[b-a]",
            "\\é",
            "a" * (LONGEST + 1),
            "(a{50}){50}",
            "((a{99}){99}){99}",
            "(" * 30 + ")" * 30,
            "a{3000}",
        ),
    ],
)
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        linear_pattern(pattern)


@pytest.mark.parametrize("pattern", ["((){2000}){2000}", "(((()*)*)*)*", "(|){9}"])
def test_nothing_repeated_is_nothing(pattern: str) -> None:
    assert linear_pattern(f"^{pattern}$").is_in("", lambda _: None)
    assert not linear_pattern(f"^{pattern}$").is_in("a", lambda _: None)


def test_steps_are_counted() -> None:
    schema = {"items": {"pattern": "(a|b)*c"}}
    with pytest.raises(TooCostlyError):
        list(breaches(schema, ["ab" * 100] * 100, Budget(left=1000)))
    with pytest.raises(TooCostlyError):
        list(breaches({"const": [[1] * 2000]}, [[1] * 2000], Budget(left=1000)))
