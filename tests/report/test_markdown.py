"""Pieces of Markdown."""

from __future__ import annotations

import pytest

from gpolicy.report.markdown import codes, fence, prose, row, table_head


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


def test_a_reference_is_no_link() -> None:
    """GitHub and GitLab link what is one text: an element within breaks it."""
    assert prose("GH-1, a/b#1, @a") == "GH<span>-</span>1, a/b<span>#</span>1, <span>@</span>a"
    assert prose("HIGH-1 GH-x") == "HIGH-1 GH-x"
