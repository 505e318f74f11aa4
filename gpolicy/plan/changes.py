"""The changes of a plan, how risky they are, and a part of them: some changes, with those that they need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from math import inf
from typing import Final, NamedTuple

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import ArgumentError, RequestError, argument
from gpolicy.findings import Span
from gpolicy.ganeti.parameters import parameter_at, parameters_of, reach_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Level, Path, TakesEffect, Value, Values
from gpolicy.guessing import did_you_mean
from gpolicy.policy.model import Policy
from gpolicy.printable import count
from gpolicy.resolve.desired import Desired


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
        return self.level is Level.GROUP and self.path[-1] == "access" and self.before is None


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


@dataclass(frozen=True, slots=True)
class Part:
    """The changes to make: those that one of `only` names (none: all), without those that one of `exclude` names.

    Each is an object (cluster, group/NAME, node/NAME), or one of its values: OBJECT:PATH. Globs are allowed.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.only and not self.exclude


WHOLE: Final = Part()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A change that the policy asks for, and that this plan leaves out."""

    object: str
    path: Path
    action: ChangeAction


def key_of(change: Change) -> ChangeKey:
    """Return what tells a change from the others of its plan."""
    return change.object, change.path


def check_words(option: str, words: Iterable[str], policy: Policy, state: ClusterState) -> None:
    """Raise RequestError for a word of an option that names no object of the policy or the cluster, or no value."""
    groups = {*state.groups, *policy.groups}
    known = ["cluster", *(f"group/{name}" for name in groups), *(f"node/{name}" for name in state.nodes)]
    for word in words:
        objects = [name for name in known if _is_object(word, name)]
        if not objects:
            bare = [name for name in known if name.partition("/")[2] == word]
            otherwise = "name cluster, group/NAME or node/NAME, with :PATH for one value"
            hint = f"Did you mean `{bare[0]}`?" if bare else did_you_mean(word, known, otherwise)
            raise ArgumentError(f"{option} {word[:100]!r} names no object of this cluster", hint=hint)
        _, colon, path = word.partition(":")
        values = {value for name in objects for value in _values_of(Level(name.partition("/")[0]))}
        if colon and not any(fnmatchcase(value, path) or fnmatchcase(path, value) for value in values):
            hint = did_you_mean(path, values, "write a path of Ganeti's names: ipolicy.vcpu-ratio, hvparams.kvm, tags")
            raise ArgumentError(f"{option} {word[:100]!r} names no value of {objects[0]}", hint=hint)


def without_change(part: Part, changes: Collection[Change]) -> tuple[str, ...]:
    """Return a sentence for each word of `part` that names no change."""
    options = [*(("--only", word) for word in part.only), *(("--exclude", word) for word in part.exclude)]
    futile = (item for item in options if not any(_is_named(change, item[1:]) for change in changes))
    return tuple(f"{option} {word} names nothing that changes" for option, word in futile)


@cache
def _values_of(level: Level) -> frozenset[str]:
    """Return the paths of the values that an object has, and what these begin with; `*` stands for any name."""
    paths = [*(parameter.path for parameter in parameters_of(level)), NAME, MEMBERSHIP, TAGS]
    return frozenset(".".join(path[:end]) for path in paths for end in range(1, len(path) + 1))


class Selection(NamedTuple):
    """The keys of the changes of a part and of those that they need, and why it has these as well (`taken_along`)."""

    keys: set[ChangeKey]
    taken_along: list[str]


def select(changes: Sequence[Change], part: Part) -> Selection:
    """Return which of the changes a part has.

    Raise RequestError where one of these is excluded.
    """
    wanted = [item for item in changes if not part.only or _is_named(item, part.only)]
    todo = [item for item in wanted if not _is_named(item, part.exclude)]
    keys = {key_of(item) for item in todo}
    along: list[str] = []
    while todo:
        change = todo.pop(0)
        for needed in changes:
            if needed is change or not _is_needed(needed, change) or key_of(needed) in keys:
                continue
            if _is_named(needed, part.exclude):
                message = f"{_words(change)} needs {_words(needed)}, which {argument('exclude')} leaves out"
                hint = f"exclude {change.object}{'' if change.path == NAME else ':' + '.'.join(change.path)} as well"
                raise RequestError(message, hint=hint)
            along.append(f"{_words(needed)} is taken along: {_words(change)} needs it")
            keys.add(key_of(needed))
            todo.append(needed)
    return Selection(keys, along)


def contradictions_of_part(part: Part, changes: Sequence[Change], missing: Collection[LeftOut]) -> Iterator[str]:
    """Yield why no plan of a part has these changes and leaves out the `missing` ones; nothing if one may."""
    if part.is_whole and missing:
        yield "a whole plan leaves nothing out"
    made = {key_of(change) for change in changes}
    both = (item for item in missing if (item.object, item.path) in made)
    yield from (f"{item.object} {'.'.join(item.path)} is changed and left out" for item in both)
    excluded = (change for change in changes if _is_named(change, part.exclude))
    yield from (f"{_words(change)} is changed, and --exclude leaves it out" for change in excluded)
    named = select(changes, part).keys
    others = (change for change in changes if key_of(change) not in named)
    yield from (f"{_words(change)} is changed, and --only does not name it" for change in others)


def changes_left_out(changes: Iterable[Change], keys: Collection[ChangeKey]) -> tuple[LeftOut, ...]:
    """Return the changes that are not among `keys`."""
    return tuple(LeftOut(*key_of(change), change.action) for change in changes if key_of(change) not in keys)


def without(desired: Desired, keys: Collection[ChangeKey]) -> Desired:
    """Return what a policy wants, less the values, tags, names and groups of nodes among `keys`."""
    groups = {}
    for name, item in desired.groups.items():
        label = f"group/{name}"
        if (label, NAME) in keys:
            continue  # a group that is not made, renamed or removed now has no other change either
        leaves = {path: leaf for path, leaf in item.policy.leaves.items() if (label, path) not in keys}
        tags = None if (label, TAGS) in keys else item.policy.tags
        groups[name] = replace(item, policy=replace(item.policy, leaves=leaves, tags=tags))
    missing = desired.groups.keys() - groups.keys()
    nodes = {}
    for name, node in desired.nodes.items():
        label = f"node/{name}"
        stays = (label, MEMBERSHIP) in keys or (node.group is not None and node.group.value in missing)
        nodes[name] = replace(
            node,
            group=None if stays else node.group,
            leaves={path: leaf for path, leaf in node.leaves.items() if (label, path) not in keys},
            tags=None if (label, TAGS) in keys else node.tags,
        )
    current = {item.current: item.policy for item in groups.values() if item.current is not None}
    return replace(desired, groups=groups, current_groups=current, nodes=nodes)


def _is_needed(other: Change, change: Change) -> bool:
    """Return whether Ganeti refuses a change without another one, or makes it of another object."""
    names_group = other.path == NAME and other.level is Level.GROUP and other.action is not ChangeAction.REMOVE
    if change.action is ChangeAction.REMOVE:  # a group is removed when its nodes are elsewhere
        return other.action is ChangeAction.MOVE and other.before == change.before
    if change.path == NAME:  # its name must be free
        return other.path == NAME and other.before is not None and other.before == change.after
    if change.action is ChangeAction.MOVE and names_group:
        return other.object_name == change.after
    return names_group and other.object == change.object


def _is_named(change: Change, words: Iterable[str]) -> bool:
    objects = {change.object}
    if change.action is ChangeAction.RENAME:
        objects.add(f"group/{change.before}")
    return any(is_chosen(words, name, change.path) for name in objects)


def is_chosen(words: Iterable[str], name: str, path: Path) -> bool:
    """Return whether one of the words (OBJECT or OBJECT:PATH, globs) names this value of an object."""
    dotted = ".".join(path)
    globs = (word.partition(":")[1:] for word in words if _is_object(word, name))
    return any(not colon or fnmatchcase(dotted, glob) or fnmatchcase(dotted, f"{glob}.*") for colon, glob in globs)


def _is_object(word: str, name: str) -> bool:
    return fnmatchcase(name, word.partition(":")[0])


def _words(change: Change) -> str:
    return f"{change.object} ({change.action})" if change.path == NAME else f"{change.object}:{'.'.join(change.path)}"
