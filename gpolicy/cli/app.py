"""The verbs with their options. Each body imports what it needs: start-up must feel instant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions

_HELP = """Policy as code for Ganeti: check a policy, see what it would change, and change exactly that.

A policy is a directory of YAML files that say what a cluster should be. Begin with `gpolicy init`, or write down
what a cluster has now with `gpolicy adopt`.
"""
_SRC_HELP = (
    "Where the cluster's state comes from: rapi://host[:port], local:, ssh://[user@]host, config:FILE (config.data), "
    "text:FILE (hscan), snapshot:FILE, sim:SPEC (as hspace --simulate)."
)

_ALLOW_HELP = (
    "Pass this guard although it fails: one that the policy declares, or right-cluster, disks-stay, "
    "exclusive-storage, master-network. Can be repeated."
)

app = typer.Typer(
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PolicyPath = Annotated[Path, typer.Argument(help="The policy: a directory of YAML files, or one file.")]
State = Annotated[str, typer.Option("--state", "-s", metavar="SRC", help=_SRC_HELP)]
MaybeState = Annotated[Optional[str], typer.Option("--state", "-s", metavar="SRC", help=_SRC_HELP)]  # noqa: UP045
Format = Annotated[str, typer.Option("--format", "-f", metavar="text|json", help="Form of the output.")]
Budget = Annotated[
    int,
    typer.Option("--budget", metavar="BYTES", help="Most bytes of --format markdown; what is least important is cut."),
]
_COMMENT: Final = 65_536  # what a comment on GitHub holds
Credentials = Annotated[
    Optional[Path],  # noqa: UP045 (Typer reads the annotation at run time)
    typer.Option("--rapi-credentials", metavar="FILE", help="File with RAPI user and password, readable by you alone."),
]
Authority = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--rapi-ca", metavar="FILE", help="Certificate (PEM) to trust RAPI by, instead of the system's."),
]
Insecure = Annotated[
    bool, typer.Option("--insecure-rapi", help="Do NOT verify RAPI's certificate: anybody could answer in its place.")
]

Volumes = Annotated[
    bool,
    typer.Option(
        "--physical-volumes",
        help="Read the nodes' physical volumes as well. Ganeti runs jobs for that, which wait for the nodes' locks.",
    ),
]


@app.callback()
def _main(
    *,
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version and leave.")] = False,
) -> None:
    if version:
        from gpolicy import __version__  # noqa: PLC0415

        typer.echo(f"gpolicy {__version__}")
        raise typer.Exit


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Directory to write to; made if it is not there.")] = Path(),
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "cluster.example.org",
) -> int:
    """Write a small policy to begin with. It passes `gpolicy check`."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.init(directory, name)


@app.command()
def check(  # noqa: PLR0913, PLR0917 (one parameter an option)
    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(metavar="[PATH]...", help="Policies: directories or files. Default: here."),
    ] = None,
    state: MaybeState = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", "-f", metavar="text|json|markdown|github|sarif|junit|gitlab", help="Form of the output."
        ),
    ] = "text",
    select: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--select", metavar="RULE,...", help="Only these rules; instead of what the settings select."),
    ] = None,
    ignore: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--ignore", metavar="RULE,...", help="Not these rules."),
    ] = None,
    severity: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--severity", metavar="RULE=LEVEL", help="How bad a rule is: error, warning or info."),
    ] = None,
    fail_on: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="The least severity that makes the exit code 1; default: error. Or never.",
        ),
    ] = None,
    baseline: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--baseline", metavar="FILE", help="Accept what this file says was there before."),
    ] = None,
    write_baseline: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--write-baseline", metavar="FILE", help="Write what is found to this file, to accept it."),
    ] = None,
    config: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--config", metavar="FILE", help="The settings; default: the nearest gpolicy.toml or pyproject.toml."
        ),
    ] = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    isolated: Annotated[bool, typer.Option("--isolated", help="Read no settings file.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended safely, and report the rest.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change, and change nothing. Exit code 1 if anything.")
    ] = False,
    budget: Budget = _COMMENT,
    insecure_rapi: Insecure = False,
) -> int:
    """Find mistakes: shape, values, and what Ganeti lets through. Exit code 1 if there is an error.

    Needs no cluster; with --state also the rules that do. A RULE is a code (GP201), a name (spec-overlap) or a family
    (GP2, GP20); options with several can be repeated, or take a list with commas. `gpolicy explain` lists the rules.

    A finding can be accepted where it stands, by a comment: # gpolicy: ignore[GP201] and the reason. What should hold
    for everybody belongs into gpolicy.toml: see docs/check.md.
    """
    from gpolicy.cli import checking, judging  # noqa: PLC0415

    control = judging.Control(
        select=tuple(select or ()),
        ignore=tuple(ignore or ()),
        severity=tuple(severity or ()),
        fail_on=fail_on,
        config=config,
        isolated=isolated,
        baseline=baseline,
    )
    request = checking.Request(
        paths=paths or [Path()],
        state=state,
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        form=form,
        budget=budget,
        control=control,
        fix=fix,
        diff=diff,
        write_baseline=write_baseline,
    )
    return checking.check(request)


@app.command("fmt")
def fmt(
    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(metavar="[PATH]...", help="Directories or files, or - for standard input. Default: here."),
    ] = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; name what is not in form.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; show what would change.")] = False,
) -> int:
    """Write policy files in their one canonical form, with all comments where they belong.

    Values are never changed. What cannot be formatted safely is named and left as it is. Exit code 1 if --check or
    --diff find something, or if a file is not YAML.
    """
    from gpolicy.cli import formatting  # noqa: PLC0415

    return formatting.format_files(paths or [Path()], check=check_only, diff=diff)


@app.command()
def show(
    path: PolicyPath = Path(),
    form: Format = "text",
    *,
    origin: Annotated[bool, typer.Option("--origin", help="Show file and line that each value comes from.")] = False,
) -> int:
    """Show the effective policy of the cluster, each group and each node set."""
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.show(path, form, origin=origin)


@app.command()
def adopt(
    state: State,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write; must be empty.")],
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    insecure_rapi: Insecure = False,
) -> int:
    """Write the policy that a cluster has now. Planning it on that cluster changes nothing."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.adopt(state, output, _options(rapi_credentials, rapi_ca, insecure=insecure_rapi))


@app.command()
def snapshot(
    state: State,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    physical_volumes: Volumes = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Keep one consistent read of a cluster, to check and plan against offline. The file is private (0600)."""
    from gpolicy.cli import writing  # noqa: PLC0415

    options = _options(rapi_credentials, rapi_ca, insecure=insecure_rapi, volumes=physical_volumes)
    return writing.snapshot(state, output, options)


@app.command()
def plan(  # noqa: PLR0913 (one parameter an option)
    state: State,
    path: PolicyPath = Path(),
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Keep the plan (JSON), for gpolicy render."),
    ] = None,
    allow: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--allow", metavar="GUARD", help=_ALLOW_HELP),
    ] = None,
    max_node_failures: Annotated[
        int,
        typer.Option(
            "--max-node-failures",
            metavar="K",
            min=1,
            max=5,
            help="Examine the loss of so many nodes of a group at once.",
        ),
    ] = 1,
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|markdown|html|github", help="Form of the output.")
    ] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = _COMMENT,
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
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi, volumes=physical_volumes),
        output=output,
        allowed=frozenset(allow or ()),
        form=form,
        detailed_exitcode=detailed_exitcode,
        with_impact=impact,
        failures=max_node_failures,
        budget=budget,
    )
    return planning.plan(request)


@app.command()
def render(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.JSON", help="A plan that `gpolicy plan -o` wrote.")],
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="File to write (executable); default: standard output."),
    ] = None,
    *,
    rollback: Annotated[bool, typer.Option("--rollback", help="The script that undoes the plan.")] = False,
) -> int:
    """Write the shell script of gnt-* commands that carries a plan out."""
    from gpolicy.cli import planning  # noqa: PLC0415

    return planning.render(plan_file, output, rollback=rollback)


@app.command()
def drift(
    state: State,
    path: PolicyPath = Path(),
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|prometheus", help="Form of the output.")
    ] = "text",
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="File to write; default: standard output."),
    ] = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    insecure_rapi: Insecure = False,
) -> int:
    """Show what the cluster has otherwise than the policy declares, and since when. Changes nothing.

    Exit code 2 when there is drift, 1 when the policy has an error, 3 when nothing could be compared.
    """
    from gpolicy.cli import drift as comparing  # noqa: PLC0415

    options = _options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    return comparing.drift(comparing.Request(path=path, state=state, options=options, form=form, output=output))


@app.command()
def apply(  # noqa: PLR0913 (one parameter an option)
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN.JSON", help="A plan that `gpolicy plan -o` wrote.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DST",
            help="How to reach the cluster: local: (on the master), ssh://[user@]host, rapi://host[:port].",
        ),
    ],
    journal: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--journal", metavar="FILE", help="What was done, line by line; default: PLAN.journal.jsonl."),
    ] = None,
    job_timeout: Annotated[
        float, typer.Option("--job-timeout", metavar="SECONDS", min=1, help="How long to wait for one job.")
    ] = 3600.0,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
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
) -> int:
    """Carry a plan out, step by step. Nothing is done if what it touches has changed since it was made.

    Each step is written to a journal before it begins, and believed only when a new look at the cluster shows it.
    Whatever stops a run, --resume goes on and --rollback goes back. Exit code 0: done and seen; 1: refused, a step
    failed, or the result is not what was planned; 3: it could not run.
    """
    from gpolicy.cli import applying  # noqa: PLC0415

    request = applying.Request(
        plan=plan_file,
        destination=to,
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        journal=journal,
        resume=resume,
        rollback=rollback,
        yes=yes,
        job_timeout=job_timeout,
    )
    return applying.apply(request)


@app.command()
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
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|markdown", help="Form of the output.")
    ] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = _COMMENT,
    resource_model: Annotated[
        bool,
        typer.Option("--resource-model", help="Count with what hv_state and disk_state declare, not what is measured."),
    ] = False,
    score: Annotated[bool, typer.Option("--score", help="Show the cluster score and its components.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Count how many more instances fit, by group and spec, and say what keeps out the next one.

    Each group is counted alone; the last rows are what hspace says of the whole cluster.
    """
    from gpolicy.cli import capacity as counting  # noqa: PLC0415

    request = counting.Request(
        state=state,
        policy=path,
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        group=group,
        template=template,
        score=score,
        form=form,
        declared=resource_model,
        max_node_failures=max_node_failures,
        oversubscription=oversubscription,
        budget=budget,
    )
    return counting.capacity(request)


@app.command()
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
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|markdown|html", help="Form of the output.")
    ] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = _COMMENT,
    every: Annotated[bool, typer.Option("--all", "-a", help="Show every candidate.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Say where an instance would go, as hail would, and what every node or pair of nodes says to it.

    A spec pair's name means its least size; what is not said at all is taken from the policy's std. Exit code 1 when
    the instance goes nowhere.
    """
    from gpolicy.cli import placing  # noqa: PLC0415

    options = _options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    asked = placing.Request(
        words=request, state=state, options=options, policy=policy, every=every, form=form, budget=budget
    )
    return placing.place(asked)


@app.command()
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
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|yaml|markdown|html", help="Form of the output.")
    ] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = _COMMENT,
    empty: Annotated[bool, typer.Option("--empty", help="Count the mix as if no instance were there.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Suggest instance sizes that tile the nodes with the least stranded, as a ready NodeGroup document.

    What they give is counted by the allocator, against today's policy.
    """
    from gpolicy.cli import suggesting  # noqa: PLC0415

    request = suggesting.Request(
        state=state,
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
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
        form=form,
        budget=budget,
    )
    return suggesting.suggest(request)


@app.command(name="test")
def run_tests(
    path: PolicyPath = Path(),
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("-k", "--name", metavar="NAME", help="Only tests with this in their name."),
    ] = None,
    state: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--state", "-s", metavar="SRC", help="The cluster of tests that name none (see plan --help)."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="text|json|junit|markdown|html", help="Form of the output.")
    ] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = _COMMENT,
    insecure_rapi: Insecure = False,
) -> int:
    """Run the policy's own tests (documents of kind Test). Exit code 1 if one fails.

    A test without a cluster of its own runs on the hardware that the groups promise.
    """
    from gpolicy.cli import testing  # noqa: PLC0415

    options = _options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    request = testing.Request(path=path, state=state, options=options, name=name, form=form, budget=budget)
    return testing.run(request)


@app.command()
def schema(
    kind: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="[KIND]", help="Cluster, NodeGroup, …; default: any document of a policy."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="DIR", help="Write all schemas to this directory."),
    ] = None,
) -> int:
    """Show the JSON Schema of a kind of document, for editors."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.schema(kind, output)


@app.command()
def explain(
    rule: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[CODE|NAME|FAMILY]", help="Rule to explain (GP201, spec-overlap); a family (GP2) or none: list."
        ),
    ] = None,
) -> int:
    """Say what a rule means, why it is there, and how to mend what it finds."""
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.explain(rule)


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
    options_metavar="hspace|hail",
)
def htools(context: typer.Context) -> int:
    """Run the allocator under htools' own option names, inputs and outputs: `gpolicy htools hspace --help`."""
    from gpolicy.htools import run  # noqa: PLC0415

    return run(context.args)


def _options(
    credentials: Path | None, authority: Path | None, *, insecure: bool, volumes: bool = False
) -> SourceOptions:
    from gpolicy.cluster.sources import SourceOptions  # noqa: PLC0415

    return SourceOptions(
        rapi_credentials=credentials, rapi_ca=authority, rapi_insecure=insecure, physical_volumes=volumes
    )
