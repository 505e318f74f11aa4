"""`apply`: shows the steps, asks, and reports progress; no signal ends a run between a step and its journal entry."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.job_runners import CommandRunner, open_runner
from gpolicy.apply.jobs import Patience, Runner, StopRequests
from gpolicy.apply.journals import Direction, clear_away, history_for, journal_path
from gpolicy.apply.lock import local_lock, lock_directory, lock_name, remote_lock
from gpolicy.apply.plan_run import Intention, PlanRun, can_be_carried, right_cluster
from gpolicy.apply.work import FinalLook, LeafDifference, path_text
from gpolicy.cli.terminal import complain, in_options, wants_colour, working
from gpolicy.cluster.master import SshMaster
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import ExitCode, UsageError
from gpolicy.impact.declared_guards import measures_nodes
from gpolicy.plan.effects import effect_words
from gpolicy.plan.plan import Plan, check_safe
from gpolicy.plan.step import Procedure
from gpolicy.plan.trust import Signers
from gpolicy.printable import Painter, Tone, as_text, count
from gpolicy.remedy.saved_remedy import read_procedure
from gpolicy.report.values_text import value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """The plan or remedy to apply, its destination, and options."""

    plan: Path
    destination: str
    options: SourceOptions
    signers: Signers | None = None
    journal: Path | None = None
    resume: bool = False
    rollback: bool = False
    yes: bool = False
    job_timeout: float = 3600.0

    @property
    def journal_file(self) -> Path:
        """The journal: the given one, or the one beside the file."""
        return self.journal or journal_path(self.plan)


def apply(request: ApplyRequest) -> int:
    """Apply, resume or roll back a plan or remedy; return the exit code."""
    if request.resume and request.rollback:
        raise UsageError("--resume and --rollback exclude one another")
    plan = read_procedure(request.plan, request.signers)
    stop = StopRequests()
    signals = Signals(stop)
    runner = runner_for(request, stop)
    if isinstance(plan, Plan) and not request.rollback:
        check_safe(plan)
    if not request.yes and not can_ask():
        raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")

    def agree(intention: Intention) -> bool:
        """Show the steps and ask for consent."""
        for line in consent_lines(plan, request.destination, intention):
            _say(line)
        if intention.tasks and not request.yes and not says_yes(back=request.rollback):
            return False
        signals.catch()
        return True

    try:
        look = run_plan(request, plan, runner, agree, stop)
    except ApplyError as error:
        tell_error(request, error)
        return int(error.exit_code)
    finally:
        signals.release()
    return tell_end(request, plan, look)


def runner_for(request: ApplyRequest, stop: StopRequests) -> Runner:
    """Return the runner of a request, without connecting."""
    return open_runner(request.destination, request.options, Patience(job=request.job_timeout), stop)


def run_plan(
    request: ApplyRequest, plan: Procedure, runner: Runner, agree: Callable[[Intention], bool], stop: StopRequests
) -> FinalLook | None:
    """Run a plan under the locks of its cluster, if `agree` does, and return what a look at the end shows.

    Return None for a plan without steps, and without consent. Raise ApplyError and others as PlanRun does.
    """
    journal = request.journal_file
    direction = Direction.ROLLBACK if request.rollback else Direction.APPLY
    read_history = partial(history_for, plan, journal, resume=request.resume, rollback=request.rollback)
    can_be_carried(plan, runner, direction, read_history())
    with working(f"reading {request.destination}"):
        first = runner.glance()
    right_cluster(plan, first)
    if not plan.steps:
        return None
    with _locks(runner, first.name, first.cluster.identity.uuid) as lock_is_lost:
        history = read_history()  # as it is under the lock
        if history is not None and history.plan_digest != plan.digest:
            kept = clear_away(history, journal, runner, plan.noun)
            complain(f"{journal} was the journal of an earlier {plan.noun}; it is kept as {kept.name}", None)
            history = None
        state = read_for(request, plan, runner)
        for note in state.notes:
            _say(f"  note: {note}")
        run = PlanRun(
            plan=plan,
            runner=runner,
            journal_file=journal,
            say=_say,
            agree=agree,
            direction=direction,
            history=history,
            patience=Patience(job=request.job_timeout),
            stop=stop,
            lock_is_lost=lock_is_lost,
            judging=lambda: working("judging the guards on the cluster as it is now"),
        )
        return run.go(state)


def read_for(request: ApplyRequest, plan: Procedure, runner: Runner) -> ClusterState:
    """Return the state of the cluster, with what its nodes measure if a guard needs that."""
    with working(f"reading {request.destination}"):
        if isinstance(plan, Plan) and measures_nodes(plan):
            return read_state(request.destination, request.options)
        return runner.read()


@contextmanager
def _locks(runner: Runner, cluster: str, uuid: str | None) -> Iterator[Callable[[], bool]]:
    """Hold the locks; yield a function that tells whether one of them was lost."""
    name = lock_name(cluster, uuid)
    with ExitStack() as stack:
        what = f"apply to cluster {cluster}"
        stack.enter_context(local_lock(lock_directory(os.environ), name, what))
        if isinstance(runner, CommandRunner) and isinstance(runner.master, SshMaster):
            lock = stack.enter_context(remote_lock(runner.master, name, what))
            if lock.note:
                complain(lock.note, None)
            yield lock.is_lost
        else:
            yield lambda: False  # the kernel keeps the lock on this machine until we end


@dataclass(slots=True)
class Signals:
    """Let signals stop the run after the present step; a second one does not wait. A `silent` one says nothing."""

    stop: StopRequests
    silent: bool = False
    before: dict[int, Any] = field(default_factory=dict)

    def catch(self) -> None:
        """Begin: from now on no signal ends the run."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays
                self.before[number] = signal.signal(number, self._asked)

    def release(self) -> None:
        """Restore the old handlers of signals."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before.clear()

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.stop.ask()
        if self.silent:
            return
        text = "stopping after the running step; interrupt again to stop waiting for it (its job goes on in Ganeti)"
        with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: in the middle of another line
            complain("stopping at once" if self.stop.at_once else text, None)


# --- consent ---------------------------------------------------------------------------------------------------------


def consent_lines(plan: Procedure, destination: str, intention: Intention) -> Iterator[str]:
    """Yield what a run is going to do: every step with its values, the guards, and what nobody can restore."""
    back = intention.direction == "rollback"
    verb = "move instances of" if plan.moves_instances else "change"
    noun = plan.noun
    what = f"roll back the {noun} for" if back else f"resume the {noun} for" if intention.skipped else verb
    yield f"{count(len(intention.tasks), 'step')} to {what} cluster {plan.cluster} through {destination}"
    signed = f"signed by {plan.signer}" if plan.signer is not None else "signature not asked for"
    yield f"  {noun} {plan.digest}, {signed}"
    yield from (f"  {word}" for word in plan.provenance.words(plan.source, plan.snapshot))
    yield from (f"   done  {title}" for title in intention.skipped)
    for task in intention.tasks:
        yield f"  {task.step:>5}. {task.title}"
        yield from (f"         {effect_words(effect)}" for effect in task.command.effects)
    declared = plan.declared_guards if isinstance(plan, Plan) else ()
    limits = {guard.name.value: f" [{guard.measure} {guard.shown_limit}]" for guard in declared}
    for guard in intention.guards:
        about = limits.get(guard.name, "") + (" (allowed)" if guard.allowed else "")
        yield f"  guard {guard.name}{about}: {guard.message}"
    for item in plan.unreadable if isinstance(plan, Plan) and not back else ():
        yield f"  not compared when the plan was made: {item.object} {'.'.join(item.path)}"
    yield from (f"  NOT RESTORED: {lost}" for lost in intention.lost)
    yield from (f"  note: {note}" for note in intention.notes)


def can_ask() -> bool:
    """Return whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def says_yes(*, back: bool) -> bool:
    """Ask whether to do what was shown; return whether the answer is yes."""
    verb = "Take it back" if back else "Do it"
    sys.stderr.write(f"{verb}? Only yes is taken for a yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == "yes"


def _say(line: str, tone: Tone = Tone.PLAIN) -> None:
    """Write a line. After a closed output nothing more is written; the work and the exit code are not affected."""
    try:
        sys.stdout.write(as_text([Painter(wants_colour(sys.stdout))(tone, line)]))
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())


def tell_end(request: ApplyRequest, plan: Procedure, look: FinalLook | None) -> int:
    """Report how a run ended, and return the exit code: without consent nothing was done."""
    if not plan.steps:
        _say(f"nothing to do: the {plan.noun} has no steps")
        return int(ExitCode.FINE)
    if look is None:
        complain("nothing was done", None)
        return int(ExitCode.FINDINGS)
    for path in look.unseen:
        _say(f"  not seen: {path} cannot be read through {request.destination}; its job ended well")
    if look.good:
        back = "taken back: the cluster is as it was before, as far as said above"
        _say(back if request.rollback else f"done: {plan.done_words}")
        return int(ExitCode.FINE)
    _show_differences(look.differences)
    back = "all steps were taken back, but the cluster is not as it was"
    said = back if request.rollback else "all steps ran, but not all is as planned"
    complain(said, f"make a fresh {plan.noun}; the journal is {request.journal_file}")
    return int(ExitCode.FINDINGS)


def tell_error(request: ApplyRequest, error: ApplyError) -> None:
    """Report why a run ended before its time, and how to go on."""
    _show_differences(error.differences)
    way_on = "continue with --resume, undo what was done with --rollback, or make a fresh plan or remedy"
    way_on = "continue with --rollback" if request.rollback else way_on
    message, hint = in_options(error)
    complain(message, hint or (way_on if request.journal_file.exists() else None))


def _show_differences(differences: Sequence[LeafDifference]) -> None:
    for item in differences:
        where = f"{item.object} {path_text(item.path)}".rstrip()
        with suppress(OSError, ValueError):
            expected, found = value_text(item.path, item.expected), value_text(item.path, item.found)
            sys.stderr.write(as_text([f"  {where}: expected {expected}, found {found}"]))
