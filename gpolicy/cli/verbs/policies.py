"""The verbs for a policy alone: init, check, fmt, show, test, schema, explain."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import gpolicy
from gpolicy.cli import options
from gpolicy.cli.output import Report, show_report
from gpolicy.cli.targets import Target, clusters_near, report_file, run
from gpolicy.cli.terminal import working, write_long
from gpolicy.errors import ExitCode, RequestError, UsageError
from gpolicy.findings import HOUSE
from gpolicy.guessing import closest, did_you_mean, did_you_mean_one_of
from gpolicy.json_values import json_text
from gpolicy.opening import YAML_SUFFIXES, real_path, write_public
from gpolicy.printable import as_text

if TYPE_CHECKING:
    from gpolicy.policy.kinds import HouseRule
    from gpolicy.testing.outcome import Outcome

verbs = typer.Typer()


@verbs.command("init")
def init(
    directory: Annotated[Path, typer.Argument(..., metavar="[DIR]")] = Path(),
    name: Annotated[str, typer.Option("--name")] = "cluster.example.org",
    service: Annotated[str | None, typer.Option("--ci", metavar="SERVICE")] = None,
) -> int:
    """Write a small policy to begin with. It passes `gpolicy check`.

    With --ci, a policy that is there already stays as it is.
    """
    from gpolicy.policy.files import has_policy  # noqa: PLC0415
    from gpolicy.writing.new_files import workflow_file, write_workflow  # noqa: PLC0415

    workflow = workflow_file(service, directory) if service else None
    written = [] if service and has_policy(directory) else gpolicy.write_policy(gpolicy.starter_files(name), directory)
    lines = [f"wrote {path}" for path in written]
    if service and workflow:
        here = real_path(directory)
        of_clusters = any(real_path(item.source.parent) == here for item in clusters_near(directory).values())
        to_set = write_workflow(service, directory, workflow, clusters=of_clusters)
        lines += [f"wrote {relpath(workflow)}; set in it:", *to_set]
    after = ", then commit both and push" if service else ""
    sys.stdout.write(as_text([*lines, f"next: gpolicy check {directory}{after}"]))
    return int(ExitCode.FINE)


@verbs.command("check")
def check(  # noqa: PLR0913 (one parameter an option)
    paths: Annotated[list[Path] | None, typer.Argument(..., metavar="[PATH]...")] = None,
    policies: options.PolicyOptions = None,
    *,
    clusters: options.MaybeClusters,
    shown: options.Shown,
    select: Annotated[list[str] | None, typer.Option("--select", metavar="RULE,...")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE,...")] = None,
    severity: Annotated[list[str] | None, typer.Option("--severity", metavar="RULE=LEVEL")] = None,
    fail_on: Annotated[str | None, typer.Option("--fail-on", metavar="LEVEL")] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", metavar="FILE")] = None,
    write_baseline: Annotated[Path | None, typer.Option("--write-baseline", metavar="FILE")] = None,
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE")] = None,
    ganeti_version: Annotated[str | None, typer.Option("--ganeti-version", metavar="RELEASE")] = None,
    accepted: Annotated[bool, typer.Option("--accepted")] = False,
    statistics: Annotated[bool, typer.Option("--statistics")] = False,
    isolated: Annotated[bool, typer.Option("--isolated")] = False,
    fix: Annotated[bool, typer.Option("--fix")] = False,
    diff: Annotated[bool, typer.Option("--diff")] = False,
) -> int:
    """Find mistakes, also those that Ganeti accepts. Exit code 1 if there is an error.

    It needs no cluster; with --state it also runs the rules that do. A RULE is a code (GP201), a name (spec-overlap) or
    a family (GP2, GP20); separate several with commas. `gpolicy explain` lists the rules.

    A comment accepts a finding on its line: # gpolicy: ignore[GP201] and the reason. Settings for everybody belong in
    gpolicy.toml: see docs/guides/check.md.
    """
    from gpolicy.checking.settings_tables import Overrides  # noqa: PLC0415
    from gpolicy.cli import checking  # noqa: PLC0415

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
        shown=shown.outputs("check"),
        overrides=overrides,
        fix=fix,
        diff=diff,
        write_baseline=write_baseline,
        accepted=accepted,
        statistics=statistics,
    )
    return checking.check(request)


@verbs.command("fmt")
def fmt(
    paths: Annotated[list[Path] | None, typer.Argument(..., metavar="[PATH]...")] = None,
    policies: options.PolicyOptions = None,
    *,
    check_only: Annotated[bool, typer.Option("--check")] = False,
    diff: Annotated[bool, typer.Option("--diff")] = False,
) -> int:
    """Write policy files in the canonical form; keep all comments.

    Values never change. Files that cannot be formatted safely are named and stay unchanged. Exit code 1 if --check
    or --diff find something, or if a file is not YAML.
    """
    from gpolicy.cli import formatting  # noqa: PLC0415

    return formatting.format_files([*(paths or ()), *(policies or ())] or [Path()], check=check_only, diff=diff)


@verbs.command("show")
def show(
    paths: Annotated[list[Path] | None, typer.Argument(..., metavar="[PATH]...")] = None,
    policy: options.PolicyOption = None,
    *,
    shown: options.Shown,
    origin: Annotated[bool, typer.Option("--origin")] = False,
) -> int:
    """Show the effective policy, or a file that gpolicy wrote.

    A plan or a remedy is shown as it was when it was made, in any form, without the cluster. So are the reports of many
    clusters (`--all --shard N/M --format json`), all together; the exit code is that of a run about all.
    """
    from gpolicy.cli.checking import checked_policy  # noqa: PLC0415
    from gpolicy.report.show_answer import SHOW_DOCUMENT, show_answer  # noqa: PLC0415

    outputs, more = shown.outputs("show"), (paths or [])[1:]
    given = options.policy_path(paths[0] if paths else None, policy) or Path()
    report_file(outputs, "show")  # refuses --output FILE without a form
    if more or (given.is_file() and given.suffix in (".json", ".jsonl")):
        from gpolicy.report.file_answer import file_answer, journal_answer, read_record  # noqa: PLC0415
        from gpolicy.report.fleet_report import is_of_many  # noqa: PLC0415

        is_journal = given.suffix == ".jsonl" and not more
        files = [read_record(path) for path in dict.fromkeys((given, *more)) if not is_journal]
        if len(files) > 1 or any(is_of_many(written) for _, written in files):
            from gpolicy.cli.many_clusters import show_parts  # noqa: PLC0415

            return show_parts([written for _, written in files], outputs.display, outputs.files)
        answer, text = file_answer(given, *files[0]) if files else journal_answer(given)
        shown_file = Report(exit_code=int(ExitCode.FINE), answer=lambda: answer, own={"json": text})
        return show_report(shown_file, outputs.display, also=outputs.files)
    if given.is_file() and given.suffix not in YAML_SUFFIXES:
        hint = "it shows a policy (YAML), or a file that gpolicy wrote with --save (JSON), in any form"
        raise UsageError(f"{given}: nothing that show can read", hint=hint)
    checked = checked_policy(given, only_errors=True)
    if checked.errors:
        failed = Report(exit_code=int(ExitCode.FINDINGS), errors=checked.errors, files=checked.policy.files)
        return show_report(failed, outputs.display)
    view = gpolicy.show_policy(checked)
    report = Report(
        exit_code=int(ExitCode.FINE),
        answer=lambda: show_answer(view, origin=origin),
        own={"json": lambda: json_text(SHOW_DOCUMENT.data(view))},
        policy=(given,),
    )
    return show_report(report, outputs.display, also=outputs.files)


@verbs.command("test")
def run_tests(
    path: options.PolicyPath = None,
    policy: options.PolicyOption = None,
    name: Annotated[str | None, typer.Option("-k", "--name", metavar="NAME")] = None,
    *,
    clusters: options.MaybeClusters,
    shown: options.Shown,
) -> int:
    """Run the policy's own tests (documents of kind Test). Exit code 1 if one fails.

    A test without a cluster of its own (`on`) runs on the one of --state, else on the hardware that the groups promise.
    """
    work = partial(_tested, name=name)
    return run(work, clusters, options.policy_path(path, policy), shown.outputs("test"), verb="test")


def _tested(target: Target, *, name: str | None) -> Report:
    """Run the tests of each policy of a target."""
    from gpolicy.cli.checking import checked_policy, read_for  # noqa: PLC0415
    from gpolicy.policy.files import policy_roots  # noqa: PLC0415
    from gpolicy.report.outcomes_answer import TEST_DOCUMENT, outcomes_answer  # noqa: PLC0415

    roots = policy_roots(target.policy)
    state = read_for(roots, target)
    policies = [checked_policy(root, state) for root in roots]
    with working("running the tests"):
        outcomes = gpolicy.run_tests(policies, state, name=name)
    return Report(
        exit_code=int(ExitCode.FINE if all(outcome.ok for outcome in outcomes) else ExitCode.FINDINGS),
        answer=lambda: outcomes_answer(outcomes),
        own={"json": lambda: json_text(TEST_DOCUMENT.data(outcomes)), "junit": lambda: _junit(outcomes)},
        policy=(target.policy,),
    )


def _junit(outcomes: list[Outcome]) -> str:
    from gpolicy.report.junit import outcomes_junit  # noqa: PLC0415 (slow to import)

    return outcomes_junit(outcomes)


@verbs.command("schema")
def schema(
    kind: Annotated[str | None, typer.Argument(..., metavar="[KIND]")] = None,
    save: Annotated[Path | None, typer.Option("--save", metavar="DIR")] = None,
    output: options.OldOutput = None,
) -> int:
    """Show the JSON Schema of a kind of document, for editors."""
    from gpolicy.data import data_directory  # noqa: PLC0415
    from gpolicy.policy.conformance import WHOLE, file_name, whole_schema  # noqa: PLC0415
    from gpolicy.policy.kinds import KINDS  # noqa: PLC0415

    if kind is not None:
        known = {name.lower(): name for name in KINDS}
        if kind.lower() not in known:
            raise UsageError(f"there is no kind `{kind}`", hint=did_you_mean_one_of(kind, "kinds", KINDS))
        kind = known[kind.lower()]

    def text_of(name: str) -> str:
        if name == WHOLE:
            return json.dumps(whole_schema(), indent=2, ensure_ascii=False) + "\n"
        return (data_directory("schemas") / name).read_text(encoding="utf-8")

    output = options.renamed(save, output, "--save")
    if output is None:
        write_long(text_of(file_name(kind) if kind else WHOLE))
        return int(ExitCode.FINE)
    output.mkdir(parents=True, exist_ok=True)
    for name in (*map(file_name, KINDS), WHOLE, "gpolicy-toml.json"):
        write_public(output / name, text_of(name).encode())
        sys.stdout.write(as_text([f"wrote {output / name}"]))
    return int(ExitCode.FINE)


@verbs.command("explain")
def explain(word: Annotated[str | None, typer.Argument(..., metavar="[NAME]")] = None) -> int:
    """Say what a rule, key, kind, guard or exit code means.

    A name with several meanings lists them. `gpolicy explain NodeGroup.nodes` names a key of one kind.
    """
    from gpolicy.cli.app import VERBS  # noqa: PLC0415 (it imports this module)
    from gpolicy.reference import explaining  # noqa: PLC0415 (other verbs need no rules)
    from gpolicy.report.glossary import WORDS  # noqa: PLC0415

    if word is not None and word.strip().lower().startswith(HOUSE):
        write_long(explaining.explain_house_rule(_house_rule_here(word.strip().lower())))
        return int(ExitCode.FINE)
    try:
        text = explaining.explain(word, VERBS, WORDS)
    except RequestError as unknown:
        policies: list[gpolicy.Policy] = []
        with suppress(gpolicy.GpolicyError):
            policies = _policies_here()
        guards = {guard.name.value: guard for policy in policies for guard in policy.guards}
        specs = {name for policy in policies for name, _, _ in explaining.specs_of(policy)}
        near = closest(word or "", guards.keys() | specs, explaining.ALIKE)
        if near is None:
            raise
        if near != word:
            raise UsageError(unknown.message, hint=f"Did you mean `{near}`?") from None
        text = explaining.explain_guard(guards[near]) if near in guards else explaining.explain_spec(near, policies)
    write_long(text)
    return int(ExitCode.FINE)


def _policies_here() -> list[gpolicy.Policy]:
    """Return the policies of the current directory."""
    from gpolicy.policy.files import policy_roots  # noqa: PLC0415

    return [gpolicy.load_policy(root) for root in policy_roots(Path())]


def _house_rule_here(word: str) -> HouseRule:
    """Return the house rule of this name in the policies of the current directory. Raise UsageError."""
    found = {rule.word: rule for policy in _policies_here() for rule in reversed(policy.house_rules)}
    if word not in found:
        hint = did_you_mean(word, found, "run it in the directory of the policy that has this Rule, or extends it")
        raise UsageError(f"no policy in this directory has {word[:100]!r}", hint=hint)
    return found[word]
