"""`capacity`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.output import write_report
from gpolicy.cli.terminal import working
from gpolicy.cli.under_policy import read_under
from gpolicy.errors import ExitCode
from gpolicy.report.forms import Look

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be counted, and how to show it. `policy`: on the cluster as it is once that policy is applied.

    `declared`: with the resources of hv_state and disk_state. The last two are limits that htools does not know.
    """

    state: str
    policy: Path | None
    options: SourceOptions
    group: str | None
    template: str | None
    score: bool
    look: Look
    declared: bool
    max_node_failures: int | None
    oversubscription: float | None


def capacity(request: Request) -> int:
    """Print what fits; return the exit code."""
    from gpolicy.analysis.capacity import capacity as count  # noqa: PLC0415
    from gpolicy.analysis.extended_capacity import ExtendedOptions  # noqa: PLC0415
    from gpolicy.report.capacity_answer import capacity_answer  # noqa: PLC0415
    from gpolicy.report.capacity_json import capacity_json  # noqa: PLC0415

    limits = ExtendedOptions(max_node_failures=request.max_node_failures, oversubscription=request.oversubscription)
    found = read_under(request.policy, request.state, request.options)
    if found is None:
        return int(ExitCode.FINDINGS)
    state, names = found
    with working("counting what fits") as tell:
        report = count(
            state,
            group=request.group,
            template=request.template,
            names=names,
            extended=limits,
            declared=request.declared,
            observer=tell,
        )
    write_report(
        request.look,
        lambda: capacity_answer(report, components=request.score),
        {"json": lambda: capacity_json(report)},
    )
    return int(ExitCode.FINE)
