"""The verb that asks which moves cure a cluster: remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpolicy.cli.options import (
    Budget,
    Clusters,
    PolicyOption,
    Suppositions,
    display_of,
    form_option,
    policy_path,
    seconds_option,
)
from gpolicy.cli.output import Report
from gpolicy.cli.terminal import working
from gpolicy.cli.verbs.room import read_under
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target
    from gpolicy.cluster.state import ClusterState

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
    seconds: Annotated[
        float,
        seconds_option("--seconds", "Time to search; then the best so far is shown."),
    ] = 60.0,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="Write the moves as a shell script, which also leads back."),
    ] = None,
    form: Annotated[str, form_option("remedy")] = "text",
    budget: Budget = None,
) -> int:
    """Find the moves that cure a cluster, and say what nothing cures.

    It looks for instances on nodes that may hold none, conflicts of tags, misfits of exclusive storage and missing N+1
    redundancy, and moves as few instances and as little disk as it can, each step allowed by hbal's rules.
    """
    from gpolicy.cli.targets import run  # noqa: PLC0415
    from gpolicy.cluster.private_file import write_program  # noqa: PLC0415
    from gpolicy.remedy.remedy import find_remedy  # noqa: PLC0415
    from gpolicy.report.remedy_answer import remedy_answer  # noqa: PLC0415
    from gpolicy.report.remedy_json import remedy_data  # noqa: PLC0415

    display = display_of("remedy", form, budget)
    given, what_if, mib = policy_path(path, policy), suppositions.read(), _rate(rate)
    if script is not None and what_if is not None:
        raise UsageError("a script is for the cluster as it is, not for a supposed one", hint="leave --script out")
    plan = given if given is not None and given.suffix == ".json" else None

    def work(target: Target) -> Report:
        found = read_under(target, what_if, None if plan is None else _planned(target.read(), plan))
        if isinstance(found, Report):
            return found
        observed, names = found
        file = target.output(script, ".sh")
        with working("looking for moves") as tell:
            report = find_remedy(observed, names, rate=mib, seconds=seconds, tell=tell)
        following: tuple[str, ...] = ()
        if file is not None:
            from gpolicy.remedy.script import remedy_script  # noqa: PLC0415

            write_program(file, remedy_script(report).encode())
            when = " once the policy holds" if given else ""
            following = (f"wrote {file}: read it, and run it on the master of the cluster{when}",)
        return Report(
            exit_code=int(ExitCode.FINE),
            answer=lambda: remedy_answer(report),
            own={"json": lambda: json_text(remedy_data(report))},
            policy=(given,) if given and plan is None else (),
            following=following,
        )

    return run(work, clusters, None if plan else given, display, verb="remedy")


def _rate(text: str) -> int:
    from gpolicy.ganeti.units import parse_size_exact  # noqa: PLC0415

    try:
        rate = int(parse_size_exact(text))
    except ValueError as error:
        raise UsageError(f"--rate {text!r}: {error}") from None
    if rate < 1:
        raise UsageError(f"--rate {text!r}: at least 1M a second", hint="Ganeti's own rate of DRBD is 60M")
    return rate


def _planned(state: ClusterState, file: Path) -> ClusterState:
    """Return the cluster as a plan makes it. Raise UsageError for a plan for another cluster."""
    from gpolicy.cluster.snapshot import state_digest  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415
    from gpolicy.plan.projection import before_and_after  # noqa: PLC0415

    plan = read_plan(file)
    uuid = state.cluster.identity.uuid
    if plan.cluster != state.name or plan.cluster_uuid not in {None, uuid}:
        other = f", not for {state.name}" if plan.cluster != state.name else f" of UUID {plan.cluster_uuid}, not {uuid}"
        raise UsageError(f"{file} is a plan for cluster {plan.cluster}{other}")
    _, after = before_and_after(state, plan.changes, plan.terms)
    if state_digest(state) in {plan.state_digest, plan.state_digest_rapi}:
        return after
    return replace(after, notes=(*after.notes, f"the cluster has changed since {file} was made"))
