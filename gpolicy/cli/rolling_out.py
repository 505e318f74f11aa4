"""`apply` on several clusters: plans carried out in waves, with a look at each cluster before the next wave."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TextIO

import gpolicy
from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.jobs import SharedStopRequests, Signals, StopRequests
from gpolicy.apply.plan_run import Intention
from gpolicy.apply.work import FinalLook
from gpolicy.cli.applying import can_ask, consent_lines, run_plan, says_yes, tell_end, tell_error, tell_signal
from gpolicy.cli.checking import reader_today
from gpolicy.cli.many_clusters import ProgressLines, show_fleet
from gpolicy.cli.options import RolledOutClusters, signers_for
from gpolicy.cli.output import provenance_of
from gpolicy.cli.targets import destination_in, refuse_rapi_options, rollout_near, target_of
from gpolicy.cli.terminal import complain, in_options, working
from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.fleet.choosing import labelled_clusters
from gpolicy.fleet.named_clusters import NamedCluster, RolloutSettings, waves_of
from gpolicy.printable import Tone, as_text, count, some
from gpolicy.report.fleet_report import worst_exit_code
from gpolicy.report.forms import Display
from gpolicy.report.rollout_answer import rollout_index, rollout_report
from gpolicy.rollout.rollout_run import PlanStage
from gpolicy.use_cases.rolling_out import outcome_of


def roll_out(
    asked: RolledOutClusters,
    request: gpolicy.ApplyRequest,
    display: Display,
    *,
    yes: bool,
    signers: Path | None = None,
    volumes: bool = False,
) -> int:
    """Carry out the plans of several clusters, go on, or take them back; return the exit code.

    The `request` is that of each plan, but its `plan` is their directory; `signers` is the file of allowed signers of
    all plans.
    """
    if not yes and not can_ask():
        raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")
    if display.form == "html":
        raise UsageError("--format html is not for a roll-out", hint="choose text, json or markdown")
    chosen, settings = _chosen(asked, request.plan)
    planned = [cluster for cluster in chosen if _plan_of(cluster, request).exists()]
    if not planned:
        hint = f"`gpolicy plan --all --save {request.plan}` writes them"
        raise UsageError(f"{request.plan}: no plan of {some([item.name for item in chosen])}", hint=hint)
    rollout = gpolicy.RolloutRequest(
        directory=request.plan,
        waves=waves_of(planned, settings),
        plans=tuple(_member(cluster, request, signers, volumes=volumes) for cluster in planned),
        today=reader_today(),
        pause=settings.pause,
        jobs=asked.jobs,
        seconds=asked.timeout,
        resume=request.resume,
        rollback=request.rollback,
        watch=lambda names: ProgressLines(names, quiet=True).watcher,
        carry=_carry_aloud,
        working=working,
        words=in_options,
    )
    without = [cluster.name for cluster in chosen if cluster not in planned]
    left_out = f"no plan in {request.plan}, left out: {some(without, 20)}" if without else ""
    stop = SharedStopRequests()
    signals = Signals(stop, tell_signal)

    def agree(previews: Mapping[str, gpolicy.Preview], stages: Mapping[str, PlanStage]) -> bool:
        _say(_consent(rollout, previews, stages, left_out))
        if any(found.keys for found in previews.values()) and not yes and not says_yes(back=request.rollback):
            return False
        signals.catch()
        return True

    try:
        done = gpolicy.roll_out(rollout, agree=agree, say=_tell, stop=stop)
    finally:
        signals.release()
    if done.agreed is False:
        complain("nothing was done", None)
        return int(ExitCode.FINDINGS)
    if done.agreed is None:
        complain("nothing was done: not every cluster can be begun", None)
        _say(_refusals(rollout, done.previews))
    reports = [rollout_report(item, back=request.rollback) for item in done.clusters]
    code = worst_exit_code(reports)
    way_on = _way_on(asked, request) if code and rollout.journal_file.exists() else ""
    notes, provenance = list(filter(None, (left_out, way_on))), provenance_of([planned[0].source])
    index = rollout_index(done.clusters, reports, provenance, notes, back=request.rollback)
    show_fleet(index, reports, display, "apply")
    if done.error is not None:
        raise done.error
    return code


def _refusals(rollout: gpolicy.RolloutRequest, previews: Mapping[str, gpolicy.Preview]) -> Iterator[str]:
    """Yield why clusters cannot be begun."""
    requests = {item.name: item.request for item in rollout.plans}
    for name, found in previews.items():
        if found.refusal is not None:
            yield from (f"{name}: {line}" for line in _lines(requests[name], found))


def _way_on(asked: RolledOutClusters, request: gpolicy.ApplyRequest) -> str:
    """Return the commands that may follow a roll-out that did not end well."""
    choice = " ".join(f"--label {quote(label)}" for label in asked.label or ()) or "--all"
    command = f"gpolicy apply {quote(str(request.plan))} {choice}"
    if request.rollback:
        return f"go on with `{command} --rollback`"
    return f"go on with `{command} --resume`, or take back what was done with `{command} --rollback`"


def _chosen(asked: RolledOutClusters, directory: Path) -> tuple[list[NamedCluster], RolloutSettings]:
    """Return what the options and the settings file say. Raise UsageError or InputError for what they do not."""
    if asked.all_clusters and asked.label:
        raise UsageError("--all and --label exclude one another", hint="leave one of them out")
    refuse_rapi_options(asked)
    if not directory.is_dir():
        hint = "`gpolicy plan --all --save DIR` writes one plan for each cluster"
        raise UsageError(f"{directory}: not a directory of plans", hint=hint)
    known, settings = rollout_near(None)
    if settings is None:
        hint = 'write a table [rollout] with, for example, waves = ["stage=canary", "name=*"]'
        raise UsageError(f"{known[0].source}: says nothing of the waves of a roll-out", hint=hint)
    return labelled_clusters(known, asked.label or ()), settings


def _plan_of(cluster: NamedCluster, request: gpolicy.ApplyRequest) -> Path:
    return request.plan / f"{cluster.name}.json"


def _member(
    cluster: NamedCluster, request: gpolicy.ApplyRequest, signers: Path | None, *, volumes: bool
) -> gpolicy.ClusterPlan:
    destination, plan = destination_in(cluster), _plan_of(cluster, request)
    options, signed = target_of(cluster, None, None, volumes=volumes).options, signers_for(plan, signers, None)
    own = replace(request, plan=plan, destination=destination, options=options, signers=signed)
    return gpolicy.ClusterPlan(name=cluster.name, request=own, policy=cluster.policy, labels=cluster.labels)


def _carry_aloud(
    member: gpolicy.ClusterPlan, agree: Callable[[Intention], bool], stop: StopRequests
) -> FinalLook | None:
    """Carry out the plan of a cluster, in a process of its own. Each line says whose it is."""
    request, speaker = member.run_request(), _Speaker(member.name, sys.stderr)
    with redirect_stdout(speaker), redirect_stderr(speaker):
        try:
            plan = member.read_plan()
            look = run_plan(request, agree=agree, plan=plan, stop=stop)
            tell_end(request, plan, look)
        except ApplyError as error:
            tell_error(request, error)
            raise
        except (GpolicyError, OSError) as error:
            outcome = outcome_of(error, in_options)
            complain(outcome.message, outcome.hint or None)
            raise
    return look


def _lines(request: gpolicy.ApplyRequest, found: gpolicy.Preview) -> list[str]:
    """Return what a run is going to do with a cluster, or what it is refused with, and what was said before."""
    lines, aside = list[str](), io.StringIO()
    if found.plan is not None and found.intention is not None:
        lines += consent_lines(found.plan, request.destination, found.intention)
    with redirect_stderr(aside):
        for line, tone in found.said:
            _tell(line, tone)
        if found.error is not None:
            tell_error(request, found.error)
    return [*lines, *aside.getvalue().splitlines()]


class _Speaker(io.TextIOBase):
    """A stream that writes each line with a name before it, as soon as it is whole. It is no terminal."""

    def __init__(self, name: str, below: TextIO) -> None:
        super().__init__()
        self._name, self._below, self._line = name, below, ""

    def write(self, text: str) -> int:
        """Write the lines that `text` ends."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._below.write(f"{self._name}: {line}\n")
            self._below.flush()
        return len(text)

    def fileno(self) -> int:
        """Return the descriptor of the stream below."""
        return self._below.fileno()


def _consent(
    rollout: gpolicy.RolloutRequest,
    previews: Mapping[str, gpolicy.Preview],
    stages: Mapping[str, PlanStage],
    left_out: str,
) -> Iterator[str]:
    """Yield every change of every cluster, wave by wave in the order of the run."""
    waves, requests = rollout.waves, {item.name: item.request for item in rollout.plans}
    what = "rollback" if rollout.rollback else "roll-out"
    yield f"{what} of {count(len(stages), 'plan')} in {count(len(waves), 'wave')}"
    if left_out:
        yield left_out
    for wave in reversed(waves) if rollout.rollback else waves:
        number = waves.index(wave) + 1
        yield f"wave {number} of {len(waves)} ({wave.label}): {', '.join(wave.clusters)}"
        for name in wave.clusters:
            found = previews.get(name)
            if found is None:
                yield f"{name}: {stages[name]}"
            elif found.refusal is not None:
                yield f"{name}: CANNOT BE TAKEN BACK NOW: {found.refusal.message}"
            else:
                first, *more = _lines(requests[name], found)
                yield f"{name}: {first}"
                yield from more


def _tell(line: str, tone: Tone) -> None:
    if tone is Tone.ALARM:
        complain(line, None)
    else:
        _say([line])


def _say(lines: Iterable[str]) -> None:
    sys.stderr.write(as_text(lines))
    sys.stderr.flush()
