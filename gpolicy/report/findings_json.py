"""Findings as JSON: what `gpolicy check --format json` promises (`schemas/output/check.json`), and GitLab's report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from gpolicy.findings import Accepted, Finding, Fix, Severity
from gpolicy.json_values import PLACE, fields, place
from gpolicy.printable import printable

FORMAT_VERSION: Final = "1.3"
_PLACE: Final = (*PLACE, "end_line", "end_column")


def findings_data(findings: Iterable[Finding], accepted: Iterable[Accepted] = ()) -> dict[str, Any]:
    """Return findings as JSON's own types. Lines and columns count from 1, end columns are just behind the end.

    `file`, `line` and `column` are null for a finding without a place.
    """
    findings = list(findings)
    return {
        "format_version": FORMAT_VERSION,
        "findings": [_finding(finding) for finding in findings],
        "summary": summary(findings),
        "accepted": [
            {**_finding(item.finding), **fields(item, "by", "reason", "new"), "until": item.until or None}
            | {"at": place(item.place)}
            for item in accepted
        ],
    }


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings by severity; every severity is there."""
    counts = Counter(finding.severity for finding in findings)
    return {str(severity): counts[severity] for severity in Severity}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **fields(finding, "code", "name", "severity"),
        **place(finding.span, *_PLACE),
        **fields(finding, "message", "hint"),
        "related": [{**place(related.span, *_PLACE), "message": related.message} for related in finding.related],
        "fix": _fix(finding.fix) if finding.fix else None,
        "consequences": [_finding(item) for item in finding.consequences],
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"message": fix.message, "edits": [{**place(edit.span, *_PLACE), "text": edit.text} for edit in fix.edits]}


_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def findings_gitlab(
    findings: Iterable[Finding],
    *,
    fingerprint: Callable[[Finding], str],
    locate: Callable[[str], str] = str,
    without_place: str = "",
) -> str:
    """Return findings in the form of GitLab's code quality report, ASCII only: a subset of what Code Climate defined.

    Of each entry, GitLab reads `description`, `check_name`, `fingerprint`, `severity` (info, minor, major, critical,
    blocker) and `location` with `path`, from the top of the repository, and `lines.begin`. It compares two reports by
    fingerprint.

    `fingerprint` gives each finding one that no other has; `locate` turns the name of a file into its path in the
    repository. A finding that has no place is shown at the first line of the file `without_place`.
    """
    entries = []
    for finding in dict.fromkeys(findings):
        file, line = (finding.span.file, finding.span.line) if finding.span else (without_place, 1)
        hint = f" (hint: {finding.hint})" if finding.hint else ""
        entry = {
            "type": "issue",
            "check_name": f"{finding.code} {finding.name}",
            "description": printable(finding.message + finding.more + hint),
            "severity": _SEVERITIES[finding.severity],
            "fingerprint": fingerprint(finding),
            "location": {"path": printable(locate(file)), "lines": {"begin": line}},
        }
        entries.append(entry)
    return json.dumps(entries, indent=2) + "\n"
