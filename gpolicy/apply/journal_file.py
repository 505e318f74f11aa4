"""The file of a journal: private, append-only, and on disk before the run goes on; what earlier runs left in it."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from gpolicy import __version__
from gpolicy.apply.journal import ChainEnd, Direction, History, event_line, is_before_begin, mark_start, read_history
from gpolicy.apply.runner import Runner
from gpolicy.errors import GpolicyError, InputError, RequestError
from gpolicy.ganeti.vocabulary import Value
from gpolicy.opening import hidden_name, read_below, real_path, reason, sync_directory
from gpolicy.plan.step import Procedure
from gpolicy.printable import free_name

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LARGEST = 64 * 1024**2
_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class JournalError(GpolicyError):
    """The journal cannot be written, so nothing may be begun."""


class JournalFile:
    """An open journal, which goes on at `end`. `write` returns when the event is on disk."""

    def __init__(self, path: Path, descriptor: int, end: ChainEnd) -> None:
        self.path = path
        self._descriptor = descriptor
        self._end = end

    def write(self, name: StrEnum, **fields: Value) -> None:
        """Append an event with the time (UTC). Raise JournalError if it did not get to the disk."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line, checksum = event_line(name, {"time": time, **fields}, self._end.checksum)
        self._append(self._end.ending + line)
        self._end = ChainEnd(checksum=checksum)

    def _append(self, line: bytes) -> None:
        """Append `line` to the file on disk, or leave the file as it was."""
        end = os.fstat(self._descriptor).st_size
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, end)
            raise JournalError(f"{self.path}: the journal cannot be written: {error.strerror}") from None

    @property
    def is_long(self) -> bool:
        """Whether there is no room for what a run does not need: the whole must stay readable."""
        return os.fstat(self._descriptor).st_size > _LARGEST // 4

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def journal_path(plan: Path) -> Path:
    """Return the default path of the journal of a plan: `plan.json` has `plan.journal.jsonl`."""
    stem = plan.name.removesuffix(".json") or plan.name
    return plan.with_name(f"{stem}.journal.jsonl")


def begin_run(
    path: Path, end: ChainEnd | None, name: StrEnum, *, kind: str, format_version: str, **fields: Value
) -> JournalFile:
    """Return a journal, with the first event of a run on disk. It goes on at `end`; None makes a new one, mode 0600.

    A new one appears under its name with that event, so no journal has less. Raise RequestError if the file is there
    already, InputError if one that goes on is not ours alone.
    """
    beside = path if end else path.with_name(hidden_name(path.name))
    try:
        journal = JournalFile(path, _opened(path) if end else os.open(beside, _NEW, 0o600), end or ChainEnd())
        try:
            who: dict[str, Value] = {"pid": os.getpid(), "host": socket.gethostname()}
            journal.write(name, kind=kind, format_version=format_version, gpolicy=__version__, **fields, **who)
            if not end:
                _take_place(path, beside)
        except BaseException:
            journal.close()
            raise
        finally:
            if not end:
                with suppress(OSError):
                    beside.unlink()
    except (OSError, ValueError) as error:
        message = f"{str(path)!r}: the journal cannot be created: {reason(error)}"
        raise JournalError(message, hint="name another: --journal FILE") from None
    return journal


def _take_place(path: Path, beside: Path) -> None:
    if os.path.lexists(path) and read_journal(path) is None:
        set_aside(path, "")
    try:
        os.link(beside, path, follow_symlinks=False)  # unlike a rename, this never replaces a file
        sync_directory(path.parent)
    except FileExistsError:
        raise RequestError(f"{path}: exists already") from None


def _opened(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise JournalError(f"{str(path)!r}: the journal cannot be opened: {reason(error)}") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        os.close(descriptor)
        why = "it belongs to another user, or others can read it"
        hint = f"look at it, then chmod 600 {path}"
        raise InputError(f"{path}: is not a private file of yours: {why}", hint=hint)
    return descriptor


def read_journal(path: Path) -> bytes | None:
    """Return the content of a journal, None if no run has begun: there is none, or its first event was cut short.

    Raise InputError if it is no regular file: a link may have been planted.
    """
    if not os.path.lexists(path):
        return None
    try:
        directory = real_path(path.parent)
        data = read_below(directory, directory / path.name, _LARGEST)
    except OSError as error:
        raise InputError(f"{path}: the journal cannot be read: {reason(error)}") from None
    return None if is_before_begin(data) else data


def set_aside(path: Path, plan_digest: str) -> Path:
    """Rename the journal of an earlier plan, and return the new name."""
    short = "".join(letter for letter in plan_digest.rpartition(":")[2][:12] if letter.isalnum()) or "earlier"
    stem = f"{path.name.removesuffix('.jsonl')}.{short}"
    name = free_name(stem, lambda name: os.path.lexists(path.with_name(f"{name}.jsonl")))
    target = path.with_name(f"{name}.jsonl")
    try:
        path.rename(target)
    except OSError as error:
        raise JournalError(f"{path}: cannot be renamed to {target.name}: {error.strerror}") from None
    return target


def history_for(plan: Procedure, path: Path, *, resume: bool, rollback: bool) -> History | None:
    """Return what the journal at `path` says of this plan, None for a first run.

    Raise RequestError when the run that is asked for does not follow from it. A journal of another plan is not judged
    here: `History.plan_digest` differs.
    """
    data = read_begun(path, resume=resume, rollback=rollback, hint="name the journal of its runs with --journal FILE")
    if data is None:
        return None
    history = read_history(data, str(path))
    if history.plan_digest != plan.digest:
        if resume or rollback:
            hint = "name the right one with --journal FILE"
            raise RequestError(f"{path}: is the journal of another {plan.noun}", hint=hint)
        return history
    if not resume and not rollback:
        before = f"this {plan.noun} was applied before ({how_ended(history.direction, history.ended)})"
        raise RequestError(f"{path}: {before}", hint=_way_out(history, plan.noun))
    return history


def read_begun(path: Path, *, resume: bool, rollback: bool, hint: str) -> bytes | None:
    """Return the content of a journal, None for a first run. Raise RequestError if there is none to go on with."""
    data = read_journal(path)
    if data is None and (resume or rollback):
        what, first = ("resume", "apply without --resume, or ") if resume else ("roll back", "")
        message = f"{path}: no journal of a run that has begun: there is nothing to {what}"
        raise RequestError(message, hint=f"{first}{hint}")
    return data


def clear_away(history: History, path: Path, runner: Runner, noun: str) -> Path:
    """Rename the journal of an earlier plan or remedy (`noun`) and return its name, unless a job of it still runs."""
    for job in runner.marked_jobs(mark_start(history.plan_digest, history.id)):
        if job.pending:
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
