"""The verbs for a policy alone: init, check, fmt, show, test, schema, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpolicy.cli.options import (
    Budget,
    MaybeClusters,
    Outputs,
    PolicyOption,
    PolicyOptions,
    PolicyPath,
    display_of,
    displays_of,
    form_option,
    policy_path,
)

verbs = typer.Typer()


@verbs.command("init")
def init(
    directory: Annotated[
        Path, typer.Argument(..., metavar="[DIR]", help="Directory to write to; created if it does not exist.")
    ] = Path(),
    name: Annotated[str, typer.Option("--name", help="Name of the cluster.")] = "cluster.example.org",
) -> int:
    """Write a small policy to begin with. It passes `gpolicy check`."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.init(directory, name)


@verbs.command("check")
def check(  # noqa: PLR0913 (one parameter an option)
    paths: Annotated[
        list[Path] | None,
        typer.Argument(..., metavar="[PATH]...", help="Policies: directories or files. Default: here."),
    ] = None,
    policies: PolicyOptions = None,
    *,
    clusters: MaybeClusters,
    form: Annotated[str, form_option("check")] = "text",
    output: Outputs = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="RULE,...", help="Run only these rules, whatever the settings select."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE,...", help="Skip these rules.")] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option("--severity", metavar="RULE=LEVEL", help="Set the severity of a rule: error, warning or info."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LEVEL",
            help="The lowest severity that gives exit code 1, or never; default: error.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Accept the findings that this file lists.")
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write all findings to this file, to accept them."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The settings; default: the nearest gpolicy.toml or pyproject.toml."
        ),
    ] = None,
    ganeti_version: Annotated[
        str | None,
        typer.Option(
            "--ganeti-version",
            metavar="RELEASE",
            help="Check for this release of Ganeti: what if the cluster is upgraded? Default: the cluster's with"
            " --state, else the policy's.",
        ),
    ] = None,
    isolated: Annotated[bool, typer.Option("--isolated", help="Read no settings file.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed safely, and report the rest.")] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff", help="Show what --fix would change, and change nothing. Exit code 1 if it would change any."
        ),
    ] = False,
    budget: Budget = None,
) -> int:
    """Find mistakes, also those that Ganeti accepts. Exit code 1 if there is an error.

    It needs no cluster; with --state it also runs the rules that do. A RULE is a code (GP201), a name (spec-overlap) or
    a family (GP2, GP20); separate several with commas. `gpolicy explain` lists the rules.

    A comment accepts a finding on its line: # gpolicy: ignore[GP201] and the reason. Settings for everybody belong in
    gpolicy.toml: see docs/guides/check.md.
    """
    from gpolicy.checking.settings_tables import Overrides  # noqa: PLC0415
    from gpolicy.cli import checking  # noqa: PLC0415

    display, also = displays_of("check", form, output, budget)
    overrides = Overrides(
        select=tuple(select or ()),
        ignore=tuple(ignore or ()),
        severity=tuple(severity or ()),
        fail_on=fail_on,
        config=config,
        isolated=isolated,
        baseline=baseline,
        ganeti_version=ganeti_version,
    )
    request = checking.CheckRequest(
        paths=[*(paths or ()), *(policies or ())],
        clusters=clusters,
        display=display,
        overrides=overrides,
        also=also,
        fix=fix,
        diff=diff,
        write_baseline=write_baseline,
    )
    return checking.check(request)


@verbs.command("fmt")
def fmt(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(..., metavar="[PATH]...", help="Directories or files, or - for standard input. Default: here."),
    ] = None,
    policies: PolicyOptions = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; name unformatted files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; show what would change.")] = False,
) -> int:
    """Write policy files in the canonical form; keep all comments.

    Values never change. Files that cannot be formatted safely are named and stay unchanged. Exit code 1 if --check
    or --diff find something, or if a file is not YAML.
    """
    from gpolicy.cli import formatting  # noqa: PLC0415

    return formatting.format_files([*(paths or ()), *(policies or ())] or [Path()], check=check_only, diff=diff)


@verbs.command("show")
def show(
    path: PolicyPath = None,
    policy: PolicyOption = None,
    form: Annotated[str, form_option("show")] = "text",
    *,
    origin: Annotated[bool, typer.Option("--origin", help="Show file and line that each value comes from.")] = False,
) -> int:
    """Show the effective policy of cluster, groups and node sets."""
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.show(policy_path(path, policy) or Path(), display_of("show", form), origin=origin)


@verbs.command("test")
def run_tests(
    path: PolicyPath = None,
    policy: PolicyOption = None,
    name: Annotated[
        str | None, typer.Option("-k", "--name", metavar="NAME", help="Only tests with this in their name.")
    ] = None,
    *,
    clusters: MaybeClusters,
    form: Annotated[str, form_option("test")] = "text",
    output: Outputs = None,
    budget: Budget = None,
) -> int:
    """Run the policy's own tests (documents of kind Test). Exit code 1 if one fails.

    A test without a cluster of its own (`on`) runs on the one of --state, else on the hardware that the groups promise.
    """
    from gpolicy.cli import testing  # noqa: PLC0415

    display, also = displays_of("test", form, output, budget)
    return testing.test(clusters, policy_path(path, policy), display, name=name, also=also)


@verbs.command("schema")
def schema(
    kind: Annotated[
        str | None,
        typer.Argument(..., metavar="[KIND]", help="Cluster, NodeGroup, …; default: any document of a policy."),
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
    word: Annotated[
        str | None,
        typer.Argument(
            ...,
            metavar="[NAME]",
            help="A rule (GP201, spec-overlap), a family of rules (GP2), a key (vcpu-ratio, ipolicy.minmax), a kind"
            " (NodeGroup), a guard (disks-stay), an exit code (2, exit-codes), an environment variable or a word of"
            " reports (n1-reserve, FailMem), or of the policy in this directory a guard, a spec or a house rule"
            " (house/NAME). Default: list the rules.",
        ),
    ] = None,
) -> int:
    """Say what a rule, key, kind, guard or exit code means.

    A name with several meanings lists them. `gpolicy explain NodeGroup.nodes` names a key of one kind.
    """
    from gpolicy.cli import checking  # noqa: PLC0415

    return checking.explain(word)
