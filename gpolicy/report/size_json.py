"""How many nodes it takes as JSON: what `gpolicy size --format json` promises (`schemas/output/size.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.json_values import fields, head
from gpolicy.report.capacity_json import BINDING, LIMITS, POLICY_LIMIT
from gpolicy.what_if.filling import FullReport
from gpolicy.what_if.sizing import SizeReport

FORMAT_VERSION: Final = "1.0"


def size_data(report: SizeReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Memory and disk are MiB."""
    missing = report.shortage
    return {
        **head(FORMAT_VERSION, report),
        **fields(report, "basis", "group", "what_if"),
        "limits": [LIMITS.form(item) for item in report.limits],
        "kinds": [
            {"like": kind.like, "cost": kind.cost, "nodes": number}
            for kind, number in zip(report.kinds, report.nodes, strict=True)
        ],
        "cost": report.cost,
        "wanted": [
            {"spec": item.title, **_size(item.instance), "count": item.count, "more": more}
            for item, more in zip(report.wanted, report.more, strict=True)
        ],
        "shortage": missing
        and {
            "nodes": list(missing.nodes),
            "spec": missing.title,
            "fits": missing.fits,
            **BINDING(missing.binding),
        },
        "instead": report.instead and {"number": report.instead.other.words, "nodes": list(report.instead.nodes)},
        **fields(report, "trials", "exhaustive"),
    }


def full_data(report: FullReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Memory and disk are MiB."""
    return {
        **head(FORMAT_VERSION, report),
        **fields(report, "basis", "group", "what_if"),
        "limits": [LIMITS.form(item) for item in report.limits],
        "mix": [{**_size(part.instance), "now": part.now, "more": part.more} for part in report.parts],
        "more": sum(part.more for part in report.parts),
        **(BINDING(report.binding) if report.binding else {}),
        "policy_limit": report.policy_limit and POLICY_LIMIT(report.policy_limit),
        "left_out": report.left_out,
        "stopped": report.binding is None,
    }


def _size(instance: Instance) -> dict[str, Any]:
    return {
        "memory": instance.burst,
        "vcpus": instance.vcpus,
        "disks": [disk.size for disk in instance.disks],
        "template": instance.template.value,
        **fields(instance, "spindle_use"),
    }
