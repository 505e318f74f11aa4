"""Outcomes of a policy's tests for a terminal: one line a test, and under a failed one what was expected and found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from gpolicy.printable import BOLD, DIM, GREEN, PLAIN, RED, as_text

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Check, Outcome


def outcomes_text(outcomes: Sequence[Outcome], *, colour: bool = False) -> str:
    """Return the outcomes as text, by file, ending in a summary line."""
    return as_text(_Writer(colour=colour).lines(outcomes))


def summary_line(outcomes: Sequence[Outcome]) -> str:
    """Return the counts in words: `12 tests, 1 failed, 1 could not run`."""
    count = len(outcomes)
    if not count:
        return "0 tests: there is no document of kind Test"
    errors = sum(outcome.error is not None for outcome in outcomes)
    failed = sum(not outcome.ok for outcome in outcomes) - errors
    words = [f"{count} {'test' if count == 1 else 'tests'}"]
    words += [f"{failed} failed"] if failed else []
    words += [f"{errors} could not run"] if errors else []
    return ", ".join(words if failed or errors else [*words, "all passed"])


class _Writer:
    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def lines(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        for file, tests in groupby(outcomes, key=lambda outcome: outcome.span.file):
            yield self.paint(BOLD, file)
            for outcome in tests:
                yield from self.test(outcome)
            yield ""
        yield self.paint(BOLD, summary_line(outcomes))

    def test(self, outcome: Outcome) -> Iterator[str]:
        if outcome.ok:
            yield f"  {self.paint(GREEN, 'ok')}     {outcome.name}"
            return
        word = "FAILED" if outcome.error is None else "ERROR "
        yield f"  {self.paint(RED, word)} {outcome.name}"
        if outcome.error is not None:
            yield f"         {outcome.place or outcome.span!s}: {outcome.error}"
            if outcome.hint:
                yield f"         {self.paint(DIM, outcome.hint)}"
        for check in outcome.failures:
            yield from self.check(check)

    def check(self, check: Check) -> Iterator[str]:
        said = f"{check.title}: expected {check.expected}, found {check.found}"
        yield f"         {check.span!s}: {said}"
        if check.detail:
            yield f"         {self.paint(DIM, check.detail)}"

    def paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self.colour else text
