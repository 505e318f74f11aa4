"""`apply`: shows the steps, asks, and reports progress."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpolicy.cli.terminal import complain, wants_colour, working
from gpolicy.colour import Painter, Tone
from gpolicy.errors import ExitCode, UsageError
from gpolicy.printable import as_text

if TYPE_CHECKING:
    from types import FrameType

    from gpolicy.apply.final_look import FinalLook
    from gpolicy.apply.journal import History
    from gpolicy.apply.plan_run import Intention, PlanRun
    from gpolicy.apply.runner import Patience, Runner, StopRequests
    from gpolicy.apply.staleness import LeafDifference
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.plan.plan import Plan
    from gpolicy.plan.signature import Signers


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """The plan to apply, its destination, and options."""

    plan: Path
    destination: str
    options: SourceOptions
    signers: Signers | None = None
    journal: Path | None = None
    resume: bool = False
    rollback: bool = False
    yes: bool = False
    job_timeout: float = 3600.0


def apply(request: ApplyRequest) -> int:
    """Apply, resume or roll back a plan; return the exit code."""
    from gpolicy.apply.carrying import ApplyError  # noqa: PLC0415
    from gpolicy.apply.destinations import open_runner  # noqa: PLC0415
    from gpolicy.apply.journal_file import journal_path  # noqa: PLC0415
    from gpolicy.apply.runner import Patience, StopRequests  # noqa: PLC0415
    from gpolicy.plan.plan import check_safe  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415

    if request.resume and request.rollback:
        raise UsageError("--resume and --rollback exclude one another")
    plan = read_plan(request.plan, request.signers)
    stop = StopRequests()
    patience = Patience(job=request.job_timeout)
    runner = open_runner(request.destination, request.options, patience, stop)
    journal = request.journal or journal_path(request.plan)
    try:
        if not request.rollback:
            check_safe(plan)
        if not request.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")
        return _apply(request, plan, runner, journal, patience, stop)
    except ApplyError as error:
        _show_differences(error.differences)
        complain(error.message, error.hint or _way_on(request, journal))
        return int(error.exit_code)


def _apply(
    request: ApplyRequest, plan: Plan, runner: Runner, journal: Path, patience: Patience, stop: StopRequests
) -> int:
    from gpolicy.apply.journal import Direction  # noqa: PLC0415
    from gpolicy.apply.plan_run import PlanRun, can_be_carried, measures_nodes, right_cluster  # noqa: PLC0415
    from gpolicy.cluster.sources import read_state  # noqa: PLC0415

    direction = Direction.ROLLBACK if request.rollback else Direction.APPLY
    can_be_carried(plan, runner, direction, _history(request, plan, journal))
    with working(f"reading {request.destination}"):
        first = runner.glance()
    right_cluster(plan, first)
    if not plan.steps:
        _say("nothing to do: the plan has no steps")
        return int(ExitCode.FINE)
    with _locks(runner, first.name, first.cluster.identity.uuid) as lock_is_lost:
        history = _own_history(plan, _history(request, plan, journal), journal, runner)  # as it is under the lock
        with working(f"reading {request.destination}"):
            state = read_state(request.destination, request.options) if measures_nodes(plan) else runner.read()
        voice = _Voice(Painter(wants_colour(sys.stdout)))
        for note in state.notes:
            voice.note(note)
        signals = _Signals(stop)
        run = PlanRun(
            plan=plan,
            runner=runner,
            journal_file=journal,
            progressing=voice,
            agree=_Agreement(plan, request.destination, request.yes, signals),
            direction=direction,
            history=history,
            patience=patience,
            stop=stop,
            lock_is_lost=lock_is_lost,
            judging=lambda: working("judging the guards on the cluster as it is now"),
        )
        try:
            verdict = run.go(state)
        finally:
            signals.release()
    if verdict is None:
        complain("nothing was done", None)
        return int(ExitCode.FINDINGS)
    return _tell(run, verdict, journal)


def _history(request: ApplyRequest, plan: Plan, journal: Path) -> History | None:
    from gpolicy.apply.earlier import history_for  # noqa: PLC0415

    return history_for(plan, journal, resume=request.resume, rollback=request.rollback)


def _own_history(plan: Plan, history: History | None, journal: Path, runner: Runner) -> History | None:
    """Return the history of this plan; rename the journal of another plan."""
    from gpolicy.apply.earlier import clear_away  # noqa: PLC0415

    if history is None or history.plan_digest == plan.digest:
        return history
    kept = clear_away(history, journal, runner)
    complain(f"{journal} was the journal of an earlier plan; it is kept as {kept.name}", None)
    return None


@contextmanager
def _locks(runner: Runner, cluster: str, uuid: str | None) -> Iterator[Callable[[], bool]]:
    """Hold the locks; yield a function that tells whether one of them was lost."""
    from gpolicy.apply.command_runner import CommandRunner  # noqa: PLC0415
    from gpolicy.apply.lock import local_lock, lock_directory, lock_name, remote_lock  # noqa: PLC0415
    from gpolicy.cluster.master import SshMaster  # noqa: PLC0415

    name = lock_name(cluster, uuid)
    with ExitStack() as stack:
        stack.enter_context(local_lock(lock_directory(os.environ), name, cluster))
        if isinstance(runner, CommandRunner) and isinstance(runner.master, SshMaster):
            lock = stack.enter_context(remote_lock(runner.master, name, cluster))
            if lock.note:
                complain(lock.note, None)
            yield lock.is_lost
        else:
            yield lambda: False  # the kernel keeps the lock on this machine until we end


@dataclass(slots=True)
class _Signals:
    """Let Ctrl-C and SIGTERM stop the run after the present step; a second one does not wait."""

    stop: StopRequests
    before: dict[int, Any] = field(default_factory=dict)

    def catch(self) -> None:
        """Begin: from now on no signal ends the run between a step and its entry in the journal."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays
                self.before[number] = signal.signal(number, self._asked)

    def release(self) -> None:
        """Restore the old handlers of signals."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before.clear()

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.stop.requests += 1
        text = "stopping after the running step; interrupt again to stop waiting for it (its job goes on in Ganeti)"
        with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: in the middle of another line
            complain(text if self.stop.requests == 1 else "stopping at once", None)


@dataclass(frozen=True, slots=True)
class _Agreement:
    """Shows the steps and asks for consent."""

    plan: Plan
    destination: str
    yes: bool
    signals: _Signals

    def __call__(self, intention: Intention) -> bool:
        for line in self._lines(intention):
            _say(line)
        if intention.tasks and not self.yes and not self._answer(intention):
            return False
        self.signals.catch()
        return True

    def _lines(self, intention: Intention) -> Iterator[str]:
        from gpolicy.plan.effect_words import effect_words  # noqa: PLC0415

        back = intention.direction == "rollback"
        count = len(intention.tasks)
        what = "roll back the plan for" if back else "resume the plan for" if intention.skipped else "change"
        steps = "step" if count == 1 else "steps"
        yield f"{count} {steps} to {what} cluster {self.plan.cluster} through {self.destination}"
        signed = f"signed by {self.plan.signer}" if self.plan.signer is not None else "signature not asked for"
        yield f"  plan {self.plan.digest}, {signed}"
        yield from (f"  {word}" for word in self.plan.provenance.words(self.plan.source, self.plan.snapshot))
        for title in intention.skipped:
            yield f"   done  {title}"
        for task in intention.tasks:
            yield f"  {task.step:>5}. {task.title}"
            yield from (f"         {effect_words(effect)}" for effect in task.command.effects)
        limits = {guard.name.value: f" [{guard.measure} {guard.shown_limit}]" for guard in self.plan.declared_guards}
        for guard in intention.guards:
            about = limits.get(guard.name, "") + (" (allowed)" if guard.allowed else "")
            yield f"  guard {guard.name}{about}: {guard.message}"
        for item in self.plan.unreadable if not back else ():
            yield f"  not compared when the plan was made: {item.object} {'.'.join(item.path)}"
        for lost in intention.lost:
            yield f"  NOT RESTORED: {lost}"
        for note in intention.notes:
            yield f"  note: {note}"

    def _answer(self, intention: Intention) -> bool:
        verb = "Take it back" if intention.direction == "rollback" else "Do it"
        sys.stderr.write(f"{verb}? Only yes is taken for a yes: ")
        sys.stderr.flush()
        return sys.stdin.readline().strip() == "yes"


@dataclass(slots=True)
class _Voice:
    """Reports progress. A closed terminal never stops the work."""

    paint: Painter

    def step(self, number: int, count: int, title: str) -> None:
        _say(self.paint(Tone.STRONG, f"[{number}/{count}] {title}"))

    def job(self, job: int) -> None:
        _say(f"  job {job}")

    def message(self, text: str) -> None:
        _say(self.paint(Tone.CAREFUL, f"  {text}") if "WARNING" in text else f"  {text}")

    def note(self, text: str) -> None:
        _say(f"  note: {text}")

    def ended(self, seconds: float, *, ran: bool) -> None:
        _say(f"  done ({seconds:.1f} s)" if ran else "  was done already")


def _say(line: str) -> None:
    """Write a line. After a closed output nothing more is written; the work and the exit code are not affected."""
    try:
        sys.stdout.write(as_text([line]))
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())


def _tell(run: PlanRun, verdict: FinalLook, journal: Path) -> int:
    """Report the state of the cluster at the end, and return the exit code."""
    back = run.direction == "rollback"
    for path in verdict.unseen:
        _say(f"  not seen: {path} cannot be read through {run.runner.destination}; its job ended well")
    if verdict.good:
        seen = len(run.plan.changes)
        _say(
            "taken back: the cluster is as it was before, as far as said above"
            if back
            else f"done: all {seen} changes are there"
        )
        return int(ExitCode.FINE)
    _show_differences(verdict.differences)
    complain(
        "all steps were taken back, but the cluster is not as it was"
        if back
        else "all steps ran, but not all is as planned",
        f"make a fresh plan; the journal is {journal}",
    )
    return int(ExitCode.FINDINGS)


def _show_differences(differences: Sequence[LeafDifference]) -> None:
    from gpolicy.apply.staleness import path_text  # noqa: PLC0415
    from gpolicy.report.values_text import value_text  # noqa: PLC0415

    for item in differences:
        where = f"{item.object} {path_text(item.path)}".rstrip()
        with suppress(OSError, ValueError):
            expected, found = value_text(item.path, item.expected), value_text(item.path, item.found)
            sys.stderr.write(as_text([f"  {where}: expected {expected}, found {found}"]))


def _way_on(request: ApplyRequest, journal: Path) -> str | None:
    """Return how to continue after an incomplete run."""
    if not journal.exists():
        return None
    return f"continue with --{'rollback' if request.rollback else 'resume'}" + (
        "" if request.rollback else ", undo what was done with --rollback, or make a fresh plan"
    )
