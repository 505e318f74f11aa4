"""An impact for a terminal: the capacity table first, then what changes or is wrong; the rest in one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.impact.impact import Impact
from gpolicy.printable import BOLD, DIM, GREEN, PLAIN, RED
from gpolicy.report.impact_sections import impact_sections, not_known
from gpolicy.report.section import Section, Table, Weight, plain_text
from gpolicy.report.text_table import table_lines

MOST_ROWS: Final = 20
"""Rows of a table other than that of the capacity; the JSON has all of them."""
_MOST_NAMES: Final = 4


def impact_lines(impact: Impact, *, colour: bool = False) -> Iterator[str]:
    """Give the lines of the impact, headed, without an empty line at either end."""
    paint = _Paint(colour=colour)
    yield paint(BOLD, "Impact")
    sections = list(impact_sections(impact))
    for section in sections:
        if section.weight is not Weight.SAME or section.key == "capacity":
            yield from _section(section, paint)
    same = [item for item in sections if item.weight is Weight.SAME and item.key != "capacity"]
    for section in same:
        yield paint(DIM, f"  {section.title}: {section.summary}")
    for title, reason in not_known(impact):
        yield f"  {title}: not known: {reason}"


class _Paint:
    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def __call__(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self.colour and text else text

    def cell(self, heading: str, cell: str, text: str) -> str:
        """Paint headings, and differences by their direction."""
        if not heading:
            return self(BOLD, text)
        if heading in ("Δ", "%") and cell[:1] in ("-", "+") and len(cell) > 1:
            return self(RED if cell[0] == "-" else GREEN, text)
        return self(RED, text) if heading in ("", "since") and cell in ("new", "newly") else text


def _section(section: Section, paint: _Paint) -> Iterator[str]:
    red = RED if section.weight is Weight.WORSE else ""
    title = paint(red or BOLD, section.title)
    yield f"  {title}: {section.summary}"
    for table in section.tables:
        if table.weight is Weight.SAME:
            yield paint(DIM, f"    {table.title} ({len(table.rows):,}): {_first_names(table)}")
            continue
        capacity = section.key == "capacity" and table is section.tables[0]
        if not capacity:
            yield f"    {table.title}"
        most = len(table.rows) if capacity else MOST_ROWS
        rows = [[plain_text(cell, _MOST_NAMES) for cell in row] for row in table.rows[:most]]
        indent = "    " if capacity else "      "
        yield from (f"{indent}{line}" for line in table_lines(table.headings, rows, table.right, paint.cell))
        if len(table.rows) > most:
            yield paint(DIM, f"{indent}and {len(table.rows) - most:,} more {table.of}, all in --format json")
    for note in section.notes:
        yield paint(DIM, f"    {note}")


def _first_names(table: Table) -> str:
    shown = list(dict.fromkeys(plain_text(row[0], 1) for row in table.rows))
    more = f" and {len(shown) - _MOST_NAMES:,} more" if len(shown) > _MOST_NAMES else ""
    return ", ".join(shown[:_MOST_NAMES]) + more
