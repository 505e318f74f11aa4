"""`apply`: shows the steps, asks, and reports progress; no signal ends a run between a step and its journal entry."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.jobs import Signals, StopRequests
from gpolicy.apply.plan_run import Intention
from gpolicy.apply.work import FinalLook, LeafDifference, path_text
from gpolicy.cli.terminal import complain, in_options, wants_colour, working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.plan.effects import effect_words
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Procedure
from gpolicy.printable import Painter, Tone, as_text, count
from gpolicy.remedy.saved_remedy import read_procedure
from gpolicy.report.values_text import value_text
from gpolicy.use_cases.carrying_out import ApplyRequest, apply_plan, check_guards, runner_for


def apply(request: ApplyRequest, *, yes: bool) -> int:
    """Apply, resume or roll back a plan or remedy, with `yes` without being asked; return the exit code."""
    plan = read_procedure(request.plan, request.signers)
    stop = StopRequests()
    signals = Signals(stop, tell_signal)
    runner = runner_for(request, stop)
    check_guards(request, plan)  # a missing terminal is told after it
    if not yes and not can_ask():
        raise UsageError("there is no terminal to ask on", hint="give --yes to apply without being asked")

    def agree(intention: Intention) -> bool:
        """Show the steps and ask for consent."""
        for line in consent_lines(plan, request.destination, intention):
            _say(line)
        if intention.tasks and not yes and not says_yes(back=request.rollback):
            return False
        signals.catch()
        return True

    try:
        look = run_plan(request, agree=agree, plan=plan, stop=stop, runner=runner)
    except ApplyError as error:
        tell_error(request, error)
        return int(error.exit_code)
    finally:
        signals.release()
    return tell_end(request, plan, look)


def tell_signal(stop: StopRequests) -> None:
    """Tell what comes of a signal."""
    text = "stopping after the running step; interrupt again to stop waiting for it (its job goes on in Ganeti)"
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: in the middle of another line
        complain("stopping at once" if stop.at_once else text, None)


def consent_lines(plan: Procedure, destination: str, intention: Intention) -> Iterator[str]:
    """Yield what a run is going to do: every step with its values, the guards, and what nobody can restore."""
    back = intention.direction == "rollback"
    verb = "move instances of" if plan.moves_instances else "change"
    noun = plan.noun
    what = f"roll back the {noun} for" if back else f"resume the {noun} for" if intention.skipped else verb
    yield f"{count(len(intention.tasks), 'step')} to {what} cluster {plan.cluster} through {destination}"
    signed = f"signed by {plan.signer}" if plan.signer is not None else "signature not asked for"
    yield f"  {noun} {plan.digest}, {signed}"
    yield from (f"  {word}" for word in plan.made_words)
    yield from (f"   done  {title}" for title in intention.skipped)
    for task in intention.tasks:
        yield f"  {task.step:>5}. {task.title}"
        yield from (f"         {effect_words(effect)}" for effect in task.command.effects)
    declared = plan.declared_guards if isinstance(plan, Plan) else ()
    limits = {guard.name.value: f" [{guard.measure} {guard.shown_limit}]" for guard in declared}
    for guard in intention.guards:
        about = limits.get(guard.name, "") + (" (allowed)" if guard.allowed else "")
        yield f"  guard {guard.name}{about}: {guard.message}"
    for item in plan.not_compared if isinstance(plan, Plan) and not back else ():
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


run_plan = partial(apply_plan, say=_say, warn=partial(complain, hint=None), working=working)
"""Carries a plan out, and shows what it does."""


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
