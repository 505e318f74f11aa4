"""What a report says, before it has a form: sections of sentences and tables that text, Markdown and HTML all render.

So every form shows the same figures in the same order. Nothing is escaped yet; `Name` tells names from outside from
our own words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gpolicy.ganeti import units

NOTHING: Final = "-"


class Name(str):
    """A name from outside: of a node, an instance, a tag."""

    __slots__ = ()


Cell = str | tuple[Name, ...]
"""Words of ours (which may hold names), a name, or several names."""


class Weight(IntEnum):
    """How much a reader in a hurry wants to see it."""

    SAME = 0  # as it was, and nothing wrong with it; or wrong as before
    CHANGED = 1
    WORSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells. `of` names what the rows are ("instances"); columns named in `right` hold numbers."""

    title: str
    of: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[str] = frozenset()
    weight: Weight = Weight.CHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of an impact. `summary` is one sentence without a full stop; `notes` are small print."""

    key: str
    title: str
    weight: Weight
    summary: str
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


def names(items: Iterable[str]) -> tuple[Name, ...]:
    """Return names from outside as one cell."""
    return tuple(Name(item) for item in items)


def heaviest(tables: Iterable[Table]) -> Weight:
    """Return the weight of the heaviest of `tables`."""
    return max((table.weight for table in tables), default=Weight.SAME)


def filled(*tables: Table) -> tuple[Table, ...]:
    """Return the tables that have a row."""
    return tuple(table for table in tables if table.rows)


def count(number: int, word: str, plural: str = "") -> str:
    """Return the number with its word: 1 instance, 2 instances."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def signed(number: int | None) -> str:
    """Return a difference: +3, -3, 0."""
    return NOTHING if number is None else f"{number:+,}" if number else "0"


def percent(number: float | None) -> str:
    """Return a share: one decimal below 10 %, none above."""
    if number is None:
        return NOTHING
    shown = f"{number:+.1f}" if abs(number) < 10 and number != int(number) else f"{number:+,.0f}"
    return "0 %" if number == 0 else f"{shown} %"


size: Final = units.exact_size
rough_size: Final = units.rough_size


def plain_text(cell: Cell, most: int = 0) -> str:
    """Return a cell as text, of several names the first `most` (0: all). Not escaped."""
    if isinstance(cell, str):
        return cell
    shown = ", ".join(cell[:most] if most else cell)
    return f"{shown} and {len(cell) - most:,} more" if most and len(cell) > most else shown or NOTHING
