"""`capacity`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.cli.checking import known_format, read
from gpolicy.cli.terminal import wants_colour, working
from gpolicy.exit_codes import ExitCode

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be counted, and how to show it."""

    state: str
    options: SourceOptions
    group: str | None
    template: str | None
    score: bool
    form: str


def capacity(request: Request) -> int:
    """Print what fits; return the exit code."""
    from gpolicy.impact.capacity import capacity as count  # noqa: PLC0415

    known_format(request.form)
    state = read(request.state, request.options)
    with working("counting what fits"):
        report = count(state, group=request.group, template=request.template)
    if request.form == "json":
        from gpolicy.report.capacity_json import capacity_json  # noqa: PLC0415

        sys.stdout.write(capacity_json(report))
    else:
        from gpolicy.report.capacity_text import capacity_text  # noqa: PLC0415

        sys.stdout.write(capacity_text(report, score=request.score, colour=wants_colour(sys.stdout)))
    return int(ExitCode.FINE)
