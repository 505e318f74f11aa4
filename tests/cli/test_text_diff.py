"""The diff of `check --diff` and `fmt --diff`: what difflib writes for small texts, and right for large ones."""

from __future__ import annotations

import difflib
import re

from hypothesis import given, strategies as st

from gpolicy.cli.formatting import unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=30)


def patched(text: str, diff: str) -> str:
    """Return `text` with `diff` applied. Both end their last line."""
    old, new, done = text.splitlines(keepends=True), list[str](), 0
    for line in diff.splitlines(keepends=True)[2:]:
        if place := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            start = int(place[1]) - (place[2] != "0")
            new += old[done:start]
            done = start
        else:
            assert line[0] == "+" or old[done] == line[1:]
            new += [] if line[0] == "-" else [line[1:]]
            done += line[0] != "+"
    return "".join(new + old[done:])


@given(LINES, LINES, st.sampled_from(["", "\n"]), st.sampled_from(["", "\n"]))
def test_small_texts_differ_as_difflib_says(one: list[str], other: list[str], end: str, last: str) -> None:
    before, after = "\n".join(one) + end, "\n".join(other) + last
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "f", "f")
    expected = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    assert "".join(unified_diff("f", before, after)) == expected


@given(st.integers(2, 50), st.sets(st.integers(0, 4999), max_size=2000), st.booleans())
def test_large_texts(kinds: int, removed: set[int], shuffled: bool) -> None:
    """Lines that occur once or often, many that go, and parts that change places."""
    old = [f"{number if number % 3 else number % kinds}\n" for number in range(5000)]
    new = [line for number, line in enumerate(old) if number not in removed]
    new = new[2000:] + new[:2000] if shuffled else new
    assert patched("".join(old), "".join(unified_diff("f", "".join(old), "".join(new)))) == "".join(new)
