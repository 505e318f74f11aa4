"""The reader of policies and `fmt` agree with ruamel.yaml, which reads YAML 1.2 in Python and shares no code with them.

Each text that the reader accepts has the same structure and scalars there. `DIFFERENCES` lists where
the two differ.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.strategies import DrawFn
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gpolicy.formatting.formatting import format_text
from gpolicy.policy.yaml_reader import read_yaml, resolve
from tests.laws import examples

TOP: Final = Path(__file__).resolve().parents[2]
TEXTS: Final = sorted(
    path.read_text(encoding="utf-8")
    for directory in (TOP / "policies", TOP / "tests" / "rules" / "cases")
    for path in directory.rglob("*.yaml")
)

_BEYOND: Final = (
    r"[-+]?[0-9.]*_[0-9._]*([eE][-+]?[0-9]+)?|[-+]?0b[01_]*|[-+]0o[0-7_]*|[-+]0x[0-9a-fA-F_]*|0[ox][0-9a-fA-F_]*_[0-9a-fA-F_]*"
    r"|\d{4}-\d\d?-\d\d?.*"
)
"""Text by YAML 1.2's core schema, and numbers and days in ruamel.yaml."""

DIFFERENCES: Final[dict[str, tuple[str, Any, Any]]] = {
    "underscores in numbers": ("a: 1_000", "1_000", 1000),
    "binary numbers": ("a: 0b11", "0b11", 3),
    "hexadecimal and octal numbers with a sign": ("a: -0x10", "-0x10", -16),
    "days": ("a: 2027-12-31", "2027-12-31", "datetime.date(2027, 12, 31)"),
    "the word =": ("a: =", "=", YAMLError),
    "the word <<": ("a: <<", "<<", YAMLError),
    "keys that look like numbers": ("1: b", {"1": "b"}, {1: "b"}),
    "tabs within a line": ("a: b\tc", "b\tc", YAMLError),
    "a comment close to | or >": ("a: |#b\n", "", YAMLError),
}


def here(text: str) -> list[Any] | None:
    """Return the documents of an accepted text, or None."""
    reading = read_yaml(text, "f")
    return None if reading.findings else [document.root for document in reading.documents]


def elsewhere(text: str) -> list[Any]:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    return list(reader.load_all(text))


def same(one: Any, other: Any) -> bool:
    """Return whether a value of ours is the one of ruamel.yaml, but for the named differences."""
    if isinstance(one, dict):
        pairs = zip(one.items(), other.items(), strict=True) if isinstance(other, dict) else ()
        alike = [same_key(key, key_there) and same(value, there) for (key, value), (key_there, there) in pairs]
        return isinstance(other, dict) and len(one) == len(other) and all(alike)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if type(one) is type(other):
        return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 (not a number)
    return isinstance(one, str) and re.fullmatch(_BEYOND, one, re.DOTALL) is not None


def same_key(one: str, other: Any) -> bool:
    """Return whether a key, which here is always text, is the one of ruamel.yaml."""
    return one == other or same(resolve(one), other)


def in_order(value: Any) -> Any:
    """Return a value that can be compared whatever the order of its keys, which `fmt` changes."""
    if isinstance(value, dict):
        return sorted((repr(key), in_order(below)) for key, below in value.items())
    return list(map(in_order, value)) if isinstance(value, list) else repr(value)


def refused_there(text: str, error: Exception) -> bool:
    """Return whether ruamel.yaml refuses a text for a named reason."""
    close = re.search(r"[|>][-+0-9]*#", text) is not None
    return close or (("=" in text or "<<" in text) and "could not determine a constructor" in str(error))


# --- texts -----------------------------------------------------------------------------------------------------------

_BITS: Final = (
    *("-", " ", "\n", "  ", ":", ": ", "#", " #", "[", "]", "{", "}", ",", "&a ", "*a", "!", "!!str ", "|\n", ">", "'"),
    *('"', "---\n", "...\n", "%YAML 1.1\n", "?", "? ", "~", "<<: ", "0x1", "1_0", "\\", "é", "\r", "\r\n", "%", "@"),
    *("`", "- ", "yes", "!!int ", "!!float ", "1e3", "\x85", "\u2028", "\ufeff", "a", "b", "c: 1\n", "d:\n", "k: v\n"),
    *(".5", "010", "0o17", "+1", ".inf", ".NaN", "null", "True", "1.", "- x\n", "2027-01-31", "'on'", '"no"', "1:30"),
)


@st.composite
def texts(draw: DrawFn) -> str:
    """Return a piece of a policy of the repository with a few slips, or bits of YAML in any order."""
    if draw(st.booleans()):
        return "".join(draw(st.lists(st.sampled_from(_BITS), max_size=14)))
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    start = draw(st.integers(0, len(lines) - 1))
    text = "\n".join(lines[start : start + draw(st.integers(1, 30))])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(_BITS)) + text[place + draw(st.sampled_from([0, 0, 1, 4])) :]
    return text


def check(text: str) -> None:
    read = here(text)
    if read is None or "\t" in text or not all(isinstance(item, dict | NoneType) for item in read):
        return  # what is no mapping is no policy
    refusal: Exception | None = None
    there: list[Any] = []
    try:
        there = elsewhere(text)
    except (YAMLError, ValueError, IndexError) as error:
        refusal = error
    if refusal is not None:
        assert refused_there(text, refusal), (text, read, refusal)
        return
    assert same(read, there), (text, read, there)
    made = format_text(text, "f.yaml")
    if made.reason == "":
        kept = [document for document in there if document is not None]  # `fmt` drops empty documents
        assert in_order(elsewhere(made.text)) == in_order(kept), (text, made.text)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(texts())
def test_an_accepted_text_means_the_same_to_an_independent_reader(text: str) -> None:
    check(text)


def test_every_policy_of_the_repository_means_the_same_to_an_independent_reader() -> None:
    for text in TEXTS:
        assert here(text) is not None, text
        check(text)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_named_difference_is_one(name: str) -> None:
    text, ours, theirs = DIFFERENCES[name]
    read = here(text)
    assert read is not None
    assert (read[0] if isinstance(ours, dict) else read[0]["a"]) == ours
    if theirs is YAMLError:
        with pytest.raises(YAMLError):
            elsewhere(text)
        return
    there = elsewhere(text)[0]
    assert theirs in (there, there.get("a"), repr(there.get("a")))


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\u2029"])
def test_a_letter_that_ends_a_line_for_some_readers_only_is_refused(letter: str) -> None:
    (finding,) = read_yaml(f"a: 1  # b{letter}c: 2\n", "f").findings
    assert finding.code == "GP005"
    assert here(f'a: "b\\u{ord(letter):04x}"\n') == [{"a": f"b{letter}"}]


@pytest.mark.parametrize("text", ["a: !!int b", "a: !!int {b: 1}", "a: !!float 1", "a: ! 1", "a: !!null 1"])
def test_a_tag_that_does_not_fit_its_value_is_refused(text: str) -> None:
    assert [finding.code for finding in read_yaml(text, "f").findings] == ["GP005"]
