"""The verbs for changes of a cluster: plan, render, apply."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from shlex import quote
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpolicy
from gpolicy.cli import options
from gpolicy.cli.output import Report, base_of, check_no_file_is_lost, policy_title, provenance_of, repository_path
from gpolicy.cli.targets import Target, Targets, destination_of, report_file, run_on, targets_of
from gpolicy.cli.terminal import working, write_long
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.opening import write_private, write_program
from gpolicy.printable import as_text, count, some

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.impact.impact import Impact
    from gpolicy.report.answer import Answer

verbs = typer.Typer()


@verbs.command("plan")
def plan(  # noqa: PLR0913 (one parameter an option)
    path: options.PolicyPath = None,
    policy: options.PolicyOption = None,
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    shown: options.Shown,
    save: Annotated[Path | None, typer.Option("--save", metavar="FILE")] = None,
    script: Annotated[Path | None, typer.Option("--script", metavar="FILE")] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", metavar="GUARD")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="OBJECT")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", metavar="OBJECT")] = None,
    max_node_failures: options.MaxNodeFailures = None,
    cpus_after_failure: options.CpusAfterFailure = None,
    with_impact: Annotated[bool, typer.Option("--impact/--no-impact")] = True,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode")] = False,
    physical_volumes: options.Volumes = False,
    ganeti_version: Annotated[str | None, typer.Option("--ganeti-version", metavar="RELEASE")] = None,
) -> int:
    """Show what the policy would change on the cluster, and its cost.

    It changes nothing, and shows every command. The cost compares before and after: instances that violate the
    policy, how many fit and what binds, which losses of nodes the groups survive, failure domains, exclusive storage.
    Exit code 1 if a guard fails or the policy has an error. Some guards are built in; Guards documents declare others.
    """
    from gpolicy.cli.checking import with_members  # noqa: PLC0415
    from gpolicy.ganeti.releases import check_release  # noqa: PLC0415
    from gpolicy.plan.part import Part  # noqa: PLC0415

    outputs, save = shown.outputs("plan"), shown.saved("plan", save)
    request = gpolicy.PlanRequest(
        allowed=frozenset(allow or ()),
        part=Part(only=tuple(only or ()), exclude=tuple(exclude or ())),
        with_impact=with_impact,
        limits=gpolicy.Limits(max_node_failures=max_node_failures, cpus_after_failure=cpus_after_failure),
        what_if=suppositions.read(),
        upgrade=None if ganeti_version is None else check_release(ganeti_version, "ganeti_version"),
    )
    given = options.policy_path(path, policy)
    base = base_of(clusters.changed_since)
    work = partial(_planned, request=request, save=save, script=script, detailed_exitcode=detailed_exitcode, base=base)
    targets = targets_of(clusters, given, volumes=physical_volumes)
    begun = time()
    code = run_on(with_members(targets), work, outputs, verb="plan")
    if targets.several and save is not None:
        sys.stderr.write(as_text(_saved_plans(targets, save, begun)))
    return code


def _saved_plans(targets: Targets, directory: Path, begun: float) -> Iterator[str]:
    """Yield which plans of several clusters are in a directory, some perhaps of before the run that has `begun`."""
    plans = [file for target in targets.targets if (file := target.output(directory)) and file.exists()]
    old = [file.name for file in plans if file.stat().st_mtime < begun - 1]
    new, chosen = len(plans) - len(old), count(len(targets.targets), "cluster")
    yield f"wrote {count(new, 'plan')} of {chosen} to {directory}; a cluster without a change needs none"
    if old:
        yield f"not made by this run: {some(old)}"
    if new:
        yield f"next: gpolicy apply {quote(str(directory))} --all"


def _planned(
    target: Target,
    request: gpolicy.PlanRequest,
    save: Path | None,
    script: Path | None,
    *,
    detailed_exitcode: bool,
    base: str,
) -> Report:
    """Make and keep a plan; return it as a report."""
    from gpolicy.cli.checking import checked_policy  # noqa: PLC0415
    from gpolicy.report.plan_answer import plan_answer  # noqa: PLC0415
    from gpolicy.report.plan_github import plan_github  # noqa: PLC0415

    _refuse_suppositions(request, save or script)
    path, save, script = target.policy, target.output(save), target.output(script, ".sh")
    check_no_file_is_lost(path, save, script)
    state = target.read()
    checked = checked_policy(path, state, target.members, base=base)
    planned = gpolicy.plan_change(checked, state, request, working=working)
    policy, impact = checked.policy, planned.impact
    if not planned.errors:
        _refuse_empty_part(planned.plan, target)
        planned = replace(planned, plan=replace(planned.plan, provenance=provenance_of(policy.files)))
    made, places = planned.plan, {guard.name.value: guard.name.span for guard in policy.guards}

    @cache
    def answer() -> Answer:
        return plan_answer(
            made,
            impact=impact,
            sides=planned.sides,
            sources=policy.files,
            locate=repository_path,
            of=policy_title(path, policy),
            unmanaged=_unmanaged(policy, planned.sides.after),
            accepted=checked.accepted,
        )

    if save is not None:
        _save(planned, answer, save, of_several=target.several)
    if script is not None and made.safe:
        write_program(script, gpolicy.render_script(made).encode())
    elif script is not None:
        sys.stderr.write(as_text([f"no {script} was written: the plan is stopped"]))
    code = ExitCode.CHANGES if detailed_exitcode and made.changes else ExitCode.FINE
    return Report(
        exit_code=int(code if made.safe else ExitCode.FINDINGS),
        answer=answer,
        own={
            "json": lambda: json_text(_plan_data(made, impact)),
            "github": lambda: plan_github(made, answer(), impact=impact, guard_places=places, locate=repository_path),
        },
        errors=planned.errors,
        files=policy.files,
        following=() if planned.errors else tuple(_following(made, save, script)),
    )


def _plan_data(plan: gpolicy.Plan, impact: Impact | None) -> dict[str, Any]:
    from gpolicy.plan.plan_json import plan_as_json  # noqa: PLC0415
    from gpolicy.report.impact_json import IMPACT  # noqa: PLC0415

    return plan_as_json(plan, IMPACT(impact) if impact is not None else None)


def _save(planned: gpolicy.PlannedChange, answer: Callable[[], Answer], file: Path, *, of_several: bool) -> None:
    """Keep a plan. Of several clusters, a plan has no impact, and one without changes is not kept newly."""
    from gpolicy.report.answer_file import kept_text  # noqa: PLC0415

    if planned.errors:
        if file.exists():
            sys.stderr.write(as_text([f"note: {file} is of an earlier plan"]))
    elif planned.plan.changes or not of_several or file.exists():
        data = _plan_data(planned.plan, None if of_several else planned.impact)
        write_private(file, kept_text(data, answer()).encode())


def _refuse_suppositions(request: gpolicy.PlanRequest, output: Path | None) -> None:
    """Raise UsageError where something is supposed that would be kept, or would count nowhere."""
    if request.what_if is None and request.upgrade is None:
        return
    if output is not None:
        hint = "leave --save and --script out; the plan itself does not depend on what is supposed"
        raise UsageError("a plan that is kept is about the cluster as it is, not about a supposed one", hint=hint)
    if not request.with_impact:
        hint = "leave --no-impact out; the changes themselves do not depend on what is supposed"
        raise UsageError("what is supposed counts in the impact only", hint=hint)


def _refuse_empty_part(made: gpolicy.Plan, target: Target) -> None:
    """Raise UsageError for a part of a plan that leaves out every change; of several clusters, some need nothing."""
    if made.left_out and not made.changes and not target.several:
        changing = list(dict.fromkeys(item.object for item in made.left_out))
        message = f"--only and --exclude leave nothing of {count(len(made.left_out), 'change')}"
        raise UsageError(message, hint=f"what changes: {some(changing, 8)}")


def _unmanaged(policy: gpolicy.Policy, state: ClusterState) -> list[str]:
    """Return the groups that a policy of groups leaves out: a file that is gone removes no group."""
    named = {*policy.groups, *(group.renamed_from.value for group in policy.groups.values() if group.renamed_from)}
    return [name for name in state.groups if name not in named] if policy.groups else []


def _following(made: gpolicy.Plan, saved: Path | None, script: Path | None) -> Iterator[str]:
    """Yield what was written, and what to do next."""
    file = quote(str(saved or "plan.json"))
    if saved is not None:
        yield ""
        yield f"wrote {saved}: gpolicy show {file} shows it again"
    if script is not None and made.safe:
        yield f"wrote {script}: read it, and run it on the master"
    if made.safe and made.steps:
        save = "" if saved else f"add --save {file}, then "
        yield f"next: {save}gpolicy apply {file} --to DST"


@verbs.command("render")
def render(
    plan_file: Annotated[Path, typer.Argument(..., metavar="PLAN.JSON")],
    script: Annotated[Path | None, typer.Option("--script", metavar="FILE")] = None,
    output: options.OldOutput = None,
    signers: options.AllowedSigners = None,
    signature: options.Signature = None,
    *,
    rollback: Annotated[bool, typer.Option("--rollback")] = False,
) -> int:
    """Write a plan, or moves, as a shell script of gnt-* commands."""
    from gpolicy.remedy.commands import moves_script  # noqa: PLC0415
    from gpolicy.remedy.saved_remedy import SavedRemedy, read_procedure  # noqa: PLC0415

    output = options.renamed(script, output, "--script")
    check_no_file_is_lost(plan_file, output)
    plan = read_procedure(plan_file, options.signers_for(plan_file, signers, signature))
    match plan:
        case SavedRemedy() if rollback:
            raise UsageError("the script of moves leads back itself", hint="leave --rollback out; run it with --back")
        case SavedRemedy():
            text = moves_script(plan)
        case gpolicy.Plan():
            text = gpolicy.render_script(plan, rollback=rollback)
    if output is None:
        write_long(text)
    else:
        write_program(output, text.encode())
        what = "takes back" if rollback else "carries out"
        wrote = f"wrote {output}: it {what} {count(len(plan.steps), 'step')} on cluster {plan.cluster}"
        sys.stdout.write(as_text([wrote, "next: read it, and run it on the master of the cluster"]))
    return int(ExitCode.FINE)


@verbs.command("apply")
def apply(  # noqa: PLR0913 (one parameter an option)
    plan_file: Annotated[Path, typer.Argument(..., metavar="PLAN.JSON")],
    to: Annotated[str | None, typer.Option("--to", metavar="DST")] = None,
    *,
    shown: options.Shown,
    clusters: options.RolledOutClusters,
    journal: Annotated[Path | None, typer.Option("--journal", metavar="FILE")] = None,
    job_timeout: Annotated[float, options.seconds_option("--job-timeout")] = 3600.0,
    signers: options.AllowedSigners = None,
    signature: options.Signature = None,
    yes: Annotated[bool, typer.Option("--yes", "-y")] = False,
    resume: Annotated[bool, typer.Option("--resume")] = False,
    rollback: Annotated[bool, typer.Option("--rollback")] = False,
    physical_volumes: options.Volumes = False,
) -> int:
    """Carry a plan or a remedy out, step by step. It is refused if the objects that it touches have changed since.

    With --all or --label, plans of many clusters are carried out in waves ([rollout] in gpolicy.toml): each cluster is
    looked at again before the next wave, and the first failure stops all.

    Each step is written to a journal before it begins, and is done when a new look at the cluster shows it. If a run is
    interrupted, --resume continues it and --rollback undoes it. Exit code 0: every change is there; 1: refused, a step
    failed, or the result is not what was planned; 3: it could not run.
    """
    outputs = shown.outputs("apply")
    report_file(outputs, "apply")  # refuses --output FILE without a form
    if resume and rollback:
        raise UsageError("--resume and --rollback exclude one another")
    request = gpolicy.ApplyRequest(
        plan=plan_file,
        destination=to or "",
        journal=journal,
        resume=resume,
        rollback=rollback,
        job_timeout=job_timeout,
    )
    if clusters.all_clusters or clusters.label:
        from gpolicy.cli.rolling_out import roll_out  # noqa: PLC0415

        for option, value in (("--to", to), ("--journal", journal), ("--signature", signature)):
            if value is not None:
                raise UsageError(f"{option} is for the plan of one cluster", hint="leave it out, or --all and --label")
        return roll_out(clusters, request, outputs.display, yes=yes, signers=signers, volumes=physical_volumes)
    from gpolicy.cli import applying  # noqa: PLC0415

    if to is None:
        raise UsageError("where to? no --to is given", hint="give --to DST, or --all for a directory of plans")
    if (form := outputs.display.form) != "text":
        raise UsageError(f"--format {form} is for several clusters", hint="leave it out, or say --all")
    destination, reach = destination_of(to, clusters, volumes=physical_volumes)
    signed = options.signers_for(plan_file, signers, signature)
    return applying.apply(replace(request, destination=destination, options=reach, signers=signed), yes=yes)
