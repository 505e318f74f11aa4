"""Placement as JSON: the format that `gpolicy place --format json` promises (`schemas/output/place.json`)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any, Final

from gpolicy.analysis.place_report import Candidate, PlaceReport

FORMAT_VERSION: Final = "1.1"


def place_data(report: PlaceReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a score that is not finite is null."""
    instance, chosen = report.instance, report.chosen
    return {
        "format_version": FORMAT_VERSION,
        "cluster_name": report.cluster_name,
        "source": report.source,
        "snapshot": asdict(report.snapshot) if report.snapshot else None,
        "instance": {
            "name": instance.name,
            "memory": instance.memory,
            "vcpus": instance.vcpus,
            "disks": [{"size": disk.size, "spindles": disk.spindles} for disk in instance.disks],
            "disk": instance.disk,
            "spindle_use": instance.spindle_use,
            "template": instance.template.value,
            "tags": list(instance.tags),
        },
        "ok": report.ok,
        "group": report.group,
        "nodes": list(report.nodes),
        "reason": report.reason,
        "info": report.info,
        "metric": {
            "name": report.metric,
            "sizes": list(report.sizes),
            **({} if chosen is None else _metric(chosen)),
        },
        "groups": [
            {"group": item.group, "alloc_policy": item.alloc_policy, "tried": item.tried, "message": item.message}
            for item in report.groups
        ],
        "candidates": [_candidate(item) for item in report.candidates],
        "notes": list(report.notes),
    }


def place_json(report: PlaceReport) -> str:
    """Return the report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(place_data(report), indent=2, allow_nan=False) + "\n"


def _candidate(item: Candidate) -> dict[str, Any]:
    return {
        "group": item.group,
        "nodes": list(item.nodes),
        "ok": item.ok,
        "reason": item.reason,
        "explanation": item.explanation,
        "detail": item.detail,
        "htools_reason": item.htools_reason,
        **_metric(item),
    }


def _metric(item: Candidate) -> dict[str, Any]:
    """Return the metric of a candidate that could be measured, and what disk it leaves."""
    if item.lost_allocations is not None:
        return {"lost_allocations": list(item.lost_allocations), "disk_left": item.disk_left}
    if item.score is not None:
        return {"score": item.score if math.isfinite(item.score) else None, "disk_left": item.disk_left}
    return {}
