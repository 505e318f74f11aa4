"""Outcomes of a policy's tests as an answer, by file, and as JSON (`schemas/output/test.json`)."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.json_values import COUNT, NOT_EMPTY, PLACE, Document, Key, Many, Maybe, Shape, version_key
from gpolicy.printable import Tone, count
from gpolicy.report.answer import Answer, Entries, Entry, Figure, Line, Section
from gpolicy.testing.outcome import Check, Outcome, Tally, tally


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


_PLACE: Final = Key(PLACE, "span", inline=True)
_ERROR: Final = Shape(Outcome).with_keys(
    message=Key(NOT_EMPTY, lambda outcome: outcome.error),
    hint=Key(str, lambda outcome: outcome.hint or ""),
    place=Key(PLACE, lambda outcome: outcome.place or outcome.span, inline=True),
)
_TEST: Final = Shape(Outcome, "test").with_keys(
    "name action result place error checks",
    result=Key(
        {"enum": ["passed", "failed", "error"]},
        lambda outcome: "passed" if outcome.ok else "failed" if outcome.error is None else "error",
    ),
    place=_PLACE,
    error=Key(Maybe(_ERROR), lambda outcome: None if outcome.error is None else outcome),
    checks=Shape(Check).with_keys("expectation ok expected found detail place", expectation="title", place=_PLACE),
)
_SUMMARY: Final = Shape(Tally).with_keys(
    passed=Key(COUNT, lambda found: found.tests - found.failed - found.errors), failed=COUNT, error=Key(COUNT, "errors")
)
TEST_DOCUMENT: Final = Document(
    "gpolicy test --format json",
    Shape(list).with_keys(
        format_version=version_key("1.0"),
        tests=Key(Many(_TEST), lambda outcomes: outcomes),
        summary=Key(_SUMMARY, tally),
    ),
)
