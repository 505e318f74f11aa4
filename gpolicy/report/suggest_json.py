"""Suggested sizes as JSON: what `gpolicy suggest --format json` promises (`schemas/output/suggest.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import spec_values
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.json_values import fields, head
from gpolicy.report.capacity_json import LIMITS
from gpolicy.suggest.suggestion import Mix, NodeKind, OldPair, Size, Suggestion, SuggestReport

FORMAT_VERSION: Final = "2.0"


def suggest_data(report: SuggestReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Memory and disk are MiB."""
    return {
        **head(FORMAT_VERSION, report),
        **fields(report, "basis"),
        "groups": [_group(item) for item in report.groups],
        "passed_over": dict(report.passed_over),
        "what_if": list(report.what_if),
        "unknown": report.reasons,
        "limits": [LIMITS.form(item) for item in report.limits],
    }


def _group(item: Suggestion) -> dict[str, Any]:
    return {
        **fields(item, "group", "template"),
        "exclusive_storage": item.exclusive,
        **fields(item, "bounds", "vcpu_ratio"),
        "pv_size": item.volume,
        "kinds": [_kind(kind) for kind in item.kinds],
        **fields(item, "measure"),
        "sizes": [_size(size) for size in item.sizes],
        "today": [_old(pair) for pair in item.today],
        "stranded": [
            {"kind": left.kind, "size": left.name, **fields(left, "count", "left", "share")} for left in item.stranded
        ],
        "std": {"inside": item.std_in, "suggested": spec_values(item.std)},
        **fields(item, "instances", "newly_forbidden"),
        "mixes": [] if item.mix is None else [_mix(item.mix)],
        "choices": [
            fields(each, "sizes", "weights", "outside", "placed", "unused", "mean_unused") for each in item.choices
        ],
        **fields(item, "document", "notes"),
    }


def _kind(kind: NodeKind) -> dict[str, Any]:
    return {
        **fields(kind, "room"),
        "nodes": [
            {
                **fields(node, "name", "room"),
                "memory_total": node.total_memory,
                "memory_kept": node.kept_memory,
                "cpus_total": node.total_cpus,
                "cpus_kept": node.kept_cpus,
            }
            for node in kind.nodes
        ],
    }


def _size(size: Size) -> dict[str, Any]:
    return {
        **fields(size, "name", "divisor"),
        "min": spec_values(size.pair.min),
        "max": spec_values(size.pair.max),
        **fields(size, "a_node"),
        "now": _fit(size.now),
        "then": _fit(size.then),
        "empty": _fit(size.empty),
    }


def _old(pair: OldPair) -> dict[str, Any]:
    return {
        "name": str(pair.place),
        "min": spec_values(pair.pair.min),
        "max": spec_values(pair.pair.max),
        "now": _fit(pair.now),
        "then": _fit(pair.then),
    }


def _mix(mix: Mix) -> dict[str, Any]:
    return {
        **fields(mix, "weights", "n1", "mixes", "placed", "limit"),
        **({"binding": None, "explanation": None} if mix.binding is None else _binding(mix.binding)),
        **fields(mix, "best", "more", "left"),
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {"fits": fit.fits, **_binding(fit.binding)}


def _binding(binding: Binding) -> dict[str, Any]:
    return {"binding": binding.cause.key, "explanation": binding.cause.sentence}
