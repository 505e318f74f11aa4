from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from gpolicy.policy import yaml_reader
from gpolicy.policy.source_file import YamlDocument, YamlMapping, YamlSequence
from gpolicy.policy.yaml_reader import MAX_BYTES, MAX_DEPTH, MAX_NODES, read_yaml
from tests.laws import examples

BILLION_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def found(text: str) -> list[tuple[str, int, int]]:
    """Return the findings about a text: code, line and column."""
    return [
        (finding.code, finding.span.line, finding.span.column)
        for finding in read_yaml(text, "f").findings
        if finding.span
    ]


@pytest.mark.parametrize("letter", ["\x1b", "\0", "\x7f", "\ufffe"])
def test_a_character_that_yaml_forbids_has_a_place(letter: str) -> None:
    (finding,) = read_yaml(f"gpolicy: v1\n# äöü\nkind: Cluster\nname: ä{letter}b{letter}\n", "f").findings
    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (4, 8)
    assert finding.message == f"YAML allows the character U+{ord(letter):04X} nowhere"


@pytest.mark.parametrize(
    "text", ["a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "a:\n\t- b\n", "a: |\n\tb\n", "a:\n  \tb: 1\n"]
)
def test_a_tab_for_indentation_is_named(text: str) -> None:
    (finding,) = read_yaml(text, "f").findings
    assert finding.message == "a tab: YAML indents with spaces only"
    assert finding.span is not None
    assert text.splitlines()[finding.span.line - 1][finding.span.column - 1] == "\t"


def test_an_error_behind_a_tab_is_not_blamed_on_the_tab() -> None:
    (finding,) = read_yaml("a: {\n\tb: @x}\n", "f").findings
    assert "a tab" not in finding.message


# --- duplicates ----------------------------------------------------------------------------------------------------


def test_a_duplicate_key_names_both_places() -> None:
    (finding,) = read_yaml("a:\n  b: 1\n  c: 2\n  b: 3\n", "f").findings
    assert finding.code == "GP003"
    assert str(finding.span) == "f:4:3"
    assert [str(related.span) for related in finding.related] == ["f:2:3"]


def test_keys_that_differ_in_writing_only_are_one_key() -> None:
    assert found("a: 1\n'a': 2\n\"a\": 3\n") == [("GP003", 2, 1)]


def test_the_double_keys_of_a_mapping_are_one_finding() -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: a\ngpolicy: v1\nkind: NodeGroup\nname: b\n"
    (finding,) = read_yaml(text, "f").findings
    assert finding.message == "the keys 'gpolicy', 'kind', 'name' occur twice here"
    assert "---" in finding.hint


def test_the_value_of_a_dropped_key_is_dropped_whole() -> None:
    reading = read_yaml("a: 1\na: {b: [1, {c: 2}]}\nd: 3\n", "f")
    assert reading.documents[0].root == {"a": 1, "d": 3}


def test_the_same_key_in_two_mappings_is_not_a_duplicate() -> None:
    assert found("a: {x: 1}\nb: {x: 1}\n---\na: 1\n") == []


# --- anchors -------------------------------------------------------------------------------------------------------


def test_an_alias_equals_its_anchor() -> None:
    root = read_yaml("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n", "f").documents[0].root
    assert root == {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]}


def test_an_alias_bomb_is_a_finding_and_quick() -> None:
    begin = time.monotonic()
    reading = read_yaml(BILLION_LAUGHS, "f")
    assert [finding.code for finding in reading.findings] == ["GP004"]
    assert reading.documents == []
    assert time.monotonic() - begin < 5


def test_aliases_count_with_all_that_they_stand_for() -> None:
    big = f"a: &a [{', '.join(['x'] * 1000)}]\n"
    fits = MAX_NODES // 1002 - 2
    assert found(f"{big}b: [{', '.join(['*a'] * fits)}]\n") == []
    assert [code for code, *_ in found(f"{big}b: [{', '.join(['*a'] * (fits + 5))}]\n")] == ["GP004"]


@pytest.mark.parametrize(
    ("text", "line", "column"), [("a: *nowhere\n", 1, 4), ("a: &x [*x]\n", 1, 8), ("a: &x 1\n---\nb: *x\n", 3, 4)]
)
def test_an_alias_without_a_finished_anchor_is_a_finding(text: str, line: int, column: int) -> None:
    assert found(text) == [("GP005", line, column)]


def test_an_anchor_may_be_set_again() -> None:
    assert read_yaml("a: &x 1\nb: &x 2\nc: *x\n", "f").documents[0].root["c"] == 2


def test_an_alias_as_a_key() -> None:
    assert read_yaml("a: &x key\n*x : 1\n", "f").documents[0].root == {"a": "key", "key": 1}


# --- bounds --------------------------------------------------------------------------------------------------------


def test_too_deep_is_a_finding_and_no_crash() -> None:
    assert [code for code, *_ in found("[" * 100_000)] == ["GP004"]
    assert found("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_too_large_is_a_finding() -> None:
    assert found("#" * (MAX_BYTES + 1)) == [("GP004", 1, 1)]


def test_too_many_documents_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_NODES", 1000)
    assert found("---\n" * 900) == []
    assert [code for code, *_ in found("---\n" * 1002)] == ["GP004"]


# --- what a policy does not use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system [x]\n",
        "a: !secret x\n",
        "a: !!binary eA==\n",
        "a: !!set {x}\n",
        "a: {<<: {b: 1}}\n",
        "{[a, b]: 1}\n",
        "? {a: 1}\n: 2\n",
    ],
)
def test_yaml_that_readers_disagree_about_is_a_finding(text: str) -> None:
    assert {code for code, *_ in found(text)} == {"GP005"}


@pytest.mark.parametrize(
    "text", ["a: [1\n", "\tb: 1\n", "a: b: c\n", "%YAML 9\n", "a: \x00\n", "a: \x07\n", "- a\nb: 1\n", "'", "&", "*"]
)
def test_invalid_yaml_is_one_finding(text: str) -> None:
    assert [code for code, *_ in found(text)] == ["GP002"]


def test_documents_before_an_error_are_kept() -> None:
    reading = read_yaml("a: 1\n---\nb: [\n", "f")
    assert [document.root for document in reading.documents] == [{"a": 1}]


@pytest.mark.parametrize("text", ['"<<": 1\n', "'<<': 1\n", "&a '<<': 1\n", "!!str <<: 1\n"])
def test_a_merge_key_in_quotes_is_a_word_like_others(text: str) -> None:
    reading = read_yaml(text, "f")
    assert reading.findings == []
    assert [document.root for document in reading.documents] == [{"<<": 1}]


@pytest.mark.parametrize("text", ["<<: 1\n", "&a <<: 1\n", "{<<: {}}\n"])
def test_a_merge_key_is_a_finding(text: str) -> None:
    assert {code for code, *_ in found(text)} == {"GP005"}


def test_no_text_is_no_document() -> None:
    assert read_yaml("", "f").documents == []
    assert read_yaml("# only a comment\n", "f").documents == []


@settings(max_examples=examples(100))
@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%#? \n\t,~<=1.\\\x07\u2028é"), max_size=40))
def test_no_text_crashes_the_reader(text: str) -> None:
    for finding in read_yaml(text, "f").findings:
        assert finding.span is not None
        assert finding.span.line >= 1
        assert finding.span.column >= 1
        assert "\n" not in finding.message


# --- places --------------------------------------------------------------------------------------------------------

WORDS = st.text(
    st.characters(categories=["L", "N", "S"], exclude_characters="~", max_codepoint=0xD7FF), min_size=1, max_size=6
)
VALUES = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def lines_of(text: str) -> list[str]:
    return text.split("\n")


def text_at(text: str, document: YamlDocument, pointer: tuple[str | int, ...], *, key: bool = False) -> str:
    span = document.key_span(pointer) if key else document.value_span(pointer)
    assert span.line == span.end_line
    return lines_of(text)[span.line - 1][span.column - 1 : span.end_column - 1]


def check_places(text: str, document: YamlDocument, value: object, pointer: tuple[str | int, ...]) -> None:
    if isinstance(value, YamlMapping):
        for key, below in value.items():
            assert text_at(text, document, (*pointer, key), key=True) == f'"{key}"'
            check_places(text, document, below, (*pointer, key))
    elif isinstance(value, YamlSequence):
        for index, below in enumerate(value):
            check_places(text, document, below, (*pointer, index))
    else:
        assert text_at(text, document, pointer) == f'"{value}"'


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.booleans())
def test_the_text_at_a_span_is_the_scalar(value: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(
        value, allow_unicode=True, default_style='"', default_flow_style=flow, width=10**6, sort_keys=False
    )
    (document,) = read_yaml(text, "f").documents
    assert document.root == value
    check_places(text, document, document.root, ())


def test_a_missing_value_has_the_place_of_its_parent() -> None:
    (document,) = read_yaml("a:\n  b: [1, 2]\n", "f").documents
    assert str(document.value_span(("a", "b", 7))) == "f:2:6"
    assert str(document.value_span(("a", "x", "y"))) == "f:2:3"
    assert str(document.value_span(("x",))) == "f:1:1"
