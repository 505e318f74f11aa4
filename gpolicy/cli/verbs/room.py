"""The verbs that ask the allocator: capacity, place, suggest, size."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import gpolicy
from gpolicy.cli import options
from gpolicy.cli.output import Report, provenance_of, report_under
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.cluster.sources import state_read_at
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.progress import after_work

if TYPE_CHECKING:
    from gpolicy.suggest.suggestion import BoundsKind
    from gpolicy.what_if.supposing import WhatIf

    _Opened = Callable[..., gpolicy.OpenedCluster]
    _Counted = Callable[..., gpolicy.CapacityReport]

verbs = typer.Typer()

_SHORT_SEARCH: Final = 6_000
"""The work of a search for moves that nobody asked for: about half a second."""

WeightOptions = Annotated[list[str] | None, typer.Option("--weight", metavar="NAME=VALUE")]


@verbs.command("capacity")
def capacity(  # noqa: PLR0913 (one parameter an option)
    path: Annotated[Path | None, typer.Argument(..., metavar="[PATH]")] = None,
    policy: options.PolicyOption = None,
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="NAME")] = None,
    template: Annotated[str | None, typer.Option("--template", "-t", metavar="TEMPLATE")] = None,
    limit_options: options.LimitOptions,
    compare: Annotated[list[Path] | None, typer.Option("--compare", metavar="PATH")] = None,
    history: Annotated[Path | None, typer.Option("--history", metavar="DIR")] = None,
    shown: options.Shown,
    resource_model: options.ResourceModelOption = False,
    weight: WeightOptions = None,
    score: Annotated[bool, typer.Option("--score")] = False,
) -> int:
    """Count how many more instances fit, and what limits them.

    It counts each group alone, each size at its largest, under the limits that the policy or an option sets. The
    last rows are the whole cluster.
    """
    from gpolicy.analysis.shown_score import read_weights  # noqa: PLC0415
    from gpolicy.fleet.choosing import snapshots_of  # noqa: PLC0415

    outputs = shown.outputs("capacity")
    given_state = clusters.state or os.environ.get(options.STATE_VARIABLE)
    if history and not (given_state or clusters.all_clusters or clusters.label):
        newest = snapshots_of(history, "")[-1:]
        clusters = replace(clusters, state=f"snapshot:{newest[0]}") if newest else clusters
    for_metrics = outputs.display.form == "prometheus"
    given, what_if, limits = options.policy_path(path, policy), suppositions.read(group), limit_options.read()
    if for_metrics and (what_if is not None or compare):
        raise UsageError("metrics are of the cluster as it is, not of a supposed one", hint="leave --format out")
    compared = list(dict.fromkeys([*(compare or ()), *([given] if given and compare else [])]))
    if compare and (len(compared) < 2 or score or history):
        hint = "name two policies: --compare A B; scores and forecasts are those of one"
        raise UsageError("--compare shows policies side by side", hint=hint)

    weights = read_weights(weight or ())
    count = partial(gpolicy.count_capacity, group=group, template=template, weights=weights, working=working)
    opened = partial(gpolicy.open_cluster, limits=limits, resource_model=resource_model, working=working)
    if compare:
        side_by_side = partial(_compare_policies, opened=partial(opened, what_if=what_if), count=count, paths=compared)
        return run(side_by_side, clusters, given, outputs, verb="capacity")
    alone = partial(_count_capacity, opened=opened, count=count, what_if=what_if, history=history)
    work = partial(alone, score=score, for_metrics=for_metrics)
    return run(work, clusters, given, outputs, verb="capacity")


def _compare_policies(target: Target, *, opened: _Opened, count: _Counted, paths: Sequence[Path]) -> Report:
    """Return the capacity of a cluster under each of several policies."""
    from gpolicy.cli.checking import checked_policy  # noqa: PLC0415
    from gpolicy.report.capacity_answer import compared_answer  # noqa: PLC0415
    from gpolicy.report.capacity_json import COMPARED_DOCUMENT  # noqa: PLC0415

    state = target.read()
    policies = {str(path): checked_policy(path, state) for path in paths}
    reports = {name: count(opened(state, policy)) for name, policy in policies.items()}
    return Report(
        exit_code=int(ExitCode.FINE),
        answer=lambda: compared_answer(reports),
        own={"json": lambda: json_text(COMPARED_DOCUMENT.data(next(iter(reports.values())), reports))},
        policy=tuple(paths),
    )


def _count_capacity(
    target: Target,
    *,
    opened: _Opened,
    count: _Counted,
    what_if: WhatIf | None,
    history: Path | None,
    score: bool,
    for_metrics: bool,
) -> Report:
    """Return the capacity of a cluster, with its `score`; with a `history`, also when it is full."""
    from gpolicy.analysis.health import cluster_health  # noqa: PLC0415
    from gpolicy.report.capacity_answer import capacity_answer  # noqa: PLC0415
    from gpolicy.report.capacity_json import capacity_data  # noqa: PLC0415
    from gpolicy.report.growth_section import growth_metrics, with_growth  # noqa: PLC0415
    from gpolicy.report.prometheus import capacity_metrics  # noqa: PLC0415

    state = target.read()
    policy = target.check_given_policy(state)
    cluster = opened(state, policy, what_if=what_if)
    report = count(cluster, other_values=not for_metrics, after_moves=not (for_metrics or target.several))
    before = growth = None
    if what_if is not None:
        try:
            before = count(opened(state, policy))
        except gpolicy.GpolicyError as error:  # what is supposed may be what makes the group known
            report = replace(report, notes=(*report.notes, f"without what is supposed: {error.message}"))
    made = provenance_of(())
    if history is not None:
        own, at = history / target.name, state_read_at(made, state.source, state.snapshot) or made.made_at or ""
        directory = own if target.several or own.is_dir() else history
        growth = gpolicy.forecast_capacity(cluster, report, directory, state=state, at=at, working=working)
    found = report_under(
        target.given_policy,
        lambda: with_growth(capacity_answer(report, components=score, before=before), growth),
        lambda: capacity_data(report, before, growth),
    )
    health = partial(cluster_health, cluster.state, limits=cluster.limits)
    counted = partial(capacity_metrics, report, state=cluster.state, made=made)
    return replace(found, metrics=lambda: {**counted(health=health()), **growth_metrics(growth)})


@verbs.command("place")
def place(  # noqa: PLR0913 (Typer reads options from arguments)
    request: Annotated[list[str], typer.Argument(..., metavar="REQUEST...")],
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="NAME")] = None,
    policy: options.PolicyOption = None,
    shown: options.Shown,
    every: Annotated[bool, typer.Option("--all-candidates", "-a")] = False,
    limit_options: options.LimitOptions,
    weight: WeightOptions = None,
    ignore_ipolicy: Annotated[bool, typer.Option("--ignore-ipolicy")] = False,
    resource_model: options.ResourceModelOption = False,
) -> int:
    """Show where hail would place an instance, and why there.

    Every node or pair of nodes is listed with its result. The name of a size means the size at its smallest, NAME:max
    at its largest; missing values come from the policy's std. Exit code 1 when no node takes the instance (the answer
    then says what would fit), or Ganeti would refuse it all the same.
    """
    from gpolicy.analysis.shown_score import read_weights  # noqa: PLC0415
    from gpolicy.analysis.size_words import read_words  # noqa: PLC0415
    from gpolicy.report.place_answer import PLACE_DOCUMENT, place_answer  # noqa: PLC0415

    outputs = shown.outputs("place", every=every)
    asked, limits = [*request, *([f"group={group}"] if group else [])], limit_options.read()
    words = read_words(asked)
    what_if, weights = suppositions.read(words.request.group), read_weights(weight or ())
    is_plain = not (what_if or weight or ignore_ipolicy or resource_model or limits != gpolicy.Limits())

    def work(target: Target) -> Report:
        cluster = target.open(what_if, limits, resource_model=resource_model)
        report = gpolicy.place_instance(cluster, words, ignore_ipolicy=ignore_ipolicy, weights=weights, working=working)
        code = ExitCode.FINE if report.accepted else ExitCode.FINDINGS
        asked_for, short = " ".join(asked), after_work(_SHORT_SEARCH)
        then = _moves_for(cluster, asked_for, short, "next: ") if is_plain and not report.ok else ()
        return report_under(
            target.given_policy, lambda: place_answer(report, *then), lambda: PLACE_DOCUMENT.data(report), code
        )

    return run(work, clusters, policy, outputs, verb="place")


def _moves_for(
    cluster: gpolicy.OpenedCluster, want: str, stop: gpolicy.Stop, begin: str, *, else_why: bool = False
) -> Iterator[str]:
    """Yield the command that finds moves which make room, if a search finds some; or, `else_why`, that it found none.

    The sentence starts with `begin`.
    """
    from gpolicy.report.remedy_answer import moves_make_room, room_verdict  # noqa: PLC0415

    with suppress(gpolicy.GpolicyError):
        found = gpolicy.find_remedy(cluster, want=want, stop=stop, working=working)
        if found.steps:
            yield f"{begin}{moves_make_room(found)}: gpolicy remedy --want {shlex.quote(want)}"
        elif found.room is not None and else_why:
            yield f"{begin}{room_verdict(found, found.room)}"


@verbs.command("suggest")
def suggest(  # noqa: PLR0913 (one parameter an option)
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    limit_options: options.LimitOptions,
    policy: options.PolicyOption = None,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="NAME")] = None,
    save: Annotated[Path | None, typer.Option("--save", metavar="FILE")] = None,
    sizes: Annotated[str | None, typer.Option("--sizes", metavar="SIZE,...")] = None,
    mix: Annotated[str | None, typer.Option("--mix", metavar="SIZE=N,...")] = None,
    template: Annotated[str | None, typer.Option("--template", "-t", metavar="TEMPLATE")] = None,
    bounds: Annotated[str | None, typer.Option("--bounds", metavar="fixed|ranges")] = None,
    vcpu_ratio: Annotated[float | None, typer.Option("--vcpu-ratio", metavar="RATIO")] = None,
    margin: Annotated[float, typer.Option("--margin", metavar="PERCENT")] = 1.0,
    pv_size: Annotated[str | None, typer.Option("--pv-size", metavar="SIZE")] = None,
    seconds: options.Seconds = 60.0,
    shown: options.Shown,
    empty: Annotated[bool, typer.Option("--empty")] = False,
    real_mix: Annotated[bool, typer.Option("--real-mix")] = False,
) -> int:
    """Suggest instance sizes that tile the nodes of a group.

    It finds the sizes that leave the least unused, writes them as a NodeGroup document, and compares their capacity
    with today's policy.
    """
    from gpolicy.report.suggest_answer import SUGGEST_DOCUMENT, suggest_answer  # noqa: PLC0415
    from gpolicy.suggest.suggesting import documents  # noqa: PLC0415
    from gpolicy.suggest.suggestion import parse_mix, parse_sizes  # noqa: PLC0415

    outputs, what_if = shown.outputs("suggest"), suppositions.read(group)
    save = shown.saved("suggest", save)
    request = gpolicy.SuggestRequest(
        template=template,
        divisors=None if sizes is None else parse_sizes(sizes),
        bounds=_bounds(bounds),
        vcpu_ratio=vcpu_ratio,
        margin=margin,
        volume=None if pv_size is None else options.size_of("--pv-size", pv_size),
        mix=None if mix is None else parse_mix(mix),
        empty=empty,
        real_mix=real_mix,
    )
    limits = limit_options.read()

    def work(target: Target) -> Report:
        file = target.output(save, ".yaml")
        cluster = target.open(what_if, limits)
        report = gpolicy.suggest_sizes(cluster, request, group=group, stop=gpolicy.after(seconds), working=working)
        text = documents(report)
        if file is not None:
            from gpolicy.writing.documents import led_to, schema_for  # noqa: PLC0415
            from gpolicy.writing.new_files import write_new_file  # noqa: PLC0415

            schema = schema_for(file.parent)
            write_new_file(file, led_to(schema, text, file) if schema.is_file() else text)
        found = report_under(
            target.given_policy, lambda: suggest_answer(report, file), lambda: SUGGEST_DOCUMENT.data(report)
        )
        own = {**found.own, "yaml": lambda: text if file is None else ""}
        following = () if file else ("next: add --save FILE to write the document that declares them",)
        return replace(found, own=own, following=following)

    return run(work, clusters, policy, outputs, verb="suggest")


def _bounds(name: str | None) -> BoundsKind | None:
    match name:
        case None | "fixed" | "ranges":
            return name
    raise UsageError(f"unknown bounds {name!r}", hint="fixed: the sizes alone; ranges: everything between as well")


@verbs.command("size")
def size(  # noqa: PLR0913 (one parameter an option)
    path: Annotated[Path | None, typer.Argument(..., metavar="[PATH]")] = None,
    policy: options.PolicyOption = None,
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    limit_options: options.LimitOptions,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="NAME")] = None,
    want: Annotated[list[str] | None, typer.Option("--want", metavar="WORDS")] = None,
    like: Annotated[list[str] | None, typer.Option("--like", metavar="NODE[=COST]")] = None,
    seconds: options.Seconds = 60.0,
    shown: options.Shown,
) -> int:
    """Find how many more nodes it takes until wanted instances fit.

    It tries numbers of nodes with the allocator, as hail accepts instances and under the limits, and shows the cheapest
    that are enough and what is missing with one node fewer.
    """
    from gpolicy.report.size_answer import SIZE_DOCUMENT, full_answer, size_answer  # noqa: PLC0415
    from gpolicy.what_if.sizing import MOST_KINDS, read_kind  # noqa: PLC0415
    from gpolicy.what_if.supposing import read_wanted  # noqa: PLC0415

    outputs = shown.outputs("size")
    given, what_if, limits = options.policy_path(path, policy), suppositions.read(), limit_options.read()
    one = want[0] if want and len(want) == 1 and what_if is None and limits == gpolicy.Limits() else None
    if like and not want:
        raise UsageError("--like is of no use without --want", hint="say what must fit: --want '10x SIZE'")
    if len(like or ()) > MOST_KINDS:
        raise UsageError(f"{len(like or ())} kinds of nodes are too many to try", hint=f"give at most {MOST_KINDS}")
    request = None
    if want:
        wanted, kinds = tuple(map(read_wanted, want)), tuple(map(read_kind, like or ()))
        request = gpolicy.SizeRequest(wanted=wanted, kinds=kinds, group=group)

    def work(target: Target) -> Report:
        cluster = target.open(what_if, limits)
        if request is None:
            full = gpolicy.fill_group(cluster, group, stop=gpolicy.after(seconds), working=working)
            return report_under(target.given_policy, lambda: full_answer(full), lambda: SIZE_DOCUMENT.data(full))
        report = gpolicy.size_group(cluster, request, stop=gpolicy.after(seconds), working=working)
        moves = f"{one} group={report.group}" if one and any(report.nodes) else ""
        stop = gpolicy.after(seconds)
        instead = _moves_for(cluster, moves, stop, "instead of nodes: ", else_why=True) if moves else ()
        return report_under(
            target.given_policy, lambda: size_answer(report, *instead), lambda: SIZE_DOCUMENT.data(report)
        )

    return run(work, clusters, given, outputs, verb="size")
