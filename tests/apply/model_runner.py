"""Runs of plans in this process on the pretended cluster, killed at any chosen point."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gpolicy.apply import journals
from gpolicy.apply.jobs import (
    FAILURE,
    FailedJob,
    JobOutcome,
    JobResult,
    MarkedJob,
    Patience,
    StopRequests,
    Watch,
)
from gpolicy.apply.journals import Direction, JournalFile, RunHistory, read_history, read_journal
from gpolicy.apply.plan_run import Intention, PlanRun
from gpolicy.apply.work import FinalLook
from gpolicy.cluster.record import JOB_RUNS
from gpolicy.cluster.state import ClusterState, Unreadable
from gpolicy.errors import UnreachableError
from gpolicy.ganeti.commands import Route
from gpolicy.json_values import Shape
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import read_plan
from gpolicy.plan.step import PlannedCommand, Procedure
from gpolicy.policy.kinds import Policy
from gpolicy.printable import Tone
from tests.apply.pretend_ganeti import Job, PretendGaneti
from tests.plan.planned import make_plan, plan_text, policy_of

QUICK = Patience(
    first_pause=0.0, longest_pause=0.0, first_poll=0.0, longest_poll=0.0, job=5, contact=0.3, settle=0.01, look_again=0
)
POLICY = (
    """
    Cluster
    name: cluster
    ipolicy: {vcpu-ratio: 7}
    hv_state: {fake: {mem_node: 77}}
    """,
    """
    NodeGroup
    name: platinum
    alloc_policy: last_resort
    tags: [htools:x]
    nodes: [node1]
    """,
    """
    NodeSet
    name: n
    nodes: [node2]
    ndparams: {spindle_count: 9}
    """,
)


class KilledError(BaseException):
    """The process was killed."""


@dataclass
class ModelRunner:
    """Submits to the pretended cluster. `lose` is called around each submission and may raise."""

    ganeti: PretendGaneti
    gaps: tuple[Unreadable, ...] = ()
    lose: Callable[[str], None] = lambda _: None
    destination: str = "pretended:"
    route: Route = Route.RAPI

    def read(self) -> ClusterState:
        return self.ganeti.state(*self.gaps)

    def glance(self, *, instances: bool = False) -> ClusterState:  # noqa: ARG002 (they are always there)
        return self.ganeti.state(*self.gaps)

    def run(self, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
        assert command.rapi is not None
        try:
            self.lose("before")
            if self.ganeti.drained:
                self.ganeti.drained -= 1
                return JobOutcome(JobResult.FAILED, "HTTP 500: Queue drained")
            job = self.ganeti.submit(command.rapi, mark)
            self.lose("after")
        except UnreachableError as error:
            return JobOutcome(JobResult.UNKNOWN, error.message)
        watch.job(job.number)
        self.lose("known")
        return self.follow(job.number, watch) or JobOutcome(JobResult.UNKNOWN, "archived", job.number)

    def marked_jobs(self, start: str) -> list[MarkedJob]:
        found = [job for job in self.ganeti.jobs if job.mark.startswith(start) and job.status != "archived"]
        return [MarkedJob(job.number, job.mark, job.status in JOB_RUNS) for job in found]

    def failed_jobs(self, after: int) -> list[FailedJob]:
        return [FailedJob(job.number, "OP") for job in self.ganeti.jobs if job.number > after and job.status == FAILURE]

    def follow(self, job: int, watch: Watch) -> JobOutcome | None:
        found = self._job(job)
        if found.status == "archived":
            return None
        for line in found.log:
            watch.message(line)
        text = "" if found.result is None else f"{found.result[0]}: {', '.join(map(str, found.result[1]))}"
        return JobOutcome(JobResult.SUCCESS if found.status == "success" else JobResult.FAILED, text, job)

    def _job(self, number: int) -> Job:
        job = self.ganeti.job(number)
        assert job is not None
        return job


@dataclass
class Quiet:
    """Records what is said, without what tells a note from other lines."""

    said: list[str] = field(default_factory=list)

    def __call__(self, text: str, _: Tone) -> None:
        self.said.append(text.strip().removeprefix("note: "))


class MortalJournal(JournalFile):
    """A journal whose process is killed after, or in the middle of, its nth event, or after so many bytes (`room`)."""

    left: int = -1
    torn: bool = False
    room: int = -1

    def _append(self, line: bytes) -> None:
        if 0 <= MortalJournal.room < len(line):
            os.write(self._descriptor, line[: MortalJournal.room])
            MortalJournal.room = 0
            raise KilledError
        super()._append(line)
        MortalJournal.room -= len(line) if MortalJournal.room > 0 else 0

    def write(self, event: Shape, value: Any) -> None:
        if MortalJournal.left == 0:
            raise KilledError
        super().write(event, value)
        MortalJournal.left -= 1
        if MortalJournal.left == 0:
            if MortalJournal.torn:
                os.write(self._descriptor, b'{"event": "step-do')
            raise KilledError


@pytest.fixture(autouse=True)
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have all runs of a module that imports this write such a journal, which no power cut hits."""
    monkeypatch.setattr(journals, "JournalFile", MortalJournal)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    MortalJournal.left = -1
    yield
    MortalJournal.left = -1


@dataclass
class Agreed:
    """Agrees, and records what was shown."""

    shown: list[Intention] = field(default_factory=list)

    def __call__(self, intention: Intention) -> bool:
        self.shown.append(intention)
        return True


def plan_for(ganeti: PretendGaneti, policy: Policy | None = None) -> Plan:
    """Return a plan of the pretended cluster, through its file."""
    made = make_plan(policy or policy_of(*POLICY), ganeti.state())
    assert made.safe, made.guards
    with TemporaryDirectory() as directory:
        file = Path(directory, "plan.json")
        file.write_text(plan_text(made), encoding="utf-8")
        return read_plan(file)


@cache
def plan_of(*documents: str) -> Plan:
    """Return the plan that a policy makes of the pretended cluster as it is at first."""
    return plan_for(PretendGaneti.recorded(), policy_of(*documents))


def run(
    plan: Procedure,
    runner: ModelRunner,
    journal: Path,
    *,
    direction: Direction = Direction.APPLY,
    agree: Callable[[Intention], bool] = lambda _: True,
    stop: StopRequests | None = None,
    say: Quiet | None = None,
    lock_is_lost: Callable[[], bool] = lambda: False,
) -> FinalLook | None:
    """PlanRun a plan: the first time, or further, as the journal says."""
    return PlanRun(
        procedure=plan,
        runner=runner,
        journal_file=journal,
        say=say or Quiet(),
        agree=agree,
        direction=direction,
        history=history(journal),
        patience=QUICK,
        stop=stop or StopRequests(),
        lock_is_lost=lock_is_lost,
    ).go(runner.read())


def history(journal: Path) -> RunHistory | None:
    """Return what the journal says, None if no run has begun."""
    data = read_journal(journal)
    return None if data is None else read_history(data, str(journal))


def killed_run(plan: Procedure, runner: ModelRunner, journal: Path, direction: Direction) -> bool:
    """Return whether the run was killed; if so its journal writes nothing more."""
    try:
        verdict = run(plan, runner, journal, direction=direction)
    except KilledError:
        return True
    finally:
        MortalJournal.left = -1
        runner.lose = lambda _: None
    assert verdict is not None
    assert verdict.good, verdict
    return False
