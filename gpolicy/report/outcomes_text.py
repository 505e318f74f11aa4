"""Outcomes of a policy's tests for a terminal: one line a test, and under a failed one what was expected and found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpolicy.report.findings_text import printable

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Check, Outcome

_BOLD: Final = "\x1b[1m"
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[31m"
_GREEN: Final = "\x1b[32m"
_RESET: Final = "\x1b[0m"


def outcomes_text(outcomes: Sequence[Outcome], *, colour: bool = False) -> str:
    """Return the outcomes as text, by file, ending in a summary line."""
    return "\n".join(_Writer(colour=colour).lines(outcomes)) + "\n"


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
            yield self.paint(_BOLD, printable(file))
            for outcome in tests:
                yield from self.test(outcome)
            yield ""
        yield self.paint(_BOLD, summary_line(outcomes))

    def test(self, outcome: Outcome) -> Iterator[str]:
        if outcome.ok:
            yield f"  {self.paint(_GREEN, 'ok')}     {printable(outcome.name)}"
            return
        word = "FAILED" if outcome.error is None else "ERROR "
        yield f"  {self.paint(_RED, word)} {printable(outcome.name)}"
        if outcome.error is not None:
            yield f"         {printable(str(outcome.place or outcome.span))}: {printable(outcome.error)}"
            if outcome.hint:
                yield f"         {self.paint(_DIM, printable(outcome.hint))}"
        for check in outcome.failures:
            yield from self.check(check)

    def check(self, check: Check) -> Iterator[str]:
        said = f"{printable(check.title)}: expected {printable(check.expected)}, found {printable(check.found)}"
        yield f"         {printable(str(check.span))}: {said}"
        if check.detail:
            yield f"         {self.paint(_DIM, printable(check.detail))}"

    def paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{_RESET}" if self.colour else text
