"""`plan` and `render`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import known_format, policy_with_errors, read
from gpolicy.cli.terminal import wants_colour
from gpolicy.errors import UsageError
from gpolicy.exit_codes import ExitCode
from gpolicy.report.findings_text import findings_text

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.plan.planning import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be planned, and how to show it."""

    path: Path
    state: str
    options: SourceOptions
    output: Path | None
    allowed: frozenset[str]
    form: str
    detailed_exitcode: bool


def plan(request: Request) -> int:
    """Make, show and keep a plan; return the exit code."""
    from gpolicy.cluster.private_file import write_private  # noqa: PLC0415
    from gpolicy.plan.guards import GUARDS, OVERRIDABLE  # noqa: PLC0415
    from gpolicy.plan.plan_json import plan_text  # noqa: PLC0415
    from gpolicy.plan.planning import make_plan, refused_plan  # noqa: PLC0415
    from gpolicy.report.plan_text import plan_report  # noqa: PLC0415

    known_format(request.form)
    unknown = sorted(request.allowed - GUARDS.keys())
    if unknown:
        raise UsageError(f"there is no guard {unknown[0]!r}", hint=f"the guards are {', '.join(GUARDS)}")
    futile = sorted(request.allowed - OVERRIDABLE)
    if futile:
        hint = f"guards that can be passed: {', '.join(sorted(OVERRIDABLE))}"
        raise UsageError(f"guard {futile[0]} cannot be passed: Ganeti would refuse the step half-way", hint=hint)
    state = read(request.state, request.options)
    policy, errors = policy_with_errors(request.path, state)
    if errors:
        if request.form == "json":
            sys.stdout.write(plan_text(refused_plan(policy, state, errors)))
        sys.stderr.write(findings_text(errors, policy.sources, colour=wants_colour(sys.stderr)))
        return int(ExitCode.FINDINGS)
    made = make_plan(policy, state, allowed=request.allowed)
    if request.output is not None:
        write_private(request.output, plan_text(made).encode())
    if request.form == "json":
        sys.stdout.write(plan_text(made))
    else:
        sys.stdout.write(plan_report(made, policy.sources, colour=wants_colour(sys.stdout)))
    return _exit_code(made, detailed=request.detailed_exitcode)


def _exit_code(made: Plan, *, detailed: bool) -> int:
    if not made.safe or made.findings:
        return int(ExitCode.FINDINGS)
    return int(ExitCode.CHANGES if detailed and made.changes else ExitCode.FINE)


def render(plan_file: Path, output: Path | None, *, rollback: bool) -> int:
    """Write the script of a plan."""
    from gpolicy.cluster.private_file import write_private  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415
    from gpolicy.render.script import render_script  # noqa: PLC0415

    script = render_script(read_plan(plan_file), rollback=rollback)
    if output is None:
        sys.stdout.write(script)
    else:
        write_private(output, script.encode())
        output.chmod(0o700)
    return int(ExitCode.FINE)
