"""Drift as JSON: the format that `gpolicy drift --format json` promises (`schemas/output/drift.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.drift.comparing import AcceptedDrift, Drift, DriftReport
from gpolicy.drift.write_back import WriteBack
from gpolicy.findings import Span
from gpolicy.json_values import fields, place
from gpolicy.report.drift_answer import utc
from gpolicy.report.findings_json import findings_data

FORMAT_VERSION: Final = "1.2"


def drift_data(report: DriftReport, *, compared_at: float, wrote: WriteBack | None = None) -> dict[str, Any]:
    """Return the report as JSON's own types. `compared_at` is in seconds since 1970; `wrote` what became of it."""
    return {
        "format_version": FORMAT_VERSION,
        **fields(report, "cluster", "source", "snapshot"),
        "compared_at": utc(compared_at),
        "drift": [_drift(drift) for drift in report.drift],
        "accepted": [_accepted(accepted) for accepted in report.accepted],
        "unreadable": [
            {"object": item.object, "path": ".".join(item.path), "declared": item.wanted, **_line(item.span)}
            for item in report.unreadable
        ],
        "findings": findings_data(report.findings)["findings"],
        "written": None if wrote is None else _written(wrote),
        "notes": list(report.notes),
        "summary": {name: len(getattr(report, name)) for name in ("drift", "accepted", "unreadable")},
    }


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        **_key(drift),
        "action": str(drift.action),
        **fields(drift, "declared", "inherits", "found", "effective_declared", "effective_found"),
        "since_at_latest": utc(drift.since.mtime),
        "serial_no": drift.since.serial_no,
        **_line(drift.span),
    }


def _written(wrote: WriteBack) -> dict[str, Any]:
    return {
        "values": [{**_key(item.drift), "how": str(item.how), **_line(item.span)} for item in wrote.written],
        "not_written": [{**_key(item.drift), "reason": item.reason} for item in wrote.not_written],
        "files": sorted(wrote.texts),
        "changed_elsewhere": list(wrote.changed_elsewhere),
        "left": len(wrote.left),
    }


def _key(drift: Drift) -> dict[str, Any]:
    return {"object": drift.object, "path": drift.name}


def _accepted(accepted: AcceptedDrift) -> dict[str, Any]:
    waiver = accepted.waiver
    written = {**fields(waiver, "where", "reason", "until"), **_line(waiver.span)}
    return {**_drift(accepted.drift), "waiver": written}


def _line(span: Span | None) -> dict[str, Any]:
    return place(span, "file", "line")
