"""Workflow commands, which GitHub shows as annotations beside the lines of a pull request.

The form is GitHub's "Workflow commands for GitHub Actions": `::error file=…,line=…,title=…::message`. GitHub shows the
first ten of each level and drops the rest without a word, so the tenth says how many more there are; all of them are
in the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.findings import Finding, Severity, Span
from gpolicy.printable import no_command, printable
from gpolicy.report.findings_text import summary_line

MOST_SHOWN: Final = 10
"""Annotations of one level that GitHub shows for a step."""

Locate = Callable[[str], str]

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One message, beside a line or without a place. Equal ones are counted by `kind`."""

    severity: Severity
    kind: str
    title: str
    message: str
    span: Span | None = None


def findings_github(findings: Iterable[Finding], *, locate: Locate = str) -> str:
    """Return findings as workflow commands, worst first, and a line for the log with the counts.

    `locate` turns the name of a file into its path in the repository.
    """
    findings = list(findings)
    return github([finding_annotation(finding) for finding in findings], summary_line(findings), locate=locate)


def finding_annotation(finding: Finding) -> Annotation:
    """Return a finding as an annotation."""
    message = finding.message + finding.more + (f"\nhint: {finding.hint}" if finding.hint else "")
    kind = f"{finding.code} {finding.name}"
    return Annotation(severity=finding.severity, kind=kind, title=kind, message=message, span=finding.span)


def github(annotations: Iterable[Annotation], summary: str, *, locate: Locate = str) -> str:
    """Return `annotations` as workflow commands, worst first, then `summary` as a plain line of the log."""
    ordered = sorted(annotations, key=lambda item: item.severity.rank)
    lines = [line for severity in Severity for line in _level([a for a in ordered if a.severity is severity], locate)]
    return "".join(f"{line}\n" for line in (*lines, _plain(summary)))


def _level(items: list[Annotation], locate: Locate) -> Iterator[str]:
    shown = items if len(items) <= MOST_SHOWN else items[: MOST_SHOWN - 1]
    yield from (_command(item, locate) for item in shown)
    rest = items[len(shown) :]
    if not rest:
        return
    kinds = ", ".join(f"{kind} ({count})" for kind, count in Counter(item.kind for item in rest).most_common())
    level = _LEVELS[rest[0].severity]
    title = f"{len(rest)} more of this level"
    yield f"::{level} title={_property(title)}::{_data(f'{kinds}. GitHub shows ten; all are in the log of this step.')}"
    for item in rest:  # plain lines, which GitHub leaves in the log
        place = f"{item.span}: " if item.span else ""
        yield _plain(f"{place}{level}: {item.title}: {item.message}")


def _command(item: Annotation, locate: Locate) -> str:
    properties = {"file": "", "line": "", "endLine": "", "col": "", "endColumn": "", "title": item.title}
    span = item.span
    if span is not None:
        properties |= {"file": locate(span.file), "line": str(span.line), "endLine": str(span.end_line)}
        if span.end_line == span.line:  # GitHub takes columns within one line only
            properties |= {"col": str(span.column), "endColumn": str(max(span.end_column - 1, span.column))}
    text = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{_LEVELS[item.severity]} {text}::{_data(item.message)}"


def _data(text: str) -> str:
    return "%0A".join(printable(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return printable(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    return no_command(printable(text))
