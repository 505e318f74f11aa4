"""The verb that says how nodes or a group are emptied: evacuate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpolicy.cli.options import Clusters, ResourceModel, Seconds, Shown, Suppositions
from gpolicy.cli.output import Report
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.stopping import after

if TYPE_CHECKING:
    from gpolicy.cli.targets import Target

verbs = typer.Typer()


@verbs.command("evacuate")
def evacuate(  # noqa: PLR0913 (one parameter an option)
    nodes: Annotated[
        str | None, typer.Argument(..., metavar="[NODE,...]", help="The nodes to be emptied (names or globs).")
    ] = None,
    *,
    clusters: Clusters,
    suppositions: Suppositions,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", metavar="PATH", help="Ask about the cluster as this policy would make it."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", "-g", metavar="NAME", help="Empty this whole group, instead of nodes.")
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="GROUP",
            help="Move the instances to this group. Can be repeated. Default: those of nodes stay in their group, those"
            " of a group may go to any other.",
        ),
    ] = None,
    primary_only: Annotated[
        bool, typer.Option("--primary-only", help="Only what runs on the nodes: enough for a reboot.")
    ] = False,
    secondary_only: Annotated[
        bool, typer.Option("--secondary-only", help="Only the mirrored disks of instances that run elsewhere.")
    ] = False,
    ignore_soft_errors: Annotated[
        bool,
        typer.Option(
            "--ignore-soft-errors",
            help="Move also against exclusion tags, ratios, and memory reserved for N+1, as gnt-node evacuate with it.",
        ),
    ] = False,
    seconds: Seconds = 60.0,
    shown: Shown,
    resource_model: ResourceModel = False,
    every: Annotated[bool, typer.Option("--all-candidates", "-a", help="Show every candidate.")] = False,
) -> int:
    """Show what moves where to empty nodes or a group, and what stays.

    The answer is that of hail's own evacuation, with every candidate and the commands. Exit code 1 when an instance
    stays, or Ganeti would refuse what hail accepts.
    """
    from gpolicy.allocator.evacuation import EvacuationMode  # noqa: PLC0415
    from gpolicy.cli.checking import open_target  # noqa: PLC0415
    from gpolicy.cli.targets import run  # noqa: PLC0415
    from gpolicy.evacuate.evacuation import EvacuationRequest  # noqa: PLC0415
    from gpolicy.report.evacuate_answer import evacuate_answer, evacuate_data  # noqa: PLC0415
    from gpolicy.use_cases.questions import find_evacuation  # noqa: PLC0415

    outputs, what_if = shown.outputs("evacuate", every=every), suppositions.read()
    if nodes is not None and group is not None:
        raise UsageError("NODE and --group exclude one another", hint="name either nodes or a group that is emptied")
    if nodes is None and group is None:
        raise UsageError("what is to be emptied?", hint="name nodes (node1,node2), or a group: --group NAME")
    if primary_only and secondary_only:
        raise UsageError("--primary-only and --secondary-only exclude one another", hint="leave out both: all move")
    if (primary_only or secondary_only or ignore_soft_errors) and (group is not None or to):
        hint = "leave out --primary-only, --secondary-only and --ignore-soft-errors"
        raise UsageError("an instance changes its group with all of its nodes, within their limits", hint=hint)
    mode = EvacuationMode.PRIMARY if primary_only else EvacuationMode.SECONDARY
    mode = mode if primary_only or secondary_only else EvacuationMode.ALL
    request = EvacuationRequest(
        nodes=nodes,
        group=group,
        targets=tuple(to or ()),
        mode=mode,
        ignore_soft_errors=ignore_soft_errors,
    )

    def work(target: Target) -> Report:
        cluster = open_target(target, what_if, resource_model=resource_model)
        report = find_evacuation(cluster, request, stop=after(seconds), working=working)
        return Report(
            exit_code=int(ExitCode.FINDINGS if report.stays or report.objections else ExitCode.FINE),
            answer=lambda: evacuate_answer(report),
            own={"json": lambda: json_text(evacuate_data(report))},
            policy=(policy,) if policy else (),
        )

    return run(work, clusters, policy, outputs, verb="evacuate")
