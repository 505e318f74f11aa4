"""The jobs of a run in their order: the steps of a plan or remedy, or what undoes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpolicy.ganeti.commands import Route
from gpolicy.plan.procedure import Procedure
from gpolicy.plan.step import PlannedCommand, Step, ways_back

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
    return [task for step in ways_back(plan.steps) if step.id in steps for task in _undo(step)]


def _undo(step: Step) -> Iterable[Task]:
    for number, command in enumerate(step.inverse.commands, start=1):
        yield Task(undo_key(step.id, number), step.id, f"undo step {step.id}: {step.title}", command)


def undo_key(step: str, number: int) -> str:
    """Return the key of the task that is the `number`th to undo a step."""
    return f"{step}-undo-{number}"
