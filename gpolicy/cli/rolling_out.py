"""`apply` on several clusters: plans carried out in waves, with a look at each cluster before the next wave."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from gpolicy.apply.jobs import SharedStopRequests
from gpolicy.apply.journals import set_aside
from gpolicy.apply.lock import local_lock, lock_directory, lock_name
from gpolicy.cli.applying import Signals, can_ask, says_yes
from gpolicy.cli.many_clusters import show_fleet
from gpolicy.cli.options import RolledOutClusters, signers_for
from gpolicy.cli.output import provenance_of
from gpolicy.cli.rollout_members import ClusterPlan, Preview, SideBySide
from gpolicy.cli.targets import destination_in, refuse_rapi_options, rollout_near, target_of
from gpolicy.cli.terminal import complain
from gpolicy.cluster.json_input import read_bytes
from gpolicy.errors import ExitCode, GpolicyError, InputError, UsageError
from gpolicy.fleet.choosing import labelled_clusters
from gpolicy.fleet.named_clusters import NamedCluster, RolloutSettings, RolloutWave, waves_of
from gpolicy.opening import real_path
from gpolicy.printable import as_text, count, some
from gpolicy.report.fleet_report import worst_exit_code
from gpolicy.report.forms import Display
from gpolicy.report.rollout_answer import RolledOut, rollout_index, rollout_report
from gpolicy.rollout import rollout_run
from gpolicy.use_cases.carrying_out import ApplyRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollout:
    """The clusters that have a plan, in waves; `without` are those that were chosen and have none.

    `request` is what is asked of all: its `plan` is the directory of the plans.
    """

    request: ApplyRequest
    waves: tuple[RolloutWave, ...]
    members: Mapping[str, ClusterPlan]
    settings: RolloutSettings
    without: tuple[str, ...]
    choice: str  # the options that chose the clusters

    @property
    def journal(self) -> Path:
        return self.request.plan / rollout_run.NAME


def roll_out(
    asked: RolledOutClusters,
    request: ApplyRequest,
    display: Display,
    *,
    yes: bool,
    signers: Path | None = None,
    volumes: bool = False,
) -> int:
    """Carry out the plans of several clusters, go on, or take them back; return the exit code.

    `signers` is the file of allowed signers of all plans.
    """
    if request.resume and request.rollback:
        raise UsageError("--resume and --rollback exclude one another")
    if not yes and not can_ask():
        raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")
    if display.form == "html":
        raise UsageError("--format html is not for a roll-out", hint="choose text, json or markdown")
    rollout = _rollout(asked, request, signers, volumes=volumes)
    stop = SharedStopRequests()
    hands = SideBySide(rollout.members, stop, {}, asked.jobs, max(asked.jobs, 4), asked.timeout)
    what = f"roll-out of {request.plan}"
    with local_lock(lock_directory(os.environ), lock_name("roll-out", str(real_path(request.plan))), what):
        return _run(rollout, hands, stop, display, yes=yes)


def _rollout(asked: RolledOutClusters, request: ApplyRequest, signers: Path | None, *, volumes: bool) -> _Rollout:
    """Return what the options and the settings file say. Raise UsageError or InputError for what they do not."""
    if asked.all_clusters and asked.label:
        raise UsageError("--all and --label exclude one another", hint="leave one of them out")
    refuse_rapi_options(asked)
    if not request.plan.is_dir():
        hint = "`gpolicy plan --all --save DIR` writes one plan for each cluster"
        raise UsageError(f"{request.plan}: not a directory of plans", hint=hint)
    known, settings = rollout_near(None)
    if settings is None:
        hint = 'write a table [rollout] with, for example, waves = ["stage=canary", "name=*"]'
        raise UsageError(f"{known[0].source}: says nothing of the waves of a roll-out", hint=hint)
    chosen = labelled_clusters(known, asked.label or ())
    planned = [cluster for cluster in chosen if _plan_of(cluster, request).exists()]
    if not planned:
        hint = f"`gpolicy plan --all --save {request.plan}` writes them"
        raise UsageError(f"{request.plan}: no plan of {some([item.name for item in chosen])}", hint=hint)
    return _Rollout(
        request=request,
        waves=waves_of(planned, settings),
        members={cluster.name: _member(cluster, request, signers, volumes=volumes) for cluster in planned},
        settings=settings,
        without=tuple(cluster.name for cluster in chosen if cluster not in planned),
        choice=" ".join(f"--label {quote(label)}" for label in asked.label or ()) or "--all",
    )


def _plan_of(cluster: NamedCluster, request: ApplyRequest) -> Path:
    return request.plan / f"{cluster.name}.json"


def _member(cluster: NamedCluster, request: ApplyRequest, signers: Path | None, *, volumes: bool) -> ClusterPlan:
    destination = destination_in(cluster)
    target, plan = target_of(cluster, None, None, volumes=volumes), _plan_of(cluster, request)
    digest = f"sha256:{hashlib.sha256(read_bytes(plan)).hexdigest()}"
    signed = signers_for(plan, signers, None)
    own = replace(request, plan=plan, destination=destination, options=target.options, signers=signed)
    return ClusterPlan(cluster=cluster, digest=digest, request=own)


def _run(rollout: _Rollout, hands: SideBySide, stop: SharedStopRequests, display: Display, *, yes: bool) -> int:
    """Show what is to be done, ask, do it, and show what came of it; the lock is held."""
    request, members = rollout.request, rollout.members
    digests = {name: member.digest for name, member in members.items()}
    history = rollout_run.rollout_history(rollout.journal, digests, resume=request.resume, rollback=request.rollback)
    earlier = history if history is not None and not history.is_of(digests) else None
    history = None if earlier is not None else history
    _refuse_other_journals(rollout, history)
    previews = _previews(rollout, hands, history)
    refused = {name: found.refusal for name, found in previews.items() if found.refusal is not None}
    run = rollout_run.RolloutRun(
        waves=rollout.waves,
        plans=digests,
        steps={name: _steps(item, previews.get(name)) for name, item in members.items()},
        hands=hands,
        journal_file=rollout.journal,
        say=_say,
        direction=request.direction,
        history=history,
        seconds=rollout.settings.pause,
        stop=stop,
        outcomes=dict(refused),
    )
    if refused and not request.rollback:
        complain("nothing was done: not every cluster can be begun", None)
        _say(f"{name}: {line}" for name, found in previews.items() if found.refusal for line in found.lines)
        return _show(rollout, run, display)
    _say(_consent(rollout, previews, run.stages()))
    hands.shown = {name: found.keys for name, found in previews.items()}
    if any(hands.shown.values()) and not yes and not says_yes(back=request.rollback):
        complain("nothing was done", None)
        return int(ExitCode.FINDINGS)
    if earlier is not None:
        kept = set_aside(rollout.journal, next(iter(earlier.plans.values()), ""))
        complain(f"{rollout.journal} was the journal of earlier plans; it is kept as {kept.name}", None)
    signals = Signals(stop)
    signals.catch()
    try:
        run.go()
    except GpolicyError:
        _show(rollout, run, display)
        raise
    finally:
        signals.release()
    return _show(rollout, run, display)


def _refuse_other_journals(rollout: _Rollout, history: rollout_run.RolloutHistory | None) -> None:
    """Raise if journals of clusters are not those of this roll-out, or are gone."""
    members = rollout.members
    found = {name: member.journal() for name, member in members.items()}
    if rollout.request.resume or rollout.request.rollback:
        others = [name for name, item in found.items() if item and item.plan_digest != members[name].digest]
        if others:
            message = f"the plan that was begun is another one than is there now: {some(others)}"
            raise UsageError(message, hint="put the plan back, or make fresh plans of all clusters")
    if history is not None:
        ids = {name: item.id if item else None for name, item in found.items()}
        if lost := rollout_run.lost_journals(history, ids):
            message = f"the journals of these clusters are gone, or are others than the roll-out saw: {some(lost)}"
            raise InputError(message, hint="put them back, or look at the clusters and make fresh plans")


def _previews(rollout: _Rollout, hands: SideBySide, history: rollout_run.RolloutHistory | None) -> dict[str, Preview]:
    """Return what is to be done with each cluster with which anything is."""
    histories = {name: member.history() for name, member in rollout.members.items()}
    if not rollout.request.rollback:
        left = [name for name, known in histories.items() if rollout_run.stage_of(1, known) not in rollout_run.COMPLETE]
        return hands.previews(left, frozenset())
    begun = history.begun if history is not None else frozenset()
    untouched = frozenset(name for name, known in histories.items() if known is None and name in begun)
    left = [name for name, known in histories.items() if rollout_run.stage_of(1, known) not in rollout_run.REVERTED]
    return hands.previews([*left, *untouched], untouched)


def _steps(member: ClusterPlan, found: Preview | None) -> int:
    """Return the number of steps, 1 for any number of a plan that has begun: it has steps."""
    return 1 if member.history() is not None or found is None or found.refusal else found.steps


def _consent(
    rollout: _Rollout, previews: Mapping[str, Preview], stages: Mapping[str, rollout_run.PlanStage]
) -> Iterator[str]:
    """Yield every change of every cluster, wave by wave in the order of the run."""
    back = rollout.request.rollback
    what = "rollback" if back else "roll-out"
    yield f"{what} of {count(len(stages), 'plan')} in {count(len(rollout.waves), 'wave')}"
    if rollout.without:
        yield f"no plan in {rollout.request.plan}, left out: {some(rollout.without, 20)}"
    for wave in reversed(rollout.waves) if back else rollout.waves:
        number = rollout.waves.index(wave) + 1
        yield f"wave {number} of {len(rollout.waves)} ({wave.label}): {', '.join(wave.clusters)}"
        for name in wave.clusters:
            found = previews.get(name)
            if found is None:
                yield f"{name}: {stages[name]}"
            elif found.refusal is not None:
                yield f"{name}: CANNOT BE TAKEN BACK NOW: {found.refusal.message}"
            else:
                first, *more = found.lines
                yield f"{name}: {first}"
                yield from more


def _show(rollout: _Rollout, run: rollout_run.RolloutRun, display: Display) -> int:
    stages = run.stages()
    waves = {name: wave.label for wave in rollout.waves for name in wave.clusters}
    clusters = [
        RolledOut(
            name=name,
            labels=rollout.members[name].cluster.labels,
            wave=waves[name],
            stage=stages[name],
            plan=str(rollout.members[name].request.plan),
            plan_digest=rollout.members[name].digest,
            journal=str(rollout.members[name].request.journal_file),
            outcome=run.outcomes.get(name),
            look=run.looks.get(name),
        )
        for name in waves
    ]
    back = rollout.request.rollback
    reports = [rollout_report(item, back=back) for item in clusters]
    provenance = provenance_of([rollout.members[clusters[0].name].cluster.source])
    notes = tuple(_notes(rollout, worst_exit_code(reports)))
    show_fleet(rollout_index(clusters, reports, provenance, notes, back=back), reports, display, "apply")
    return worst_exit_code(reports)


def _notes(rollout: _Rollout, code: int) -> Iterator[str]:
    if rollout.without:
        yield f"no plan in {rollout.request.plan}, left out: {some(rollout.without, 20)}"
    if code and rollout.journal.exists():
        command = f"gpolicy apply {quote(str(rollout.request.plan))} {rollout.choice}"
        if rollout.request.rollback:
            yield f"go on with `{command} --rollback`"
        else:
            yield f"go on with `{command} --resume`, or take back what was done with `{command} --rollback`"


def _say(lines: Iterable[str]) -> None:
    sys.stderr.write(as_text(lines))
    sys.stderr.flush()
