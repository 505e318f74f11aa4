"""Outcomes of a policy's tests as an answer: what failed and why, and below it all that ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpolicy.report.answer import Answer
from gpolicy.report.outcomes_text import summary_line
from gpolicy.report.section import Cell, Name, Section, Table, Weight, filled

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Outcome


def outcomes_answer(outcomes: Sequence[Outcome]) -> Answer:
    """Return what came out of the tests, by file."""
    ok = all(outcome.ok for outcome in outcomes)
    bad = [outcome for outcome in outcomes if not outcome.ok]
    return Answer(
        verb="test",
        title="Tests of the policy",
        name="",
        verdict=summary_line(outcomes),
        good=ok if outcomes else None,
        sections=(
            Section(
                key="failed",
                title="What failed",
                weight=Weight.WORSE if bad else Weight.SAME,
                summary="",
                tables=filled(_failures(bad), _errors(bad)),
            ),
            Section(
                key="all",
                title="All tests",
                weight=Weight.SAME,
                summary="" if outcomes else "there are none",
                tables=filled(_all(outcomes, folded=bool(bad))),
            ),
        ),
    )


def _failures(outcomes: Sequence[Outcome]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for outcome in outcomes:
        for check in outcome.failures:
            found = f"{check.found} ({check.detail})" if check.detail else check.found
            rows.append((outcome.name, check.title, check.expected, found, Name(str(check.span))))
    return Table(
        title="Expected otherwise",
        of="expectations",
        headings=("test", "what", "expected", "found", "where"),
        rows=tuple(rows),
        weight=Weight.WORSE,
    )


def _errors(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        title="Could not run",
        of="tests",
        headings=("test", "why", "way out", "where"),
        rows=tuple(
            (item.name, item.error, item.hint or "", Name(str(item.place or item.span)))
            for item in outcomes
            if item.error is not None
        ),
        weight=Weight.WORSE,
    )


def _all(outcomes: Sequence[Outcome], *, folded: bool) -> Table:
    return Table(
        title="Tests by file",
        of="tests",
        headings=("file", "test", "outcome"),
        rows=tuple((Name(item.span.file), item.name, _word(item)) for item in outcomes),
        weight=Weight.SAME if folded else Weight.CHANGED,
    )


def _word(outcome: Outcome) -> str:
    if outcome.ok:
        return "ok"
    return "failed" if outcome.error is None else "could not run"
