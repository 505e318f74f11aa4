"""The content of a journal: its events as JSON lines, and the history that follows from them.

Every event is written, and on disk, before what it announces begins. So whatever kills a run, its journal never
knows less than: which step may have begun, and under which mark Ganeti's jobs can be searched for it.

The lines form a chain: each ends with a checksum over itself and the checksum of the line before it. A line that is
lost, changed or out of order breaks the chain, and the journal is refused. A last line that was cut short (the machine
went down while it was written) says nothing: the run that comes next ends it with a remark and begins behind it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Value

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


def event_line(name: StrEnum, fields: Mapping[str, Value], before: str) -> tuple[bytes, str]:
    """Return an event as one line, and its checksum; `before` is that of the line before it, empty for the first."""
    text = json.dumps({"event": name.value, **fields}, ensure_ascii=True, allow_nan=False).encode()
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
    for number, line in enumerate(lines, start=1):
        place = f"{where}:{number}"
        if line.endswith(_CUT_SHORT):
            cut_short = True
            continue
        event = _event(line, checksum, place, None if events else right_format)
        if event is None or (cut_short and event.fields.get("event") != BEGIN):
            raise _damaged(place)
        cut_short = False
        events.append(event)
        checksum = event.text("chain")
    if rest:
        place = f"{where}:{len(lines) + 1}"
        event = _event(rest, checksum, place, None if events else right_format)
        if event is not None:  # only the end of the line is missing
            events.append(event)
            checksum, ending = event.text("chain"), b"\n"
        elif _event(rest[:-1], checksum, place, None) is not None:
            raise _damaged(place)
        else:
            ending = _CUT_SHORT + b"\n"
    if not events:
        raise InputError(f"{where}: holds no event of a journal", hint=DISTRUSTED)
    if events[0].fields.get("event") != BEGIN:
        raise InputError(f"{where}:1: a journal should begin with the event {BEGIN}")
    return events, ChainEnd(ending, checksum)


def is_before_begin(data: bytes) -> bool:
    """Return whether the content of a journal ends within its first event: what this announces has not begun."""
    start = f'{{"event": "{BEGIN}", '.encode()
    is_cut = data.startswith(start) or start.startswith(data)
    return is_cut and b"\n" not in data and not any(_event(line, "", "", None) for line in (data, data[:-1]))


def _damaged(place: str) -> InputError:
    how = "this line was changed, or lines before it are lost or out of order"
    return InputError(f"{place}: the journal is damaged: {how}", hint=DISTRUSTED)


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


KIND: Final = "gpolicy-journal"
FORMAT_VERSION: Final = "1.1"


class Direction(StrEnum):
    """Whether a run carries the plan out or takes it back."""

    APPLY = "apply"
    ROLLBACK = "rollback"


class Fate(StrEnum):
    """The journal's record of the last attempt at a step."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


class EventName(StrEnum):
    """The kinds of lines."""

    BEGIN = BEGIN
    STARTED = "step-started"
    JOB = "step-job-submitted"
    MESSAGE = "step-message"
    DONE = "step-done"
    FAILED = "step-failed"
    END = "end"


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
class History:
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


def read_history(data: bytes, where: str) -> History:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is not one."""
    events, end = read_chain(data, where, _right_format)
    history: History | None = None
    for event in events:  # the first one begins a run
        name = event.text("event")
        if history is None or name == EventName.BEGIN:
            history = _begun(history, event)
        elif name == EventName.END:
            history = replace(history, ended=event.text("outcome"))
        elif name != EventName.MESSAGE and name in set(EventName):  # a later 1.x may have more events
            history = _with_step(history, EventName(name), event)
    assert history is not None  # noqa: S101 (a chain has an event)
    return replace(history, end=end)


def _with_step(history: History, name: EventName, event: Record) -> History:
    key = event.name("step")
    attempts = dict(history.attempts)
    if name is EventName.STARTED:
        mark = event.text("mark")
        attempts.pop(key, None)  # the last attempt stands last
        return replace(history, attempts={**attempts, key: StepAttempt(mark)}, marks=history.marks | {mark})
    if key not in attempts:
        raise InputError(f"{event.where}: step {key[:20]!r} has not begun")
    if name is EventName.JOB:
        job = event.whole("job")
        attempts[key] = replace(attempts[key], job=job)
        return replace(history, attempts=attempts, jobs=history.jobs | {job})
    fate = Fate.DONE if name is EventName.DONE else Fate.FAILED
    attempts[key] = replace(attempts[key], fate=fate, did=event.texts("done"))
    written = event.record("serials")
    serials = {**history.serials, **{object_: written.whole(object_) for object_ in written.fields}}
    return replace(history, attempts=attempts, serials=serials)


def _right_format(event: Record) -> None:
    """Raise InputError for a journal that is not of our format. Lines of format 1.0 had no checksum."""
    check_format(event, KIND, FORMAT_VERSION, "a journal", ("", "0"))


def check_format(event: Record, kind: str, version: str, what: str, refused: Collection[str]) -> None:
    """Raise InputError for the beginning of a run in a file that is not `what`, or of a minor version in `refused`."""
    major, _, minor = event.text("format_version").partition(".")
    if event.fields.get("kind") != kind or major != version.partition(".")[0] or minor in refused:
        raise InputError(f"{event.where}: is not {what} of format {version}", hint=DISTRUSTED)


def direction_of(event: Record) -> Direction:
    """Return the direction of the run that an event begins."""
    return event.choice("direction", Direction)


def _begun(history: History | None, event: Record) -> History:
    _right_format(event)
    direction = direction_of(event)
    if history is None:
        return History(id=event.name("journal"), plan_digest=event.text("plan_digest"), direction=direction)
    if (event.text("plan_digest"), event.text("journal")) != (history.plan_digest, history.id):
        raise InputError(f"{event.where}: goes on with another plan than the journal began with")
    return replace(history, direction=direction, ended=None)
