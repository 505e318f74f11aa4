"""The verbs that read clusters: clusters, adopt, snapshot, drift."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

import gpolicy
from gpolicy.cli import options
from gpolicy.cli.output import Report, policy_title
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.printable import as_text, count, some
from gpolicy.provenance import FORM
from gpolicy.report.forms import Display

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.writing.yaml_text import NotWritten

_AFTER_DRIFT: Final = "next: gpolicy plan to make the cluster as declared, or add --write to take it into the policy"
_MOST_LEFT_OUT: Final = 100  # lines on standard error

verbs = typer.Typer()


@verbs.command("clusters")
def clusters(
    path: Annotated[Path | None, typer.Argument(..., metavar="[DIR]")] = None,
    label: options.Label = None,
    timeout: Annotated[float | None, options.seconds_option("--timeout")] = None,
    *,
    shown: options.Shown,
    offline: Annotated[bool, typer.Option("--offline")] = False,
    pages: Annotated[Path | None, typer.Option("--pages", metavar="DIR")] = None,
    history: Annotated[Path | None, typer.Option("--history", metavar="DIR")] = None,
) -> int:
    """List the clusters that gpolicy.toml names.

    It says whether each answers, and how old its state is. Exit code 3 if one does not answer. --pages writes more.
    """
    from gpolicy.cli.many_clusters import Look, list_clusters, look_at  # noqa: PLC0415

    if history is not None and pages is None:
        raise UsageError("--history is for the trend on pages", hint="say --pages DIR as well")
    look: Look | None = None if offline else partial(look_at, seconds=timeout or 15.0)
    if pages is not None:
        from gpolicy.cli.cluster_pages import write_cluster_pages  # noqa: PLC0415

        look = partial(write_cluster_pages, directory=pages, history=history, most=timeout or 300.0, offline=offline)
    return list_clusters(path, label or (), shown.outputs("clusters"), look, offline=offline)


@verbs.command("adopt")
def adopt(
    save: Annotated[Path | None, typer.Option("--save", metavar="DIR")] = None,
    output: options.OldOutput = None,
    *,
    clusters: options.Clusters,
) -> int:
    """Write the policy that a cluster has now. A plan of it on that cluster is empty.

    A policy that is there gets the groups and nodes that it does not mention; what it says stays.
    """
    work = partial(_adopted, output=_required(save, output), src=clusters.state)
    return run(work, clusters, None, options.Outputs(Display()), verb="adopt")


def _required(save: Path | None, output: Path | None) -> Path:
    """Return the file or directory to write. Raise UsageError if there is none."""
    named = options.renamed(save, output, "--save")
    if named is None:
        raise UsageError("where to? no --save is given", hint="say what to write with --save")
    return named


def _adopted(target: Target, output: Path, src: str | None) -> Report:
    from gpolicy.ganeti.releases import unknown_release  # noqa: PLC0415
    from gpolicy.policy.files import has_policy  # noqa: PLC0415

    state = target.read()
    if unknown := unknown_release(state.software_version):
        complain(unknown, None)
    directory = output / target.name if target.several else output
    if has_policy(directory):
        return _adopted_new(directory, state)
    with working(f"writing the policy of {state.title}"):
        adopted = gpolicy.adopt_cluster(state)
    written = gpolicy.write_policy(adopted.files, directory)
    _say_left_out(adopted.left_out)
    address = target.name or src
    option = f" --state {quote(address)}" if address else ""
    following = f"next: gpolicy plan {quote(str(directory))}{option}  (which has no changes yet)"
    what = f"wrote {count(len(written), 'file')} to {directory}"
    return _files_report("adopt", [f"wrote {path}" for path in written], what, following)


def _adopted_new(directory: Path, state: ClusterState) -> Report:
    """Add to a policy what it lacks of the cluster's groups and nodes."""
    from gpolicy.cli.checking import checked_policy, reader_today  # noqa: PLC0415
    from gpolicy.fleet.choosing import other_policies  # noqa: PLC0415

    policy = checked_policy(directory, state).sound()
    with working(f"adding what is new in {state.title}"):
        addition = gpolicy.adopt_new(policy, state, reader_today(), other_policies(directory))
    gpolicy.write_texts(addition.texts, policy)
    _say_left_out(addition.left_out)
    lines = [f"wrote {name}" for name in sorted(addition.texts)]
    what = f"added to {directory}: {some(addition.added)}" if addition.added else f"nothing is new for {directory}"
    return _files_report("adopt", [*lines, what], what, f"next: gpolicy check {quote(str(directory))}")


def _say_left_out(left_out: Sequence[NotWritten]) -> None:
    for left in left_out[:_MOST_LEFT_OUT]:
        complain(f"left out {left}", None)
    if len(left_out) > _MOST_LEFT_OUT:
        more = len(left_out) - _MOST_LEFT_OUT
        complain(f"left out {more} more: comments in the written files name them all", None)


@verbs.command("snapshot")
def snapshot(
    save: Annotated[Path | None, typer.Option("--save", metavar="FILE")] = None,
    output: options.OldOutput = None,
    *,
    clusters: options.Clusters,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=1)] = None,
    physical_volumes: options.Volumes = False,
) -> int:
    """Save one consistent state of a cluster, to plan against offline.

    Files are private (0600).
    """
    work = partial(_snapshot, output=_required(save, output), keep=keep)
    return run(work, clusters, None, options.Outputs(Display()), verb="snapshot", volumes=physical_volumes)


def _snapshot(target: Target, output: Path, *, keep: int | None) -> Report:
    from gpolicy.fleet.choosing import prune_snapshots, snapshot_file  # noqa: PLC0415

    if keep is not None and not target.several:
        raise UsageError("--keep is for several clusters", hint="say --all or --label KEY=VALUE as well")
    now = time.gmtime()
    state = target.read()
    path = snapshot_file(output, target.name, now) if target.several else output
    gpolicy.write_snapshot(state, path, taken_at=time.strftime(FORM, now))
    if keep is not None:
        prune_snapshots(output, target.name, keep)
    kinds = (("group", state.groups), ("node", state.nodes), ("instance", state.instances))
    counts = ", ".join(count(len(objects), kind) for kind, objects in kinds)
    for note in state.notes:
        complain(note, None)
    following = f"next: gpolicy plan POLICY --state {quote(f'snapshot:{path}')}"
    what = f"wrote {path}: cluster {state.title}, {counts}"
    return _files_report("snapshot", [what], what, following)


def _files_report(verb: str, lines: Sequence[str], what: str, following: str) -> Report:
    """Return a report of files that were written: each with a line for one cluster, or what they are in a table."""
    from gpolicy.report.answer import Answer  # noqa: PLC0415

    return Report(
        exit_code=int(ExitCode.FINE),
        answer=lambda: Answer(verb=verb, title=verb, name="", verdict=what),
        own={"text": lambda: as_text(lines)},
        following=(following,),
    )


@verbs.command("drift")
def drift(
    path: options.PolicyPath = None,
    policy: options.PolicyOption = None,
    *,
    clusters: options.Clusters,
    shown: options.Shown,
    write: Annotated[bool, typer.Option("--write")] = False,
    select: Annotated[list[str] | None, typer.Option("--select", metavar="OBJECT")] = None,
    in_bases: Annotated[bool, typer.Option("--in-bases")] = False,
) -> int:
    """Show where the cluster differs from the policy, and since when. The cluster is never changed.

    Exit code 2 when there is drift (with --write: when some is left), 1 when the policy has an error, 3 when nothing
    could be compared.
    """
    if not write and (select or in_bases):
        option = "--select" if select else "--in-bases"
        raise UsageError(f"{option} says what to write", hint="say --write as well")
    if write:  # one after another: two may write to one base
        clusters = replace(clusters, jobs=1)
    work = partial(_compared, selected=tuple(select or ()) if write else None, in_bases=in_bases)
    return run(work, clusters, options.policy_path(path, policy), shown.outputs("drift"), verb="drift")


def _compared(target: Target, selected: Sequence[str] | None, *, in_bases: bool) -> Report:
    """Return the differences of a cluster from its policy; write those of the `selected` into it, if they are given."""
    from gpolicy.cli.checking import checked_policy, reader_today  # noqa: PLC0415
    from gpolicy.fleet.choosing import other_policies  # noqa: PLC0415
    from gpolicy.report.drift_answer import drift_answer, drift_data  # noqa: PLC0415
    from gpolicy.report.prometheus import drift_metrics  # noqa: PLC0415

    path, state, today = target.policy, target.read(), reader_today()
    checked = checked_policy(path, state)
    with working("comparing the policy with the cluster"):
        report = gpolicy.find_drift(checked, state, today=today)
    policy = checked.policy
    wrote = None
    if selected is not None:
        # the settings file names the policies of clusters as a whole
        if policy.is_part and target.given_policy is not None:
            hint = "name the directory of the policy"
            raise UsageError(f"{policy.root} is a part of a policy: others may extend it", hint=hint)
        with working("writing the policy"):
            wrote = gpolicy.write_back(
                policy,
                state,
                report,
                selected=selected,
                today=today,
                in_bases=in_bases,
                others=lambda: other_policies(policy.root or Path()),
            )
        gpolicy.write_texts(wrote.texts, policy)
    left = report if wrote is None else replace(report, drift=wrote.left)
    now = time.time()
    of = policy_title(path, policy)
    return Report(
        exit_code=int(ExitCode.CHANGES if left.drift else ExitCode.FINE),
        answer=lambda: drift_answer(left, policy.files, of=of, wrote=wrote),
        own={"json": lambda: json_text(drift_data(report, compared_at=now, wrote=wrote))},
        metrics=lambda: drift_metrics(left),
        policy=(path,),
        following=(_AFTER_DRIFT,) if left.drift and wrote is None else (),
    )
