"""The verbs with their options. Each body imports what it needs: start-up must feel instant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions

_HELP = """Policy as code for Ganeti: check a policy, see what it would change, and change exactly that.

A policy is a directory of YAML files that say what a cluster should be. Begin with `gpolicy init`, or write down
what a cluster has now with `gpolicy adopt`.
"""
_SRC_HELP = (
    "Where the cluster's state comes from: rapi://host[:port], local:, ssh://[user@]host, config:FILE (config.data), "
    "text:FILE (hscan), snapshot:FILE."
)

_ALLOW_HELP = (
    "Pass this guard although it fails: right-cluster, disks-stay, exclusive-storage or master-network. "
    "Can be repeated."
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
def check(
    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(metavar="[PATH]...", help="Policies: directories or files. Default: here."),
    ] = None,
    state: MaybeState = None,
    form: Format = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    insecure_rapi: Insecure = False,
) -> int:
    """Find mistakes: shape, values, and what Ganeti lets through. Exit code 1 if there is an error.

    Needs no cluster; with --state also the rules that do.
    """
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.check(paths or [Path()], state, form, _options(rapi_credentials, rapi_ca, insecure=insecure_rapi))


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
    insecure_rapi: Insecure = False,
) -> int:
    """Keep one consistent read of a cluster, to check and plan against offline. The file is private (0600)."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.snapshot(state, output, _options(rapi_credentials, rapi_ca, insecure=insecure_rapi))


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
    form: Format = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit code 2 when changes are pending.")
    ] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Show what the policy would change on the cluster, by which commands. Changes nothing.

    Exit code 1 when a guard fails or the policy has an error.
    """
    from gpolicy.cli import planning  # noqa: PLC0415

    request = planning.Request(
        path=path,
        state=state,
        options=_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        output=output,
        allowed=frozenset(allow or ()),
        form=form,
        detailed_exitcode=detailed_exitcode,
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
def capacity(
    state: State,
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
    form: Format = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    score: Annotated[bool, typer.Option("--score", help="Show the cluster score and its components.")] = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Count how many more instances fit, by group and spec, and say what keeps out the next one.

    Each group is counted alone; the last rows are what hspace says of the whole cluster.
    """
    from gpolicy.cli import capacity as counting  # noqa: PLC0415

    options = _options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    request = counting.Request(state=state, options=options, group=group, template=template, score=score, form=form)
    return counting.capacity(request)


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
        typer.Argument(metavar="[CODE|NAME]", help="Rule to explain (GP201 or spec-overlap); default: list them."),
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


def _options(credentials: Path | None, authority: Path | None, *, insecure: bool) -> SourceOptions:
    from gpolicy.cluster.sources import SourceOptions  # noqa: PLC0415

    return SourceOptions(rapi_credentials=credentials, rapi_ca=authority, rapi_insecure=insecure)
