"""Markdown for comments of reviews: escaping, tables, and a document that fits a budget of bytes.

What is written is GitHub's and GitLab's dialect, which also takes a little HTML. Text from outside (names, messages)
comes in through `code` and `prose` only: nothing in it can begin a table cell, a heading or an element, or mention
somebody.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.printable import clipped, printable
from gpolicy.report.answer import Cell, Name, Table

LONGEST_TEXT: Final = 400
"""Characters of one name or message: the rest is cut, so that a single one cannot fill the comment."""

_MOST_CODES: Final = 6
CLOSE: Final = ("", "</details>")
"""The lines that end a folded part."""

_ENTITIES: Final = {letter: f"&#{ord(letter)};" for letter in "\\`*[]~|"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_MARK: Final = re.compile(
    r"(?P<special>[\\`*\[\]~|<>&])"
    r"|(?P<underscore>(?<![^\W_])_|_(?![^\W_]))"  # inside a word it is only itself
    # @somebody, #12, !12, GH-12: a mention only while it is one text
    r"|(?P<reference>[@#!$%](?=\w)|^#|(?<=\bGH)-(?=\d))"
    r"|(?P<scheme>:(?=//))|(?P<www>(?<=www)\.)",
    re.IGNORECASE,
)
_START: Final = re.compile(r"\s*(?:[-+=]|\d+[.)])")


def prose(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text from outside, escaped to be shown literally in a line or in HTML within Markdown."""
    shown = cell(text, longest)
    start = _START.match(shown)
    return f"{_escaped_letter(shown[: start.end()])}{shown[start.end() :]}" if start else shown


def cell(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text from outside, escaped to be shown literally in a table's cell."""
    return _MARK.sub(_escaped, clipped(printable(text), longest))


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    match match.lastgroup:
        case "special":
            return _ENTITIES[found]
        case "reference":
            return f"<span>{found}</span>"
        case _:
            return _escaped_letter(found)


def _escaped_letter(text: str) -> str:
    """Return text with its last letter escaped."""
    return f"{text[:-1]}&#{ord(text[-1])};"


def code(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a name from outside as code, which mentions nobody and links to nothing."""
    shown = clipped(printable(text), longest)
    if not shown:
        return "(empty)"
    if "`" in shown or "|" in shown:  # a pipe would end a table's cell even here
        letters = (one if one == " " or one.isalnum() or not one.isascii() else f"&#{ord(one)};" for one in shown)
        return f"<code>{''.join(letters)}</code>"
    padding = " " if shown[0] == shown[-1] == " " and shown.strip() else ""  # one of each is taken off
    return f"`{padding}{shown}{padding}`"


def codes(names: Iterable[str], most: int) -> str:
    """Return the first `most` names as code, and how many there are beyond them."""
    names = list(names)
    shown = ", ".join(map(code, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def fence(lines: Iterable[str]) -> str:
    """Return the fence for a block of code that holds `lines`: longer than any row of backticks in it."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    return "`" * max(3, longest + 1)


def table_head(headings: Sequence[str], right: frozenset[str] = frozenset()) -> list[str]:
    """Return the first two lines of a table; columns named in `right` hold numbers."""
    rule = ("---:" if heading in right else "---" for heading in headings)
    return [row(headings), f"|{'|'.join(rule)}|"]


def row(cells: Sequence[str]) -> str:
    """Return one line of a table, of cells that are escaped already."""
    return f"| {' | '.join(cells)} |"


def folded(summary: str) -> tuple[str, ...]:
    """Return the lines that begin a folded part; `summary` is HTML."""
    return ("", "<details>", f"<summary>{summary}</summary>")


def table_items(table: Table) -> Iterator[str]:
    """Yield the rows of a table; title and head belong to the first row, so that they are cut with it."""
    head = "\n".join(("", f"**{table.title}**", "", *table_head(table.headings, table.right)))
    yield from (line if number else f"{head}\n{line}" for number, line in enumerate(table_rows(table)))


def table_rows(table: Table) -> Iterator[str]:
    """Yield the rows of a table without its head."""
    yield from (row(list(map(_cell, cells))) for cells in table.shown_rows)


def _cell(item: Cell) -> str:
    if isinstance(item, tuple):
        return codes(item, _MOST_CODES) if item else "-"
    return code(item, 120) if isinstance(item, Name) else cell(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a document. `items` may be left out from the end; the least important block gives way first.

    `importance` is higher for blocks that are kept longer. `name` is the word for the items: "changes". A `summary`
    (HTML) folds the block away.
    """

    name: str
    importance: int
    summary: str = ""
    head: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    close: tuple[str, ...] = ()  # what ends the list, table or fence itself

    def lines(self, shown: int) -> list[str]:
        """Return the block with `shown` of its items; empty if all are left out."""
        missing = len(self.items) - shown
        if missing and not shown:
            return []
        notice = ("", f"*{missing:,} more {self.name} left out: no room in this comment.*") if missing else ()
        lines = [*self.head, *self.items[:shown], *self.close, *notice]
        return [*folded(self.summary), *lines, *CLOSE] if self.summary else lines


def document(blocks: Sequence[Block], tail: Sequence[str], budget: int) -> str:
    """Return blocks, in the order of reading, and the lines that end the document.

    They take at most `budget` bytes (UTF-8), if that is at least `forms.LEAST_BUDGET`.
    """
    shown = [len(block.items) for block in blocks]
    sizes = [_bytes_of(block.lines(number)) for block, number in zip(blocks, shown, strict=True)]
    if sum(sizes) + _bytes_of(tail) > budget:
        budget -= _bytes_of(_left_out(blocks))  # at most that much is said about what is left out whole
        for place in sorted(range(len(blocks)), key=lambda place: blocks[place].importance):
            over = sum(sizes) + _bytes_of(tail) - budget
            if over <= 0:
                break
            shown[place] = _fitting(blocks[place], sizes[place] - over)
            sizes[place] = _bytes_of(blocks[place].lines(shown[place]))
    lines = [line for block, number in zip(blocks, shown, strict=True) for line in block.lines(number)]
    gone = [block for block, number in zip(blocks, shown, strict=True) if not number]
    return "".join(f"{line}\n" for line in (*lines, *_left_out(gone), *tail))


def _left_out(blocks: Iterable[Block]) -> list[str]:
    """Return the line that names blocks that are left out completely."""
    counts: dict[str, int] = {}
    for block in blocks:
        if block.items:
            counts[block.name] = counts.get(block.name, 0) + len(block.items)
    what = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    return ["", f"*Left out, no room in this comment: {what}.*"] if what else []


def _fitting(block: Block, room: int) -> int:
    """Return how many items of `block` fit into `room` bytes; 0 also where not even the notice does."""
    low, high = 0, len(block.items) - 1
    while low < high:  # the size grows with each item, but for the digits of the notice: see the step back
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _bytes_of(block.lines(middle)) <= room else (low, middle - 1)
    while low and _bytes_of(block.lines(low)) > room:
        low -= 1
    return max(low, 0)


def _bytes_of(lines: Iterable[str]) -> int:
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)
