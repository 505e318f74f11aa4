"""Placement as JSON: the format that `gpolicy place --format json` promises (`schemas/output/place.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.analysis.place_report import Candidate, PlaceReport
from gpolicy.json_values import fields, head
from gpolicy.report.capacity_json import LIMITS

FORMAT_VERSION: Final = "1.4"


def place_data(report: PlaceReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a score that is not finite is null."""
    instance, chosen = report.instance, report.chosen
    return {
        **head(FORMAT_VERSION, report),
        "instance": {
            "name": instance.name,
            "memory": instance.burst,
            "vcpus": instance.vcpus,
            "disks": [fields(disk, "size", "spindles") for disk in instance.disks],
            **fields(instance, "disk", "spindle_use", "template", "tags"),
        },
        **fields(report, "basis", "ok", "group", "nodes", "reason", "info"),
        "metric": {
            "name": report.metric,
            "sizes": list(report.sizes),
            **({} if chosen is None else _metric(chosen)),
        },
        "instead": None if report.instead is None else [fields(item, "words", "nodes") for item in report.instead],
        "groups": [fields(item, "group", "alloc_policy", "tried", "message") for item in report.groups],
        "candidates": [candidate_data(item) for item in report.candidates],
        "what_if": list(report.what_if),
        "unknown": report.reasons,
        "limits": [LIMITS.form(item) for item in report.limits],
        "notes": [*report.objections, *report.parameters, *report.notes],
    }


def candidate_data(item: Candidate) -> dict[str, Any]:
    """Return one candidate."""
    said = fields(item, "group", "nodes", "ok", "reason", "explanation", "detail", "htools_reason")
    return {**said, **_metric(item)}


def _metric(item: Candidate) -> dict[str, Any]:
    """Return the metric of a candidate that could be measured, and what disk it leaves."""
    if item.lost_allocations is not None:
        return fields(item, "lost_allocations", "disk_left")
    return {} if item.score is None else fields(item, "score", "disk_left")
