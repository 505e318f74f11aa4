"""What a journal says: its events as JSON lines, and the history that they add up to.

Every event is written, and on disk, before what it announces begins. So whatever kills a run, its journal never
knows less than: which step may have begun, and under which mark Ganeti's jobs can be searched for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from gpolicy.cluster.json_input import Record, parse_json
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Value

KIND: Final = "gpolicy-journal"
FORMAT_VERSION: Final = "1.0"


class Direction(StrEnum):
    """Whether a run carries the plan out or takes it back."""

    APPLY = "apply"
    ROLLBACK = "rollback"


class Fate(StrEnum):
    """What the journal knows of the last attempt at a step."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


class EventName(StrEnum):
    """The kinds of lines."""

    BEGIN = "begin"
    STARTED = "step-started"
    JOB = "step-job-submitted"
    MESSAGE = "step-message"
    DONE = "step-done"
    FAILED = "step-failed"
    END = "end"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last attempt at a step. `mark` is in the reason of its job, `job` the number of the job once it is known."""

    mark: str
    fate: Fate = Fate.BEGUN
    job: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What all runs of one plan did so far. `attempts` are by the step's key, `serials` by object.

    `ended` is the outcome of the last run, None if it was killed. `torn` tells of a last line that was cut short.
    """

    plan_digest: str
    cluster: str
    direction: Direction
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    serials: Mapping[str, int] = field(default_factory=dict)
    ended: str | None = None
    torn: bool = False

    def keys(self, fate: Fate) -> list[str]:
        """Return the keys of the steps whose last attempt ended like this, in the order in which they began."""
        return [key for key, attempt in self.attempts.items() if attempt.fate is fate]


def event_line(name: EventName, fields: Mapping[str, Value]) -> bytes:
    """Return an event as one line."""
    return json.dumps({"event": name.value, **fields}, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def read_history(data: bytes, where: str) -> History:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is none.

    A line that was cut short (the machine went down while it was written) says nothing: what it was to announce had
    not begun, or is looked up. It can only be the last line of a run, so a new run or nothing follows it.
    """
    history: History | None = None
    torn = False
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        place = f"{where}:{number}"
        event = _event(line, place, complete=number < len(lines))
        if event is None:
            torn = True
            continue
        if torn and event.fields.get("event") != EventName.BEGIN:
            raise InputError(f"{place}: the line before it is no event of a journal", hint="was the file edited?")
        torn = False
        history = _after(history, event)
    if history is None:
        raise InputError(f"{where}: holds no event of a journal", hint="no step has begun; remove the file")
    return replace(history, torn=torn)


def _event(line: bytes, place: str, *, complete: bool) -> Record | None:
    """Return the event in a line, or None for a line that was cut short."""
    if not complete:
        return None  # without its line end it is not known to be whole
    try:
        return Record.of(parse_json(line, place), place)
    except InputError:
        return None


def _after(history: History | None, event: Record) -> History:
    name = event.text("event")
    if name == EventName.BEGIN:
        return _begun(history, event)
    if history is None:
        raise InputError(f"{event.where}: a journal should begin with the event {EventName.BEGIN}")
    if name == EventName.END:
        return replace(history, ended=event.text("outcome"))
    if name == EventName.MESSAGE or name not in set(EventName):
        return history  # a later 1.x may have more events
    key = event.name("step")
    attempts = dict(history.attempts)
    if name == EventName.STARTED:
        attempts.pop(key, None)
        return replace(history, attempts={**attempts, key: Attempt(event.text("mark"))})
    if key not in attempts:
        raise InputError(f"{event.where}: step {key[:20]!r} has not begun")
    if name == EventName.JOB:
        attempts[key] = replace(attempts[key], job=event.whole("job"))
        return replace(history, attempts=attempts)
    attempts[key] = replace(attempts[key], fate=Fate.DONE if name == EventName.DONE else Fate.FAILED)
    serials = {**history.serials, **_serials(event)}
    return replace(history, attempts=attempts, serials=serials)


def _begun(history: History | None, event: Record) -> History:
    version = event.text("format_version")
    if event.fields.get("kind") != KIND or version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise InputError(f"{event.where}: is no journal of format {FORMAT_VERSION}")
    direction = event.text("direction")
    if direction not in set(Direction):
        raise InputError(f"{event.where}: there is no direction {direction[:20]!r}")
    if history is None:
        return History(
            plan_digest=event.text("plan_digest"), cluster=event.text("cluster"), direction=Direction(direction)
        )
    if event.text("plan_digest") != history.plan_digest:
        raise InputError(f"{event.where}: goes on with another plan than the journal began with")
    return replace(history, direction=Direction(direction), ended=None)


def _serials(event: Record) -> dict[str, int]:
    serials = event.record("serials")
    return {name: serials.whole(name) for name in serials.fields}
