"""Metrics for the textfile collector of Prometheus' node exporter: its text exposition format, version 0.0.4.

The series that tell of a run (`up` and the time of the run) are written each time. All others are those of the last run
that found them out, and stay when a later one cannot: an alert must not resolve itself because the cluster stopped
answering. All metrics are gauges.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

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


_OF_A_RUN: Final = {
    "up": Metric("1 if the last run could read and judge the cluster, 0 if not."),
    "last_run_timestamp_seconds": Metric("When the last run ended, whether it succeeded or not."),
    "last_success_timestamp_seconds": Metric("When the last successful run ended. All series below are of that run."),
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
        return {**_OF_A_RUN, **self.own}


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
        yield f"{metric}{{{identity}}} {_number(of_all[name])}"
    elif run.samples is None:
        begins = (f"{metric}{{{identity}}}", f"{metric}{{{identity},")  # the series of this cluster
        yield from (line for line in kept.get(metric, ()) if line.startswith(begins))
    else:
        for labels, value in {**run.samples, "last_success_timestamp_seconds": [({}, now)]}.get(name, ()):
            yield f"{metric}{{{','.join(filter(None, (identity, _joined(labels))))}}} {_number(value)}"


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


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
