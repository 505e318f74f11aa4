from __future__ import annotations

import time
import unicodedata

from hypothesis import given, strategies as st

from gpolicy.findings import Finding, Related, Severity, Span
from gpolicy.policy.source_file import SourceFile, YamlMapping
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import printable, terminal_text
from gpolicy.report.findings_text import findings_text, summary_line


def finding(span: Span | None, message: str = "is wrong", *, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("GP012", "wrong-value", severity, message, span)


def in_file(name: str, text: str) -> dict[str, SourceFile]:
    return {name: SourceFile(name, text)}


def excerpt(line: str, start: int, end: int, *, width: int = 120) -> list[str]:
    """Return the source line and the caret line for columns `start` to `end` (just behind) of `line`."""
    text = findings_text([finding(Span("f", 1, start, 1, end))], in_file("f", line), width=width)
    return text.splitlines()[1:3]


def test_a_whole_finding() -> None:
    source = "name: gold\nndparams: {ssh_port: 70022}\n"
    place, other = Span("gold.yaml", 2, 23, 2, 28), Span("gold.yaml", 1, 7, 1, 11)
    found = Finding("GP106", "port-range", Severity.ERROR, "no port", place, "write less", (Related(other, "of this"),))
    assert findings_text([found], in_file("gold.yaml", source)) == (
        "gold.yaml:2:23: error GP106 port-range: no port\n"
        "  2 | ndparams: {ssh_port: 70022}\n"
        "    |                       ^^^^^\n"
        "  gold.yaml:1:7: of this\n"
        "  1 | name: gold\n"
        "    |       ^^^^\n"
        "  hint: write less\n"
        "\n"
        "1 error\n"
    )


def test_a_tab_takes_the_columns_that_it_is_shown_with() -> None:
    assert excerpt("a:\t\tb", 5, 6) == ["  1 | a:        b", "    |           ^"]


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert excerpt("名: x", 4, 5) == ["  1 | 名: x", "    |     ^"]
    assert excerpt("名: x", 1, 2) == ["  1 | 名: x", "    | ^^"]
    assert excerpt("e\u0301: x", 5, 6) == ["  1 | e\u0301: x", "    |    ^"]


def test_of_several_lines_the_first_is_underlined() -> None:
    source = "minmax:\n  - name: a\n    min: {}\n"
    text = findings_text([finding(Span("f", 2, 5, 3, 12))], in_file("f", source))
    assert text.splitlines()[1:3] == ["  2 |   - name: a", "    |     ^^^^^^^"]


def test_a_place_after_the_end_of_a_line_has_a_caret() -> None:
    assert excerpt("ab", 3, 4) == ["  1 | ab", "    |   ^"]
    assert excerpt("", 1, 1) == ["  1 |", "    | ^"]


def test_a_long_line_is_clipped_around_the_error() -> None:
    line = "x" * 500 + "WRONG" + "y" * 500
    shown, carets = excerpt(line, 501, 506, width=60)
    assert shown.startswith("  1 | …x")
    assert shown.endswith("y…")
    assert "WRONG" in shown
    assert shown.index("WRONG") == carets.index("^")
    assert carets.count("^") == 5
    assert len(shown) < 80


def test_the_cost_of_a_line_depends_on_its_shown_part_only() -> None:
    line = "x" * 20_000 + "WRONG" + "y" * 20_000
    shown, carets = excerpt(line, 20_001, 20_006, width=60)
    assert shown.startswith("  1 | …x")
    assert shown.endswith("y…")
    assert shown.index("WRONG") == carets.index("^")
    began = time.process_time()
    findings_text([finding(Span("f", 1, place, 1, place + 5)) for place in range(1, 40_000, 20)], in_file("f", line))
    assert time.process_time() - began < 10  # each of them with the whole line takes minutes


def test_an_error_may_be_longer_than_the_width() -> None:
    shown, carets = excerpt("y" * 30 + "x" * 5000, 31, 5031, width=60)
    assert len(shown) < 80
    assert len(carets) < 80


def test_without_the_source_there_is_no_excerpt() -> None:
    assert findings_text([finding(Span("f", 9, 1, 9, 2))], in_file("f", "one line")).splitlines()[1:] == ["", "1 error"]
    assert findings_text([finding(Span("g", 1, 1, 1, 2))], {}).splitlines()[1:] == ["", "1 error"]
    assert findings_text([finding(None)], {}) == "error GP012 wrong-value: is wrong\n\n1 error\n"


def test_colour_only_when_told_to() -> None:
    found = [finding(Span("f", 1, 1, 1, 2))]
    assert "\x1b" not in findings_text(found, in_file("f", "a"))
    coloured = terminal_text(findings_text(found, in_file("f", "a"), colour=True))
    assert "\x1b[31merror GP012 wrong-value\x1b[0m" in coloured


def test_control_characters_are_shown_and_not_sent() -> None:
    hostile = "\x1b[2J\x07\u202e\u200b\x9b"
    found = finding(Span(hostile, 1, 1, 1, 3), hostile)
    text = findings_text([found], in_file(hostile, f"a{hostile}b"))
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert r"\x1b[2J\x07\u202e\u200b\x9b" in text
    assert printable("a\nb") == r"a\nb"


@given(st.text(max_size=60), st.integers(1, 70), st.integers(1, 70), st.integers(40, 80))
def test_any_line_and_place_can_be_shown(line: str, start: int, end: int, width: int) -> None:
    text = findings_text([finding(Span("f", 1, start, 1, end), line)], in_file("f", line), width=width)
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert text.count("^") >= 1


def columns(text: str) -> int:
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


KEYS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(st.lists(KEYS, min_size=1, max_size=4, unique=True), st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x85"]))
def test_carets_are_under_what_the_reader_marked(keys: list[str], line_break: str) -> None:
    source = line_break.join(f'"{key}": "値{key}"' for key in keys) + line_break
    root = read_yaml(source, "f").documents[0].root
    assert isinstance(root, YamlMapping)
    for key in keys:
        text = findings_text([finding(Span("f", *root.value_marks[key]))], in_file("f", source))
        shown, carets = text.splitlines()[1:3]
        before = columns(carets[: carets.index("^")])
        under = next(n for n in range(len(shown)) if columns(shown[:n]) == before)
        marked = printable(f'"値{key}"')
        assert shown[under:] == marked
        assert carets.count("^") == columns(marked)


def test_the_summary_counts_in_words() -> None:
    error, warning, info = (finding(None, severity=severity) for severity in Severity)
    assert summary_line([]) == "no mistakes"
    assert summary_line([error]) == "1 error"
    assert summary_line([error, error, warning, warning, info, info]) == "2 errors, 2 warnings, 2 info"
