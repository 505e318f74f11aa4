"""Capacity as JSON: the format that `gpolicy capacity --format json` promises (`schemas/output/capacity.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PlacedSize, SpecCapacity, spec_values
from gpolicy.analysis.policy_limits import PolicyLimit
from gpolicy.cluster.terms import LimitsInForce
from gpolicy.json_values import fields, head, plain

FORMAT_VERSION: Final = "2.0"
_LIMITS: Final = ("max_node_failures", "oversubscription", "cpus_after_failure")


def capacity_data(report: CapacityReport, before: CapacityReport | None = None) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a number that is not finite is null.

    `before` is the capacity without what is supposed.
    """
    return {
        **head(FORMAT_VERSION, report),
        **fields(report, "basis"),
        "limits": [limits_data(item) for item in report.limits],
        **_groups(report),
        "before": None if before is None else _groups(before),
        "metadata": [fields(room, "group", "volume_group", "disks", "nodes", "unknown") for room in report.metadata],
        "policy_limits": [policy_limit_data(item) for item in report.policy_limits],
        "what_if": list(report.what_if),
        "unknown": report.reasons,
        "notes": list(report.notes),
    }


def policy_limit_data(item: PolicyLimit) -> dict[str, Any]:
    """Return what another value of a number of the policy would give."""
    return {
        **fields(item, "group", "spec", "fits", "would_fit"),
        "number": item.cause.key,
        "instead": item.other and item.other.words,
        "bound_by": item.then.key,
    }


def _groups(report: CapacityReport) -> dict[str, Any]:
    return {
        "groups": [{"group": item.group, **capacity_of_group(item)} for item in report.groups],
        "cluster": None if report.cluster is None else capacity_of_group(report.cluster),
    }


def capacity_of_group(item: GroupCapacity) -> dict[str, Any]:
    """Return the capacity of one group, or of the whole cluster."""
    return {
        **fields(item, "template", "nodes", "instances"),
        "specs": [_spec(spec) for spec in item.specs],
        "tiered": {
            "fits": _total(item.tiered),
            "hspace": _total(item.hspace_tiered),
            "sizes": _sizes(item.tiered),
            **binding_data(item.tiered_binding),
        },
        "standard": {
            "spec": spec_values(item.std),
            "fits": item.standard.fits,
            "hspace": item.hspace_standard,
            **binding_data(item.standard.binding),
        },
        **fields(item, "stranded"),
        "score": plain(item.score.total),
        "score_minimum": plain(item.score.minimum),
        "components": [
            fields(each, "name", "value", "weight", "product", "least", "excess") for each in item.score.components
        ],
    }


def limits_data(item: LimitsInForce) -> dict[str, Any]:
    """Return the limits of some groups, with where they come from."""
    return {**fields(item, "groups"), **fields(item.limits, *_LIMITS), **fields(item, "options")}


def _spec(spec: SpecCapacity) -> dict[str, Any]:
    return {
        "name": spec.name,
        "min": spec_values(spec.pair.min),
        "max": spec_values(spec.pair.max),
        **fields(spec, "spindle_use", "fits", "hspace"),
        **binding_data(spec.binding),
        "tiered": {"fits": _total(spec.tiered), "sizes": _sizes(spec.tiered)},
    }


def binding_data(binding: Binding) -> dict[str, Any]:
    """Return why the next instance does not fit."""
    return {
        "binding": binding.cause.key,
        "explanation": binding.cause.sentence,
        "reason": binding.reason,
        "detail": binding.detail,
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
