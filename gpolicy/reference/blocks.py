"""What there is to say, as blocks: `plain.py` shows them on a terminal, scripts/reference/ writes pages of them.

Text has two kinds of markup: words in backquotes are literal, and `[words](page.md)` leads to another page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LINK: Final = r"\[([^\]\n]+)\]\([^()\s]+\.md[^()\s]*\)"
"""A link to a page, in text: its words are the first group."""


@dataclass(frozen=True, slots=True)
class Link:
    """A word that leads to an anchor of this page, or to another one; `literal`: the word is code."""

    word: str
    target: str
    literal: bool = True


Cell = str | Link


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; `level` 1 is that of the page. The anchor is made of the title, as GitHub makes it."""

    title: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str


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
    rows: tuple[tuple[Cell, ...], ...]
    anchors: tuple[str, ...] = field(default=())

    def filled(self) -> tuple[int, ...]:
        """Return the columns with any text."""
        return tuple(column for column in range(len(self.head)) if any(row[column] for row in self.rows))


Block = Heading | Paragraph | PageListing | PageTable
