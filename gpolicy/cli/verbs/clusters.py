"""The verbs that read clusters: clusters, adopt, snapshot, drift."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpolicy.cli.options import (
    Clusters,
    Label,
    PolicyOption,
    PolicyPath,
    ReportFile,
    Volumes,
    display_of,
    form_option,
    policy_path,
    seconds_option,
)
from gpolicy.errors import UsageError

verbs = typer.Typer()


@verbs.command("clusters")
def clusters(
    path: Annotated[
        Path | None,
        typer.Argument(..., metavar="[DIR]", help="A directory of the repository. Default: the current one."),
    ] = None,
    label: Label = None,
    form: Annotated[str, form_option("clusters")] = "text",
    timeout: Annotated[float, seconds_option("--timeout", "Time for each cluster.")] = 15.0,
    *,
    offline: Annotated[bool, typer.Option("--offline", help="Contact no cluster.")] = False,
) -> int:
    """List the clusters that gpolicy.toml names.

    It says whether each answers, and how old its state is. Exit code 3 if one does not answer.
    """
    from gpolicy.cli import listing  # noqa: PLC0415

    display = display_of("clusters", form)
    return listing.clusters(path, label or (), display, seconds=timeout, offline=offline)


@verbs.command("adopt")
def adopt(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Directory to write: empty, or with a policy, to which new groups and nodes are added. Each of several"
            " clusters gets one below it.",
        ),
    ],
    *,
    clusters: Clusters,
) -> int:
    """Write the policy that a cluster has now. A plan of it on that cluster is empty.

    A policy that is there gets the groups and nodes that it does not mention; what it says stays.
    """
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.adopt(clusters, output)


@verbs.command("snapshot")
def snapshot(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write; of several clusters a directory, for DIR/CLUSTER/TIME.json.",
        ),
    ],
    *,
    clusters: Clusters,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="Of several clusters: remove all but the newest N of each."),
    ] = None,
    physical_volumes: Volumes = False,
) -> int:
    """Save one consistent state of a cluster, to plan against offline.

    Files are private (0600).
    """
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.snapshot(clusters, output, keep=keep, volumes=physical_volumes)


@verbs.command("drift")
def drift(
    path: PolicyPath = None,
    policy: PolicyOption = None,
    *,
    clusters: Clusters,
    form: Annotated[str, form_option("drift")] = "text",
    output: ReportFile = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Write the live values into the policy, where it declares them. What cannot be written safely is named"
            " with its reason. Several clusters are written one after another.",
        ),
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="OBJECT",
            help="Write only this object (cluster, group/NAME, node/NAME; globs) or value (OBJECT:PATH). Can be"
            " repeated.",
        ),
    ] = None,
    in_bases: Annotated[
        bool,
        typer.Option(
            "--in-bases",
            help="Write a value that a base declares there, also if that changes others that extend it. Default: the"
            " object gets a value of its own.",
        ),
    ] = False,
) -> int:
    """Show where the cluster differs from the policy, and since when. The cluster is never changed.

    Exit code 2 when there is drift (with --write: when some is left), 1 when the policy has an error, 3 when nothing
    could be compared.
    """
    from gpolicy.cli import drift as comparing  # noqa: PLC0415

    display = display_of("drift", form)
    if not write and (select or in_bases):
        option = "--select" if select else "--in-bases"
        raise UsageError(f"{option} says what to write", hint="say --write as well")
    request = comparing.WriteRequest(selected=tuple(select or ()), in_bases=in_bases) if write else None
    return comparing.drift(clusters, policy_path(path, policy), display, output, request)
