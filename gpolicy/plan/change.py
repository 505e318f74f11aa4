"""One difference between a policy and a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpolicy.findings import Span
from gpolicy.ganeti.parameter import Level, Path, TakesEffect, Value
from gpolicy.ganeti.parameters import parameter_at


class ChangeAction(StrEnum):
    """The kind of a change of a value or an object."""

    SET = "set"
    RESET = "reset"  # the own value is removed; the object follows the level above
    CREATE = "create"
    REMOVE = "remove"
    RENAME = "rename"
    MOVE = "move"


class Risk(StrEnum):
    """How carefully a person should look at a change."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Objection:
    """What speaks against a plan. `span` is the place in the policy that causes it, if there is one."""

    text: str
    span: Span | None = None


NAME: Path = ("name",)
"""Path of a group's existence and name in changes."""

MEMBERSHIP: Path = ("group",)
"""Path of the group that a node is in."""

NODES: Path = ("nodes",)
"""Path of the nodes that an instance is on: its primary node, and its secondary if it has one."""

TAGS: Path = ("tags",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value, name, membership or set of tags that must change.

    `object_name` is the name after the change (None for the cluster). `before` and `after` are own values, None
    where there is none; `effective_before` and `effective_after` are the effective ones. `affects` lists the objects
    that inherit the value and so change as well. `span` is the place in the policy that asks for the change.
    """

    level: Level
    object_name: str | None
    path: Path
    before: Value
    after: Value
    effective_before: Value
    effective_after: Value
    risk: Risk
    reason: str = ""
    affects: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def action(self) -> ChangeAction:
        """The difference from `before` to `after`."""
        if self.path == NAME:
            if self.before is None:
                return ChangeAction.CREATE
            return ChangeAction.REMOVE if self.after is None else ChangeAction.RENAME
        if self.path == MEMBERSHIP:
            return ChangeAction.MOVE
        return ChangeAction.RESET if self.after is None else ChangeAction.SET

    @property
    def takes_effect(self) -> TakesEffect:
        """When the change begins to matter."""
        if self.path == TAGS:
            return TakesEffect.CAPACITY_ONLY
        parameter = parameter_at(self.path)
        return parameter.takes_effect if parameter else TakesEffect.AT_ONCE

    @property
    def object(self) -> str:
        """The object as plans write it: cluster, group/NAME, node/NAME."""
        return self.level.value if self.object_name is None else f"{self.level.value}/{self.object_name}"

    @property
    def makes_own(self) -> bool:
        """Whether a group that inherited `access` gets one of its own, which Ganeti cannot remove again."""
        return self.level is Level.GROUP and self.path[-1] == "access" and self.before is None


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A declared value that the source of the state does not show: whether it differs is unknown."""

    object: str
    path: Path
    wanted: Value
    span: Span | None = None


def words(value: Value) -> list[str]:
    """Return the items of a list of words (templates, tags); nothing for a value that is no list."""
    return [str(item) for item in value] if isinstance(value, list) else []
