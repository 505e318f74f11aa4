"""Blocks as Markdown, for GitHub and for the site."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Self

from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable

LINK = r"\[([^\]\n]+)\]\([^()\s]+\.md[^()\s]*\)"
"""A link to a page, in text: its words are the first group."""


class Link(str):
    """A word in a cell that leads to an anchor of this page, or to another one; `literal`: the word is code."""

    __slots__ = ("literal", "target")
    target: str
    literal: bool

    def __new__(cls, word: str, target: str, *, literal: bool = True) -> Self:
        """Return the word with where it leads."""
        link = super().__new__(cls, word)
        link.target, link.literal = target, literal
        return link


def markdown(blocks: Iterable[PageBlock]) -> str:
    """Return a page."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    kept = (letter for letter in title.lower().replace("`", "") if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")


def prose(text: str) -> str:
    """Return text with what Markdown would read as markup escaped; backquoted words and links to pages stay."""
    markup = re.compile(f"`[^`]*`|{LINK}")
    plain = [_escaped(part) for part in markup.sub("\0", text).split("\0")]
    kept = [found.group() for found in markup.finditer(text)]
    return "".join(part for pair in zip(plain, [*kept, ""], strict=True) for part in pair)


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in r"\*_<>[]#" else letter for letter in text)


def _block(block: PageBlock) -> str:
    match block:
        case Heading(title, level):
            return f"{'#' * level} {prose(title)}"
        case str():
            return prose(block)
        case PageListing(text, language):
            return f"```{language}\n{text.rstrip()}\n```"
        case PageTable():
            return _table(block)


def _table(table: PageTable) -> str:
    columns = table.filled()
    lines = [[table.head[column] for column in columns], ["---"] * len(columns)]
    for number, row in enumerate(table.rows):
        name = table.anchors[number] if table.anchors else ""
        cells = [_cell(row[column]) for column in columns]
        lines.append([f'<a id="{name}"></a>{cells[0]}' if name else cells[0], *cells[1:]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: str) -> str:
    if isinstance(cell, Link):
        return f"[{f'`{cell}`' if cell.literal else prose(cell)}]({cell.target})"
    parts = cell.split("`")
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = prose(part).replace("|", "&#124;")
        else:  # a bar in backquotes would end the cell for some readers, and stay escaped for others
            parts[place] = f"<code>{escape(part).replace('|', '&#124;')}</code>" if "|" in part else f"`{part}`"
    return "".join(parts).replace("\n", " ")
