"""The verbs for a policy alone: init, check, fmt, show, test, schema, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpolicy.cli.options import (
    Authority,
    Budget,
    Credentials,
    Insecure,
    MaybeState,
    PolicyPath,
    form_option,
    look_of,
    source_options,
)

verbs = typer.Typer()


@verbs.command("init")
def init(
    directory: Annotated[Path, typer.Argument(help="Directory to write to; created if it does not exist.")] = Path(),
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "cluster.example.org",
) -> int:
    """Write a small policy to begin with. It passes `gpolicy check`."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.init(directory, name)


@verbs.command("check")
def check(  # noqa: PLR0913, PLR0917 (one parameter an option)
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Policies: directories or files. Default: here.")
    ] = None,
    state: MaybeState = None,
    form: Annotated[str, form_option("check")] = "text",
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="RULE,...", help="Only these rules; instead of what the settings select."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE,...", help="Not these rules.")] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option("--severity", metavar="RULE=LEVEL", help="How bad a rule is: error, warning or info."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="The least severity that makes the exit code 1; default: error. Or never.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Accept what this file says was there before.")
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write what is found to this file, to accept it."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The settings; default: the nearest gpolicy.toml or pyproject.toml."
        ),
    ] = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    isolated: Annotated[bool, typer.Option("--isolated", help="Read no settings file.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed safely, and report the rest.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change, and change nothing. Exit code 1 if anything.")
    ] = False,
    budget: Budget = None,
    insecure_rapi: Insecure = False,
) -> int:
    """Find mistakes: shape, values, and what Ganeti lets through. Exit code 1 if there is an error.

    Needs no cluster; with --state also the rules that do. A RULE is a code (GP201), a name (spec-overlap) or a family
    (GP2, GP20); options with several can be repeated, or take a list with commas. `gpolicy explain` lists the rules.

    A finding can be accepted at its place by a comment: # gpolicy: ignore[GP201] and the reason. Settings for
    everybody belong in gpolicy.toml: see docs/check.md.
    """
    from gpolicy.checking.overrides import Overrides  # noqa: PLC0415
    from gpolicy.cli import checking  # noqa: PLC0415

    overrides = Overrides(
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
        options=source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi),
        look=look_of("check", form, budget),
        overrides=overrides,
        fix=fix,
        diff=diff,
        write_baseline=write_baseline,
    )
    return checking.check(request)


@verbs.command("fmt")
def fmt(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Directories or files, or - for standard input. Default: here."),
    ] = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; name unformatted files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; show what would change.")] = False,
) -> int:
    """Write policy files in the canonical form, with all comments at their entries.

    Values are never changed. Files that cannot be formatted safely are named and stay unchanged. Exit code 1 if --check
    or --diff find something, or if a file is not YAML.
    """
    from gpolicy.cli import formatting  # noqa: PLC0415

    return formatting.format_files(paths or [Path()], check=check_only, diff=diff)


@verbs.command("show")
def show(
    path: PolicyPath = Path(),
    form: Annotated[str, form_option("show")] = "text",
    *,
    origin: Annotated[bool, typer.Option("--origin", help="Show file and line that each value comes from.")] = False,
) -> int:
    """Show the effective policy of the cluster, each group and each node set."""
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.show(path, look_of("show", form), origin=origin)


@verbs.command("test")
def run_tests(
    path: PolicyPath = Path(),
    name: Annotated[
        str | None, typer.Option("-k", "--name", metavar="NAME", help="Only tests with this in their name.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", "-s", metavar="SRC", help="The cluster of tests that name none (see plan --help)."),
    ] = None,
    form: Annotated[str, form_option("test")] = "text",
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    budget: Budget = None,
    insecure_rapi: Insecure = False,
) -> int:
    """Run the policy's own tests (documents of kind Test). Exit code 1 if one fails.

    A test without a cluster of its own runs on the hardware that the groups promise.
    """
    from gpolicy.cli import testing  # noqa: PLC0415

    options = source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    return testing.run(path, state, options, look_of("test", form, budget), name=name)


@verbs.command("schema")
def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Cluster, NodeGroup, …; default: any document of a policy.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write all schemas to this directory.")
    ] = None,
) -> int:
    """Show the JSON Schema of a kind of document, for editors."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.schema(kind, output)


@verbs.command("explain")
def explain(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE|NAME|FAMILY]", help="Rule to explain (GP201, spec-overlap); a family (GP2) or none: list."
        ),
    ] = None,
) -> int:
    """Say what a rule means, why it exists, and how to fix what it finds."""
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.explain(rule)
