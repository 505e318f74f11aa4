"""Outcomes of a policy's tests as an answer, by file, and as JSON (`schemas/output/test.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpolicy.json_values import fields, place
from gpolicy.printable import Tone, count
from gpolicy.report.answer import Answer, Entries, Entry, Figure, Line, Section
from gpolicy.testing.outcome import Outcome, tally

FORMAT_VERSION: Final = "1.0"


def outcomes_answer(outcomes: Sequence[Outcome]) -> Answer:
    """Return the outcomes of the tests, by file."""
    found = tally(outcomes)
    tones = [Tone.BAD if number else Tone.GOOD for number in (found.failed, found.errors)]
    return Answer(
        verb="test",
        title="Tests of the policy",
        name="",
        verdict=summary_line(outcomes),
        tone=Tone.PLAIN if not outcomes else Tone.BAD if Tone.BAD in tones else Tone.GOOD,
        figures=(
            Figure("tests", f"{found.tests:,}", about="tests"),
            Figure("failed", f"{found.failed:,}", tone=tones[0], about="tests"),
            Figure("could not run", f"{found.errors:,}", tone=tones[1], about="tests"),
        ),
        sections=(Section("tests", "Tests", [Entries("test", list(map(_entry, outcomes)))]),),
    )


def summary_line(outcomes: Sequence[Outcome]) -> str:
    """Return the counts in words: `12 tests, 1 failed, 1 could not run`."""
    if not outcomes:
        return "0 tests: there is no document of kind Test"
    found = tally(outcomes)
    words = [f"{found.failed} failed"] if found.failed else []
    words += [f"{found.errors} could not run"] if found.errors else []
    return ", ".join([count(found.tests, "test"), *(words or ["all passed"])])


def _entry(outcome: Outcome) -> Entry:
    mark = "ok    " if outcome.ok else "FAILED" if outcome.error is None else "ERROR "
    tone, below = Tone.GOOD if outcome.ok else Tone.BAD, tuple(reasons(outcome))
    return Entry(outcome.name, mark=mark, tone=tone, under=(outcome.span.file, ""), below=below)


def reasons(outcome: Outcome) -> Iterator[Line]:
    """Yield why a test failed, or could not run."""
    if outcome.error is not None:
        yield Line(f"{outcome.place or outcome.span!s}: {outcome.error}", tone=Tone.PLAIN)
        if outcome.hint:
            yield Line(outcome.hint)
    for check in outcome.failures:
        yield Line(f"{check.span!s}: {check.sentence}", tone=Tone.PLAIN)
        if check.detail:
            yield Line(check.detail)


def outcomes_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON's own types."""
    found = tally(outcomes)
    return {
        "format_version": FORMAT_VERSION,
        "tests": [_test(outcome) for outcome in outcomes],
        "summary": {"passed": found.tests - found.failed - found.errors, "failed": found.failed, "error": found.errors},
    }


def _test(outcome: Outcome) -> dict[str, Any]:
    result = "error" if outcome.error is not None else "passed" if outcome.ok else "failed"
    return {
        **fields(outcome, "name", "action"),
        "result": result,
        **place(outcome.span),
        "error": None
        if outcome.error is None
        else {"message": outcome.error, "hint": outcome.hint or "", **place(outcome.place or outcome.span)},
        "checks": [
            {"expectation": check.title, **fields(check, "ok", "expected", "found", "detail"), **place(check.span)}
            for check in outcome.checks
        ],
    }
