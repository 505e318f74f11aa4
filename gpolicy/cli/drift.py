"""`drift`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings, reader_today
from gpolicy.cli.output import Report, looked_at
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode
from gpolicy.json_values import json_text

if TYPE_CHECKING:
    from gpolicy.cli.options import ChosenClusters
    from gpolicy.report.forms import Display


def drift(asked: ChosenClusters, path: Path | None, display: Display, output: Path | None) -> int:
    """Show the differences of clusters from their policies; return the exit code."""
    return run(compare, asked, path, display, verb="drift", output=output)


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
        own={"json": lambda: json_text(drift_data(report, compared_at=now))},
        metrics=lambda: drift_metrics(report),
        policy=(path,),
    )
