"""Outcomes of a policy's tests as JSON: the format of `gpolicy test --format json` (`schemas/output/test.json`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gpolicy.json_values import fields, place
from gpolicy.testing.outcome import Outcome, tally

FORMAT_VERSION: Final = "1.0"


def outcomes_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON's own types."""
    found = tally(outcomes)
    return {
        "format_version": FORMAT_VERSION,
        "tests": [_test(outcome) for outcome in outcomes],
        "summary": {
            "passed": found.tests - found.failed - found.errors,
            "failed": found.failed,
            "error": found.errors,
        },
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
