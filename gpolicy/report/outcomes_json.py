"""Outcomes of a policy's tests as JSON: the format of `gpolicy test --format json` (`schemas/output/test.json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gpolicy.findings import Span
    from gpolicy.testing.outcome import Outcome

FORMAT_VERSION: Final = "1.0"


def outcomes_data(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON's own types."""
    errors = sum(outcome.error is not None for outcome in outcomes)
    passed = sum(outcome.ok for outcome in outcomes)
    return {
        "format_version": FORMAT_VERSION,
        "tests": [_test(outcome) for outcome in outcomes],
        "summary": {"passed": passed, "failed": len(outcomes) - passed - errors, "error": errors},
    }


def outcomes_json(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(outcomes_data(outcomes), indent=2, allow_nan=False) + "\n"


def _test(outcome: Outcome) -> dict[str, Any]:
    result = "error" if outcome.error is not None else "passed" if outcome.ok else "failed"
    return {
        "name": outcome.name,
        "action": outcome.action.value,
        "result": result,
        **_place(outcome.span),
        "error": None
        if outcome.error is None
        else {"message": outcome.error, "hint": outcome.hint or "", **_place(outcome.place or outcome.span)},
        "checks": [
            {
                "expectation": check.title,
                "ok": check.ok,
                "expected": check.expected,
                "found": check.found,
                "detail": check.detail,
                **_place(check.span),
            }
            for check in outcome.checks
        ],
    }


def _place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.line, "column": span.column}
