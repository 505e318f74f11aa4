"""The verbs for changes of a cluster: plan, render, apply."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from gpolicy.apply.destinations import DESTINATIONS
from gpolicy.cli.options import (
    AllowedSigners,
    Budget,
    Clusters,
    CpusAfterFailure,
    MaxNodeFailures,
    PolicyOption,
    PolicyPath,
    RolledOutClusters,
    Signature,
    Suppositions,
    Volumes,
    display_of,
    form_option,
    policy_path,
    seconds_option,
    signers_for,
)
from gpolicy.errors import UsageError

_ALLOW_HELP: Final = (
    "Override this guard if it fails: one that the policy declares, or right-cluster, disks-stay, "
    "exclusive-storage, master-network. Can be repeated."
)

verbs = typer.Typer()


@verbs.command("plan")
def plan(  # noqa: PLR0913 (one parameter an option)
    path: PolicyPath = None,
    policy: PolicyOption = None,
    *,
    clusters: Clusters,
    suppositions: Suppositions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the plan (JSON) for `gpolicy apply` and `gpolicy render`; of several clusters: a directory.",
        ),
    ] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", metavar="GUARD", help=_ALLOW_HELP)] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="OBJECT",
            help="Plan only the changes of this object (cluster, group/NAME, node/NAME; globs) or value"
            " (OBJECT:PATH), and those that they need. Can be repeated.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="OBJECT", help="Leave out the changes of this object or value, as --only."),
    ] = None,
    max_node_failures: MaxNodeFailures = None,
    cpus_after_failure: CpusAfterFailure = None,
    form: Annotated[str, form_option("plan")] = "text",
    budget: Budget = None,
    impact: Annotated[
        bool, typer.Option("--impact/--no-impact", help="Compute what the changes do to instances and capacity.")
    ] = True,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit code 2 when changes are pending.")
    ] = False,
    physical_volumes: Volumes = False,
    ganeti_version: Annotated[
        str | None,
        typer.Option(
            "--ganeti-version",
            metavar="RELEASE",
            help="What if the cluster were upgraded: judge N+1 after the changes as this release does, such as 3.1.1.",
        ),
    ] = None,
) -> int:
    """Show what the policy would change on the cluster, and its cost.

    It changes nothing, and shows every command. The cost compares before and after: instances that violate the
    policy, how many fit and what binds, which losses of nodes the groups survive, failure domains, exclusive storage.
    Exit code 1 if a guard fails or the policy has an error. Some guards are built in; Guards documents declare others.
    """
    from gpolicy.cli import planning  # noqa: PLC0415
    from gpolicy.cli.checking import seen_together  # noqa: PLC0415
    from gpolicy.cli.targets import run_on, targets_of  # noqa: PLC0415
    from gpolicy.cluster.terms import Limits  # noqa: PLC0415
    from gpolicy.ganeti.releases import check_release  # noqa: PLC0415
    from gpolicy.plan.part import Part  # noqa: PLC0415
    from gpolicy.use_cases.changes import PlanRequest  # noqa: PLC0415

    display = display_of("plan", form, budget)
    request = PlanRequest(
        allowed=frozenset(allow or ()),
        part=Part(only=tuple(only or ()), exclude=tuple(exclude or ())),
        with_impact=impact,
        limits=Limits(max_node_failures=max_node_failures, cpus_after_failure=cpus_after_failure),
        what_if=suppositions.read(),
        upgrade=None if ganeti_version is None else check_release(ganeti_version, "--ganeti-version"),
    )
    given = policy_path(path, policy)
    work = partial(planning.plan, request=request, output=output, detailed_exitcode=detailed_exitcode)
    targets = targets_of(clusters, given, volumes=physical_volumes)
    return run_on(seen_together(targets) if targets.several else targets, work, display, verb="plan")


@verbs.command("render")
def render(
    plan_file: Annotated[Path, typer.Argument(..., metavar="PLAN.JSON", help="A plan that `gpolicy plan -o` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write (executable); default: standard output."),
    ] = None,
    signers: AllowedSigners = None,
    signature: Signature = None,
    *,
    rollback: Annotated[bool, typer.Option("--rollback", help="Write the script that undoes the plan.")] = False,
) -> int:
    """Write a plan as a shell script of gnt-* commands."""
    from gpolicy.cli import planning  # noqa: PLC0415

    return planning.render(plan_file, output, signers_for(plan_file, signers, signature), rollback=rollback)


@verbs.command("apply")
def apply(  # noqa: PLR0913 (one parameter an option)
    plan_file: Annotated[
        Path,
        typer.Argument(
            ...,
            metavar="PLAN.JSON",
            help="A plan of `gpolicy plan -o` or a remedy of `gpolicy remedy -o`; of several clusters: the directory of"
            " their plans.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="DST",
            help=f"How to reach the cluster: {'; '.join(DESTINATIONS.values())}; or its name in gpolicy.toml.",
        ),
    ] = None,
    form: Annotated[str, form_option("apply")] = "text",
    *,
    clusters: RolledOutClusters,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="The record of what was done; default: FILE.journal.jsonl."),
    ] = None,
    job_timeout: Annotated[
        float,
        seconds_option("--job-timeout", "How long to wait for one job."),
    ] = 3600.0,
    signers: AllowedSigners = None,
    signature: Signature = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue a run that failed or was killed, after a look at its jobs."),
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Undo what was done, last step first; says what cannot be undone.")
    ] = False,
    physical_volumes: Volumes = False,
) -> int:
    """Carry a plan or a remedy out, step by step. It is refused if the objects that it touches have changed since.

    With --all or --label, plans of many clusters are carried out in waves ([rollout] in gpolicy.toml): each cluster is
    looked at again before the next wave, and the first failure stops all.

    Each step is written to a journal before it begins, and is done when a new look at the cluster shows it. If a run is
    interrupted, --resume continues it and --rollback undoes it. Exit code 0: every change is there; 1: refused, a step
    failed, or the result is not what was planned; 3: it could not run.
    """
    display = display_of("apply", form)
    if clusters.all_clusters or clusters.label:
        from gpolicy.cli.rolling_out import RolloutRequest, roll_out  # noqa: PLC0415

        for option, value in (("--to", to), ("--journal", journal), ("--signature", signature)):
            if value is not None:
                raise UsageError(f"{option} is for the plan of one cluster", hint="leave it out, or --all and --label")
        several = RolloutRequest(
            plans=plan_file,
            signers=signers,
            resume=resume,
            rollback=rollback,
            yes=yes,
            job_timeout=job_timeout,
            volumes=physical_volumes,
        )
        return roll_out(clusters, several, display)
    from gpolicy.cli import applying  # noqa: PLC0415
    from gpolicy.cli.targets import destination_of  # noqa: PLC0415

    if to is None:
        raise UsageError("where to? no --to is given", hint="give --to DST, or --all for a directory of plans")
    if form != "text":
        raise UsageError(f"--format {form} is for several clusters", hint="leave it out, or say --all")
    destination, options = destination_of(to, clusters, volumes=physical_volumes)
    request = applying.ApplyRequest(
        plan=plan_file,
        signers=signers_for(plan_file, signers, signature),
        destination=destination,
        options=options,
        journal=journal,
        resume=resume,
        rollback=rollback,
        yes=yes,
        job_timeout=job_timeout,
    )
    return applying.apply(request)
