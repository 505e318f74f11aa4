"""The content of a journal: its events as JSON lines, and the history that follows from them.

Every event is written, and on disk, before what it announces begins. So whatever kills a run, its journal never
knows less than: which step may have begun, and under which mark Ganeti's jobs can be searched for it.

The lines are a chain: each ends with a checksum over itself and the checksum of the line before it. A line that is
lost, changed or out of order breaks the chain, and the journal is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Value

KIND: Final = "gpolicy-journal"
FORMAT_VERSION: Final = "1.1"
DISTRUSTED: Final = "gpolicy does not trust it: move it away, look at the cluster, and make a fresh plan"
"""The hint for a journal that cannot be believed."""

_CHECKSUM: Final = re.compile(rb', "chain": "([0-9a-f]{64})"\}$')
_CUT_SHORT: Final = b" (cut short)"  # ends a line that was not written to its end; no event ends like this


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

    BEGIN = "begin"
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

    `id` is the journal's own, a part of all marks; `marks` are those of all attempts. `ended` is the outcome of the
    last run, None if it was killed. The next line goes behind `ending`, which ends a last line that was cut short,
    and continues the chain from `checksum`.
    """

    id: str
    plan_digest: str
    cluster: str
    direction: Direction
    attempts: Mapping[str, StepAttempt] = field(default_factory=dict)
    marks: frozenset[str] = frozenset()
    serials: Mapping[str, int] = field(default_factory=dict)
    ended: str | None = None
    ending: bytes = b""
    checksum: str = ""


def mark_start(plan_digest: str, journal: str) -> str:
    """Return how the marks of all jobs begin that the journal with the id `journal` is about."""
    return f"gpolicy-plan-{plan_digest.rpartition(':')[2][:12]}-{journal}"


def event_line(name: EventName, fields: Mapping[str, Value], before: str) -> tuple[bytes, str]:
    """Return an event as one line, and its checksum; `before` is that of the line before it, empty for the first."""
    text = json.dumps({"event": name.value, **fields}, ensure_ascii=True, allow_nan=False).encode()
    checksum = _checksum(text, before)
    return text[:-1] + f', "chain": "{checksum}"}}\n'.encode(), checksum


def _checksum(text: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()


def read_history(data: bytes, where: str) -> History:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is not one.

    A last line that was cut short (the machine went down while it was written) says nothing: what it was to announce
    had not begun. The run that comes next ends it with a remark and begins behind it.
    """
    history: History | None = None
    cut_short = False
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        place = f"{where}:{number}"
        if line.endswith(_CUT_SHORT):
            cut_short = True
            continue
        event = _event(line, history, place)
        if event is None or (cut_short and event.fields.get("event") != EventName.BEGIN):
            raise _damaged(place)
        cut_short = False
        history = _after(history, event)
    if rest:
        place = f"{where}:{len(lines) + 1}"
        event = _event(rest, history, place)
        if event is not None:  # only the end of the line is missing
            history = replace(_after(history, event), ending=b"\n")
        elif _event(rest[:-1], history, place) is not None:
            raise _damaged(place)
        elif history is not None:
            history = replace(history, ending=_CUT_SHORT + b"\n")
    if history is None:
        raise InputError(f"{where}: holds no event of a journal", hint=DISTRUSTED)
    return history


def _damaged(place: str) -> InputError:
    return InputError(
        f"{place}: the journal is damaged: this line was changed, or lines before it are lost or out of order",
        hint=DISTRUSTED,
    )


def _event(line: bytes, history: History | None, place: str) -> Record | None:
    """Return the event in a line; None for one that is not as it was written behind the lines before it."""
    found = _CHECKSUM.search(line)
    try:
        event = Record.of(parse_json(line, place), place)
    except InputError:
        return None
    if history is None and event.fields.get("event") == EventName.BEGIN:
        _right_format(event)
    before = history.checksum if history is not None else ""
    if found is None or found[1].decode() != _checksum(line[: found.start()] + b"}", before):
        return None
    return event


def _after(history: History | None, event: Record) -> History:
    name = event.text("event")
    if name == EventName.BEGIN:
        history = _begun(history, event)
    elif history is None:
        raise InputError(f"{event.where}: a journal should begin with the event {EventName.BEGIN}")
    elif name == EventName.END:
        history = replace(history, ended=event.text("outcome"))
    elif name != EventName.MESSAGE and name in set(EventName):  # a later 1.x may have more events
        history = _with_step(history, EventName(name), event)
    return replace(history, checksum=event.text("chain"))


def _with_step(history: History, name: EventName, event: Record) -> History:
    """Return the history with an event of a step."""
    key = event.name("step")
    others = {step: attempt for step, attempt in history.attempts.items() if step != key}
    if name is EventName.STARTED:
        mark = event.text("mark")
        return replace(history, attempts={**others, key: StepAttempt(mark)}, marks=history.marks | {mark})
    if key not in history.attempts:
        raise InputError(f"{event.where}: step {key[:20]!r} has not begun")
    attempt = history.attempts[key]
    if name is EventName.JOB:
        return replace(history, attempts={**history.attempts, key: replace(attempt, job=event.whole("job"))})
    fate = Fate.DONE if name is EventName.DONE else Fate.FAILED
    attempt = replace(attempt, fate=fate, did=event.texts("done"))
    serials = event.record("serials")
    return replace(
        history,
        attempts={**history.attempts, key: attempt},
        serials={**history.serials, **{object_: serials.whole(object_) for object_ in serials.fields}},
    )


def _right_format(event: Record) -> None:
    """Raise InputError for a journal that is not of our format. Lines of format 1.0 had no checksum."""
    major, _, minor = event.text("format_version").partition(".")
    if event.fields.get("kind") != KIND or major != FORMAT_VERSION.partition(".")[0] or minor in ("", "0"):
        raise InputError(f"{event.where}: is not a journal of format {FORMAT_VERSION}", hint=DISTRUSTED)


def _begun(history: History | None, event: Record) -> History:
    _right_format(event)
    direction = event.text("direction")
    if direction not in set(Direction):
        raise InputError(f"{event.where}: there is no direction {direction[:20]!r}")
    if history is None:
        return History(
            id=event.name("journal"),
            plan_digest=event.text("plan_digest"),
            cluster=event.text("cluster"),
            direction=Direction(direction),
        )
    if (event.text("plan_digest"), event.text("journal")) != (history.plan_digest, history.id):
        raise InputError(f"{event.where}: goes on with another plan than the journal began with")
    return replace(history, direction=Direction(direction), ended=None)
