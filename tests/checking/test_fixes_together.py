from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, strategies as st

from gpolicy.checking.fixing import applied, without_overlap
from gpolicy.findings import Edit, Finding, Fix, Severity, Span
from gpolicy.policy.source_file import SourceFile


def finding(*edits: Edit, code: str = "GP101") -> Finding:
    span = edits[0].span if edits else None
    return Finding(code, "x", Severity.WARNING, "m", span, fix=Fix("fix", edits) if edits else None)


def edit(start: int, stop: int, text: str = "", source: str = "0123456789", file: str = "f") -> Edit:
    return Edit(SourceFile(file, source).span(start, stop), text)


def edited(text: str, edits: Iterable[Edit]) -> str:
    return SourceFile("f", text).edited(edits)


def test_edits_of_one_text() -> None:
    assert edited("0123456789", [edit(8, 9, "x"), edit(2, 4), edit(5, 5, "new")]) == "014new567x9"
    assert edited("ab", []) == "ab"


def test_overlapping_fixes_wait_for_the_next_round() -> None:
    first, inside, beside = finding(edit(2, 5)), finding(edit(3, 4, "x")), finding(edit(5, 7, "y"))
    assert without_overlap([inside, beside, first]) == [first, beside]
    assert without_overlap([finding(edit(2, 2, "a")), finding(edit(2, 2, "b"))])[0].fix == finding(edit(2, 2, "a")).fix
    assert len(without_overlap([finding(edit(2, 2, "a")), finding(edit(2, 2, "b"))])) == 1
    assert len(without_overlap([finding(edit(1, 2), edit(6, 8)), finding(edit(7, 9, "z"))])) == 1
    assert len(without_overlap([finding(edit(1, 2)), finding(edit(1, 2, file="g"))])) == 2


def test_the_same_fix_for_two_findings_is_applied_once() -> None:
    twice = [finding(edit(2, 4, "x")), finding(edit(2, 4, "x"), code="GP102")]
    assert without_overlap(twice) == twice
    assert applied({"f": SourceFile("f", "0123456789"), "g": SourceFile("g", "")}, twice) == {"f": "01x456789"}


def test_a_fix_with_overlapping_edits_or_none_is_skipped() -> None:
    assert without_overlap([finding(edit(1, 4), edit(3, 5)), finding()]) == []


PLACES = st.tuples(st.integers(0, 30), st.integers(0, 30), st.text("xy\n", max_size=3)).map(
    lambda item: (min(item[:2]), max(item[:2]), item[2])
)
LINES = st.text("ab\n", min_size=30, max_size=30)


@given(LINES, st.lists(PLACES, max_size=8))
def test_chosen_fixes_can_be_applied_in_any_order(text: str, places: list[tuple[int, int, str]]) -> None:
    findings = [finding(edit(start, stop, new, text)) for start, stop, new in places]
    chosen = without_overlap(findings)
    assert bool(chosen) == bool(findings)
    result = applied({"f": SourceFile("f", text)}, chosen).get("f", text)
    edits = {item for found in chosen if found.fix for item in found.fix.edits}
    removed = sum(len(edited(text, [Edit(item.span, "")])) - len(text) for item in edits)
    assert len(result) == len(text) + removed + sum(len(item.text) for item in edits)
    assert edited(text, sorted(edits, key=lambda item: item.span, reverse=True)) == result
    assert all(isinstance(item.span, Span) for item in edits)
