"""Tables for a terminal: columns as wide as they need to be, numbers to the right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from gpolicy.printable import printable
from gpolicy.report.findings_text import columns

Painter = Callable[[str, str, str], str]
"""Paints a cell, padded already: given its heading, what it says, and the text to paint. The headings' own is ""."""


def table_lines(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str] = (),
    paint: Painter = lambda _heading, _cell, text: text,
) -> Iterator[str]:
    """Give the lines of a table; columns in `right` hold numbers. What is not printable is escaped."""
    shown = [[printable(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(columns(row[place]) for row in shown) for place in range(len(headings))]
    for number, row in enumerate(shown):
        cells = []
        for place, (heading, cell, width) in enumerate(zip(headings, row, widths, strict=True), start=1):
            gap = " " * (width - columns(cell)) if heading in right or place < len(row) else ""
            cells.append(paint(heading if number else "", cell, gap + cell if heading in right else cell + gap))
        yield "  ".join(cells).rstrip()
