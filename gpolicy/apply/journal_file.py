"""The file of a journal: private, append-only, and on disk before the run goes on."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from gpolicy.apply.chain import ChainEnd, event_line
from gpolicy.errors import GpolicyError, InputError, UsageError
from gpolicy.ganeti.parameter import Value
from gpolicy.opening import read_below, real_path, reason

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NEW = ChainEnd()
_LARGEST = 64 * 1024**2


class JournalError(GpolicyError):
    """The journal cannot be written, so nothing may be begun."""


class JournalFile:
    """An open journal. `write` returns when the event is on disk.

    It goes on at `end`.
    """

    def __init__(self, path: Path, descriptor: int, end: ChainEnd = _NEW) -> None:
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

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def journal_path(plan: Path) -> Path:
    """Return the default path of the journal of a plan: `plan.json` has `plan.journal.jsonl`."""
    stem = plan.name.removesuffix(".json") or plan.name
    return plan.with_name(f"{stem}.journal.jsonl")


def create_journal(path: Path) -> JournalFile:
    """Return a new journal, mode 0600. Raise UsageError if the file is there already."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    except FileExistsError:
        raise UsageError(f"{path}: exists already") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise JournalError(
            f"{str(path)!r}: the journal cannot be created: {reason}", hint="name another: --journal FILE"
        ) from None
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return JournalFile(path, descriptor)


def reopen_journal(path: Path, chain_end: ChainEnd) -> JournalFile:
    """Return the journal in a file, to go on at `chain_end`. Raise InputError if it is not ours alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise JournalError(f"{str(path)!r}: the journal cannot be opened: {reason}") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        os.close(descriptor)
        reason = "belongs to another user, or others can read it"
        raise InputError(
            f"{path}: is not a private file of yours: it {reason}", hint=f"look at it, then chmod 600 {path}"
        )
    return JournalFile(path, descriptor, chain_end)


def read_journal(path: Path) -> bytes:
    """Return the content of a journal. Raise InputError if it is no regular file: a link may have been planted."""
    try:
        directory = real_path(path.parent)
        return read_below(directory, directory / path.name, _LARGEST)
    except OSError as error:
        raise InputError(f"{path}: the journal cannot be read: {reason(error)}") from None


def set_aside(path: Path, plan_digest: str) -> Path:
    """Rename the journal of an earlier plan, and return the new name."""
    short = "".join(letter for letter in plan_digest.rpartition(":")[2][:12] if letter.isalnum()) or "earlier"
    stem = path.name.removesuffix(".jsonl")
    target = path.with_name(f"{stem}.{short}.jsonl")
    number = 1
    while target.exists() or target.is_symlink():
        number += 1
        target = path.with_name(f"{stem}.{short}-{number}.jsonl")
    try:
        path.rename(target)
    except OSError as error:
        raise JournalError(f"{path}: cannot be renamed to {target.name}: {error.strerror}") from None
    return target
