"""A step of a plan: one job for Ganeti, with what it changes and what undoes it."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Inverse:
    """What undoes a step. `not_restored` says what nothing can bring back, and why.

    `effects` are those of each command, as far as they are known: Ganeti's own default may come back instead.
    """

    commands: tuple[Command, ...] = ()
    not_restored: tuple[str, ...] = ()
    effects: tuple[tuple[Effect, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One job for Ganeti. `title` says in words what it does, `effects` leaf by leaf."""

    wave: Wave
    object: str
    title: str
    command: Command
    inverse: Inverse
    effects: tuple[Effect, ...] = ()
