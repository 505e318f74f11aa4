"""Capacity as JSON: the format that `gpolicy capacity --format json` promises (`schemas/output/capacity.json`)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any, Final

from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PlacedSize, SpecCapacity, spec_values
from gpolicy.analysis.extended_capacity import ExtendedCapacity, ExtendedFit
from gpolicy.analysis.shown_score import Score
from gpolicy.analysis.stranded import Stranded

FORMAT_VERSION: Final = "1.2"


def capacity_data(report: CapacityReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a number that is not finite is null."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster_name": report.cluster_name,
        "source": report.source,
        "snapshot": asdict(report.snapshot) if report.snapshot else None,
        "groups": [{"group": item.group, **capacity_of_group(item)} for item in report.groups],
        "cluster": None if report.cluster is None else capacity_of_group(report.cluster),
        "notes": list(report.notes),
    }


def capacity_json(report: CapacityReport) -> str:
    """Return the report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(capacity_data(report), indent=2, allow_nan=False) + "\n"


def capacity_of_group(item: GroupCapacity) -> dict[str, Any]:
    """Return what `gpolicy capacity` says of one group, or of the whole cluster."""
    return {
        "template": item.template.value if item.template else None,
        "nodes": item.nodes,
        "instances": item.instances,
        "specs": [_spec(spec) for spec in item.specs],
        "tiered": {"fits": _total(item.tiered), "sizes": _sizes(item.tiered), **binding_data(item.tiered_binding)},
        "standard": {
            "spec": spec_values(item.std),
            "fits": item.standard.fits,
            **binding_data(item.standard.binding),
        },
        "stranded": _stranded(item.stranded),
        "extended": None if item.extended is None else _extended(item.extended),
        **_score(item.score),
    }


def _stranded(stranded: Stranded | None) -> dict[str, Any] | None:
    return None if stranded is None else {"free": asdict(stranded.free), "left": asdict(stranded.left)}


def _extended(extended: ExtendedCapacity) -> dict[str, Any]:
    return {
        "max_node_failures": extended.options.max_node_failures,
        "oversubscription": extended.options.oversubscription,
        "specs": [_extended_fit(fit) for fit in extended.specs],
        "standard": _extended_fit(extended.standard),
    }


def _extended_fit(fit: ExtendedFit) -> dict[str, Any]:
    return {
        "name": fit.name,
        "fits": fit.fits,
        **binding_data(fit.binding),
        "minimum_memory": fit.minimum_memory,
        "maximum_memory": fit.maximum_memory,
    }


def _spec(spec: SpecCapacity) -> dict[str, Any]:
    return {
        "name": spec.name,
        "min": spec_values(spec.pair.min),
        "max": spec_values(spec.pair.max),
        "spindle_use": spec.spindle_use,
        "fits": spec.fits,
        **binding_data(spec.binding),
        "tiered": {"fits": _total(spec.tiered), "sizes": _sizes(spec.tiered)},
    }


def binding_data(binding: Binding) -> dict[str, Any]:
    """Return what keeps out the next instance."""
    return {
        "binding": binding.cause.key,
        "explanation": binding.cause.sentence,
        "reason": binding.reason,
        "failures": dict(binding.failures),
    }


def _sizes(sizes: tuple[PlacedSize, ...]) -> list[dict[str, int]]:
    return [
        {
            "memory-size": size.memory,
            "cpu-count": size.cpus,
            "disk-size": size.disk,
            "spindles": size.spindles,
            "count": size.count,
        }
        for size in sizes
    ]


def _total(sizes: tuple[PlacedSize, ...]) -> int:
    return sum(size.count for size in sizes)


def _score(score: Score) -> dict[str, Any]:
    return {
        "score": _finite(score.total),
        "components": [
            {
                "name": component.name,
                "value": _finite(component.value),
                "weight": component.weight,
                "product": _finite(component.product),
            }
            for component in score.components
        ],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
