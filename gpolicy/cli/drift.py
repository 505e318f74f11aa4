"""`drift`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings, reader_today
from gpolicy.cli.output import Report, named_policy
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text

if TYPE_CHECKING:
    from datetime import date

    from gpolicy.cli.options import Clusters
    from gpolicy.cluster.state import ClusterState
    from gpolicy.drift.comparing import DriftReport
    from gpolicy.drift.write_back import WriteBack
    from gpolicy.policy.model import Policy
    from gpolicy.report.forms import Display


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What of the drift to write into the policy: what `selected` names, or all. See `write_back`."""

    selected: Sequence[str] = ()
    in_bases: bool = False


def drift(
    asked: Clusters, path: Path | None, display: Display, output: Path | None, request: WriteRequest | None = None
) -> int:
    """Show the differences of clusters from their policies, with a request write them; return the exit code."""
    if request is not None:  # one after another: two may write to one base
        asked = replace(asked, jobs=1)
    return run(partial(compare, request=request), asked, path, display, verb="drift", output=output)


def compare(target: Target, request: WriteRequest | None = None) -> Report:
    """Return the differences of a cluster from its policy as a report; with a request, write them into the policy."""
    from gpolicy.checking.settings_tables import settings_of  # noqa: PLC0415
    from gpolicy.drift.comparing import find_drift  # noqa: PLC0415
    from gpolicy.report.drift_answer import drift_answer, drift_data  # noqa: PLC0415
    from gpolicy.report.drift_prometheus import drift_metrics  # noqa: PLC0415

    path, state = target.policy, target.read()
    policy, found = policy_with_findings(path, state)
    if errors := errors_among(found):
        return Report(exit_code=int(ExitCode.FINDINGS), errors=tuple(errors), files=policy.files)
    settings = settings_of(policy.root or Path())
    with working("comparing the policy with the cluster"):
        report = find_drift(policy, state, today=reader_today(), settings=settings)
    wrote = None
    if request is not None:
        whole = not policy.is_part or target.path is None  # the settings file names the policies of clusters as a whole
        wrote = _written_back(policy, state, report, request, reader_today(), whole=whole)
    left = report if wrote is None else replace(report, drift=wrote.left)
    now = time.time()
    of = named_policy(path, policy)
    return Report(
        exit_code=int(ExitCode.CHANGES if left.drift else ExitCode.FINE),
        answer=lambda: drift_answer(left, policy.files, of=of, wrote=wrote),
        own={"json": lambda: json_text(drift_data(report, compared_at=now, wrote=wrote))},
        metrics=lambda: drift_metrics(left),
        policy=(path,),
    )


def _written_back(
    policy: Policy, state: ClusterState, report: DriftReport, request: WriteRequest, today: date, *, whole: bool
) -> WriteBack:
    """Write drift into the files of the policy, of all or of none."""
    from gpolicy.drift.write_back import write_back  # noqa: PLC0415
    from gpolicy.fleet.choosing import other_policies  # noqa: PLC0415
    from gpolicy.plan.part import check_words  # noqa: PLC0415
    from gpolicy.writing.replacing import replace_drafted  # noqa: PLC0415

    root = policy.root or Path()
    if not whole:
        raise UsageError(f"{root} is a part of a policy: others may extend it", hint="name the directory of the policy")
    check_words("--select", request.selected, policy, state)
    with working("writing the policy"):
        wrote = write_back(
            policy,
            state,
            report,
            selected=request.selected,
            today=today,
            in_bases=request.in_bases,
            others=lambda: other_policies(root),
        )
    replace_drafted(policy, wrote.texts)
    return wrote
