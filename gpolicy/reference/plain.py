"""Blocks as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from gpolicy.reference.blocks import Block, Cell, Heading, Link, PageListing, PageTable, Paragraph

WIDTH: Final = 100
"""Columns that text fills."""


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
        case Paragraph(text):
            return filled(text)
        case PageListing(text, _):
            return textwrap.indent(text.rstrip(), "    ")
        case PageTable():
            return _table(block)


def _table(table: PageTable) -> str:
    """Return rows with a column for each but the last cell, which fills what is left of the line."""
    columns = table.filled()
    rows = [[_word(row[column]) for column in columns] for row in table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns) - 1)]
    lines = []
    for row in rows:
        first = "  " + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        lines.append(filled(row[-1], " " * len(first), first))
    return "\n".join(lines)


def _word(cell: Cell) -> str:
    return cell.word if isinstance(cell, Link) else cell
