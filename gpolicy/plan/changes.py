"""The changes of a plan, how risky they are, and a part of them: some changes, with those that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Span
from gpolicy.ganeti.parameters import parameter_at, reach_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Level, Path, TakesEffect, Value, Values, is_access
from gpolicy.printable import count


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


def label_of(level: Level, name: str | None) -> str:
    """Return an object as plans write it."""
    return level.value if name is None else f"{level.value}/{name}"


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
        return label_of(self.level, self.object_name)

    @property
    def makes_own(self) -> bool:
        """Whether a group that inherited `access` gets one of its own, which Ganeti cannot remove again."""
        return self.level is Level.GROUP and is_access(self.path) and self.before is None


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A declared value that the source of the state does not show: whether it differs is unknown."""

    object: str
    path: Path
    wanted: Value
    span: Span | None = None


def new_names(changes: Iterable[Change]) -> dict[str, str]:
    """Return the new names of the groups that are renamed, by their old ones."""
    return {str(change.before): str(change.after) for change in changes if change.action is ChangeAction.RENAME}


def words(value: Value) -> list[str]:
    """Return the items of a list of words (templates, tags); nothing for a value that is no list."""
    return [str(item) for item in value] if isinstance(value, list) else []


NEW_GROUP: Final[Values] = {("alloc_policy",): "preferred"}
"""The own values of a group that was just made."""

RISK_OF_ACTION = {ChangeAction.REMOVE: Risk.HIGH, ChangeAction.MOVE: Risk.MEDIUM}
"""The risk of changes of names and membership, if it is not low."""

MOVE_UNCHECKED = "Ganeti checks neither the policy nor the node parameters of the new group"
MOVE_CHANGES = "its node parameters change with it: "
MAY_VIOLATE = "existing instances may violate the new policy; Ganeti warns, and refuses to modify them later"
STANDS_IN = "Ganeti cannot remove this value; it is set to what would be inherited"
_POOL_GROWS = (
    "Ganeti promotes nodes, in no given order, with this job or a later one; on 3.0.2 the job that does may end in"
    " `Corrupt configuration file`, and succeeds when it is run again"
)
_FITS = (Risk.MEDIUM, "must fit on every node")
_CONVERTS_NOTHING = (Risk.HIGH, "converts no existing disk; Ganeti checks neither disks nor physical volumes")
_BREAKS = (Risk.HIGH, "takes the master address down and up; connections to it break")
_RISKS: Final[dict[Path, tuple[Risk, str]]] = {
    ("enabled_hypervisors",): (Risk.MEDIUM, "Ganeti verifies the hypervisors on every node"),
    ("volume_group_name",): _FITS,
    ("drbd_usermode_helper",): _FITS,
    ("master_netdev",): _BREAKS,
    ("master_netmask",): _BREAKS,
    ("ndparams", "exclusive_storage"): _CONVERTS_NOTHING,
    ("ndparams", "ssh_port"): (Risk.MEDIUM, "ssh to the node must already answer on the new port"),
}
"""Of values that have the same risk whatever they change to."""


def risk_of(state: ClusterState, name: str | None, path: Path, before: Value, after: Value) -> tuple[Risk, str]:
    """Return the risk of changing the effective value at `path` of an object, and the reason in a few words."""
    users = len(instances_with(state, path[1], name)) if redirects_disks(path) and before != after else 0
    return risk_with(path, before, after, users)


def risk_with(path: Path, before: Value, after: Value, users: int) -> tuple[Risk, str]:
    """Return the same where `users` instances have disks that the value at `path` redirects."""
    if before == after:
        return Risk.LOW, ""
    risk, reason = _risk(path, before, after, users)
    reach = reach_of(path)
    if reach is None:
        return risk, reason
    return Risk.MEDIUM if risk is Risk.LOW else risk, f"{reason}; {reach}" if reason else str(reach)


def risk_when_new(path: Path) -> tuple[Risk, str]:
    """Return the risk of a value of a new group: nobody uses the group yet, but the value may reach root."""
    reach = reach_of(path)
    return (Risk.MEDIUM, str(reach)) if reach else (Risk.LOW, "")


def redirects_disks(path: Path) -> bool:
    """Return whether Ganeti looks for existing disks somewhere else after a change of the value at `path`."""
    parameter = parameter_at(path)
    return parameter is not None and parameter.takes_effect is TakesEffect.EXISTING_DISKS_AT_ONCE


def _risk(path: Path, before: Value, after: Value, users: int) -> tuple[Risk, str]:
    if redirects_disks(path):
        if users:
            who = f"{count(users, 'instance')} {'has' if users == 1 else 'have'} {path[1]} disks"
            return Risk.HIGH, f"{who}, which are looked for in the new place at once"
        return Risk.LOW, f"no instance has {path[1]} disks"
    match path:
        case ("ipolicy", "minmax") | ("ipolicy", "disk-templates"):
            if isinstance(before, list) and isinstance(after, list):
                allowed = (any(contains(new, old) for new in after) for old in before)
                return (Risk.LOW, "") if all(allowed) else (Risk.MEDIUM, MAY_VIOLATE)
            return Risk.MEDIUM, MAY_VIOLATE
        case ("enabled_disk_templates",):
            gone = sorted(set(words(before)) - set(words(after)))
            return (Risk.MEDIUM, f"disables {', '.join(gone)}") if gone else (Risk.LOW, "")
        case ("candidate_pool_size",) if isinstance(before, int) and isinstance(after, int):
            return (Risk.MEDIUM, _POOL_GROWS) if after > before else (Risk.LOW, "Ganeti demotes no node")
    return _RISKS.get(path, (Risk.LOW, ""))


def contains(outer: Value, inner: Value) -> bool:
    """Return whether a disk template is the same, or every instance of a size (`inner`) fits another one."""
    if not isinstance(outer, dict) or not isinstance(inner, dict):
        return outer == inner

    def number(pair: Mapping[str, Value], bound: str, name: str, otherwise: float) -> float:
        spec = pair.get(bound)
        found = spec.get(name) if isinstance(spec, dict) else None
        return found if isinstance(found, int) else otherwise

    return all(
        number(outer, "min", name, inf) <= number(inner, "min", name, -inf)
        and number(inner, "max", name, inf) <= number(outer, "max", name, -inf)
        for name in SPEC_PARAMETERS
    )


def instances_with(state: ClusterState, template: str, group: str | None = None) -> list[str]:
    """Return the instances with disks of `template`, those on the nodes of a group or all."""
    users = (item for item in state.instances.values() if any(disk.template == template for disk in item.disks))
    if group is not None:
        members = {node.name for node in state.nodes_of(group)}
        users = (item for item in users if item.primary_node in members)
    return sorted(item.name for item in users)


ChangeKey = tuple[str, Path]
"""What tells a change from the others of its plan: its object and its path."""


def key_of(change: Change) -> ChangeKey:
    """Return what tells a change from the others of its plan."""
    return change.object, change.path
