"""Findings as JSON: what `gpolicy check --format json` promises (`schemas/output/check.json`), GitLab's, and SARIF.

SARIF 2.1.0 (OASIS) is what GitHub code scanning, editors and other collectors of findings read: one run for all
policies of a check, with the rules that found something. Nothing in it depends on the machine or the clock, so equal
findings give equal bytes. Paths are relative to `%SRCROOT%`, the top of the checkout. Findings that are accepted are
left out: GitHub and Jenkins do not read SARIF's `suppressions`, and show them as open.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes

from gpolicy import __version__
from gpolicy.findings import Accepted, Edit, Finding, Fix, Related, RuleInfo, RuleText, Severity, Span
from gpolicy.json_values import COUNT, NOT_EMPTY, PLACE, SPAN, Document, Key, Many, Maybe, Shape, version_key
from gpolicy.printable import printable

FINDING: Final = Shape(Finding, "finding")
FINDING.with_keys(
    "code name severity span message hint related fix consequences",
    code={"type": "string", "pattern": "^GP[0-9]{3}$"},
    name={"type": "string", "pattern": "^(house/[a-z0-9]+(-[a-z0-9]+)*|[a-z]+(-[a-z]+)*)$"},
    span=Key(Maybe(SPAN), inline=True),
    message=NOT_EMPTY,
    related=Shape(Related).with_keys("span message", span=Key(SPAN, inline=True)),
    fix=Shape(Fix, "fix").with_keys(
        message=NOT_EMPTY, edits=Many(Shape(Edit).with_keys("span text", span=Key(SPAN, inline=True)), least=1)
    ),
    consequences=Key(FINDING, "consequences"),
)
_ACCEPTED: Final = Shape(Accepted).with_keys(
    "finding by reason new until at",
    finding=Key(FINDING, inline=True),
    by={"enum": ["waiver", "comment", "baseline"]},
    until=Key(str | None, lambda item: item.until or None),
    at=Shape(Accepted).with_keys(place=Key(Maybe(PLACE), inline=True)),
)


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings by severity; every severity is there."""
    counts = Counter(finding.severity for finding in findings)
    return {str(severity): counts[severity] for severity in Severity}


CHECK_DOCUMENT: Final = Document(
    "gpolicy check --format json",
    Shape(list).with_keys(
        format_version=version_key("1.3"),
        findings=Key(Many(FINDING), lambda findings: findings),
        summary=Key(Shape(dict).with_keys(**dict.fromkeys(map(str, Severity), COUNT)), summary),
    ),
    Shape(list).with_keys(accepted=Key(Many(_ACCEPTED), lambda accepted: accepted)),
)


def findings_data(findings: Iterable[Finding], accepted: Iterable[Accepted] = ()) -> dict[str, Any]:
    """Return findings as JSON's own types. Lines and columns count from 1, end columns are just behind the end.

    `file`, `line` and `column` are null for a finding without a place.
    """
    return CHECK_DOCUMENT.data(list(findings), list(accepted))


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


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
SOURCE_ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "gpolicyFinding/v1"
"""The name under which a finding's fingerprint stands. GitHub adds one of its own, made from the line."""

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_LINE_ENDS: Final = ["\r\n", "\n", "\r", "\x85", "\u2028", "\u2029"]  # what the YAML reader counts


def findings_sarif(
    findings: Iterable[Finding],
    rules: Sequence[RuleInfo],
    families: Mapping[str, str],
    *,
    homepage: str,
    fingerprint: Callable[[Finding], str],
    locate: Callable[[str], str] = str,
    without_place: str = "",
) -> str:
    """Return findings as SARIF text, ASCII only.

    `rules` are all rules in their order, `families` what families of codes (`GP2`) are about, `homepage` is that of
    the program. `locate` turns the name of a file into its path in the repository. A finding that has no place is shown
    at the file `without_place`, as collectors refuse a result without any.
    """
    findings = list(dict.fromkeys(findings))
    fired = {finding.key for finding in findings}
    rules = [info for info in rules if info.key in fired]
    positions = {info.key: position for position, info in enumerate(rules)}
    writer = _SarifWriter(positions, fingerprint, locate, without_place)
    driver = {
        "name": "gpolicy",
        "version": __version__,
        "informationUri": homepage,
        "shortDescription": {"text": "Policy as code for Ganeti clusters."},
        "rules": [_rule(info, families) for info in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "originalUriBaseIds": {SOURCE_ROOT: {"description": {"text": "The top of the checkout."}}},
        "columnKind": "unicodeCodePoints",
        "newlineSequences": _LINE_ENDS,
        "results": [writer.result(finding) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(info: RuleInfo, families: Mapping[str, str]) -> dict[str, Any]:
    family = families.get(info.code[:3])
    return {
        "id": info.key,
        "name": info.name,
        "shortDescription": {"text": info.text.summary},
        "fullDescription": {"text": info.text.rationale},
        "help": {"text": _help(info.text, "{}\n"), "markdown": _help(info.text, "```yaml\n{}\n```\n")},
        "defaultConfiguration": {"level": _LEVELS[info.severity]},
        **({"properties": {"tags": [family]}} if family else {}),
    }


def _help(text: RuleText, example: str) -> str:
    parts = [f"{text.rationale}\n", f"Source: {text.source}.\n"]
    parts += [f"Bad:\n\n{example.format(text.bad.rstrip())}"] if text.bad else []
    parts += [f"Good:\n\n{example.format(text.good.rstrip())}"] if text.good else []
    parts += [f"gpolicy check --fix: {text.fix}\n"] if text.fix else []
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _SarifWriter:
    positions: Mapping[str, int]
    fingerprint: Callable[[Finding], str]
    locate: Callable[[str], str]
    without_place: str

    def result(self, finding: Finding) -> dict[str, Any]:
        hint = f"\nhint: {finding.hint}" if finding.hint else ""
        related = [
            {"id": number, **self._location(item.span), "message": {"text": _without_links(item.message)}}
            for number, item in enumerate(finding.places, start=1)
        ]
        return {
            "ruleId": finding.key,
            "ruleIndex": self.positions[finding.key],
            "level": _LEVELS[finding.severity],
            "message": {"text": _without_links(finding.message + hint)},
            "locations": self._locations(finding.span),
            **({"relatedLocations": related} if related else {}),
            "partialFingerprints": {FINGERPRINT: self.fingerprint(finding)},
            **({"fixes": [self._fix(finding.fix)]} if finding.fix else {}),
        }

    def _fix(self, fix: Fix) -> dict[str, Any]:
        files: dict[str, list[dict[str, Any]]] = {}
        for edit in fix.edits:
            replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
            files.setdefault(edit.span.file, []).append(replacement)
        changes = [{"artifactLocation": self._artifact(file), "replacements": edits} for file, edits in files.items()]
        return {"description": {"text": _without_links(fix.message)}, "artifactChanges": changes}

    def _locations(self, span: Span | None) -> list[dict[str, Any]]:
        if span is not None:
            return [self._location(span)]
        place = self.without_place
        return [{"physicalLocation": {"artifactLocation": self._artifact(place)}}] if place else []

    def _location(self, span: Span) -> dict[str, Any]:
        return {"physicalLocation": {"artifactLocation": self._artifact(span.file), "region": _region(span)}}

    def _artifact(self, file: str) -> dict[str, str]:
        path = self.locate(file)
        if Path(path).is_absolute():  # outside of the checkout
            return {"uri": f"file://{_quoted(path)}"}
        return {"uri": _quoted(path), "uriBaseId": SOURCE_ROOT}


def _region(span: Span) -> dict[str, int]:
    """Return a place as SARIF has it: as ours, from 1 and with the end column just behind the last character."""
    return {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}


def _quoted(path: str) -> str:
    """Return a path as a URI reference; bytes that are no text and colons in its first part are escaped as well."""
    return quote_from_bytes(os.fsencode(path))


def _without_links(text: str) -> str:
    """Return a message without hidden characters and links: viewers read `[text](target)` as a link."""
    return "\n".join(map(printable, text.split("\n"))).replace("](", "] (")
