"""An evacuation as JSON: what `gpolicy evacuate --format json` promises (`schemas/output/evacuate.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.evacuate.evacuation import EvacuationReport, MovedInstance, StayingInstance
from gpolicy.json_values import fields, head
from gpolicy.report.place_json import candidate_data

FORMAT_VERSION: Final = "1.0"


def evacuate_data(report: EvacuationReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Disk is MiB."""
    return {
        **head(FORMAT_VERSION, report),
        **fields(report, "basis", "what_if"),
        "ok": not report.stays,
        **fields(report, "leaving", "group"),
        **fields(report.asked, "mode", "ignore_soft_errors"),
        "requests": [
            fields(item, "kind", "mode", "instances", "targets", "drained", "info", "by_ganeti")
            for item in report.requests
        ],
        "moved": [
            {
                **fields(item, "instance", "template", "request", "job_set", "group", "before", "after", "copied"),
                "steps": [{"what": what, "argv": list(argv)} for what, argv in item.steps],
                "candidates": _candidates(item),
            }
            for item in report.moved
        ],
        "stays": [
            {**fields(item, "instance", "template", "request", "nodes", "reason"), "candidates": _candidates(item)}
            for item in report.stays
        ],
        **fields(report, "copied", "job_sets", "exhaustive", "short_before", "short_after"),
        "notes": [*report.objections, *report.parameters, *report.notes],
    }


def _candidates(item: MovedInstance | StayingInstance) -> list[dict[str, Any]] | None:
    return None if item.candidates is None else [candidate_data(candidate) for candidate in item.candidates]
