"""The verbs that ask the allocator what fits: how many, where, in which sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from gpolicy.cli.options import Authority, Budget, Credentials, Insecure, State, form_option, look_of, source_options

verbs = typer.Typer()


@verbs.command("capacity")
def capacity(  # noqa: PLR0913, PLR0917 (one parameter an option)
    state: State,
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="[PATH]", help="Count on the cluster as it is once this policy is applied."),
    ] = None,
    group: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--group", "-g", metavar="NAME", help="Count this group only."),
    ] = None,
    template: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--template",
            "-t",
            metavar="TEMPLATE",
            help="Disk template of the instances; default: each group's first enabled one that it allows.",
        ),
    ] = None,
    max_node_failures: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--max-node-failures",
            metavar="K",
            min=1,
            max=5,
            help="Also count what fits if K nodes of a group may fail at once.",
        ),
    ] = None,
    oversubscription: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--oversubscription",
            metavar="RATIO",
            help="Also count what fits if instances are guaranteed the least memory of their pair and may burst to the "
            "greatest, all of a node together to RATIO times its memory.",
        ),
    ] = None,
    form: Annotated[str, form_option("capacity")] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = None,
    resource_model: Annotated[
        bool,
        typer.Option("--resource-model", help="Count with what hv_state and disk_state declare, not what is measured."),
    ] = False,
    score: Annotated[bool, typer.Option("--score", help="Show the components of the cluster score.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Count how many more instances fit, by group and spec, and say what keeps out the next one.

    Each group is counted alone; the last rows are what hspace says of the whole cluster.
    """
    from gpolicy.cli import capacity as counting  # noqa: PLC0415

    request = counting.Request(
        state=state,
        policy=path,
        options=source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        group=group,
        template=template,
        score=score,
        look=look_of("capacity", form, budget),
        declared=resource_model,
        max_node_failures=max_node_failures,
        oversubscription=oversubscription,
    )
    return counting.capacity(request)


@verbs.command("place")
def place(  # noqa: PLR0913 (Typer reads options from arguments)
    request: Annotated[
        list[str],
        typer.Argument(
            metavar="REQUEST...",
            help="The instance: words KEY=VALUE (memory=4G vcpus=2 disk=20G disk=10G:2 template=drbd group=NAME "
            "tags=A,B nodes=A,B spindle-use=1 nics=1), the name of a spec pair, or a file with these keys (YAML or "
            "JSON; also a request for hail).",
        ),
    ],
    state: State,
    policy: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--policy", "-p", metavar="PATH", help="On the cluster as it is once this policy is applied."),
    ] = None,
    form: Annotated[str, form_option("place")] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Show every candidate.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Say where an instance would go, as hail would, and what every node or pair of nodes says to it.

    A spec pair's name means its least size; what is not said at all is taken from the policy's std. Exit code 1 when
    the instance goes nowhere.
    """
    from gpolicy.cli import placing  # noqa: PLC0415

    options = source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    asked = placing.Request(
        words=request,
        state=state,
        options=options,
        policy=policy,
        look=look_of("place", form, budget, every=every),
    )
    return placing.place(asked)


@verbs.command("suggest")
def suggest(  # noqa: PLR0913, PLR0917 (one parameter an option)
    state: State,
    group: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--group", "-g", metavar="NAME", help="For this group only; default: each one that has nodes."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Write the document to this new file."),
    ] = None,
    sizes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--sizes",
            metavar="SIZE,...",
            help="Parts of a node: full,half,third,quarter, 1/N; default: full, half and quarter, or what wastes less.",
        ),
    ] = None,
    mix: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--mix", metavar="SIZE=N,...", help="Count how often this mix fits: full=2,half=3,quarter=10."),
    ] = None,
    template: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--template", "-t", metavar="TEMPLATE", help="Disk template; default: the first enabled and allowed one."
        ),
    ] = None,
    bounds: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--bounds",
            metavar="fixed|ranges",
            help="fixed: the sizes alone (default where exclusive storage is on); ranges: everything between as well.",
        ),
    ] = None,
    vcpu_ratio: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--vcpu-ratio", metavar="RATIO", help="Default: 1 where exclusive storage is on, else as it is today."
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", metavar="PERCENT", help="Part of the measured memory to leave alone.")
    ] = 1.0,
    pv_size: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--pv-size", metavar="SIZE", help="Size of the smallest physical volume, if it is not measured."),
    ] = None,
    form: Annotated[str, form_option("suggest")] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = None,
    empty: Annotated[bool, typer.Option("--empty", help="Count the mix as if no instance were there.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Suggest instance sizes that tile the nodes with the least stranded, as a ready NodeGroup document.

    What they give is counted by the allocator, against today's policy.
    """
    from gpolicy.cli import suggesting  # noqa: PLC0415

    request = suggesting.Request(
        state=state,
        options=source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        group=group,
        template=template,
        sizes=sizes,
        bounds=bounds,
        vcpu_ratio=vcpu_ratio,
        margin=margin,
        pv_size=pv_size,
        mix=mix,
        empty=empty,
        output=output,
        look=look_of("suggest", form, budget),
    )
    return suggesting.suggest(request)
