"""Decisions about a step after a run that was killed or failed: pure functions of the journal and a new look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from gpolicy.apply.journal import Fate, StepAttempt
from gpolicy.apply.staleness import Sight
from gpolicy.apply.tasks import Task
from gpolicy.plan.effects import Effect, Progress, found, progress


class Decision(StrEnum):
    """The decision about a step."""

    RUN = "run"
    SKIP = "skip"  # it was done
    REFUSE = "refuse"  # nobody knows whether it was done, and it must not be done twice


def left_of(tasks: Iterable[Task], attempts: Mapping[str, StepAttempt]) -> list[Task]:
    """Return the tasks that the journal does not know to be done; `attempts` are by the task's key."""
    return [task for task in tasks if task.key not in attempts or attempts[task.key].fate is not Fate.DONE]


def decide_by_looking(task: Task, sight: Sight) -> Decision:
    """Return what to do with a step that may have been done, and that has no running job."""
    match seen_progress(task.command.effects, sight):
        case Progress.DONE:
            return Decision.SKIP
        case Progress.NOT_BEGUN:
            return Decision.RUN
    return Decision.RUN if task.repeatable else Decision.REFUSE  # partly done, or not to be seen


def seen_progress(effects: Iterable[Effect], sight: Sight) -> Progress | None:
    """Return how many of the effects that the look can show are there; None if it can show none of them."""
    shown = [effect for effect in effects if effect.before != effect.after and sight.shows(effect.object, effect.path)]
    return progress(shown, sight.contents) if shown else None


def effects_there(effects: Sequence[Effect], sight: Sight) -> list[Effect]:
    """Return those of `effects` that are there already: the part of a step that Ganeti accepted.

    One that cannot be seen counts as there, unless those that can be seen show that the step has not begun.
    """
    begun = seen_progress(effects, sight) is not Progress.NOT_BEGUN
    return [
        effect
        for effect in effects
        if (found(effect, sight.contents) == effect.after if sight.shows(effect.object, effect.path) else begun)
    ]


def effects_missing(effects: Sequence[Effect], sight: Sight) -> list[Effect]:
    """Return those of `effects` that are not there."""
    there = effects_there(effects, sight)
    return [effect for effect in effects if effect not in there]
