"""A step: one job for Ganeti, with what it changes and what undoes it.

Steps for one cluster, with what they rest on, are a procedure: what apply carries out, be it a plan or a remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from gpolicy.cluster.state import Snapshot, Unreadable
from gpolicy.ganeti.commands import Command
from gpolicy.plan.change import NODES
from gpolicy.plan.contents import Observed
from gpolicy.plan.effects import Effect
from gpolicy.provenance import UNKNOWN, Provenance


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """The steps, and the objects that they touch as they were read.

    `gaps` is what the source does not show of any object. `cluster_uuid` is None where the source does not show it.
    `digest` is over the file that the steps were read from, byte by byte; `signer` is who signed it.
    """

    noun: ClassVar[str]
    """What people call it."""

    cluster: str
    cluster_uuid: str | None = None
    source: str
    version: str
    observed: dict[str, Observed] = field(default_factory=dict)
    gaps: tuple[Unreadable, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    provenance: Provenance = UNKNOWN
    digest: str = ""
    signer: str | None = None

    @property
    def outcome(self) -> tuple[Effect, ...]:
        """What the steps change in all: one effect for each leaf."""
        raise NotImplementedError

    @property
    def done_words(self) -> str:
        """What is there after the last step, in words."""
        raise NotImplementedError

    @property
    def moves_instances(self) -> bool:
        """Whether a step changes the nodes of an instance, so that a look has to show them."""
        return any(effect.path == NODES for step in self.steps for effect in step.command.effects)
