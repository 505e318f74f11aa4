"""The verb that asks how many nodes it takes: size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpolicy.cli.options import (
    Clusters,
    LimitOptions,
    PolicyOption,
    Seconds,
    Shown,
    Suppositions,
    policy_path,
)
from gpolicy.cli.output import Report, report_under
from gpolicy.cli.terminal import working
from gpolicy.errors import UsageError
from gpolicy.stopping import after

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target

verbs = typer.Typer()


@verbs.command("size")
def size(  # noqa: PLR0913 (one parameter an option)
    path: Annotated[
        Path | None,
        typer.Argument(..., metavar="[PATH]", help="Ask about the cluster as this policy would make it."),
    ] = None,
    policy: PolicyOption = None,
    *,
    clusters: Clusters,
    suppositions: Suppositions,
    limit_options: LimitOptions,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="NAME", help="The group; default: that of the nodes of --like."),
    ] = None,
    want: Annotated[
        list[str] | None,
        typer.Option(
            "--want",
            metavar="WORDS",
            help="What must fit: `50x SIZE`, the size at its smallest (SIZE:max: at its largest), or `50x memory=4G"
            " disk=20G`. Can be repeated. Without it, the answer is how many more instances fit at today's mix of"
            " sizes.",
        ),
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(
            "--like",
            metavar="NODE[=COST]",
            help="A kind of node that can be bought: like this one, at this cost (default: 1). Up to three. Default: as"
            " most nodes of the group.",
        ),
    ] = None,
    seconds: Seconds = 60.0,
    shown: Shown,
) -> int:
    """Find how many more nodes it takes until wanted instances fit.

    It tries numbers of nodes with the allocator, as hail accepts instances and under the limits, and shows the cheapest
    that are enough and what is missing with one node fewer.
    """
    from gpolicy.cli.checking import open_target  # noqa: PLC0415
    from gpolicy.cli.targets import run  # noqa: PLC0415
    from gpolicy.report.size_answer import full_answer, full_data, size_answer, size_data  # noqa: PLC0415
    from gpolicy.use_cases.questions import fill_group, size_group  # noqa: PLC0415
    from gpolicy.what_if.sizing import MOST_KINDS, SizeRequest, read_kind  # noqa: PLC0415
    from gpolicy.what_if.supposing import read_wanted  # noqa: PLC0415

    outputs = shown.outputs("size")
    given, what_if, limits = policy_path(path, policy), suppositions.read(), limit_options.read()
    if like and not want:
        raise UsageError("--like is of no use without --want", hint="say what must fit: --want '10x SIZE'")
    if len(like or ()) > MOST_KINDS:
        raise UsageError(f"{len(like or ())} kinds of nodes are too many to try", hint=f"give at most {MOST_KINDS}")
    request = (
        SizeRequest(
            wanted=tuple(map(read_wanted, want or ())),
            kinds=tuple(map(read_kind, like or ())),
            group=group,
        )
        if want
        else None
    )

    def work(target: Target) -> Report:
        cluster = open_target(target, what_if, limits)
        if request is None:
            full = fill_group(cluster, group, stop=after(seconds), working=working)
            return report_under(target.path, lambda: full_answer(full), lambda: full_data(full))
        report = size_group(cluster, request, stop=after(seconds), working=working)
        return report_under(target.path, lambda: size_answer(report), lambda: size_data(report))

    return run(work, clusters, given, outputs, verb="size")
