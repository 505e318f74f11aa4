"""The content of a journal: its events as JSON lines, and the history that follows from them.

Every event is written, and on disk, before what it announces begins. So whatever kills a run, its journal never
knows less than: which step may have begun, and under which mark Ganeti's jobs can be searched for it.

The lines are a chain (`chain.py`): a journal with a line that is lost, changed or out of order is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from gpolicy.apply.chain import BEGIN, DISTRUSTED, ChainEnd, read_chain
from gpolicy.cluster.record import Record
from gpolicy.errors import InputError

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
    cluster: str
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
    chain = read_chain(data, where, _right_format)
    first, *further = chain.events
    history = _begun(None, first)
    for event in further:
        history = _after(history, event)
    return replace(history, end=chain.end)


def _after(history: History, event: Record) -> History:
    name = event.text("event")
    if name == EventName.BEGIN:
        return _begun(history, event)
    if name == EventName.END:
        return replace(history, ended=event.text("outcome"))
    if name != EventName.MESSAGE and name in set(EventName):  # a later 1.x may have more events
        return _with_step(history, EventName(name), event)
    return history


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
        job = event.whole("job")
        attempts = {**history.attempts, key: replace(attempt, job=job)}
        return replace(history, attempts=attempts, jobs=history.jobs | {job})
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
