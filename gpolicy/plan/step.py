"""A step: one job for Ganeti, with what it changes and what undoes it.

Steps for one cluster, with what they rest on, are a procedure: what apply carries out, be it a plan or a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import ClassVar

from gpolicy.cluster.sources import provenance_words
from gpolicy.cluster.state import Snapshot, Unreadable
from gpolicy.ganeti import commands
from gpolicy.ganeti.expressible import RESET, Assignments, InexpressibleError, Reset
from gpolicy.ganeti.parameters import default_in, parameter_at
from gpolicy.ganeti.vocabulary import Level, Path, Value
from gpolicy.plan.changes import NODES, label_of
from gpolicy.plan.effects import Effect, Observed, assigned
from gpolicy.provenance import UNKNOWN, Provenance


class StepWave(IntEnum):
    """The order of steps."""

    ENABLE = 1
    LET_GO = 2
    CLUSTER = 3
    GROUPS = 4
    NODES = 5
    TAGS_ADDED = 6
    TAGS_REMOVED = 7
    POOL = 8
    MOVES = 9  # of instances: in a remedy only


@dataclass(frozen=True, slots=True)
class PlannedCommand(commands.Command):
    """A command, and what it does to which leaves."""

    effects: tuple[Effect, ...] = ()


def planned(command: commands.Command, effects: tuple[Effect, ...]) -> PlannedCommand:
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
    wave: StepWave
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
    return sorted(steps, key=lambda step: (step.wave is StepWave.POOL, -int(step.id)))


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
    def made_words(self) -> list[str]:
        """When it was made, the commit of the policy, and the age of the state, as far as known."""
        return provenance_words(self.provenance, self.source, self.snapshot)

    @property
    def done_words(self) -> str:
        """What is there after the last step, in words."""
        raise NotImplementedError

    @property
    def moves_instances(self) -> bool:
        """Whether a step changes the nodes of an instance, so that a look has to show them."""
        return any(effect.path == NODES for step in self.steps for effect in step.command.effects)


def inverse_by(makers: Iterable[tuple[Callable[[], commands.Command], tuple[Effect, ...]]]) -> Inverse:
    """Return the inverse that runs these commands, each with its effects; only a reason if one cannot be expressed."""
    try:
        return Inverse(tuple(planned(make(), effects) for make, effects in makers))
    except InexpressibleError as error:
        return Inverse((), (error.message,))


def inverse_of(
    level: Level, name: str | None, before: Mapping[Path, Value], after: Mapping[Path, Value | Reset], version: str
) -> Inverse:
    """Return what restores the values `before` after a step has set those of `after`."""
    values, lost = expressible(level, name, before, version)
    if not values:
        return Inverse((), lost)
    label = label_of(level, name)
    set_by_step = {effect.path: effect.after for effect in assigned(label, {}, after)}
    effects = assigned(label, set_by_step, _stored(level, values, version))
    back = inverse_by([(partial(modify, level, name, values, version), effects)])
    return replace(back, not_restored=(*lost, *back.not_restored))


def _stored(level: Level, values: Assignments, version: str) -> Assignments:
    """Return the stored form of `values`: own values of the cluster are reset to Ganeti's defaults, not removed."""
    stored = dict(values)
    for path in [path for path, value in values.items() if value is RESET and level is Level.CLUSTER]:
        known = parameter_at(path)
        stored[path] = None if known is None else default_in(known, version)
    return {path: value for path, value in stored.items() if value is not None}


def expressible(
    level: Level, name: str | None, before: Mapping[Path, Value], version: str
) -> tuple[Assignments, tuple[str, ...]]:
    """Return the values that a command can restore, and in words those that no command can."""
    values: dict[Path, Value | Reset] = {}
    lost: list[str] = []
    for path, value in before.items():
        wanted: Value | Reset = RESET if value is None else value
        try:
            modify(level, name, {path: wanted}, version)
        except InexpressibleError as error:
            lost.append(error.message)
        else:
            values[path] = wanted
            if level is Level.CLUSTER and wanted is RESET:
                lost.append(f"{'.'.join(path)} stays, with Ganeti's default: the cluster's entry cannot be removed")
    return values, tuple(lost)


def modify(level: Level, name: str | None, values: Assignments, version: str) -> commands.Command:
    """Return the command that sets or resets own values of an object."""
    if level is Level.CLUSTER:
        return commands.cluster_modify(values, version=version)
    return commands.object_modify(level, name or "", values, version=version)
