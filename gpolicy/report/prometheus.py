"""Metrics for the textfile collector of Prometheus' node exporter: its text exposition format, version 0.0.4.

The series that tell of a run (`up` and the time of the run) are written each time. All others are those of the last run
that found them out, and stay when a later one cannot: an alert must not resolve itself because the cluster stopped
answering. All metrics are gauges. First comes the format, then capacity with what is wrong with a cluster as it is
(sizes in bytes), then drift.
"""

from __future__ import annotations

import math
import re
from calendar import timegm
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import strptime
from typing import TYPE_CHECKING, Final

from gpolicy.cluster.sources import state_read_at
from gpolicy.data import read_data
from gpolicy.ganeti.vocabulary import Level
from gpolicy.provenance import FORM, Provenance

if TYPE_CHECKING:
    from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
    from gpolicy.analysis.health import ClusterHealth, GroupHealth
    from gpolicy.cluster.state import ClusterState
    from gpolicy.drift.comparing import DriftReport

Labels = Mapping[str, str]
Samples = Mapping[str, Sequence[tuple[Labels, float]]]
"""What a verb found out about one cluster: labels and values by the name of the metric, without the prefix."""

LARGEST_BYTES: Final = 64 * 1024**2
"""The most that is read of an earlier file."""

_SERIES: Final = re.compile(r"([a-z0-9_]+)\{.*\} (?:[-+0-9.e]+|NaN|[-+]Inf)")


class Metric:
    """What a metric is, and its labels beside those that tell clusters apart."""

    def __init__(self, help: str, *labels: str) -> None:  # noqa: A002 (Prometheus' own word)
        self.help, self.labels = help, labels


_METRICS: Final = {
    part: {name: Metric(*words) for name, words in said.items()} for part, said in read_data("metrics.toml").items()
}


@dataclass(frozen=True, slots=True)
class MetricSet:
    """The metrics of a verb in the order in which they are written, and the prefix of their names.

    Names and labels are a contract: alerts use them. `identity` are the labels that tell clusters apart.
    """

    prefix: str
    identity: tuple[str, ...]
    own: Mapping[str, Metric]

    @property
    def all(self) -> dict[str, Metric]:
        """All metrics of the verb, with those that tell of a run."""
        return {**_METRICS["run"], **self.own}


@dataclass(frozen=True, slots=True)
class MetricsRun:
    """One cluster, which `identity` tells from others, and what was found out of it; None if that was not possible."""

    identity: Labels
    samples: Samples | None


def exposition(metrics: MetricSet, runs: Sequence[MetricsRun], *, now: float, before: str | None = None) -> str:
    """Return the metrics of runs that end `now` (seconds since 1970); `before` is what the file holds of earlier ones.

    Nothing else of an earlier file is kept than metrics of these clusters.
    """
    kept = _kept(before or "", metrics)
    lines = []
    for name, about in metrics.all.items():
        found = [line for run in runs for line in _lines(metrics, name, run, now, kept)]
        if found:
            metric = metrics.prefix + name
            lines += [f"# HELP {metric} {about.help}", f"# TYPE {metric} gauge", *found]
    return "".join(f"{line}\n" for line in lines)


def _lines(
    metrics: MetricSet, name: str, run: MetricsRun, now: float, kept: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the series of one metric about one cluster."""
    of_all = {"up": float(run.samples is not None), "last_run_timestamp_seconds": now}
    identity, metric = _joined(run.identity), metrics.prefix + name
    if name in of_all:
        yield f"{metric}{{{identity}}} {_sample_value(of_all[name])}"
    elif run.samples is None:
        begins = (f"{metric}{{{identity}}}", f"{metric}{{{identity},")  # the series of this cluster
        yield from (line for line in kept.get(metric, ()) if line.startswith(begins))
    else:
        for labels, value in {**run.samples, "last_success_timestamp_seconds": [({}, now)]}.get(name, ()):
            yield f"{metric}{{{','.join(filter(None, (identity, _joined(labels))))}}} {_sample_value(value)}"


def _kept(before: str, metrics: MetricSet) -> dict[str, list[str]]:
    """Return the series of an earlier file that have one of these names."""
    known = {metrics.prefix + name for name in metrics.all}
    found: dict[str, list[str]] = {}
    for line in before.split("\n"):
        series = _SERIES.fullmatch(line)
        if series and series[1] in known:
            found.setdefault(series[1], []).append(line)
    return found


def _joined(labels: Labels) -> str:
    return ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())


def _escaped(word: str) -> str:
    """Return a label's value in the format; an unpaired surrogate (of a file name) becomes a question mark."""
    text = word.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _sample_value(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


_MIB: Final = 1024**2


def _scoped(scope: str, where: str, metrics: Mapping[str, Metric], *labels: str) -> dict[str, Metric]:
    return {
        f"{scope}_{name}": Metric(f"{where}: {item.help}.", *labels, *item.labels) for name, item in metrics.items()
    }


_CAPACITY: Final = MetricSet(
    "gpolicy_capacity_",
    ("target", "policy"),
    {
        **_METRICS["capacity"],
        **_scoped("cluster", "Whole cluster", _METRICS["both"]),
        **_scoped("group", "Each group", _METRICS["both"] | _METRICS["group"], "group"),
    },
)


def capacity_metrics(report: CapacityReport, health: ClusterHealth, state: ClusterState, made: Provenance) -> Samples:
    """Return the metrics of the cluster in `state`, with its capacity and what is wrong with it; `made`: when."""
    read_at = state_read_at(made, state.source, state.snapshot)
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


_DRIFT: Final = MetricSet("gpolicy_drift_", ("policy", "target"), _METRICS["drift"])
_WAIVER_FINDINGS: Final = ("waiver-expired", "waiver-unused")


def drift_metrics(report: DriftReport) -> Samples:
    """Return the metrics of a comparison."""
    differing = Counter(drift.object.partition("/")[0] for drift in report.drift)
    waivers = Counter(finding.name for finding in report.findings)
    modified = {drift.object: drift.since.mtime for drift in report.drift if drift.since.mtime is not None}
    return {
        "info": [({"cluster": report.cluster}, 1)],
        "differences": [({"kind": level.value}, differing[level.value]) for level in Level],
        "accepted": [({}, len(report.accepted))],
        "unreadable": [({}, len(report.not_compared))],
        "waiver_findings": [({"rule": rule}, waivers[rule]) for rule in _WAIVER_FINDINGS],
        "difference": [({"object": drift.object, "path": drift.name}, 1) for drift in report.drift],
        "object_modified_timestamp_seconds": [({"object": obj}, when) for obj, when in modified.items()],
    }


METRICS: Final = {"capacity": _CAPACITY, "drift": _DRIFT}
"""The metrics of each verb that has some."""
