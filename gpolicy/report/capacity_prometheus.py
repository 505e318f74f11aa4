"""Capacity, and what is wrong with a cluster as it is, as metrics. Sizes are in bytes."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Iterator, Mapping
from time import strptime
from typing import TYPE_CHECKING, Final

from gpolicy.provenance import FORM
from gpolicy.report.prometheus import Labels, Metric, MetricSet, Samples

if TYPE_CHECKING:
    from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
    from gpolicy.analysis.health import ClusterHealth, GroupHealth
    from gpolicy.cluster.state import ClusterState
    from gpolicy.provenance import Provenance

_MIB: Final = 1024**2
_OF_BOTH: Final = {
    "nodes": Metric("nodes, also those that are offline"),
    "instances": Metric("instances that there are"),
    "fitting_instances": Metric(
        "instances that hail accepts beside those that there are: of each size (kind pair), in a tiered run"
        " (tiered), and of the standard size (standard)",
        *("template", "kind", "spec"),
    ),
    "hspace_fitting_instances": Metric("the same as hspace counts them", "kind", "spec"),
    "binding": Metric("always 1; the resource or limit that keeps out the next instance", "kind", "spec", "resource"),
    "score": Metric("cluster score of htools: the smaller, the better balanced"),
    "score_minimum": Metric("theoretical minimum of the score"),
    "score_component": Metric("what a component adds to the score: its value times its weight", "component"),
    "free_memory_bytes": Metric("memory of online nodes that is free and not reserved for failovers"),
    "free_disk_bytes": Metric("disk of online nodes that is free"),
    "stranded_memory_bytes": Metric("the part of the free memory that no allowed instance can use"),
    "stranded_disk_bytes": Metric("the part of the free disk that no allowed instance can use"),
}
_OF_A_GROUP: Final = {
    "violating_instances": Metric("instances that violate the instance policy"),
    "undecided_instances": Metric("instances of which the source does not show whether they violate the policy"),
    "violating_nodes": Metric("nodes above vcpu-ratio or spindle-ratio: what hbal calls policy-violating nodes"),
    "undecided_nodes": Metric("nodes of which the source does not show whether they are above a ratio"),
    "n1_failing_nodes": Metric("nodes that lack memory for the instances that they mirror (N+1)"),
    "days_until_full": Metric(
        "days until none of a size fits, at the growth of --history; +Inf: not in sight", "kind", "spec", "bound"
    ),
    "fatal_node_losses": Metric("nodes whose loss leaves an instance without a new node"),
}


def _scoped(scope: str, where: str, metrics: Mapping[str, Metric], *labels: str) -> dict[str, Metric]:
    return {
        f"{scope}_{name}": Metric(f"{where}: {item.help}.", *labels, *item.labels) for name, item in metrics.items()
    }


METRICS: Final = MetricSet(
    "gpolicy_capacity_",
    ("target", "policy"),
    {
        "info": Metric("Always 1; the cluster that was counted.", "cluster", "release"),
        "state_timestamp_seconds": Metric("When the state of the cluster was read; of a snapshot, when it was taken."),
        "group_unknown": Metric("1 for each group that could not be counted, 0 for the others.", "group"),
        "cluster_tag_conflicts": Metric("Conflicts with tags of exclusion, domains, migration, places.", "kind"),
        **_scoped("cluster", "Whole cluster", _OF_BOTH),
        **_scoped("group", "Each group", _OF_BOTH | _OF_A_GROUP, "group"),
    },
)


def capacity_metrics(report: CapacityReport, health: ClusterHealth, state: ClusterState, made: Provenance) -> Samples:
    """Return the metrics of the cluster in `state`, with its capacity and what is wrong with it; `made`: when."""
    read_at = made.state_read_at(state.source, state.snapshot)
    found: dict[str, list[tuple[Labels, float]]] = {
        "info": [({"cluster": report.cluster_name, "release": state.software_version or ""}, 1)],
        "state_timestamp_seconds": [({}, timegm(strptime(read_at, FORM)))] if read_at else [],
        "group_unknown": [({"group": name}, int(name in report.unknown)) for name in health.groups],
        "cluster_tag_conflicts": [({"kind": kind}, number) for kind, number in health.conflicts.items()],
    }

    def add(scope: str, of: Labels, series: Iterator[tuple[str, Labels, float]]) -> None:
        for name, labels, value in series:
            found.setdefault(f"{scope}_{name}", []).append(({**of, **labels}, value))

    if report.cluster is not None:
        add("cluster", {}, _of_both(report.cluster))
    for name in report.unknown:
        add("group", {"group": name}, _wrong(health.groups[name]))
    for item in report.groups:
        name = item.group or ""
        add("group", {"group": name}, _of_both(item))
        if name in health.groups:
            add("group", {"group": name}, _wrong(health.groups[name]))
    return found


def _of_both(item: GroupCapacity) -> Iterator[tuple[str, Labels, float]]:
    """Yield what is known of a group as of the whole cluster."""
    yield "nodes", {}, item.nodes
    yield "instances", {}, item.instances
    template = item.template.value if item.template else ""
    for place, (name, fit, hspace) in enumerate(item.figures):
        labels = {"kind": "pair", "spec": name} if place < len(item.specs) else {"kind": name, "spec": ""}
        yield "fitting_instances", {"template": template, **labels}, fit.fits
        yield "hspace_fitting_instances", labels, hspace
        yield "binding", {**labels, "resource": fit.binding.cause.key}, 1
    yield "score", {}, item.score.total
    yield "score_minimum", {}, item.score.minimum
    for component in item.score.components:
        yield "score_component", {"component": component.name}, component.product
    if item.stranded is not None:
        for word, room in (("free", item.stranded.free), ("stranded", item.stranded.left)):
            yield f"{word}_memory_bytes", {}, room.memory * _MIB
            yield f"{word}_disk_bytes", {}, room.disk * _MIB


def _wrong(health: GroupHealth) -> Iterator[tuple[str, Labels, float]]:
    yield "violating_instances", {}, health.violating
    yield "undecided_instances", {}, health.undecided
    yield "violating_nodes", {}, health.violating_nodes
    yield "undecided_nodes", {}, health.undecided_nodes
    if health.redundancy is not None:
        yield "n1_failing_nodes", {}, len(health.redundancy.shortages)
        yield "fatal_node_losses", {}, len(health.redundancy.not_absorbed)
