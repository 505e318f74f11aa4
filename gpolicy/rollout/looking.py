"""The look at a cluster whose plan is done, before the roll-out goes on to the next wave."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gpolicy.apply.journal import History, mark_start
from gpolicy.apply.preconditions import RefusedError, guards_now, right_cluster
from gpolicy.apply.runner import Runner
from gpolicy.apply.staleness import Sight, judge_outcome, path_text
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.values import amount_text
from gpolicy.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class LookResult:
    """What a look found: `troubles` stop the roll-out. `failed_jobs` are the jobs that it tells of."""

    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failed_jobs: tuple[int, ...] = ()


def look_at(
    plan: Plan, runner: Runner, state: ClusterState, history: History | None, told: AbstractSet[int] = frozenset()
) -> LookResult:
    """Return what is wrong with a cluster after its plan: missing changes, guards that fail, jobs that failed since.

    `history` is what the plan's journal says. Jobs that were `told` of before are a note: who resumes knows them.
    """
    troubles: list[str] = []
    notes: list[str] = []
    failed: tuple[int, ...] = ()
    try:
        right_cluster(plan, state)
    except RefusedError as error:
        return LookResult((error.message,))
    final = judge_outcome(plan.outcome, Sight.of(state))
    for item in final.differences:
        where = f"{item.object} {path_text(item.path)}".rstrip()
        expected, found = (amount_text(item.path, value) or json.dumps(value) for value in (item.expected, item.found))
        troubles.append(f"{where}: expected {expected}, found {found}")
    try:
        guards_now(plan, state, begun=True)
    except RefusedError as error:
        troubles.append(error.message)
    if history is not None:
        for number, summary in _failed_since(plan, runner, history):
            text = f"job {number} ({summary}) has failed since the plan began"
            if number in told:
                notes.append(f"{text}; an earlier look has told of it")
            else:
                troubles.append(text)
                failed += (number,)
    return LookResult(tuple(troubles), tuple(notes), failed)


def _failed_since(plan: Plan, runner: Runner, history: History) -> Iterable[tuple[int, str]]:
    """Yield the jobs that failed since the first job of the plan, less the plan's own: its steps were seen."""
    own = {job.number for job in runner.marked_jobs(mark_start(plan.digest, history.id))}
    if known := own | history.jobs:
        yield from ((job.number, job.summary) for job in runner.failed_jobs(min(known)) if job.number not in own)
