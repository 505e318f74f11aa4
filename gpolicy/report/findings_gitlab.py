"""Findings in the form of GitLab's code quality report: a subset of what Code Climate defined.

GitLab takes a JSON array; of each entry it reads `description`, `check_name`, `fingerprint`, `severity` (info, minor,
major, critical, blocker) and `location` with `path`, from the top of the repository, and `lines.begin`. Two reports
are compared by fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from gpolicy.findings import Finding, Severity
from gpolicy.printable import printable

_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def findings_gitlab(
    findings: Iterable[Finding],
    *,
    fingerprint: Callable[[Finding], str],
    locate: Callable[[str], str] = str,
    without_place: str = "",
) -> str:
    """Return findings as a code quality report, ASCII only.

    `fingerprint` gives each finding one that no other has; `locate` turns the name of a file into its path in the
    repository. A finding that has no place is shown at the first line of the file `without_place`.
    """
    entries = []
    for finding in dict.fromkeys(findings):
        path = locate(finding.span.file if finding.span else without_place)
        entries.append(_entry(finding, printable(path), fingerprint(finding)))
    return json.dumps(entries, indent=2) + "\n"


def _entry(finding: Finding, path: str, fingerprint: str) -> dict[str, Any]:
    hint = f" (hint: {finding.hint})" if finding.hint else ""
    return {
        "type": "issue",
        "check_name": f"{finding.code} {finding.name}",
        "description": printable(finding.message + hint),
        "severity": _SEVERITIES[finding.severity],
        "fingerprint": fingerprint,
        "location": {"path": path, "lines": {"begin": finding.span.line if finding.span else 1}},
    }
