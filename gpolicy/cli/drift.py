"""`drift`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings, reader_today
from gpolicy.cli.output import Report, display_on, looked_at, report_text, show_errors
from gpolicy.cli.pager import write_long
from gpolicy.cli.targets import Target, run_on, targets_of
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.json_values import json_text
from gpolicy.report.forms import Display

if TYPE_CHECKING:
    from gpolicy.cli.options import ChosenClusters


def drift(asked: ChosenClusters, path: Path | None, display: Display, output: Path | None) -> int:
    """Show the differences of clusters from their policies; return the exit code.

    Metrics are written also when nothing could be compared: that is what an alert must see.
    """
    targets = targets_of(asked, path)
    if targets.several:
        if output is not None:
            raise UsageError("--output is for one cluster", hint="redirect the output, or say --pages DIR")
        return run_on(targets, compare, display, verb="drift")
    place = _Place(display, output, targets.targets[0])
    try:
        report = compare(place.target)
    except (GpolicyError, OSError):
        _write_failure(place)
        raise
    if report.answer is None:
        show_errors(report.errors, report.files)
        _write_failure(place)
        return report.exit_code
    shown = display_on(sys.stdout, display) if output is None else display
    _write(place, report_text(shown, report.answer, report.own, report.policy))
    return report.exit_code


def compare(target: Target) -> Report:
    """Return the differences of a cluster from its policy as a report."""
    from gpolicy.checking.overrides import settings_of  # noqa: PLC0415
    from gpolicy.drift.comparing import find_drift  # noqa: PLC0415
    from gpolicy.report.drift_answer import drift_answer  # noqa: PLC0415
    from gpolicy.report.drift_json import drift_data  # noqa: PLC0415
    from gpolicy.report.drift_prometheus import drift_metrics  # noqa: PLC0415

    path, state = target.policy, target.read()
    policy, found = policy_with_findings(path, state)
    if errors := errors_among(found):
        return Report(exit_code=int(ExitCode.FINDINGS), errors=tuple(errors), files=policy.files)
    settings = settings_of(policy.root or Path())
    with working("comparing the policy with the cluster"):
        report = find_drift(policy, state, today=reader_today(), settings=settings)
    now = time.time()
    return Report(
        exit_code=int(ExitCode.CHANGES if report.drift else ExitCode.FINE),
        answer=lambda: drift_answer(report, policy.files, of=f"{path} ({looked_at([policy], policy.files)})"),
        own={
            "json": lambda: json_text(drift_data(report, compared_at=now)),
            "prometheus": lambda: drift_metrics(report, policy=_label(path), now=now),
        },
        policy=(path,),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the report of one cluster goes, and in which form."""

    display: Display
    output: Path | None
    target: Target


def _write(place: _Place, text: str) -> None:
    from gpolicy.cluster.private_file import write_private, write_public  # noqa: PLC0415

    if place.output is None:
        write_long(text)
    elif place.display.form == "prometheus":  # read by the node exporter, which is another user
        write_public(place.output, text.encode())
    else:
        write_private(place.output, text.encode())


def _write_failure(place: _Place) -> None:
    """Write metrics that say that this run could not compare; never in place of the error that tells why."""
    from gpolicy.report.drift_prometheus import failure_metrics  # noqa: PLC0415

    if place.display.form != "prometheus":
        return
    try:
        before = None if place.output is None else _written_before(place.output)
        _write(place, failure_metrics(before, policy=_label(place.target.policy), now=time.time()))
    except GpolicyError as error:
        complain(error.message, error.hint)


def _written_before(file: Path) -> str | None:
    """Return the metrics of earlier runs; None if they cannot be read."""
    from gpolicy.opening import read_below, target_of  # noqa: PLC0415
    from gpolicy.report.drift_prometheus import LARGEST_BYTES  # noqa: PLC0415

    try:
        target = target_of(file)
        return read_below(target.directory, target.directory / target.name, LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _label(policy: Path) -> str:
    """Return a label for runs of this policy: the same in runs that fail."""
    return str(policy.absolute())
