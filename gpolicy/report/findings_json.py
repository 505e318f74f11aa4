"""Findings as JSON: the format that `gpolicy check --format json` promises (`schemas/output/check.json`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from gpolicy.findings import Accepted, Finding, Fix, Severity, Span

FORMAT_VERSION: Final = "1.1"


def findings_data(findings: Iterable[Finding], accepted: Iterable[Accepted] = ()) -> dict[str, Any]:
    """Return findings as JSON's own types. Lines and columns count from 1, end columns are just behind the end.

    `file`, `line` and `column` are null for a finding without a place.
    """
    findings = list(findings)
    return {
        "format_version": FORMAT_VERSION,
        "findings": [_finding(finding) for finding in findings],
        "summary": summary(findings),
        "accepted": [{**_finding(item.finding), "by": item.by, "reason": item.reason} for item in accepted],
    }


def findings_json(findings: Iterable[Finding], accepted: Iterable[Accepted] = ()) -> str:
    """Return findings as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(findings_data(findings, accepted), indent=2) + "\n"


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings by severity; every severity is there."""
    counts = Counter(finding.severity for finding in findings)
    return {str(severity): counts[severity] for severity in Severity}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        **_place(finding.span),
        "message": finding.message,
        "hint": finding.hint,
        "related": [{**_place(related.span), "message": related.message} for related in finding.related],
        "fix": _fix(finding.fix) if finding.fix else None,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"message": fix.message, "edits": [{**_place(edit.span), "text": edit.text} for edit in fix.edits]}


def _place(span: Span | None) -> dict[str, Any]:
    return {
        "file": span.file if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
    }
