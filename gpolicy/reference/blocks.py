"""What there is to say, as blocks, and their text on a terminal; scripts/reference/ writes pages of them.

Text has two kinds of markup: words in backquotes are literal, and `[words](page.md)` leads to another page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 100
"""Columns that text fills."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; `level` 1 is that of the page. The anchor is made of the title, as GitHub makes it."""

    title: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class PageListing:
    """Lines shown as they are."""

    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows about one thing each: the first cell names it, the last describes it. An empty column is not shown.

    `anchors` has a name for each row that can be linked to, or nothing.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    anchors: tuple[str, ...] = field(default=())

    def filled(self) -> tuple[int, ...]:
        """Return the columns with any text."""
        return tuple(column for column in range(len(self.head)) if any(row[column] for row in self.rows))


Block = Heading | str | PageListing | PageTable
"""A text is a paragraph."""


def plain(blocks: Iterable[Block]) -> str:
    """Return the text of blocks."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def filled(text: str, indent: str = "", first: str | None = None) -> str:
    """Return text in lines of at most `WIDTH` columns."""
    first = indent if first is None else first
    wrapped = textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapped or first.rstrip()


def _block(block: Block) -> str:
    match block:
        case Heading(title, _):
            return title
        case str():
            return filled(block)
        case PageListing(text, _):
            return textwrap.indent(text.rstrip(), "    ")
        case PageTable():
            return _table(block)


def _table(table: PageTable) -> str:
    """Return rows with a column for each but the last cell, which fills what is left of the line."""
    columns = table.filled()
    rows = [[row[column] for column in columns] for row in table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns) - 1)]
    lines = []
    for row in rows:
        first = "  " + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        lines.append(filled(row[-1], " " * len(first), first))
    return "\n".join(lines)
