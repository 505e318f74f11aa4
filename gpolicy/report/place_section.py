"""A placement as an answer: the possible candidates best first, the refused by reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.analysis.placing import Candidate, PlaceReport
from gpolicy.cluster.state import read_from
from gpolicy.report.answer import Answer
from gpolicy.report.place_text import placed_words, untried_words
from gpolicy.report.section import NOTHING, Cell, Name, Section, Table, Weight, count, filled, rough_size

_MOST_BEST: Final = 20
_MOST_ALL: Final = 30  # candidates that are all shown at once
_RIGHT: Final = frozenset({"score", "disk left", "candidates"})


def place_answer(report: PlaceReport) -> Answer:
    """Return where the instance goes, with every candidate and its reason."""
    what = f"{report.instance.name} ({placed_words(report.instance)})"
    where = (
        f"goes to {' / '.join(report.nodes)} in group {report.group}" if report.ok else f"goes nowhere: {report.reason}"
    )
    possible = [item for item in report.candidates if item.ok]
    refused = [item for item in report.candidates if not item.ok]
    untried = [untried_words(group) for group in report.groups if not group.tried]
    return Answer(
        verb="place",
        title="Where an instance goes on",
        name=report.cluster_name,
        verdict=f"{what} {where}",
        good=report.ok,
        sections=(
            Section(
                key="possible",
                title="Possible",
                weight=Weight.CHANGED,
                summary=count(len(possible), "candidate") if possible else "no candidate",
                tables=filled(*_possible(possible, report)),
            ),
            Section(
                key="refused",
                title="Refused",
                weight=Weight.CHANGED if refused else Weight.SAME,
                summary=count(len(refused), "candidate") if refused else "no candidate",
                tables=filled(_reasons(refused, open_=not report.ok), _refused(refused)),
                notes=(f"hail: {report.info}", *untried, *report.notes),
            ),
        ),
        source=read_from(report.source, report.snapshot),
    )


def _possible(items: list[Candidate], report: PlaceReport) -> Iterator[Table]:
    """Give the best candidates, and apart from them those that are seldom looked at."""
    dedicated = report.metric == "lost-allocations"
    metric = f"lost allocations ({', '.join(report.sizes)})" if dedicated and report.sizes else "lost allocations"
    rows = tuple((_nodes(item), Name(item.group), _metric(item), _left(item)) for item in items)
    headings = ("nodes", "group", metric if dedicated else "score", "disk left")
    best = "Best first; the smaller the better"
    some = len(rows) if len(rows) <= _MOST_ALL else _MOST_BEST
    yield Table(title=best, of="candidates", headings=headings, rows=rows[:some], right=_RIGHT)
    yield Table(
        title="All the other candidates, best first",
        of="candidates",
        headings=headings,
        rows=rows[some:],
        right=_RIGHT,
        weight=Weight.SAME,
    )


def _reasons(items: list[Candidate], *, open_: bool) -> Table:
    """Return how many candidates are refused for each reason, the most frequent first."""
    found: dict[tuple[str, str, str], int] = {}
    for item in items:
        key = (item.reason or NOTHING, item.explanation or NOTHING, item.htools_reason or NOTHING)
        found[key] = found.get(key, 0) + 1
    return Table(
        title="Reasons",
        of="reasons",
        headings=("reason", "what it means", "htools", "candidates"),
        rows=tuple((*key, f"{number:,}") for key, number in sorted(found.items(), key=lambda pair: -pair[1])),
        right=_RIGHT,
        weight=Weight.WORSE if open_ else Weight.CHANGED,
    )


def _refused(items: list[Candidate]) -> Table:
    """Return the refused candidates, one row for all that lack the same."""
    alike: dict[tuple[str, str, str], list[Candidate]] = {}
    for item in items:
        alike.setdefault((item.reason or NOTHING, item.group, item.detail or ""), []).append(item)
    return Table(
        title="Every refused candidate",
        of="rows",
        headings=("reason", "group", "in numbers", "nodes"),
        rows=tuple(
            (reason, Name(group), detail or NOTHING, tuple(Name(" / ".join(item.nodes)) for item in found))
            for (reason, group, detail), found in alike.items()
        ),
        weight=Weight.SAME,
    )


def _nodes(item: Candidate) -> Cell:
    return Name(" / ".join(item.nodes))


def _metric(item: Candidate) -> str:
    lost = item.lost_allocations
    return item.shown_score if lost is None else ", ".join(map(str, lost))


def _left(item: Candidate) -> str:
    return NOTHING if item.disk_left is None else rough_size(item.disk_left)
