"""What a roll-out does with one of its clusters: show what is to be done, do it, look at the cluster afterwards.

Each of these runs in a process of its own, side by side with those of other clusters.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.jobs import StopRequests
from gpolicy.apply.journals import RunHistory, read_history, read_journal
from gpolicy.apply.plan_run import Intention, RefusedError, nothing_done, right_cluster
from gpolicy.checking.settings_tables import settings_for
from gpolicy.cli import applying
from gpolicy.cli.checking import checked_policy, reader_today
from gpolicy.cli.many_clusters import ProgressLines
from gpolicy.cli.terminal import complain, in_options, working
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import find_drift
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.fleet.named_clusters import NamedCluster
from gpolicy.fleet.workers import Failed, Result, results_as_they_come
from gpolicy.plan.plan import Plan, policy_digest
from gpolicy.plan.plan_file import read_plan
from gpolicy.rollout.rollout_run import LookResult, RunResult, look_at
from gpolicy.use_cases.carrying_out import ApplyRequest, read_for, runner_for


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """A cluster of the settings file with its plan.

    `request` is what is asked of all; `digest` that of the file when it was found.
    """

    cluster: NamedCluster
    digest: str
    request: ApplyRequest

    def journal(self) -> RunHistory | None:
        """Return what the journal beside the plan says, also if it is another plan's. Raise InputError if damaged."""
        path = self.request.journal_file
        data = read_journal(path)
        return None if data is None else read_history(data, str(path))

    def history(self) -> RunHistory | None:
        """Return what the journal of this plan says."""
        journal = self.journal()
        return journal if journal is not None and journal.plan_digest == self.digest else None

    def run_request(self) -> ApplyRequest:
        """Return the request for the next run: a plan that has not begun cannot be resumed, but begun."""
        return replace(self.request, resume=self.request.resume and self.history() is not None)

    def read_plan(self) -> Plan:
        """Return the plan. Raise RefusedError if the file is not the one that was found."""
        plan = read_plan(self.request.plan, self.request.signers)
        if plan.digest != self.digest:
            raise RefusedError(f"{self.request.plan} has changed since the roll-out began; nothing was done")
        return plan


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run is going to do with a cluster, in lines; `keys` are those of its tasks. Or why it cannot: `refusal`.

    `steps` is the number of steps of the plan.
    """

    lines: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    steps: int = 0
    refusal: RunResult | None = None


def preview(member: ClusterPlan) -> Preview:
    """Return what is to be done. It does everything that a run does before it asks for consent."""
    aside = io.StringIO()
    with redirect_stdout(aside), redirect_stderr(aside):
        try:
            plan = member.read_plan()
            found = _preview_of(member, plan)
        except ApplyError as error:
            applying.tell_error(member.request, error)
            return Preview(tuple(aside.getvalue().splitlines()), refusal=_outcome(error))
        except (GpolicyError, OSError) as error:
            return Preview(refusal=_outcome(error))
    return replace(found, lines=(*found.lines, *aside.getvalue().splitlines()), steps=len(plan.steps))


def _preview_of(member: ClusterPlan, plan: Plan) -> Preview:
    request = member.run_request()
    shown: list[Intention] = []

    def keep(intention: Intention) -> bool:
        shown.append(intention)
        return False

    applying.run_plan(request, agree=keep, plan=plan)
    if not shown:
        return Preview((f"nothing to do: the plan for cluster {plan.cluster} has no steps",))
    (intention,) = shown
    keys = frozenset(task.key for task in intention.tasks)
    return Preview(tuple(applying.consent_lines(plan, request.destination, intention)), keys)


def preview_untouched(member: ClusterPlan) -> Preview:
    """Return that nothing of a plan was done which had begun and has no journal; a refusal if anything was."""
    try:
        plan = member.read_plan()
        if plan.steps:
            runner = runner_for(member.request, plan, StopRequests())
            state = runner.read()
            right_cluster(plan, state)
            nothing_done(plan, runner, state)
    except (GpolicyError, OSError) as error:
        return Preview(refusal=replace(_outcome(error), hint="its journal is gone: look at the cluster"))
    return Preview(("nothing to take back: the cluster is as the plan saw it",), steps=len(plan.steps))


def carry(member: ClusterPlan, shown: AbstractSet[str], stop: StopRequests) -> RunResult:
    """Run the plan, or take it back: no task but those that were `shown`. Each line says whose it is."""
    applying.Signals(stop, silent=True).catch()
    request = member.run_request()
    speaker = _Speaker(member.cluster.name, sys.stderr)
    with redirect_stdout(speaker), redirect_stderr(speaker):
        try:
            plan = member.read_plan()
            look = applying.run_plan(request, agree=partial(_agree, shown), plan=plan, stop=stop)
            code = applying.tell_end(request, plan, look)
        except ApplyError as error:
            applying.tell_error(request, error)
            return _outcome(error)
        except (GpolicyError, OSError) as error:
            outcome = _outcome(error)
            complain(outcome.message, outcome.hint or None)
            return outcome
    return RunResult(code, "" if code == ExitCode.FINE else "the cluster is not as it should be after all steps")


def _agree(shown: AbstractSet[str], intention: Intention) -> bool:
    if {task.key for task in intention.tasks} <= shown:
        return True
    raise RefusedError("more is to be done than was shown; nothing was done", hint="begin the roll-out again")


def look(member: ClusterPlan, told: AbstractSet[int]) -> LookResult:
    """Look at the cluster after its plan: its changes, its policy, its guards, its jobs."""
    try:
        plan = member.read_plan()
        runner = runner_for(member.request, plan, StopRequests())
        with working(f"reading {member.request.destination}"):
            state = read_for(member.request, plan, runner)
        found = look_at(plan, runner, state, member.history(), told)
        return found if found.troubles else _with_policy(member, plan, state, found)
    except (GpolicyError, OSError) as error:
        return LookResult((f"cannot be looked at: {_outcome(error).message}",))


def _with_policy(member: ClusterPlan, plan: Plan, state: ClusterState, found: LookResult) -> LookResult:
    """Return a look with what differs from the policy as well, if the plan was made from just this policy."""
    if member.cluster.policy is None:
        return found
    if not plan.part.is_whole:
        return replace(found, notes=(*found.notes, "the plan is a part of the policy: the rest was not compared"))
    try:
        policy = checked_policy(member.cluster.policy, state).policy
    except GpolicyError as error:
        return replace(found, notes=(*found.notes, f"its policy was not compared: {error.message}"))
    if policy_digest(policy) != plan.policy_digest:
        note = "the policy has changed since the plan was made: only the plan's changes were compared"
        return replace(found, notes=(*found.notes, note))
    settings = settings_for(policy.root or Path())
    drift = find_drift(policy, state, today=reader_today(), settings=settings).drift
    return replace(found, troubles=tuple(f"{item.object} {item.name} is not as the policy declares" for item in drift))


def _outcome(error: GpolicyError | OSError) -> RunResult:
    if isinstance(error, GpolicyError):
        message, hint = in_options(error)
        return RunResult(int(error.exit_code), message, hint or "")
    return RunResult(int(ExitCode.COULD_NOT_RUN), f"{error.filename or 'the system'}: {error.strerror or error}")


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


@dataclass(slots=True)
class SideBySide:
    """The hands of a roll-out. `most` plans are carried out at once, `readers` clusters read, each within `seconds`.

    `shown` are the keys of the tasks that were consented to, by cluster.
    """

    members: Mapping[str, ClusterPlan]
    stop: StopRequests
    shown: Mapping[str, AbstractSet[str]]
    most: int
    readers: int
    seconds: float

    def history(self, cluster: str) -> RunHistory | None:
        """Return what the journal of the cluster's plan says."""
        return self.members[cluster].history()

    def previews(self, clusters: Sequence[str], untouched: AbstractSet[str]) -> dict[str, Preview]:
        """Return what is to be done with clusters; of the `untouched`, whether nothing was done indeed."""
        jobs = [partial(preview_untouched if name in untouched else preview, self.members[name]) for name in clusters]
        found = {}
        for name, result in self._each(clusters, jobs, most=self.readers, seconds=self.seconds):
            failed = RunResult(int(ExitCode.COULD_NOT_RUN), result.reason) if isinstance(result, Failed) else None
            found[name] = Preview(refusal=failed) if isinstance(result, Failed) else result
        return found

    def carry(self, clusters: Sequence[str], may_begin: Callable[[str], bool]) -> Iterator[tuple[str, RunResult]]:
        """Run the plans of clusters, or take them back."""
        jobs = [partial(carry, self.members[name], self.shown.get(name, frozenset()), self.stop) for name in clusters]
        for name, result in self._each(clusters, jobs, most=self.most, seconds=math.inf, may_begin=may_begin):
            yield name, RunResult(int(ExitCode.FINDINGS), result.reason) if isinstance(result, Failed) else result

    def look(self, clusters: Sequence[str], told: Mapping[str, AbstractSet[int]]) -> Iterator[tuple[str, LookResult]]:
        """Look at clusters."""
        jobs = [partial(look, self.members[name], told.get(name, frozenset())) for name in clusters]
        for name, result in self._each(clusters, jobs, most=self.readers, seconds=self.seconds):
            yield name, LookResult((f"cannot be looked at: {result.reason}",)) if isinstance(result, Failed) else result

    @staticmethod
    def _each(
        clusters: Sequence[str],
        jobs: Sequence[Callable[[], Result]],
        *,
        most: int,
        seconds: float,
        may_begin: Callable[[str], bool] = lambda _: True,
    ) -> Iterator[tuple[str, Result | Failed]]:
        progress = ProgressLines(clusters, quiet=True)
        results = results_as_they_come(
            jobs,
            most=most,
            seconds=seconds,
            watcher=progress.watcher,
            may_begin=lambda number: may_begin(clusters[number]),
            alone=True,
        )
        try:
            for number, result in results:
                progress.close()
                yield clusters[number], result
        finally:
            progress.close()
