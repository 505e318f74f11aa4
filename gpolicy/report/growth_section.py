"""When groups are full: a line and a small picture of each, a table of all sizes, and the table of many clusters."""

from calendar import timegm
from collections.abc import Iterable
from dataclasses import replace
from math import ceil, floor, inf
from time import gmtime, strftime, strptime
from typing import Final

from gpolicy.analysis.size_words import pair_title
from gpolicy.growth.filling_up import GrowthReport, SizeForecast
from gpolicy.printable import count
from gpolicy.provenance import FORM
from gpolicy.report.answer import NOTHING, Answer, Cell, Name, Number, Picture, Section, Table, digits, size
from gpolicy.report.capacity_section import pair_cell
from gpolicy.report.prometheus import Labels, Samples

_TITLE: Final = "When it is full"
_HEADINGS: Final = ("group", "size", "forecast", "earliest", "likely", "latest", Number("growth a week"), "bound by")
_ASIDE: Final = ("earliest", "likely", "latest", "growth a week")
_UNITS: Final = ((1, "day"), (7, "week"), (30.44, "month"), (365.25, "year"))


def full_words(item: SizeForecast, horizon: float) -> str:
    """Return when a size is full: "full in 5 to 8 weeks"."""
    if not item.room:
        return "full now"
    never = "not full at this growth" if item.per_week <= 0 else ""
    if item.low is None:
        return never or f"not full within {_in_days(horizon)}"
    if item.high is None:
        return f"{f'{never}, but perhaps' if never else 'full'} in {_in_days(item.low)} at the earliest"
    return f"full in {_in_days(item.low, item.high)}"


def _in_days(*days: float) -> str:
    """Return a number of days, or the least and the most, in the unit of the most."""
    length, unit = next((each for each in _UNITS if days[-1] < 26 * each[0]), _UNITS[-1])
    low, high = floor(days[0] / length), (ceil if days[1:] else floor)(days[-1] / length)
    return f"{f'{low} to ' if low < high else ''}{count(high, unit)}"


def with_growth(answer: Answer, growth: GrowthReport | None) -> Answer:
    """Return the answer of `capacity` with the forecasts: the first of them, or why there is none, in its verdict."""
    if growth is None:
        return answer
    first: dict[str, SizeForecast] = {}
    for item in growth.sizes:
        first |= {item.group: item} if item.room and item.group not in first else {}
    said = [
        f"Group {item.group}: {full_words(item, growth.horizon)} ({pair_title(item.spec)}, {item.bound_by})"
        for item in first.values()
    ]
    rows, title = [_row(item, growth) for item in growth.sizes], f"At the growth of the last {_in_days(growth.span)}"
    table = Table(title, "sizes", _HEADINGS, rows, grouped=1, brief=6, aside=_ASIDE)
    section = Section("growth", _TITLE, (table, Picture("growth", lambda: [*first.values()])), growth.notes)
    verdict = ". ".join((answer.verdict, *[*said, *growth.notes][:1]))
    return replace(answer, verdict=verdict, sections=(*answer.sections[:1], section, *answer.sections[1:]))


def growth_metrics(growth: GrowthReport | None) -> Samples:
    """Return the days until each size is full."""
    found: list[tuple[Labels, float]] = []
    for item in growth.sizes if growth else ():
        kind, spec = ("standard", "") if item.spec == "standard" else ("pair", item.spec)
        for bound, days in (("low", item.low), ("middle", item.middle), ("high", item.high)):
            labels = {"group": item.group, "kind": kind, "spec": spec, "bound": bound}
            found.append((labels, inf if days is None else days))
    return {"group_days_until_full": found}


def _row(item: SizeForecast, growth: GrowthReport) -> tuple[Cell, ...]:
    now, ends = timegm(strptime(growth.until, FORM)), (item.low, item.middle, item.high)
    days = (NOTHING if day is None else strftime("%Y-%m-%d", gmtime(now + 86_400 * day)) for day in ends)
    more = (size if item.resource in ("memory", "disk") else digits)(max(0, round(item.per_week)))
    names = (Name(item.group), item.spec if item.spec == "standard" else pair_cell(item.spec))
    return (*names, full_words(item, growth.horizon), *days, f"{more} {item.resource}", item.bound_by)


def growth_of_all(answers: Iterable[tuple[str, Answer]]) -> Section:
    """Return the first size of each group of many clusters, given by name with their answers, the earliest first."""
    tables = ((name, table) for name, answer in answers for section in answer.sections for table in section.tables)
    rows = [(f"{name}/{row[0]}", row) for name, table in tables if table.headings == _HEADINGS for row in table.rows]
    first: dict[str, tuple[Cell, ...]] = {}
    for name, row in sorted(rows, key=lambda item: (item[1][4] == NOTHING, str(item[1][4]))):
        first |= {} if row[2] == "full now" or name in first else {name: (Name(name), *row[1:])}
    table = Table("First sizes", "groups", _HEADINGS, [*first.values()], brief=20, most=len(first), aside=_ASIDE)
    return Section("growth", _TITLE, (table,))
