from __future__ import annotations

import io
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpolicy.printable import (
    as_text,
    console,
    control,
    count,
    no_command,
    printable,
    terminal_text,
    write_commands,
    write_diff,
)

ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("\x1b\n\r\t\x07\x7f\x9b\u202e\u2066\u200b\u2028\x85:#["))


def is_clean(text: str) -> bool:
    """Return whether text holds nothing but letters that are seen, and blanks."""
    return all(
        letter == " " or (unicodedata.category(letter)[0] not in "CZ" and not 0xFE00 <= ord(letter) <= 0xFE0F)
        for letter in text
    )


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_every_letter_is_visible_or_becomes_an_escape(step: int) -> None:
    """Each of the first two planes, and of the others, which hardly have letters, every so many."""
    for number in (*range(0x20000), *range(0x20000, sys.maxunicode + 1, step)):
        shown = printable(chr(number))
        assert is_clean(shown), hex(number)
        assert shown == chr(number) or shown.isascii(), hex(number)


@pytest.mark.parametrize("letter", ["\u034f", "\u115f", "\u180b", "\u2800", "\u3164", "\ufe0f", "\uffa0", "\U000e0100"])
def test_invisible_letters_become_escapes(letter: str) -> None:
    assert printable(f"a{letter}b").isascii()


@pytest.mark.parametrize("letter", ["\u05d0", "\u0627", "\u0661", "\ufb1d", "\U0001e900", "\u07c0", "\u08e2"])
def test_letters_that_reorder_their_neighbours_become_escapes(letter: str) -> None:
    assert printable(f"3 {letter} 4").isascii()
    assert printable(f"{control('[1m')}3 {letter} 4{control('[0m')}").isascii()


def test_letters_from_left_to_right_stay() -> None:
    assert printable("Zürich → Köln, 東京 ½ é ▶ … x̂") == "Zürich → Köln, 東京 ½ é ▶ … x̂"


@given(ANY_TEXT)
def test_visible_letters_stay(text: str) -> None:
    assert is_clean(printable(text))
    if is_clean(text):
        assert printable(text) == text or not text.isascii()


@given(st.lists(ANY_TEXT))
def test_a_report_has_the_lines_that_it_was_given(lines: list[str]) -> None:
    text = as_text(lines)
    assert text.count("\n") == len(lines)
    assert len(text.splitlines()) == len(lines)


def test_our_own_colours_reach_a_terminal_and_no_others_do() -> None:
    text = as_text([f"{control('[1m')}a\x1b[1mb\n{control('[0m')}"])
    assert terminal_text(text) == "\x1b[1ma\\x1b[1mb\\n\x1b[0m\n"


@given(st.lists(ANY_TEXT))
def test_all_that_is_written_to_a_console_is_printable(pieces: list[str]) -> None:
    below = io.StringIO(newline="")
    stream = console(below)
    stream.writelines(pieces)
    written = below.getvalue()
    assert all(map(is_clean, written.split("\n")))
    assert written.count("\n") == "".join(pieces).count("\n")
    assert console(stream) is stream


@given(st.lists(st.text(":#[ \na\u2003\t")))
def test_no_output_becomes_a_workflow_command(pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        below = io.StringIO(newline="")
        console(below).writelines(pieces)
    lines = below.getvalue().split("\n")
    assert not [line for line in lines if line.lstrip().startswith("::") and no_command(line) == line]


def test_a_line_that_begins_like_a_command_is_defused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    below = io.StringIO(newline="")
    stream = console(below)
    stream.write("::error::x\na ##[error]y\n")
    write_commands(stream, "::notice::z\x1b\n")
    assert below.getvalue() == "- ::error::x\na ## [error]y\n::notice::z\\x1b\n"


def test_a_diff_keeps_tabs_and_the_ends_of_lines() -> None:
    below = io.StringIO(newline="")
    write_diff(console(below), ["-a\tb\r\n", "+\x1b[2J\u202ec\n\\ No newline at end of file\n", " \rd\n"])
    assert below.getvalue() == "-a\tb\r\n+\\x1b[2J\\u202ec\n\\ No newline at end of file\n \\rd\n"
    assert re.search("\x1b|\u202e", below.getvalue()) is None


def test_numbers_and_their_words_are_joined_in_one_place() -> None:
    """`count` knows that it is 1 node and 2 nodes; nobody else appends an s."""
    sources = (Path(__file__).parent.parent / "gpolicy").rglob("*.py")
    assert [path.name for path in sources if re.search(r"\w\{['\"]s['\"] ", path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(("number", "shown"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (1200, "1,200 nodes")])
def test_a_number_with_its_word(number: int, shown: str) -> None:
    assert count(number, "node") == shown
