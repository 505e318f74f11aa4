"""`capacity`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import FORMATS as COMMON_FORMATS
from gpolicy.cli.checking import known_format, read
from gpolicy.cli.findings_output import known_budget
from gpolicy.cli.terminal import wants_colour, working
from gpolicy.errors import ExitCode

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions


FORMATS = (*COMMON_FORMATS, "markdown")


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
    form: str
    declared: bool
    max_node_failures: int | None
    oversubscription: float | None
    budget: int


def capacity(request: Request) -> int:
    """Print what fits; return the exit code."""
    from gpolicy.analysis.capacity import capacity as count  # noqa: PLC0415
    from gpolicy.analysis.extended_capacity import ExtendedOptions  # noqa: PLC0415
    from gpolicy.analysis.pair_names import PairNames  # noqa: PLC0415

    known_format(request.form, FORMATS)
    known_budget(request.budget)
    limits = ExtendedOptions(max_node_failures=request.max_node_failures, oversubscription=request.oversubscription)
    state = read(request.state, request.options)
    names = PairNames()
    if request.policy is not None:
        from gpolicy.cli.under_policy import under_policy  # noqa: PLC0415

        found = under_policy(request.policy, state)
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
    if request.form == "json":
        from gpolicy.report.capacity_json import capacity_json  # noqa: PLC0415

        sys.stdout.write(capacity_json(report))
    elif request.form == "markdown":
        from gpolicy.report.capacity_markdown import capacity_markdown  # noqa: PLC0415

        sys.stdout.write(capacity_markdown(report, budget=request.budget))
    else:
        from gpolicy.report.capacity_text import capacity_text  # noqa: PLC0415

        sys.stdout.write(capacity_text(report, score=request.score, colour=wants_colour(sys.stdout)))
    return int(ExitCode.FINE)
