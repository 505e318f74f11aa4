"""When groups are full: a line and a small picture of each, a table of all sizes, and the table of many clusters."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor
from time import gmtime, strftime, strptime
from typing import Final

from gpolicy.analysis.spec_pairs import pair_title
from gpolicy.growth.filling_up import GrowthReport, SizeForecast
from gpolicy.printable import count
from gpolicy.provenance import FORM
from gpolicy.report.answer import NOTHING, Answer, Cell, Name, Number, Picture, Section, Table, number, size
from gpolicy.report.capacity_section import pair_cell

_KEY, _TITLE = "growth", "When it is full"
_HEADINGS: Final = ("group", "size", "forecast", "earliest", "likely", "latest", Number("growth a week"), "bound by")
_ASIDE: Final = ("earliest", "likely", "latest", "growth a week")
_UNITS: Final = ((1, "day"), (7, "week"), (30.44, "month"), (365.25, "year"))


def full_words(item: SizeForecast, horizon: float) -> str:
    """Return when a size is full: "full in 5 to 8 weeks"."""
    if not item.room:
        return "full now"
    never = "not full at this growth" if item.per_week <= 0 else ""
    if item.low is None:
        return never or f"not full within {_span(horizon)}"
    if item.high is None:
        return f"{f'{never}, but perhaps' if never else 'full'} in {_span(item.low)} at the earliest"
    low, latest = floor(item.low / _unit(item.high)[0]), _span(item.high, ceil)
    return f"full in {latest if latest.startswith(f'{low} ') else f'{low} to {latest}'}"


def _unit(days: float) -> tuple[float, str]:
    return next((unit for unit in _UNITS if days < 20 * unit[0]), _UNITS[-1])


def _span(days: float, whole: Callable[[float], int] = floor) -> str:
    unit, word = _unit(days)
    return count(whole(days / unit), word)


def growth_sentence(growth: GrowthReport) -> str:
    """Return which group is full first, or why there is no forecast; empty where there is nothing to say."""
    first = [
        f"Group {item.group}: {full_words(item, growth.horizon)} ({pair_title(item.spec)}, {item.bound_by})"
        for item in growth.first
    ]
    return next(iter(first or growth.notes), "")


def growth_section(growth: GrowthReport) -> Section:
    """Return the forecast of each group, the earliest first, with the use so far as a picture."""
    order = [item.group for item in growth.first]
    sizes = sorted(growth.sizes, key=lambda item: order.index(item.group) if item.group in order else len(order))
    rows, title = [_row(item, growth) for item in sizes], f"{_TITLE}, at the growth of {_span(growth.span)}"
    table = Table(title, "sizes", _HEADINGS, rows, grouped=1, brief=6, aside=_ASIDE)
    return Section(_KEY, title, (table, Picture("growth", lambda: growth.first)), growth.notes)


def _row(item: SizeForecast, growth: GrowthReport) -> tuple[Cell, ...]:
    now = timegm(strptime(growth.until, FORM))
    days = (
        NOTHING if day is None else strftime("%Y-%m-%d", gmtime(now + 86_400 * day))
        for day in (item.low, item.middle, item.high)
    )
    more = (size if item.resource in ("memory", "disk") else number)(max(0, round(item.per_week)))
    words = f"{more} {item.resource.replace('_', ' ')}"
    return (Name(item.group), pair_cell(item.spec), full_words(item, growth.horizon), *days, words, item.bound_by)


def growth_of_all(answers: Iterable[tuple[str, Answer]]) -> Section:
    """Return the first size of each group of many clusters, given by name with their answers, the earliest first."""

    def rows() -> Iterator[tuple[Cell, ...]]:
        for cluster, answer in answers:
            for table in (
                table for section in answer.sections for table in section.tables if table.headings == _HEADINGS
            ):
                yield from ((Name(f"{cluster}/{row[0]}"), *row[1:]) for row in table.rows)

    first: dict[Cell, tuple[Cell, ...]] = {}
    for row in sorted(rows(), key=lambda row: (row[4] == NOTHING, str(row[4]))):
        if row[2] != "full now":
            first.setdefault(row[0], row)
    table = Table(_TITLE, "groups", _HEADINGS, list(first.values()), brief=20, most=len(first), aside=_ASIDE)
    return Section(_KEY, _TITLE, (table,))
