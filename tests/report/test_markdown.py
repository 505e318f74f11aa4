"""Pieces of Markdown."""

from __future__ import annotations

import pytest

from gpolicy.report.markdown import codes, fence, row, table_head


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(["a"], "```"), ([], "```"), (["a `b`", "```"], "````"), (["x`````x"], "``````"), (["``", "`"], "```")],
)
def test_a_fence_is_longer_than_what_it_holds(lines: list[str], expected: str) -> None:
    assert fence(lines) == expected


def test_tables_and_lists_of_names() -> None:
    assert table_head(["a", "n"], frozenset({"n"})) == ["| a | n |", "|---|---:|"]
    assert row(["x"]) == "| x |"
    assert codes(["a", "b", "c"], 2) == "`a`, `b` and 1 more"
    assert codes(["a", "b"], 2) == "`a`, `b`"
