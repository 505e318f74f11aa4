"""Outcomes of a policy's tests in the JUnit form that CI services read: a suite a file, a case a test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr  # it only writes here; nothing is parsed

from gpolicy.report.findings_text import printable

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Outcome


def outcomes_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as an XML document. ASCII only: everything else becomes a character reference."""
    suites = [_suite(file, list(tests)) for file, tests in groupby(outcomes, key=lambda outcome: outcome.span.file)]
    body = "\n".join([f"<testsuites {_counts(outcomes)}>", *suites, "</testsuites>"])
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _counts(outcomes: Sequence[Outcome]) -> str:
    errors = sum(outcome.error is not None for outcome in outcomes)
    failures = sum(not outcome.ok for outcome in outcomes) - errors
    return f'tests="{len(outcomes)}" failures="{failures}" errors="{errors}"'


def _suite(file: str, outcomes: Sequence[Outcome]) -> str:
    cases = [_case(outcome) for outcome in outcomes]
    return "\n".join([f"  <testsuite name={_attribute(file)} {_counts(outcomes)}>", *cases, "  </testsuite>"])


def _case(outcome: Outcome) -> str:
    span = outcome.span
    head = (
        f"    <testcase classname={_attribute(span.file)} name={_attribute(outcome.name)}"
        f' file={_attribute(span.file)} line="{span.line}"'
    )
    if outcome.ok:
        return f"{head}/>"
    if outcome.error is not None:
        text = f"{outcome.place or span}: {outcome.error}" + (f"\n{outcome.hint}" if outcome.hint else "")
        return f"{head}>\n      {_problem('error', outcome.error, text)}\n    </testcase>"
    first = outcome.failures[0]
    lines = []
    for check in outcome.failures:
        lines.append(f"{check.span}: {check.title}: expected {check.expected}, found {check.found}")
        lines += [check.detail] if check.detail else []
    message = f"{first.title}: expected {first.expected}, found {first.found}"
    return f"{head}>\n      {_problem('failure', message, chr(10).join(lines))}\n    </testcase>"


def _problem(element: str, message: str, text: str) -> str:
    body = "\n".join(escape(printable(line)) for line in text.split("\n"))
    return f"<{element} message={_attribute(message)}>{body}</{element}>"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
