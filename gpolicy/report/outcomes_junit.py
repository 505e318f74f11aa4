"""Outcomes of a policy's tests in the JUnit form that CI services read: a suite a file, a case a test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from gpolicy.report.junit import case, document, element, suite

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Outcome


def outcomes_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as an XML document, ASCII only."""
    suites = [_suite(file, list(tests)) for file, tests in groupby(outcomes, key=lambda outcome: outcome.span.file)]
    return document(_counts(outcomes), suites)


def _counts(outcomes: Sequence[Outcome]) -> str:
    errors = sum(outcome.error is not None for outcome in outcomes)
    failures = sum(not outcome.ok for outcome in outcomes) - errors
    return f'tests="{len(outcomes)}" failures="{failures}" errors="{errors}"'


def _suite(file: str, outcomes: Sequence[Outcome]) -> str:
    cases = [case(outcome.name, file, outcome.span.line, _problem(outcome)) for outcome in outcomes]
    return suite(file, _counts(outcomes), cases)


def _problem(outcome: Outcome) -> str:
    if outcome.ok:
        return ""
    if outcome.error is not None:
        text = f"{outcome.place or outcome.span}: {outcome.error}" + (f"\n{outcome.hint}" if outcome.hint else "")
        return element("error", outcome.error, text)
    first = outcome.failures[0]
    lines = []
    for check in outcome.failures:
        lines.append(f"{check.span}: {check.title}: expected {check.expected}, found {check.found}")
        lines += [check.detail] if check.detail else []
    message = f"{first.title}: expected {first.expected}, found {first.found}"
    return element("failure", message, "\n".join(lines))
