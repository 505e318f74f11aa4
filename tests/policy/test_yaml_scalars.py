"""YAML 1.2's core schema: `no`, `on` and `1:30` are strings and `010` is ten."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from gpolicy.policy.yaml_reader import read_yaml, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("y", "y"),
        ("n", "n"),
        ("1:30", "1:30"),
        ("52:54:00", "52:54:00"),
        ("2026-01-02", "2026-01-02"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("0x", "0x"),
        ("-0x1f", "-0x1f"),
        ("1e", "1e"),
        (".", "."),
        ("+", "+"),
        ("-", "-"),
        ("=", "="),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-12", -12),
        ("+12", 12),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("none", "none"),
        ("\u0661\u0662", "\u0661\u0662"),
        ("1" * 401, "1" * 401),
    ],
)
def test_a_plain_scalar(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_not_a_number_is_a_float() -> None:
    value = resolve(".nan")
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize("written", ['"12"', "'12'", "!!str 12", "|\n  12", ">-\n  12"])
def test_quoted_or_tagged_scalars_are_text(written: str) -> None:
    root = read_yaml(f"key: {written}\n", "f").documents[0].root
    assert root["key"].strip() == "12"


@given(st.integers(-(10**300), 10**300))
def test_every_decimal_number_is_that_number(number: int) -> None:
    assert resolve(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_that_float(number: float) -> None:
    assert resolve(repr(number)) == number


@given(st.text(max_size=30))
def test_resolving_never_fails(text: str) -> None:
    assert isinstance(resolve(text), bool | int | float | str | None)


def test_keys_are_always_text() -> None:
    root = read_yaml("1: a\ntrue: b\n~: c\n", "f").documents[0].root
    assert root == {"1": "a", "true": "b", "~": "c"}
