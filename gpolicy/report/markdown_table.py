"""Tables of reports as Markdown, and folded parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.report.markdown import cell, code, codes, row, table_head
from gpolicy.report.section import Cell, Name, Table

_MOST_NAMES: Final = 6
CLOSE: Final = ("", "</details>")
"""The lines that end a folded part."""


def folded(summary: str) -> tuple[str, ...]:
    """Return the lines that begin a folded part; `summary` is HTML."""
    return ("", "<details>", f"<summary>{summary}</summary>")


def table_items(table: Table) -> Iterator[str]:
    """Give the rows of a table; title and head come with the first, so that they vanish with it."""
    head = "\n".join(("", f"**{table.title}**", "", *table_head(table.headings, table.right)))
    for number, line in enumerate(table_rows(table)):
        yield line if number else f"{head}\n{line}"


def table_rows(table: Table) -> Iterator[str]:
    """Give the rows of a table without its head."""
    for cells in table.rows:
        yield row(list(map(_cell, cells)))


def _cell(item: Cell) -> str:
    if isinstance(item, tuple):
        return codes(item, _MOST_NAMES) if item else "-"
    return code(item, 120) if isinstance(item, Name) else cell(item)
