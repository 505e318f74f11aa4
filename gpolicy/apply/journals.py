"""A journal: its events as JSON lines, the history that follows from them, and its file.

Each event is a shape with a name: its line, its schema in `schemas/output/` and the reference page follow from that.
Every event is written, and on disk, before what it announces begins. So whatever kills a run, its journal never
knows less than: which step may have begun, and under which mark Ganeti's jobs can be searched for it.

The lines form a chain: each ends with a checksum over itself and the checksum of the line before it. A line that is
lost, changed or out of order breaks the chain, and the journal is refused. A last line that was cut short (the machine
went down while it was written) says nothing: the run that comes next ends it with a remark and begins behind it.
"""

import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gpolicy import __version__
from gpolicy.apply.jobs import Runner
from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.record import Record
from gpolicy.errors import GpolicyError, InputError, RequestError, argument
from gpolicy.ganeti.commands import Route
from gpolicy.json_values import FROM_ONE, NOT_EMPTY, TEXTS, Key, OwnFile, Shape
from gpolicy.opening import hidden_name, read_below, real_path, reason, sync_directory
from gpolicy.plan.step import Procedure
from gpolicy.printable import free_name

BEGIN: Final = "begin"
"""The event with which each run begins, in every journal."""

DISTRUSTED: Final = "gpolicy does not trust it: move it away, look at the cluster, and make a fresh plan"
"""The hint for a journal that cannot be believed."""

_CHECKSUM: Final = re.compile(rb', "chain": "([0-9a-f]{64})"\}$')
_CUT_SHORT: Final = b" (cut short)"  # ends a line that was not written to its end; no event ends like this


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """Where a chain goes on: behind `ending`, which ends a line that was cut short, and from `checksum`."""

    ending: bytes = b""
    checksum: str = ""


LINE: Final = Shape(dict).with_keys(
    event=str,
    time={"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+\+00:00$"},
    chain={"type": "string", "pattern": "^[0-9a-f]{64}$"},
)
"""What each line has beside the fields of its event."""


def begin_event(run: type, file: OwnFile, names: str, **keys: Any) -> Shape:
    """Return the event that begins a `run` in a file: its head, the keys of the run, and which process runs."""
    resumed, gpolicy = Key(bool, lambda run: run.history is not None), Key(str, lambda _: __version__)
    who = {"pid": Key(int, lambda _: os.getpid()), "host": Key(str, lambda _: socket.gethostname())}
    every = {**file.head, "gpolicy": gpolicy, "resumed": resumed, **who}
    return Shape(run, BEGIN).with_keys(f"kind format_version gpolicy {names} pid host", **every, **keys)


def event_line(name: str, fields: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return an event as one line, and its checksum; `before` is that of the line before it, empty for the first."""
    text = json.dumps({"event": name, **fields}, ensure_ascii=True, allow_nan=False).encode()
    checksum = _checksum(text, before)
    return text[:-1] + f', "chain": "{checksum}"}}\n'.encode(), checksum


def _checksum(text: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()


def read_chain(data: bytes, where: str, right_format: Callable[[Record], None]) -> tuple[list[Record], ChainEnd]:
    """Return the events in the content of a journal, at least one, and where it goes on.

    Raise InputError, which begins with `where`, for one that is damaged, empty, or begins with another event than
    `BEGIN`; `right_format` raises it for a journal of another format.
    """
    events: list[Record] = []
    checksum, ending = "", b""
    cut_short = False
    *lines, rest = data.split(b"\n")
    for number, line in enumerate([*lines, rest] if rest else lines, start=1):
        place, has_end = f"{where}:{number}", number <= len(lines)
        if has_end and line.endswith(_CUT_SHORT):
            cut_short = True
            continue
        event = _event(line, checksum, place, None if events else right_format)
        if event is None and not has_end and not _lost_its_end(line, checksum):
            ending = _CUT_SHORT + b"\n"
            break
        if event is None or (has_end and cut_short and event.fields.get("event") != BEGIN):
            how = "this line was changed, or lines before it are lost or out of order"
            raise InputError(f"{place}: the journal is damaged: {how}", hint=DISTRUSTED)
        cut_short = False
        events.append(event)
        checksum, ending = event.text("chain"), b"" if has_end else b"\n"
    if not events:
        raise InputError(f"{where}: holds no event of a journal", hint=DISTRUSTED)
    if events[0].fields.get("event") != BEGIN:
        raise InputError(f"{where}:1: a journal should begin with the event {BEGIN}")
    return events, ChainEnd(ending, checksum)


def is_before_begin(data: bytes) -> bool:
    """Return whether the content of a journal ends within its first event: what this announces has not begun."""
    start = f'{{"event": "{BEGIN}", '.encode()
    is_whole = b"\n" in data or _event(data, "", "", None) is not None or _lost_its_end(data, "")
    return not is_whole and (data.startswith(start) or start.startswith(data))


def _lost_its_end(line: bytes, before: str) -> bool:
    """Whether a last line is an event and one byte more: its newline was changed, so the line was not cut short."""
    return _event(line[:-1], before, "", None) is not None


def _event(line: bytes, before: str, place: str, right_format: Callable[[Record], None] | None) -> Record | None:
    """Return the event in a line; None for one that is not as it was written behind the lines before it."""
    found = _CHECKSUM.search(line)
    try:
        event = Record.of(parse_json(line, place), place)
    except InputError:
        return None
    if right_format is not None and event.fields.get("event") == BEGIN:
        right_format(event)
    if found is None or found[1].decode() != _checksum(line[: found.start()] + b"}", before):
        return None
    return event


class Direction(StrEnum):
    """Whether a run carries the plan out or takes it back."""

    APPLY = "apply"
    ROLLBACK = "rollback"


class Fate(StrEnum):
    """The journal's record of the last attempt at a step."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


JOURNAL_FILE: Final = OwnFile("gpolicy-journal", "1.1", "a journal", unread=("", "0"))  # 1.0 had no checksums
"""A new event, or a key more, makes the next one 1.2: who reads 1.1 ignores both (docs/reference/stability.md)."""

STARTED: Final = Shape(dict, "step-started").with_keys(
    step=NOT_EMPTY, title=str, mark=str, attempt=FROM_ONE, route=Route
)
SUBMITTED: Final = Shape(dict, "step-job-submitted").with_keys(step=NOT_EMPTY, job=FROM_ONE)
MESSAGE: Final = Shape(dict, "step-message").with_keys(step=NOT_EMPTY, text=str)
DONE: Final = Shape(dict, "step-done").with_keys(step=NOT_EMPTY, found=bool, serials=Mapping[str, int])
FAILED: Final = Shape(dict, "step-failed").with_keys(
    step=NOT_EMPTY, reason=str, done=TEXTS, missing=TEXTS, serials=Mapping[str, int]
)
STEP_EVENTS: Final = (STARTED, SUBMITTED, MESSAGE, DONE, FAILED)
END: Final = Shape(dict, "end").with_keys(outcome={"enum": ["done", "failed", "stopped"]})


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """The last attempt at a step. `mark` is in the reason of its job, `job` the number of the job once it is known.

    `did` names the values that a failed attempt changed all the same, as `effect_name` writes them.
    """

    mark: str
    fate: Fate = Fate.BEGUN
    job: int | None = None
    did: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """The history of all runs of one plan. `attempts` are by the step's key, `serials` by object.

    `id` is the journal's own, a part of all marks; `marks` and `jobs` are those of all attempts. `ended` is the outcome
    of the last run, None if it was killed. The journal goes on at `end`.
    """

    id: str
    plan_digest: str
    direction: Direction
    attempts: Mapping[str, StepAttempt] = field(default_factory=dict)
    marks: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()
    serials: Mapping[str, int] = field(default_factory=dict)
    ended: str | None = None
    end: ChainEnd = field(default_factory=ChainEnd)


def mark_start(plan_digest: str, journal: str) -> str:
    """Return how the marks of all jobs begin that the journal with the id `journal` is about."""
    return f"gpolicy-plan-{plan_digest.rpartition(':')[2][:12]}-{journal}"


def read_history(data: bytes, where: str) -> RunHistory:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is not one."""
    events, end = read_chain(data, where, right_format)
    history: RunHistory | None = None
    for event in events:  # the first one begins a run
        name = event.text("event")
        if history is None or name == BEGIN:
            history = _begun(history, event)
        elif name == END.name:
            history = replace(history, ended=event.text("outcome"))
        elif name in (STARTED.name, SUBMITTED.name, DONE.name, FAILED.name):  # a later 1.x may have more events
            history = _with_step(history, name, event)
    assert history is not None  # noqa: S101 (a chain has an event)
    return replace(history, end=end)


def _with_step(history: RunHistory, name: str, event: Record) -> RunHistory:
    key = event.name("step")
    attempts = dict(history.attempts)
    if name == STARTED.name:
        mark = event.text("mark")
        attempts.pop(key, None)  # the last attempt stands last
        return replace(history, attempts={**attempts, key: StepAttempt(mark)}, marks=history.marks | {mark})
    if key not in attempts:
        raise InputError(f"{event.where}: step {key[:20]!r} has not begun")
    if name == SUBMITTED.name:
        job = event.whole("job")
        attempts[key] = replace(attempts[key], job=job)
        return replace(history, attempts=attempts, jobs=history.jobs | {job})
    fate = Fate.DONE if name == DONE.name else Fate.FAILED
    attempts[key] = replace(attempts[key], fate=fate, did=event.texts("done"))
    written = event.record("serials")
    serials = {**history.serials, **{object_: written.whole(object_) for object_ in written.fields}}
    return replace(history, attempts=attempts, serials=serials)


def right_format(event: Record, file: OwnFile = JOURNAL_FILE) -> None:
    """Raise InputError for the beginning of a run in a file of another kind, or of a version that is not read."""
    if not file.reads(event.text("format_version")) or not file.is_kind_of(event.fields):
        raise InputError(f"{event.where}: is not {file.noun} of format {file.version}", hint=DISTRUSTED)


def _begun(history: RunHistory | None, event: Record) -> RunHistory:
    right_format(event)
    direction = event.choice("direction", Direction)
    if history is None:
        return RunHistory(id=event.name("journal"), plan_digest=event.text("plan_digest"), direction=direction)
    if (event.text("plan_digest"), event.text("journal")) != (history.plan_digest, history.id):
        raise InputError(f"{event.where}: goes on with another plan than the journal began with")
    return replace(history, direction=direction, ended=None)


_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LARGEST = 64 * 1024**2  # bytes; a longer journal is not read
_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class JournalError(GpolicyError):
    """The journal cannot be written, so nothing may be begun."""


class JournalFile:
    """An open journal, which goes on at `end`. `write` returns when the event is on disk."""

    def __init__(self, path: Path, descriptor: int, end: ChainEnd) -> None:
        self.path = path
        self._descriptor = descriptor
        self._end = end

    def write(self, event: Shape, value: Any) -> None:
        """Append an event, of a value of its kind, with the time (UTC). Raise JournalError if it is not on the disk."""
        if event.kind is dict and (unknown := value.keys() - event.keys.keys()):
            raise TypeError(f"{event.name} has no {', '.join(sorted(unknown))}")
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line, checksum = event_line(event.name, {"time": time, **event(value)}, self._end.checksum)
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
        """Whether there is no room for messages: three quarters are kept for what a run that goes on must know."""
        return os.fstat(self._descriptor).st_size > _LARGEST // 4

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def journal_path(plan: Path) -> Path:
    """Return the default path of the journal of a plan: `plan.json` has `plan.journal.jsonl`."""
    stem = plan.name.removesuffix(".json") or plan.name
    return plan.with_name(f"{stem}.journal.jsonl")


def begin_run(path: Path, end: ChainEnd | None, event: Shape, run: Any) -> JournalFile:
    """Return a journal, with the first event of a run on disk. It goes on at `end`; None makes a new one, mode 0600.

    A new one appears under its name with that event, so no journal has less. Raise RequestError if the file is there
    already, InputError if one that goes on is not ours alone.
    """
    beside = path if end else path.with_name(hidden_name(path.name))
    try:
        journal = JournalFile(path, _opened(path) if end else os.open(beside, _NEW, 0o600), end or ChainEnd())
        try:
            journal.write(event, run)
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
        raise JournalError(message, hint=f"name another: {argument('journal_file')} FILE") from None
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
        raise InputError(f"{path}: is not a private file of yours: {why}", hint=f"look at it, then chmod 600 {path}")
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


def history_for(plan: Procedure, path: Path, *, resume: bool, rollback: bool) -> RunHistory | None:
    """Return what the journal at `path` says of this plan, None for a first run. For a roll-out: `rollout_history`.

    Raise RequestError when the run that is asked for does not follow from it. A journal of another plan is not judged
    here: `RunHistory.plan_digest` differs.
    """
    hint = f"name the journal of its runs with {argument('journal_file')} FILE"
    data = read_begun(path, resume=resume, rollback=rollback, hint=hint)
    if data is None:
        return None
    history = read_history(data, str(path))
    if history.plan_digest != plan.digest:
        if resume or rollback:
            hint = f"name the right one with {argument('journal_file')} FILE"
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
        what, first = ("resume", f"apply without {argument('resume')}, or ") if resume else ("roll back", "")
        message = f"{path}: no journal of a run that has begun: there is nothing to {what}"
        raise RequestError(message, hint=f"{first}{hint}")
    return data


def clear_away(history: RunHistory, path: Path, runner: Runner, noun: str) -> Path:
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


def _way_out(history: RunHistory, noun: str) -> str:
    if history.direction is Direction.ROLLBACK:
        end = "" if history.ended == "done" else f"go on taking it back with {argument('rollback')}, or "
        return f"{end}make a fresh {noun}"
    if history.ended == "done":
        return f"{argument('rollback')} undoes it; for anything else make a fresh {noun}"
    return f"{argument('resume')} continues it, {argument('rollback')} undoes it; or make a fresh {noun}"
