"""The journal of a roll-out: what the journals of its clusters do not say.

They say which steps were done. This one says which plans belong together, which clusters were begun, which journal each
of them has, and what the looks at them found. It has the same form (`gpolicy.apply.journal`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from gpolicy.apply.journal import BEGIN, ChainEnd, Direction, check_format, direction_of, read_chain
from gpolicy.apply.journal_file import how_ended, read_begun
from gpolicy.cluster.record import Record
from gpolicy.errors import RequestError

KIND: Final = "gpolicy-rollout-journal"
FORMAT_VERSION: Final = "1.0"
NAME: Final = "_rollout.journal.jsonl"
"""The name of the file, beside the plans. No cluster can have it: names of clusters begin with a letter or a digit."""


class RolloutEvent(StrEnum):
    """The kinds of lines."""

    BEGIN = BEGIN
    BEGUN = "cluster-begun"
    ENDED = "cluster-ended"
    LOOKED = "cluster-looked"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutHistory:
    """The history of all runs of a roll-out.

    `plans` are the digests of plan files by cluster. `begun` are the clusters with which a run has begun, `journals`
    the identifiers of their journals, as far as a run has seen the cluster's end. `failed_jobs` are jobs that looks
    have told of, by cluster. `ended` is the outcome of the last run, None if it was killed.
    """

    direction: Direction
    plans: Mapping[str, str]
    begun: frozenset[str] = frozenset()
    journals: Mapping[str, str] = field(default_factory=dict)
    failed_jobs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    ended: str | None = None
    end: ChainEnd = field(default_factory=ChainEnd)

    def is_of(self, plans: Mapping[str, str]) -> bool:
        """Return whether one of these plans is among those of the roll-out."""
        return any(self.plans.get(cluster) == digest for cluster, digest in plans.items())


def read_rollout(data: bytes, where: str) -> RolloutHistory:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is not one."""
    events, end = read_chain(data, where, _right_format)
    history = RolloutHistory(direction=Direction.APPLY, plans={})
    for event in events:
        history = _after(history, event)
    return replace(history, end=end)


def _after(history: RolloutHistory, event: Record) -> RolloutHistory:
    name = event.text("event")
    if name == RolloutEvent.BEGIN:
        _right_format(event)
        direction, plans = direction_of(event), event.record("plans")
        begun = {cluster: plans.text(cluster) for cluster in plans.fields}
        return replace(history, direction=direction, plans={**history.plans, **begun}, ended=None)
    if name == RolloutEvent.END:
        return replace(history, ended=event.text("outcome"))
    if name == RolloutEvent.BEGUN:
        return replace(history, begun=history.begun | {event.name("cluster")})
    if name == RolloutEvent.ENDED:
        journal = event.text_or_none("journal")
        known = {event.name("cluster"): journal} if journal else {}
        return replace(history, journals={**history.journals, **known})
    if name == RolloutEvent.LOOKED:
        cluster = event.name("cluster")
        jobs = [job for job in event.items("failed_jobs") if isinstance(job, int) and not isinstance(job, bool)]
        if len(jobs) < len(event.items("failed_jobs")):
            event.refuse("failed_jobs", "a list of numbers")
        told = history.failed_jobs.get(cluster, frozenset()) | {*jobs}
        return replace(history, failed_jobs={**history.failed_jobs, cluster: told})
    return history  # a later 1.x may have more events


def _right_format(event: Record) -> None:
    check_format(event, KIND, FORMAT_VERSION, "a roll-out's journal", ("",))


def rollout_history(path: Path, plans: Mapping[str, str], *, resume: bool, rollback: bool) -> RolloutHistory | None:
    """Return what the journal at `path` says of a roll-out of these plans, None without a journal.

    Raise RequestError when the run that is asked for does not follow from it. A journal of other plans is not judged
    here: `RolloutHistory.is_of` says no.
    """
    data = read_begun(path, resume=resume, rollback=rollback, hint="name the directory of the plans that were begun")
    if data is None:
        return None
    history = read_rollout(data, str(path))
    if not history.is_of(plans):
        if resume or rollback:
            raise RequestError(f"{path}: is the journal of other plans", hint="make fresh plans of all clusters")
        return history
    if not resume and not rollback:
        way = "--resume continues it, --rollback undoes it;"
        if history.direction is Direction.ROLLBACK:
            way = "continue with --rollback,"
        before = f"this roll-out has begun before ({how_ended(history.direction, history.ended)})"
        raise RequestError(f"{path}: {before}", hint=f"{way} or make fresh plans of all clusters")
    if resume and history.direction is Direction.ROLLBACK:
        hint = "continue with --rollback, or make fresh plans"
        raise RequestError(f"{path}: a rollback of this roll-out has begun", hint=hint)
    return history
