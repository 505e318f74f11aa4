"""Metrics of a verb, of one cluster or many: also those that could not be read have some, for an alert to see."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.many_clusters import reports_of
from gpolicy.cli.output import show_errors
from gpolicy.cli.terminal import complain, write_long
from gpolicy.cluster.sources import SCHEMES
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.opening import file_to_write, read_below, write_public
from gpolicy.report.fleet_report import worst_exit_code
from gpolicy.report.prometheus import LARGEST_BYTES, METRICS, Labels, MetricSet, MetricsRun, Samples, exposition

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target, Targets, Work


def run_metrics(work: Work, targets: Targets, verb: str, output: Path | None) -> int:
    """Do the work for each of the targets, write metrics to `output` or standard output, and return the exit code.

    The file is replaced as a whole, for the node exporter, which is another user. Clusters that could not be judged
    keep the metrics that it holds of them, but for `up` and the time of the run.
    """
    if not targets.several:
        return _run_one(work, targets.targets[0], verb, output)
    reports = reports_of(work, targets, {"prometheus"})
    if not reports:
        return int(ExitCode.FINE)
    found = [item.metrics for item in reports]
    _write(verb, targets.targets, found, output)
    for item in reports:
        if item.metrics is None:
            complain(f"{item.name}: {item.error}", item.hint or None)
    return worst_exit_code(reports)


def _run_one(work: Work, target: Target, verb: str, output: Path | None) -> int:
    try:
        report = work(target)
        samples = None if report.metrics is None else report.metrics()
    except (GpolicyError, OSError):
        try:
            _write(verb, [target], [None], output)
        except GpolicyError as error:  # never in place of the one that tells why
            complain(error.message, error.hint)
        raise
    if report.errors:
        show_errors(report.errors, report.files)
    _write(verb, [target], [samples], output)
    return report.exit_code


def _write(verb: str, targets: Sequence[Target], found: Sequence[Samples | None], output: Path | None) -> None:
    metrics = METRICS[verb]
    runs = [MetricsRun(_identity(metrics, target), samples) for target, samples in zip(targets, found, strict=True)]
    before = None if output is None else _written_before(output)
    text = exposition(metrics, runs, now=time.time(), before=before)
    if output is None:
        write_long(text)
    else:
        write_public(output, text.encode())


def _identity(metrics: MetricSet, target: Target) -> Labels:
    """Return the labels that tell a cluster from others: the same in runs that fail.

    The first of the two always stands there, the second only where it was asked for.
    """
    policy = target.path or (target.named.policy if target.named else None) or Path()
    known = {"policy": str(policy.absolute()), "target": target.name or _shown(target.state or "")}
    first, second = metrics.identity
    asked = {"policy": target.path is not None, "target": bool(target.name)}
    return {first: known[first], **({second: known[second]} if asked[second] else {})}


def _shown(address: str) -> str:
    """Return an address without its user, and nothing of what is none: it is written also where it is refused."""
    scheme, _, rest = address.partition(":")
    if scheme not in SCHEMES:
        return ""
    return f"{scheme}://{rest.rpartition('@')[2].lstrip('/')}" if scheme in ("rapi", "ssh") else address


def _written_before(file: Path) -> str | None:
    """Return the metrics of earlier runs; None if they cannot be read."""
    try:
        target = file_to_write(file)
        return read_below(target.directory, target.directory / target.name, LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
