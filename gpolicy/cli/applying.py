"""`apply`: shows the steps, asks, and reports progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.consent import can_ask, consent_lines, says_yes
from gpolicy.cli.interrupts import Signals
from gpolicy.cli.terminal import complain, wants_colour, working
from gpolicy.colour import Painter, Tone
from gpolicy.errors import ExitCode, UsageError
from gpolicy.printable import as_text

if TYPE_CHECKING:
    from gpolicy.apply.carrying import ApplyError
    from gpolicy.apply.journal import Direction, History
    from gpolicy.apply.plan_run import Intention
    from gpolicy.apply.runner import Patience, Runner, StopRequests
    from gpolicy.apply.tasks import FinalLook, LeafDifference
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState
    from gpolicy.plan.signature import Signers
    from gpolicy.plan.step import Procedure


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
        from gpolicy.apply.journal_file import journal_path  # noqa: PLC0415

        return self.journal or journal_path(self.plan)


def apply(request: ApplyRequest) -> int:
    """Apply, resume or roll back a plan or remedy; return the exit code."""
    from gpolicy.apply.carrying import ApplyError  # noqa: PLC0415
    from gpolicy.apply.runner import StopRequests  # noqa: PLC0415
    from gpolicy.plan.plan import Plan, check_safe  # noqa: PLC0415
    from gpolicy.remedy.saved_remedy import read_procedure  # noqa: PLC0415

    if request.resume and request.rollback:
        raise UsageError("--resume and --rollback exclude one another")
    plan = read_procedure(request.plan, request.signers)
    stop = StopRequests()
    signals = Signals(stop)
    runner = runner_for(request, stop)
    try:
        if isinstance(plan, Plan) and not request.rollback:
            check_safe(plan)
        if not request.yes and not can_ask():
            raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")
        try:
            ended = run_plan(request, plan, runner, _Agreement(plan, request.destination, request.yes, signals), stop)
        finally:
            signals.release()
        return tell_end(request, plan, ended)
    except ApplyError as error:
        tell_error(request, error)
        return int(error.exit_code)


def runner_for(request: ApplyRequest, stop: StopRequests) -> Runner:
    """Return the runner of a request, without connecting."""
    from gpolicy.apply.runner import open_runner  # noqa: PLC0415

    return open_runner(request.destination, request.options, _patience(request), stop)


def _patience(request: ApplyRequest) -> Patience:
    from gpolicy.apply.runner import Patience  # noqa: PLC0415

    return Patience(job=request.job_timeout)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: what the last look found; `direction` is None if the plan has no steps."""

    direction: Direction | None
    look: FinalLook | None = None

    @property
    def exit_code(self) -> int:
        """The exit code: without consent nothing was done."""
        good = self.direction is None or (self.look is not None and self.look.good)
        return int(ExitCode.FINE if good else ExitCode.FINDINGS)


def run_plan(
    request: ApplyRequest, plan: Procedure, runner: Runner, agree: Callable[[Intention], bool], stop: StopRequests
) -> RunEnd:
    """Run a plan under the locks of its cluster, if `agree` does. Raise ApplyError and others as PlanRun does."""
    from gpolicy.apply.journal import Direction  # noqa: PLC0415
    from gpolicy.apply.plan_run import PlanRun  # noqa: PLC0415
    from gpolicy.apply.preconditions import can_be_carried, right_cluster  # noqa: PLC0415

    journal = request.journal_file
    direction = Direction.ROLLBACK if request.rollback else Direction.APPLY
    can_be_carried(plan, runner, direction, _history(request, plan, journal))
    with working(f"reading {request.destination}"):
        first = runner.glance()
    right_cluster(plan, first)
    if not plan.steps:
        return RunEnd(None)
    with _locks(runner, first.name, first.cluster.identity.uuid) as lock_is_lost:
        history = _own_history(plan, _history(request, plan, journal), journal, runner)  # as it is under the lock
        state = read_for(request, plan, runner)
        voice = _Voice(Painter(wants_colour(sys.stdout)))
        for note in state.notes:
            voice.note(note)
        run = PlanRun(
            plan=plan,
            runner=runner,
            journal_file=journal,
            progressing=voice,
            agree=agree,
            direction=direction,
            history=history,
            patience=_patience(request),
            stop=stop,
            lock_is_lost=lock_is_lost,
            judging=lambda: working("judging the guards on the cluster as it is now"),
        )
        return RunEnd(direction, run.go(state))


def read_for(request: ApplyRequest, plan: Procedure, runner: Runner) -> ClusterState:
    """Return the state of the cluster, with what its nodes measure if a guard needs that."""
    from gpolicy.apply.preconditions import measures_nodes  # noqa: PLC0415
    from gpolicy.cluster.sources import read_state  # noqa: PLC0415

    with working(f"reading {request.destination}"):
        return read_state(request.destination, request.options) if measures_nodes(plan) else runner.read()


def _history(request: ApplyRequest, plan: Procedure, journal: Path) -> History | None:
    from gpolicy.apply.journal_file import history_for  # noqa: PLC0415

    return history_for(plan, journal, resume=request.resume, rollback=request.rollback)


def _own_history(plan: Procedure, history: History | None, journal: Path, runner: Runner) -> History | None:
    """Return the history of this plan or remedy; rename the journal of another."""
    from gpolicy.apply.journal_file import clear_away  # noqa: PLC0415

    if history is None or history.plan_digest == plan.digest:
        return history
    kept = clear_away(history, journal, runner, plan.noun)
    complain(f"{journal} was the journal of an earlier {plan.noun}; it is kept as {kept.name}", None)
    return None


@contextmanager
def _locks(runner: Runner, cluster: str, uuid: str | None) -> Iterator[Callable[[], bool]]:
    """Hold the locks; yield a function that tells whether one of them was lost."""
    from gpolicy.apply.command_runner import CommandRunner  # noqa: PLC0415
    from gpolicy.apply.lock import local_lock, lock_directory, lock_name, remote_lock  # noqa: PLC0415
    from gpolicy.cluster.master import SshMaster  # noqa: PLC0415

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


@dataclass(frozen=True, slots=True)
class _Agreement:
    """Shows the steps and asks for consent."""

    plan: Procedure
    destination: str
    yes: bool
    signals: Signals

    def __call__(self, intention: Intention) -> bool:
        for line in consent_lines(self.plan, self.destination, intention):
            _say(line)
        if intention.tasks and not self.yes and not says_yes(back=intention.direction == "rollback"):
            return False
        self.signals.catch()
        return True


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


def tell_end(request: ApplyRequest, plan: Procedure, ended: RunEnd) -> int:
    """Report how a run ended, and return the exit code."""
    if ended.direction is None:
        _say(f"nothing to do: the {plan.noun} has no steps")
        return ended.exit_code
    if ended.look is None:
        complain("nothing was done", None)
        return ended.exit_code
    back = ended.direction == "rollback"
    for path in ended.look.unseen:
        _say(f"  not seen: {path} cannot be read through {request.destination}; its job ended well")
    if ended.look.good:
        _say(
            "taken back: the cluster is as it was before, as far as said above" if back else f"done: {plan.done_words}"
        )
        return ended.exit_code
    _show_differences(ended.look.differences)
    complain(
        "all steps were taken back, but the cluster is not as it was"
        if back
        else "all steps ran, but not all is as planned",
        f"make a fresh {plan.noun}; the journal is {request.journal_file}",
    )
    return ended.exit_code


def tell_error(request: ApplyRequest, error: ApplyError) -> None:
    """Report why a run ended before its time, and how to go on."""
    _show_differences(error.differences)
    complain(error.message, error.hint or _way_on(request, request.journal_file))


def _show_differences(differences: Sequence[LeafDifference]) -> None:
    from gpolicy.apply.tasks import path_text  # noqa: PLC0415
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
        "" if request.rollback else ", undo what was done with --rollback, or make a fresh plan or remedy"
    )
