"""Blocks as a man page: roff with the macros of man(7), in ASCII."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable
from scripts.reference.markdown import LINK, Link


def man_page(title: str, section: int, date: str, version: str, blocks: Iterable[PageBlock]) -> str:
    """Return the man page of `title`; headings of level 2 are its sections."""
    head = f'.TH {title.upper()} {section} {date} "gpolicy {version}" gpolicy\n.nh\n.ad l\n'
    text = head + "".join(map(_block, blocks))
    return re.sub(r"(?m)^(\.S[HS] .*\n)\.PP\n", r"\1", text)  # a title begins a paragraph itself


def _block(block: PageBlock) -> str:
    match block:
        case Heading(title, level):
            return f".SH {_words(title.upper())}\n" if level == 2 else f".SS {_words(title)}\n"
        case str():
            return f".PP\n{_lines(block)}\n"
        case PageListing(text, _):
            lines = "\n".join(_guarded(_literal(line)) for line in text.rstrip().splitlines())
            return f".PP\n.RS 4\n.nf\n{lines}\n.fi\n.RE\n"
        case PageTable():
            return "".join(_row(block, row) for row in block.rows)


def _row(table: PageTable, row: tuple[str, ...]) -> str:
    facts = [
        f"{table.head[column].capitalize()}: {_text(row[column]).rstrip('.')}."
        for column in table.filled()[1:-1]
        if row[column]
    ]
    return f".TP\n{_guarded(_words(_text(row[0])))}\n{_lines(' '.join([_text(row[-1]), *facts]))}\n"


def _text(cell: str) -> str:
    if isinstance(cell, Link):
        return f"`{cell}`" if cell.literal else cell
    return cell


def _lines(text: str) -> str:
    """Return text with each sentence on lines of its own, as roff wants it."""
    sentences = re.split(r"(?<=[.:]) (?=[A-Z`])", " ".join(text.split()))
    return "\n".join(map(_guarded, (line for sentence in sentences for line in _filled(_words(sentence)))))


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, 79, break_long_words=False, break_on_hyphens=False)


def _words(text: str) -> str:
    parts = re.sub(LINK, r"\1", text).split("`")
    return "".join(rf"\fB{_literal(part)}\fR" if place % 2 else _plain(part) for place, part in enumerate(parts))


def _literal(text: str) -> str:
    return _plain(text).replace("-", r"\-")


def _plain(text: str) -> str:
    """Return text with backslashes escaped, and what is not ASCII as roff names it."""
    text = text.replace("\\", r"\e")
    return "".join(letter if letter.isascii() else rf"\[u{ord(letter):04X}]" for letter in text)


def _guarded(line: str) -> str:
    """Return a line that roff does not take for a request."""
    return rf"\&{line}" if line.startswith((".", "'")) else line
