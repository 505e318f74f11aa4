"""The verb that asks which moves cure a cluster: remedy."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from gpolicy.cli.options import (
    Clusters,
    PolicyOption,
    ResourceModel,
    Seconds,
    Shown,
    Suppositions,
    policy_path,
)
from gpolicy.cli.output import Report, check_no_file_is_lost
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.stopping import after

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target
    from gpolicy.cluster.state import ClusterState
    from gpolicy.remedy.remedy import RemedyReport
    from gpolicy.remedy.saved_remedy import Supposed

verbs = typer.Typer()


@verbs.command("remedy")
def remedy(  # noqa: PLR0913 (one parameter an option)
    path: Annotated[
        Path | None,
        typer.Argument(
            ..., metavar="[PATH]", help="A policy, or a plan file (NAME.json): cure the cluster as it makes it."
        ),
    ] = None,
    policy: PolicyOption = None,
    *,
    clusters: Clusters,
    suppositions: Suppositions,
    rate: Annotated[
        str, typer.Option("--rate", metavar="SIZE", help="How much disk a job copies a second, for the time it takes.")
    ] = "60M",
    seconds: Seconds = 60.0,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="Write the moves as a shell script, which also leads back."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the remedy (JSON) for `gpolicy apply`; of several clusters: a directory.",
        ),
    ] = None,
    shown: Shown,
    resource_model: ResourceModel = False,
) -> int:
    """Find the moves that cure a cluster, and say what nothing cures.

    It looks for instances on nodes that may hold none, conflicts of tags, misfits of exclusive storage and missing N+1
    redundancy, and moves as few instances and as little disk as it can, each step allowed by hbal's rules.
    """
    from gpolicy.cli.checking import named_policy_of  # noqa: PLC0415
    from gpolicy.cli.targets import run  # noqa: PLC0415
    from gpolicy.opening import write_private, write_program  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415
    from gpolicy.remedy.commands import remedy_script  # noqa: PLC0415
    from gpolicy.remedy.saved_remedy import save_remedy  # noqa: PLC0415
    from gpolicy.report.answer_file import kept_text  # noqa: PLC0415
    from gpolicy.report.remedy_answer import remedy_answer, remedy_data  # noqa: PLC0415
    from gpolicy.use_cases.questions import find_remedy, open_cluster  # noqa: PLC0415

    outputs = shown.outputs("remedy")
    given, what_if, mib = policy_path(path, policy), suppositions.read(), _rate(rate)
    save = shown.saved("remedy", save)
    for option, file in (("--script", script), ("--save", save)):
        if file is not None and what_if is not None:
            message = f"{option} is for the cluster as it is, not for a supposed one"
            raise UsageError(message, hint=f"leave {option} out")
    plan = given if given is not None and given.suffix == ".json" else None

    def work(target: Target) -> Report:
        to_apply, to_run = target.output(save), target.output(script, ".sh")
        check_no_file_is_lost(given, to_apply, to_run)
        state = target.read()
        cluster = open_cluster(
            state,
            named_policy_of(target, state) if plan is None else read_plan(plan),
            what_if=what_if,
            resource_model=resource_model,
            plan_file=plan or Path(),
            working=working,
        )
        report = find_remedy(cluster, rate=mib, stop=after(seconds), working=working)
        supposed = None if given is None else _supposed(state, cluster.state, given, plan)
        saved = save_remedy(report, cluster.state, supposed)
        following: list[str] = []
        when = f" once {'the plan is applied' if plan else 'the policy holds'}" if given else ""
        if to_apply is not None:
            write_private(to_apply, kept_text(remedy_data(report, saved), remedy_answer(report)).encode())
            file = quote(str(to_apply))
            following.append(f"wrote {to_apply}: gpolicy show {file} shows it again")
            following.append(f"next{when}: gpolicy apply {file} --to DST{_patience(report)}")
        if to_run is not None:
            write_program(to_run, remedy_script(report, saved.supposed).encode())
            following.append(f"wrote {to_run}: read it, and run it on the master of the cluster{when}")
        return Report(
            exit_code=int(ExitCode.FINE),
            answer=lambda: remedy_answer(report),
            own={"json": lambda: json_text(remedy_data(report, saved))},
            policy=(given,) if given and plan is None else (),
            following=tuple(following),
        )

    return run(work, clusters, None if plan else given, outputs, verb="remedy")


def _supposed(state: ClusterState, observed: ClusterState, given: Path, plan: Path | None) -> Supposed | None:
    """Return what must hold before the moves: what a plan or policy makes of the cluster; None if that is nothing."""
    from gpolicy.plan.effects import contents, effects_between  # noqa: PLC0415
    from gpolicy.remedy.saved_remedy import Supposed  # noqa: PLC0415

    effects = tuple(effects_between(contents(state), contents(observed)))
    return Supposed(str(given), plan is not None, effects) if effects else None


def _patience(report: RemedyReport) -> str:
    """Return the option for jobs that may take longer than `apply` waits by default: twice the longest, in hours."""
    hours = ceil(max((step.seconds for step in report.steps), default=0) * 2 / 3600)
    return f" --job-timeout {hours * 3600}" if hours > 1 else ""


def _rate(text: str) -> int:
    from gpolicy.ganeti.amounts import parse_size_exact  # noqa: PLC0415

    try:
        rate = int(parse_size_exact(text))
    except ValueError as error:
        raise UsageError(f"--rate {text!r}: {error}") from None
    if rate < 1:
        raise UsageError(f"--rate {text!r}: at least 1M a second", hint="Ganeti's own rate of DRBD is 60M")
    return rate
