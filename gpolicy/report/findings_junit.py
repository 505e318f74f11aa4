"""Findings in the JUnit form that CI services read: a suite a file, a case a finding.

A finding that makes the check fail is a failed case, any other a skipped one, which services show without calling the
run a failure. A file where nothing makes the check fail has a case that passes. Names hold no line: services compare
two runs by them, and a finding that only moved is not a new one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from gpolicy.findings import Finding
from gpolicy.printable import printable
from gpolicy.report.junit import case, document, element, suite

CLEAN: str = "gpolicy check"
"""The case of a file in which nothing makes the check fail."""


def findings_junit(
    findings: Iterable[Finding],
    files: Iterable[str],
    *,
    fails: Callable[[Finding], bool],
    locate: Callable[[str], str] = str,
) -> str:
    """Return findings as an XML document, ASCII only.

    `files` are all files that were checked; `fails` says whether a finding makes the check fail; `locate` turns the
    name of a file into its path in the repository.
    """
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for file in files:
        by_file[locate(file)] = []
    for finding in dict.fromkeys(findings):
        by_file[locate(finding.span.file) if finding.span else "policy"].append(finding)
    suites = {file: _cases(file, found, fails) for file, found in sorted(by_file.items())}
    failures = {file: sum(map(fails, found)) for file, found in by_file.items()}
    skipped = {file: len(found) - failures[file] for file, found in by_file.items()}
    whole = _counts(sum(map(len, suites.values())), sum(failures.values()), sum(skipped.values()))
    return document(
        whole,
        [suite(file, _counts(len(cases), failures[file], skipped[file]), cases) for file, cases in suites.items()],
    )


def _counts(tests: int, failures: int, skipped: int) -> str:
    return f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"'


def _cases(file: str, findings: list[Finding], fails: Callable[[Finding], bool]) -> list[str]:
    cases = []
    seen: Counter[str] = Counter()
    for finding in findings:
        name = f"{finding.code} {finding.name}: {finding.message}"
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        line = finding.span.line if finding.span else 1
        cases.append(case(unique, file, line, _inside(finding, failed=fails(finding))))
    return cases if any(map(fails, findings)) else [*cases, case(CLEAN, file, 1)]


def _inside(finding: Finding, *, failed: bool) -> str:
    lines = [f"{finding.severity} {finding.code} {finding.name}: {finding.message}"]
    lines += [str(finding.span)] if finding.span else []
    lines += [f"{related.span}: {related.message}" for related in finding.related]
    lines += [f"hint: {finding.hint}"] if finding.hint else []
    return element("failure" if failed else "skipped", finding.message, "\n".join(map(printable, lines)))
