"""`drift`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings, read, reader_today
from gpolicy.cli.output import display_on, looked_at, report_text, show_errors
from gpolicy.cli.pager import write_long
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.json_values import json_text
from gpolicy.report.forms import Display

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.drift.comparing import DriftReport
    from gpolicy.policy.model import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRequest:
    """What to compare, and how to show it."""

    path: Path
    state: str | None
    options: SourceOptions
    display: Display
    output: Path | None


def drift(request: DriftRequest) -> int:
    """Show the differences of a cluster from its policy; return the exit code.

    Metrics are written also when nothing could be compared: that is what an alert must see.
    """
    try:
        compared = _compare(request)
    except (GpolicyError, OSError):
        _write_failure(request)
        raise
    if compared is None:
        _write_failure(request)
        return int(ExitCode.FINDINGS)
    report, text = compared
    _write(request, text)
    return int(ExitCode.CHANGES if report.drift else ExitCode.FINE)


def _compare(request: DriftRequest) -> tuple[DriftReport, str] | None:
    """Return the drift and its report; None if the policy has errors, which are reported."""
    from gpolicy.checking.overrides import settings_of  # noqa: PLC0415
    from gpolicy.drift.comparing import find_drift  # noqa: PLC0415

    state = read(request.state, request.options)
    policy, found = policy_with_findings(request.path, state)
    if errors := errors_among(found):
        show_errors(errors, policy.files)
        return None
    settings = settings_of(policy.root or Path())
    with working("comparing the policy with the cluster"):
        report = find_drift(policy, state, today=reader_today(), settings=settings)
    return report, _rendered(request, report, policy)


def _rendered(request: DriftRequest, report: DriftReport, policy: Policy) -> str:
    from gpolicy.report.drift_answer import drift_answer  # noqa: PLC0415
    from gpolicy.report.drift_json import drift_data  # noqa: PLC0415
    from gpolicy.report.drift_prometheus import drift_metrics  # noqa: PLC0415

    now = time.time()
    return report_text(
        display_on(sys.stdout, request.display) if request.output is None else request.display,
        lambda: drift_answer(report, policy.files, of=f"{request.path} ({looked_at([policy], policy.files)})"),
        {
            "json": lambda: json_text(drift_data(report, compared_at=now)),
            "prometheus": lambda: drift_metrics(report, policy=_label(request), now=now),
        },
        [request.path],
    )


def _write(request: DriftRequest, text: str) -> None:
    from gpolicy.cluster.private_file import write_private, write_public  # noqa: PLC0415

    if request.output is None:
        write_long(text)
    elif request.display.form == "prometheus":  # read by the node exporter, which is another user
        write_public(request.output, text.encode())
    else:
        write_private(request.output, text.encode())


def _write_failure(request: DriftRequest) -> None:
    """Write metrics that say that this run could not compare; never in place of the error that tells why."""
    from gpolicy.report.drift_prometheus import failure_metrics  # noqa: PLC0415

    if request.display.form != "prometheus":
        return
    try:
        before = None if request.output is None else _written_before(request.output)
        _write(request, failure_metrics(before, policy=_label(request), now=time.time()))
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


def _label(request: DriftRequest) -> str:
    """Return a label for runs of this policy: the same in runs that fail."""
    return str(request.path.absolute())
