"""The jobs of a run in their order: the steps of a plan or remedy, or what undoes them; and what to do with one that a
run before has begun, as the journal and a new look say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpolicy.apply.journal import Fate, StepAttempt
from gpolicy.apply.staleness import Sight
from gpolicy.ganeti.commands import Route
from gpolicy.plan.effects import Effect, Progress, found, progress
from gpolicy.plan.step import PlannedCommand, Procedure, ways_back

_ONCE = frozenset({"add", "rename", "remove", "remove-tags"})
_MOVES = "gnt-instance"


@dataclass(frozen=True, slots=True)
class Task:
    """One job: `key` names it in the journal, `step` is its step in the plan."""

    key: str
    step: str
    title: str
    command: PlannedCommand

    @property
    def repeatable(self) -> bool:
        """Whether a second run of the job gives the same result: Ganeti refuses to create a group twice, and a second
        migration leads back."""
        argv, rapi = self.command.argv, self.command.rapi
        if argv is not None:
            return argv[0] != _MOVES and argv[1] not in _ONCE
        return (
            rapi is not None and (rapi.method == "PUT" or rapi.path.endswith("/modify")) and "/rename" not in rapi.path
        )

    def carried_by(self, route: Route) -> bool:
        """Return whether the command can go this way."""
        return (self.command.argv if route is Route.ARGV else self.command.rapi) is not None


def forward(plan: Procedure) -> list[Task]:
    """Return the tasks that carry `plan` out."""
    return [Task(step.id, step.id, step.title, step.command) for step in plan.steps]


def backward(plan: Procedure, steps: Collection[str]) -> list[Task]:
    """Return the tasks that undo those of `steps`."""
    return [
        Task(undo_key(step.id, number), step.id, f"undo step {step.id}: {step.title}", command)
        for step in ways_back(plan.steps)
        if step.id in steps
        for number, command in enumerate(step.inverse.commands, start=1)
    ]


def undo_key(step: str, number: int) -> str:
    """Return the key of the task that is the `number`th to undo a step."""
    return f"{step}-undo-{number}"


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
