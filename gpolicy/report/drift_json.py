"""Drift as JSON: the format that `gpolicy drift --format json` promises (`schemas/output/drift.json`)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from gpolicy.drift.comparing import AcceptedDrift, Drift, DriftReport
from gpolicy.findings import Span
from gpolicy.report.drift_answer import utc
from gpolicy.report.findings_json import findings_data

FORMAT_VERSION: Final = "1.1"


def drift_data(report: DriftReport, *, compared_at: float) -> dict[str, Any]:
    """Return the report as JSON's own types. `compared_at` is in seconds since 1970."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": report.cluster,
        "source": report.source,
        "snapshot": asdict(report.snapshot) if report.snapshot else None,
        "compared_at": utc(compared_at),
        "drift": [_drift(drift) for drift in report.drift],
        "accepted": [_accepted(accepted) for accepted in report.accepted],
        "unreadable": [
            {"object": item.object, "path": ".".join(item.path), "declared": item.wanted, **_place(item.span)}
            for item in report.unreadable
        ],
        "findings": findings_data(report.findings)["findings"],
        "notes": list(report.notes),
        "summary": {
            "drift": len(report.drift),
            "accepted": len(report.accepted),
            "unreadable": len(report.unreadable),
        },
    }


def drift_json(report: DriftReport, *, compared_at: float) -> str:
    """Return the report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(drift_data(report, compared_at=compared_at), indent=2) + "\n"


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "object": drift.object,
        "path": drift.name,
        "action": str(drift.action),
        "declared": drift.declared,
        "inherits": drift.inherits,
        "found": drift.found,
        "effective_declared": drift.effective_declared,
        "effective_found": drift.effective_found,
        "since_at_latest": utc(drift.since.mtime),
        "serial_no": drift.since.serial_no,
        **_place(drift.span),
    }


def _accepted(accepted: AcceptedDrift) -> dict[str, Any]:
    waiver = accepted.waiver
    written = {"where": waiver.where, "reason": waiver.reason, "until": waiver.until, **_place(waiver.span)}
    return {**_drift(accepted.drift), "waiver": written}


def _place(span: Span | None) -> dict[str, Any]:
    return {"file": span.file if span else None, "line": span.line if span else None}
