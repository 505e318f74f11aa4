"""A remedy as JSON: what `gpolicy remedy --format json` promises (`schemas/output/remedy.json`)."""

from __future__ import annotations

from typing import Any

from gpolicy.json_values import fields, head, plain
from gpolicy.remedy.faults import Fault
from gpolicy.remedy.legal_sizes import SizeCure
from gpolicy.remedy.remedy import RemedyReport, RemedyStep
from gpolicy.remedy.remedy_file import FORMAT_VERSION, saved_data
from gpolicy.remedy.saved_remedy import SavedRemedy


def remedy_data(report: RemedyReport, saved: SavedRemedy) -> dict[str, Any]:
    """Return the report as JSON's own types, with what apply needs of it. Disk is MiB, time seconds."""
    return {
        **head(FORMAT_VERSION, report),
        **saved_data(saved),
        **fields(report, "basis", "what_if"),
        "unknown": report.reasons,
        "faults": [_fault(fault) for fault in report.faults],
        "steps": [_step(step) for step in report.steps],
        "left": [{**_fault(item.fault), "reason": item.reason} for item in report.left],
        "new": [_fault(fault) for fault in report.new],
        "sizes": [_size(item) for item in report.sizes],
        "score": {"before": plain(report.score_before.total), "after": plain(report.score_after.total)},
        **fields(report, "rate", "exhaustive", "notes"),
        "summary": {
            "faults": len(report.faults),
            "moves": len(report.steps),
            **fields(report, "cured", "job_sets", "copied", "seconds"),
        },
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return fields(fault, "kind", "key", "instances", "sentence")


def _step(step: RemedyStep) -> dict[str, Any]:
    return {
        **fields(step, "number", "job_set", "instance", "nodes_before", "nodes_after", "commands"),
        **fields(step, "copied", "seconds"),
        "downtime": step.downtime or None,
        "cures": [_fault(fault) for fault in step.cures],
        **fields(step, "back"),
        "no_way_back": step.no_way_back or None,
        **fields(step, "score"),
    }


def _size(item: SizeCure) -> dict[str, Any]:
    return {**fields(item, "instance", "violation", "commands", "back"), "reason": item.reason or None}
