"""The verbs for changes of a cluster: plan, render, apply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from gpolicy.apply.destinations import DESTINATIONS
from gpolicy.cli.options import (
    AllowedSigners,
    Authority,
    Budget,
    CpusAfterFailure,
    Credentials,
    Insecure,
    PolicyPath,
    Signature,
    State,
    Volumes,
    form_option,
    look_of,
    signers_for,
    source_options,
)

_ALLOW_HELP: Final = (
    "Pass this guard although it fails: one that the policy declares, or right-cluster, disks-stay, "
    "exclusive-storage, master-network. Can be repeated."
)

verbs = typer.Typer()


@verbs.command("plan")
def plan(  # noqa: PLR0913, PLR0917 (one parameter an option)
    state: State,
    path: PolicyPath = Path(),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the plan (JSON), for gpolicy render.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", metavar="GUARD", help=_ALLOW_HELP)] = None,
    max_node_failures: Annotated[
        int | None,
        typer.Option(
            "--max-node-failures",
            metavar="K",
            min=1,
            max=5,
            help="Examine the loss of so many nodes of a group at once; default: `limits` of the policy, or 1.",
        ),
    ] = None,
    cpus_after_failure: CpusAfterFailure = None,
    form: Annotated[str, form_option("plan")] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = None,
    impact: Annotated[
        bool, typer.Option("--impact/--no-impact", help="Work out what the changes do to instances and capacity.")
    ] = True,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit code 2 when changes are pending.")
    ] = False,
    physical_volumes: Volumes = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Show what the policy would change on the cluster, by which commands, and what it costs. Changes nothing.

    The cost is counted before and after: instances that violate the policy, how many fit and what binds, which losses
    of nodes can be absorbed, failure domains, exclusive storage. Exit code 1 when a guard fails or the policy has an
    error; guards are built in, and declared by Guards documents.
    """
    from gpolicy.cli import planning  # noqa: PLC0415

    request = planning.Request(
        path=path,
        state=state,
        options=source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi, volumes=physical_volumes),
        output=output,
        allowed=frozenset(allow or ()),
        look=look_of("plan", form, budget),
        detailed_exitcode=detailed_exitcode,
        with_impact=impact,
        failures=max_node_failures,
        cpus_after_failure=cpus_after_failure,
    )
    return planning.plan(request)


@verbs.command("render")
def render(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.JSON", help="A plan that `gpolicy plan -o` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write (executable); default: standard output."),
    ] = None,
    signers: AllowedSigners = None,
    signature: Signature = None,
    *,
    rollback: Annotated[bool, typer.Option("--rollback", help="The script that undoes the plan.")] = False,
) -> int:
    """Write the shell script of gnt-* commands that carries a plan out."""
    from gpolicy.cli import planning  # noqa: PLC0415

    return planning.render(plan_file, output, signers_for(plan_file, signers, signature), rollback=rollback)


@verbs.command("apply")
def apply(  # noqa: PLR0913 (one parameter an option)
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.JSON", help="A plan that `gpolicy plan -o` wrote.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DST",
            help=f"How to reach the cluster: {'; '.join(DESTINATIONS.values())}.",
        ),
    ],
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="What was done, line by line; default: PLAN.journal.jsonl."),
    ] = None,
    job_timeout: Annotated[
        float, typer.Option("--job-timeout", metavar="SECONDS", min=1, help="How long to wait for one job.")
    ] = 3600.0,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    signers: AllowedSigners = None,
    signature: Signature = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on after a run that failed or was killed: asks what became of its jobs."),
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Take back what was done, last step first; says what is not restored.")
    ] = False,
    insecure_rapi: Insecure = False,
    physical_volumes: Volumes = False,
) -> int:
    """Carry a plan out, step by step. Nothing is done if what it touches has changed since it was made.

    Each step is written to a journal before it begins, and believed only when a new look at the cluster shows it.
    Whatever stops a run, --resume goes on and --rollback goes back. Exit code 0: done and seen; 1: refused, a step
    failed, or the result is not what was planned; 3: it could not run.
    """
    from gpolicy.cli import applying  # noqa: PLC0415

    request = applying.Request(
        plan=plan_file,
        signers=signers_for(plan_file, signers, signature),
        destination=to,
        options=source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi, volumes=physical_volumes),
        journal=journal,
        resume=resume,
        rollback=rollback,
        yes=yes,
        job_timeout=job_timeout,
    )
    return applying.apply(request)
