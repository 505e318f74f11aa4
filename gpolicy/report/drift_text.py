"""Drift as text: what was found, what is declared, and since when at the latest it has been so."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

from gpolicy.cluster.state import Identity, read_from
from gpolicy.drift.comparing import Drift, DriftReport
from gpolicy.ganeti.parameter import Value
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, ChangeAction, words
from gpolicy.policy.source_file import Files
from gpolicy.printable import BOLD, DIM, GREEN, PLAIN, RED, as_text
from gpolicy.report.findings_text import findings_lines
from gpolicy.report.values_text import pair_lines, value_text


def drift_report(report: DriftReport, sources: Files, *, colour: bool = False) -> str:
    """Return the report as text. `sources` are the policy's files, to show the lines that findings are about."""
    return as_text(_Report(report, sources, colour=colour).lines())


def since_text(since: Identity) -> str:
    """Return since when something has been so, as exactly as Ganeti keeps it."""
    serial = "" if since.serial_no is None else f" (serial {since.serial_no})"
    when = utc(since.mtime)
    if when is None:
        return f"since when is not known{serial}"
    return f"since {when} at the latest, the last write to it{serial}"


def utc(seconds: float | None) -> str | None:
    """Return seconds since 1970 as date and time in UTC; None for none, and for what no calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


class _Report:
    def __init__(self, report: DriftReport, sources: Files, *, colour: bool) -> None:
        self._report, self._sources, self._colour = report, sources, colour

    def lines(self) -> Iterator[str]:
        report = self._report
        yield self._paint(BOLD, f"Drift of cluster {report.cluster} from its policy")
        if report.snapshot:
            yield self._paint(DIM, f"read from {read_from(report.source, report.snapshot)}")
        if not report.drift:
            yield "None: what the policy declares and this source shows is so."
        for obj, group in itertools.groupby(report.drift, key=lambda drift: drift.object):
            drifted = list(group)
            yield ""
            yield f"{self._paint(BOLD, obj)}  {self._paint(DIM, since_text(drifted[0].since))}"
            for drift in drifted:
                yield from self._drift(drift)
        if report.drift:
            yield self._paint(DIM, "Who changed it is not known: Ganeti keeps only when an object was last written.")
        yield from self._accepted()
        yield from self._unreadable()
        if report.findings:
            yield ""
            yield from findings_lines(report.findings, self._sources, colour=self._colour)
        for note in report.notes:
            yield self._paint(DIM, f"note: {note}")
        yield ""
        yield self._paint(BOLD, _summary(report))

    def _drift(self, drift: Drift) -> Iterator[str]:
        if drift.path == ("ipolicy", "minmax"):
            yield "  ipolicy.minmax"
            yield from self._pairs(drift)
        else:
            yield f"  {_sentence(drift)}"
        if drift.action in (ChangeAction.SET, ChangeAction.RESET) and drift.inherits:
            effective = f"in effect: {value_text(drift.effective_found)}"
            yield self._paint(DIM, f"      {effective}; inherited: {_short(drift.effective_declared)}")
        if drift.span is not None:
            yield self._paint(DIM, f"      declared at {drift.span!s}")

    def _pairs(self, drift: Drift) -> Iterator[str]:
        found, declared = pair_lines(drift.found), pair_lines(drift.declared)
        yield from (self._paint(RED, f"      found     {line}") for line in found or ["(no own pairs)"])
        missing = "(no own pairs: the cluster's hold)" if drift.inherits else "(none)"
        yield from (self._paint(GREEN, f"      declared  {line}") for line in declared or [missing])

    def _accepted(self) -> Iterator[str]:
        if not self._report.accepted:
            return
        yield ""
        yield self._paint(BOLD, "Accepted for a time")
        for accepted in self._report.accepted:
            waiver = accepted.waiver
            yield f"  {accepted.drift.object} {_sentence(accepted.drift)}"
            yield self._paint(DIM, f"      until {waiver.until}: {waiver.reason}")

    def _unreadable(self) -> Iterator[str]:
        if not self._report.unreadable:
            return
        yield ""
        yield self._paint(BOLD, "Not compared: this source cannot show them")
        for item in self._report.unreadable:
            declared = f"{item.object} {'.'.join(item.path)} (declared {value_text(item.wanted)})"
            yield f"  ? {declared}"

    def _paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self._colour else text


def _sentence(drift: Drift) -> str:
    match drift.path, drift.action:
        case path, ChangeAction.CREATE if path == NAME:
            return "is declared; the cluster has no such group"
        case path, ChangeAction.REMOVE if path == NAME:
            return f"is declared removed; the cluster has group {drift.found}"
        case path, _ if path == NAME:
            return f"name: found {drift.found}, declared {drift.declared}"
        case path, _ if path == MEMBERSHIP:
            return f"group: found in {drift.found}, declared in {drift.declared}"
        case path, _ if path == TAGS:
            found, declared = words(drift.found), words(drift.declared)
            extra = [f"found {tag}, not declared" for tag in found if tag not in declared]
            return f"tags: {'; '.join([*extra, *(f'{tag} is missing' for tag in declared if tag not in found)])}"
    found_text = "no own value" if drift.found is None else value_text(drift.found)
    return f"{drift.name}: found {found_text}, declared {'inherit' if drift.inherits else value_text(drift.declared)}"


def _short(value: Value) -> str:
    return value_text(value)


def _summary(report: DriftReport) -> str:
    count = len(report.drift)
    parts = [f"{count} difference" if count == 1 else f"{count} differences"]
    if report.accepted:
        parts.append(f"{len(report.accepted)} accepted")
    if report.unreadable:
        parts.append(f"{len(report.unreadable)} not compared")
    return ", ".join(parts)
