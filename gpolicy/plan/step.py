"""A step of a plan: one job for Ganeti, with what it changes and what undoes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from gpolicy.ganeti.commands import Command
from gpolicy.plan.effects import Effect


class Wave(IntEnum):
    """The order of steps."""

    ENABLE = 1
    LET_GO = 2
    CLUSTER = 3
    GROUPS = 4
    NODES = 5
    TAGS_ADDED = 6
    TAGS_REMOVED = 7
    POOL = 8
    MOVES = 9


@dataclass(frozen=True, slots=True)
class PlannedCommand(Command):
    """A command, and what it does to which leaves."""

    effects: tuple[Effect, ...] = ()


def planned(command: Command, effects: tuple[Effect, ...]) -> PlannedCommand:
    """Return `command` with its effects."""
    return PlannedCommand(command.argv, command.rapi, effects)


@dataclass(frozen=True, slots=True)
class Inverse:
    """The inverse of a step. `not_restored` tells what no command can restore, and why.

    Effects of the commands are listed as far as they are known: Ganeti's own default may come back instead.
    """

    commands: tuple[PlannedCommand, ...] = ()
    not_restored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One job for Ganeti. `id` is its number in the plan, from 1; `title` says in words what it does."""

    id: str = ""
    wave: Wave
    object: str
    title: str
    command: PlannedCommand
    inverse: Inverse

    @property
    def lost(self) -> list[str]:
        """The losses of a rollback, in words."""
        return [f"step {self.id}: {reason}" for reason in self.inverse.not_restored]


def ways_back(steps: Iterable[Step]) -> list[Step]:
    """Return steps in the order in which they are undone: the last one first, but the candidate pool at the end.

    The pool's job may die while it promotes nodes (seen on 3.0.2); nothing shall have to wait behind it.
    """
    return sorted(steps, key=lambda step: (step.wave is Wave.POOL, -int(step.id)))
