"""`plan` and `render`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from gpolicy.cli.checking import checked_policy
from gpolicy.cli.output import Report, check_no_file_is_lost, named_policy, repository_path
from gpolicy.cli.pager import write_long
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.printable import as_text, count, some
from gpolicy.use_cases.changes import PlanRequest, plan_change

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target
    from gpolicy.cluster.state import ClusterState
    from gpolicy.plan.plan import Plan
    from gpolicy.plan.signature import Signers
    from gpolicy.policy.model import Policy


def plan(target: Target, request: PlanRequest, output: Path | None, *, detailed_exitcode: bool) -> Report:
    """Make and keep a plan; return it as a report."""
    from gpolicy.cli.provenance import provenance_of  # noqa: PLC0415
    from gpolicy.cluster.private_file import write_private  # noqa: PLC0415
    from gpolicy.plan.plan_json import plan_text  # noqa: PLC0415
    from gpolicy.report.impact_json import impact_data  # noqa: PLC0415
    from gpolicy.report.plan_answer import Sides, plan_answer  # noqa: PLC0415
    from gpolicy.report.plan_github import plan_github  # noqa: PLC0415

    _refuse_suppositions(request, output)
    path, output = target.policy, target.output(output)
    check_no_file_is_lost(path, output)
    state = target.read()
    checked = checked_policy(path, state, target.together)
    planned = plan_change(checked, state, request, working=working)
    policy, made, impact = checked.policy, planned.plan, planned.impact
    if not planned.errors:
        _refuse_nothing(made, target)
        made = replace(made, provenance=provenance_of(policy.files))
    sides = Sides(planned.before, planned.after, planned.names)
    places = {guard.name.value: guard.name.span for guard in policy.guards}

    def text() -> str:
        return plan_text(made, None if impact is None else impact_data(impact))

    if output is not None and not planned.errors:
        write_private(output, text().encode())
    return Report(
        exit_code=_exit_code(made, detailed=detailed_exitcode),
        answer=lambda: plan_answer(
            made,
            impact=impact,
            sides=sides,
            sources=policy.files,
            locate=repository_path,
            of=named_policy(path, policy),
            unmanaged=_unmanaged(policy, sides.after),
        ),
        own={
            "json": text,
            "github": lambda: plan_github(made, impact=impact, guard_places=places, locate=repository_path),
        },
        errors=planned.errors,
        files=policy.files,
        following=() if planned.errors else tuple(_following(made, output)),
    )


def _refuse_suppositions(request: PlanRequest, output: Path | None) -> None:
    """Raise UsageError where something is supposed that would be kept, or would count nowhere."""
    if request.what_if is None and request.upgrade is None:
        return
    if output is not None:
        hint = "leave --output out; the plan itself does not depend on what is supposed"
        raise UsageError("a plan that is kept is about the cluster as it is, not about a supposed one", hint=hint)
    if not request.with_impact:
        hint = "leave --no-impact out; the changes themselves do not depend on what is supposed"
        raise UsageError("what is supposed counts in the impact only", hint=hint)


def _refuse_nothing(made: Plan, target: Target) -> None:
    """Raise UsageError for a part of a plan that leaves out every change; of several clusters, some need nothing."""
    if made.left_out and not made.changes and not target.several:
        changing = list(dict.fromkeys(item.object for item in made.left_out))
        message = f"--only and --exclude leave nothing of {count(len(made.left_out), 'change')}"
        raise UsageError(message, hint=f"what changes: {some(changing, 8)}")


def _unmanaged(policy: Policy, state: ClusterState) -> list[str]:
    """Return the groups that a policy of groups leaves out: a file that is gone removes no group."""
    named = {*policy.groups, *(group.renamed_from.value for group in policy.groups.values() if group.renamed_from)}
    return [name for name in state.groups if name not in named] if policy.groups else []


def _following(made: Plan, output: Path | None) -> Iterator[str]:
    """Yield where the plan file is, and what to do with it."""
    if output is None:
        return
    yield ""
    yield f"wrote {output}"
    file = quote(str(output))
    if made.safe and made.steps:
        yield f"next: gpolicy apply {file} --to DST, or gpolicy render {file} for the script"


def _exit_code(made: Plan, *, detailed: bool) -> int:
    if not made.safe:
        return int(ExitCode.FINDINGS)
    return int(ExitCode.CHANGES if detailed and made.changes else ExitCode.FINE)


def render(plan_file: Path, output: Path | None, signers: Signers | None, *, rollback: bool) -> int:
    """Write the script of a plan."""
    from gpolicy.cluster.private_file import write_program  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415
    from gpolicy.render.script import render_script  # noqa: PLC0415

    check_no_file_is_lost(plan_file, output)
    plan = read_plan(plan_file, signers)
    script = render_script(plan, rollback=rollback)
    if output is None:
        write_long(script)
    else:
        write_program(output, script.encode())
        what = "takes back" if rollback else "carries out"
        wrote = f"wrote {output}: it {what} {count(len(plan.steps), 'step')} on cluster {plan.cluster}"
        sys.stdout.write(as_text([wrote, "next: read it, and run it on the master of the cluster"]))
    return int(ExitCode.FINE)
