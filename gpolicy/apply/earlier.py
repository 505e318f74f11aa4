"""The journal that earlier runs of a plan or remedy left, and what it means for the next run."""

from __future__ import annotations

from pathlib import Path

from gpolicy.apply.journal import Direction, History, mark_start, read_history
from gpolicy.apply.journal_file import read_journal, set_aside
from gpolicy.apply.runner import JobStatus, Runner
from gpolicy.errors import GpolicyError, UsageError
from gpolicy.plan.procedure import Procedure


def history_for(plan: Procedure, path: Path, *, resume: bool, rollback: bool) -> History | None:
    """Return what the journal at `path` says of this plan, None for a first run.

    Raise UsageError when the run that is asked for does not follow from it. A journal of another plan is not judged
    here: `History.plan_digest` differs.
    """
    data = read_journal(path)
    if data is None:
        if resume or rollback:
            raise nothing_begun(path, resume=resume, hint="name the journal of its runs with --journal FILE")
        return None
    history = read_history(data, str(path))
    if history.plan_digest != plan.digest:
        if resume or rollback:
            raise UsageError(
                f"{path}: is the journal of another {plan.noun}", hint="name the right one with --journal FILE"
            )
        return history
    if not resume and not rollback:
        raise UsageError(
            f"{path}: this {plan.noun} was applied before ({how_ended(history.direction, history.ended)})",
            hint=_way_out(history, plan.noun),
        )
    return history


def nothing_begun(path: Path, *, resume: bool, hint: str) -> UsageError:
    """Return the refusal to resume, or to roll back, what has no journal at `path`."""
    what, first = ("resume", "apply without --resume, or ") if resume else ("roll back", "")
    return UsageError(f"{path}: no journal of a run that has begun: there is nothing to {what}", hint=f"{first}{hint}")


def clear_away(history: History, path: Path, runner: Runner, noun: str) -> Path:
    """Rename the journal of an earlier plan or remedy (`noun`) and return its name, unless a job of it still runs."""
    for job in runner.marked_jobs(mark_start(history.plan_digest, history.id)):
        if job.status is JobStatus.PENDING:
            message = f"job {job.number} of an earlier {noun} ({path}) is still under way"
            raise GpolicyError(message, hint=f"wait for its end, then make a fresh {noun}")
    return set_aside(path, history.plan_digest)


def how_ended(direction: Direction, outcome: str | None) -> str:
    """Return in words how the last run that a journal tells of ended; None: it was killed."""
    how = "its rollback" if direction is Direction.ROLLBACK else "its last run"
    return f"{how} ended: {outcome}" if outcome else f"{how} was cut off"


def _way_out(history: History, noun: str) -> str:
    if history.direction is Direction.ROLLBACK:
        end = "" if history.ended == "done" else "go on taking it back with --rollback, or "
        return f"{end}make a fresh {noun}"
    if history.ended == "done":
        return f"--rollback undoes it; for anything else make a fresh {noun}"
    return f"--resume continues it, --rollback undoes it; or make a fresh {noun}"
