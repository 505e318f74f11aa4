"""Tables of a text on a narrow terminal: cells go on in further lines, words and names stay whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.printable import columns
from gpolicy.report.answer_text import table_blocks
from gpolicy.report.capacity_answer import capacity_answer
from gpolicy.report.forms import Display, render
from tests.cli.command_line import ROOT

WORDS = st.lists(st.sampled_from(["node1.example.org", "64G", "·", "界界", "of", "12"]), max_size=6).map(" ".join)
ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=1))


def lines(headings: list[str], rows: list[list[str]], room: int) -> list[str]:
    blocks = table_blocks(headings, rows, {headings[0]}, lambda _row, _place, text: text, room)
    return [line for block in blocks for line in block]


@given(ROWS, st.integers(1, 120))
def test_a_table_is_as_wide_as_there_is_room_or_as_its_words(rows: list[list[str]], room: int) -> None:
    headings = [f"heading {place}" for place in range(len(rows[0]))]
    columns_of = list(zip(headings, *rows, strict=True))
    least = [max(columns(word) for cell in column for word in cell.split(" ")) for column in columns_of]
    shown = lines(headings, rows, room)
    assert max(map(columns, shown)) <= max(room, sum(least) + 2 * (len(least) - 1))
    written = [word for row in (headings, *rows) for cell in row for word in cell.split()]
    assert sorted(word for line in shown for word in line.split()) == sorted(written)


def test_with_room_enough_nothing_changes() -> None:
    headings, rows = ["Δ", "a long heading"], [["1", "some words"], ["12", "more"]]
    assert lines(headings, rows, 0) == lines(headings, rows, 80) == [" Δ  a long heading", " 1  some words", "12  more"]
    assert lines(headings, rows, 12) == [" Δ  a long", "    heading", " 1  some", "    words", "12  more"]


@pytest.mark.parametrize("width", [80, 100])
def test_tables_of_capacity_fit_a_terminal(width: int) -> None:
    report = capacity(read_snapshot(ROOT / "policies/two-groups.snapshot.json"))
    answer = replace(capacity_answer(report), verdict="", notes=(), basis=())
    text = render(answer, Display(details=True, width=width))
    tables = [line for line in text.splitlines() if "  " in line.strip()]
    assert tables
    assert max(map(columns, tables)) <= width


@pytest.mark.parametrize("width", [80, 100])
def test_sentences_are_broken_at_blanks(width: int) -> None:
    answer = capacity_answer(capacity(read_snapshot(ROOT / "policies/two-groups.snapshot.json")), components=True)
    whole, broken = (render(answer, Display(details=True, width=room)) for room in (0, width))
    assert sorted(whole.split()) == sorted(broken.split())
    assert max(map(columns, whole.splitlines())) > width >= max(map(columns, broken.splitlines()))
