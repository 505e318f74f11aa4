"""What a plan and an apply compare: each object of a cluster as one mapping of paths to values; and effects on them.

Own values, tags (`("tags", TAG)` is true), a node's group, a group's name and an instance's nodes are all leaves, so
every change of an object is a change of leaves. Values are in the normal form; a value that is not set has no leaf.
The effects of a command on the leaves show in the state whether the command has run. In words (`effect_words`) they are
for the user who approves the command, in full; escape these before printing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gpolicy.cluster.state import ClusterState, Identity, Unreadable
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.expressible import Reset
from gpolicy.ganeti.parameters import amount_text, canonical, reach_of
from gpolicy.ganeti.vocabulary import MINMAX, SPEC_PARAMETERS, SPEC_SIZES, Level, Path, Value, Values
from gpolicy.plan.changes import MEMBERSHIP, NAME, NEW_GROUP, NODES, TAGS, Change, ChangeAction, words
from gpolicy.printable import count

Contents = dict[str, Values]
"""Leaves by object: `cluster`, `group/NAME`, `node/NAME`, and `instance/NAME` where instances are looked at."""

ADMIN_STATE: Path = ("admin_state",)
"""Path of the state that an instance should be in: up, down or offline."""

_NOT_OWN = (NAME, MEMBERSHIP, NODES, ADMIN_STATE)


@dataclass(frozen=True, slots=True)
class Observed:
    """One object as it was read: its UUID and serial number, and its leaves."""

    identity: Identity
    values: Values


def contents(state: ClusterState, *, instances: bool = False) -> Contents:
    """Return the leaves of every object of `state`; of `instances` only if they are asked for."""
    found: Contents = {"cluster": _leaves(state.cluster.own, state.cluster.tags)}
    for group in state.groups.values():
        found[f"group/{group.name}"] = {NAME: group.name, **_leaves(group.own, group.tags)}
    for node in state.nodes.values():
        found[f"node/{node.name}"] = {MEMBERSHIP: node.group, **_leaves(node.own, node.tags)}
    for item in state.instances.values() if instances else ():
        nodes: list[Value] = [item.primary_node, *item.secondary_nodes]
        found[f"instance/{item.name}"] = {NODES: nodes, ADMIN_STATE: item.admin_state}
    return found


def identities(state: ClusterState) -> dict[str, Identity]:
    """Return uuid, serial number and time of every object of `state`."""
    return {
        "cluster": state.cluster.identity,
        **{f"group/{group.name}": group.identity for group in state.groups.values()},
        **{f"node/{node.name}": node.identity for node in state.nodes.values()},
        **{f"instance/{item.name}": item.identity for item in state.instances.values()},
    }


def observed_in(state: ClusterState, objects: Iterable[str]) -> dict[str, Observed]:
    """Return those of `objects` that the state has, as its source shows them."""
    found, known = contents(state, instances=True), identities(state)
    shown = {
        name: {path: value for path, value in found[name].items() if shown_by(state.unreadable, name, path)}
        for name in objects
        if name in found
    }
    return {name: Observed(known[name], values) for name, values in shown.items()}


def touched(changes: Iterable[Change]) -> dict[str, None]:
    """Return the objects that `changes` touch, in their order, by the names that they have before.

    The cluster is one of them where a group has inherited a value that only an own one brings back.
    """
    names: dict[str, None] = {}
    created: set[str] = set()
    for change in changes:
        if change.action is ChangeAction.CREATE:
            created.add(change.object)
        if change.makes_own and change.object not in created:
            names["cluster"] = None
        gone = change.action in (ChangeAction.RENAME, ChangeAction.REMOVE)
        names[f"group/{change.before}" if gone else change.object] = None
        if change.action is ChangeAction.MOVE:  # a move writes the group that is left and the one that is joined
            names |= {f"group/{change.before}": None, f"group/{change.after}": None}
    return names


def level_of(name: str) -> Level:
    """Return the level of an object by its name in plans."""
    return Level(name.partition("/")[0])


def is_own_value(path: Path) -> bool:
    """Return whether a leaf is an own value, not a name, a tag or a place: those every source shows."""
    return path not in _NOT_OWN and path[:1] != TAGS


def tags_of(values: Mapping[Path, Value]) -> list[str]:
    """Return the tags among the leaves of an object, sorted."""
    return sorted(path[1] for path in values if path[:1] == TAGS and len(path) > 1)


def shown_by(gaps: Iterable[Unreadable], name: str, path: Path) -> bool:
    """Return whether a source with these gaps shows the leaf at `path` of an object."""
    return not is_own_value(path) or not any(gap.covers(level_of(name), path) for gap in gaps)


def _leaves(own: Mapping[Path, Value], tags: Iterable[str]) -> Values:
    values = {path: canonical(path, value) for path, value in own.items() if value is not None}
    return {**values, **{(*TAGS, tag): True for tag in sorted(tags)}}


@dataclass(frozen=True, slots=True)
class Effect:
    """One leaf that a command changes; None where there is none.

    `object` has the name that it has before the command runs. A group's existence and name are its leaf `name`: from
    None to a name it is made, from a name to None removed, from one name to another renamed.
    """

    object: str
    path: Path
    before: Value
    after: Value

    @property
    def renames(self) -> bool:
        """Whether the object has another name afterwards."""
        return self.path == NAME and self.before is not None and self.after is not None

    def reversed(self) -> Effect:
        """Return what undoes this."""
        name = f"group/{self.after}" if self.renames else self.object
        return Effect(name, self.path, self.after, self.before)


class Progress(StrEnum):
    """How many of the effects of a command the state shows."""

    NOT_BEGUN = "not begun"
    DONE = "done"
    PARTLY = "partly"  # or a leaf is neither what it was nor what it was to be


def assigned(name: str, before: Mapping[Path, Value], after: Mapping[Path, Value | Reset]) -> tuple[Effect, ...]:
    """Return the effects of a command that sets own values of an object; a reset one has no value afterwards."""
    return tuple(
        Effect(name, path, _normal(path, before.get(path)), None if isinstance(value, Reset) else _normal(path, value))
        for path, value in after.items()
    )


def tagged(name: str, tags: Iterable[str], *, added: bool) -> tuple[Effect, ...]:
    """Return the effects of a command that adds or removes tags."""
    states = (None, True) if added else (True, None)
    return tuple(Effect(name, (*TAGS, tag), *states) for tag in tags)


def moved(nodes: Mapping[str, str], target: str) -> tuple[Effect, ...]:
    """Return the effects of a command that moves nodes, given with the groups that they leave, to `target`."""
    return tuple(Effect(f"node/{node}", MEMBERSHIP, group, target) for node, group in nodes.items())


def relocated(instance: str, before: Iterable[str], after: Iterable[str]) -> tuple[Effect, ...]:
    """Return the effect of a command that moves an instance from some nodes (primary, secondary) to others."""
    return (Effect(f"instance/{instance}", NODES, list(before), list(after)),)


def net_effects(changes: Iterable[Change]) -> Iterator[Effect]:
    """Yield what `changes` do to the cluster in all, tag by tag."""
    for change in changes:
        if change.path == NAME:
            name = change.object if change.before is None else f"group/{change.before}"
            yield Effect(name, NAME, change.before, change.after)
        elif change.path == TAGS:
            before, after = set(words(change.before)), set(words(change.after))
            yield from tagged(change.object, sorted(after - before), added=True)
            yield from tagged(change.object, sorted(before - after), added=False)
        else:
            yield Effect(change.object, change.path, change.before, change.after)


def effects_between(before: Contents, after: Contents) -> Iterator[Effect]:
    """Yield what makes `after` of `before`, leaf by leaf. A group with another name is another group."""
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, {}), after.get(name, {})
        for path in dict.fromkeys((*old, *new)) if name in after else (NAME,):
            if old.get(path) != new.get(path):
                yield Effect(name, path, old.get(path), new.get(path))


def written(effects: Collection[Effect]) -> set[str]:
    """Return the objects that Ganeti writes for `effects`, and whose serial numbers it raises.

    For a node that moves, Ganeti writes the group that it leaves and the one that it joins as well.
    """
    moves = [effect for effect in effects if effect.path == MEMBERSHIP]
    groups = {f"group/{group}" for move in moves for group in (move.before, move.after) if group is not None}
    return {effect.object for effect in effects} | groups


def value_at(effect: Effect, contents: Contents) -> Value:
    """Return what `contents` have at the leaf of `effect`."""
    if effect.renames:
        old, new = effect.object in contents, f"group/{effect.after}" in contents
        return effect.after if new and not old else effect.before if old and not new else None
    return contents.get(effect.object, {}).get(effect.path)


def progress_of(effects: Iterable[Effect], contents: Contents) -> Progress:
    """Return how many of `effects` the state shows. Effects that change nothing do not count."""
    there = [(value_at(effect, contents), effect) for effect in effects if effect.before != effect.after]
    if all(value == effect.after for value, effect in there):
        return Progress.DONE
    return Progress.NOT_BEGUN if all(value == effect.before for value, effect in there) else Progress.PARTLY


def carried_out(effects: Iterable[Effect], contents: Contents) -> Contents:
    """Return `contents` after `effects`."""
    result = {name: dict(values) for name, values in contents.items()}
    for effect in effects:
        if effect.path == NAME:
            values = result.pop(effect.object, {})
            if effect.after is None:
                continue
            start = values if effect.before is not None else NEW_GROUP
            result[f"group/{effect.after}"] = {**start, NAME: effect.after}
            for members in result.values() if effect.renames else ():
                if members.get(MEMBERSHIP) == effect.before:
                    members[MEMBERSHIP] = effect.after
        elif effect.after is None:
            result.setdefault(effect.object, {}).pop(effect.path, None)
        else:
            result.setdefault(effect.object, {})[effect.path] = effect.after
    return result


def _normal(path: Path, value: Value) -> Value:
    return None if value is None else canonical(path, value)


_MOST_SHOWN: Final = 4000  # characters of one value; a longer one is marked as cut
_AROUND: Final = 40  # characters shown around the part in which two long values differ


def effect_words(effect: Effect) -> str:
    """Return the change of one leaf: the object, the leaf, its value before and after, and the affected objects."""
    path, name = effect.path, effect.object
    before, after = (value_words(path, value) for value in (effect.before, effect.after))
    if path == NAME:
        what = "created" if effect.before is None else "removed" if effect.after is None else f"renamed to {after}"
        return f"{name}: {what}"
    if path == MEMBERSHIP:
        return f"{name}: from group {before} to {after}"
    if path == NODES:
        return f"{name}: from {', '.join(words(effect.before))} to {', '.join(words(effect.after))}"
    if path[:1] == TAGS:
        return f"{name}: tag {value_words(path, path[1])} {'added' if effect.after else 'removed'}"
    reach = reach_of(path)
    return f"{name} {'.'.join(path)}: {' → '.join(_both_words(effect))}{f'  ! {reach}' if reach else ''}"


def value_words(path: Path, value: Value) -> str:
    """Return a value with its unit, sizes by parameter, others as JSON. A long one is cut, and says so."""
    return _cut(_value_text(path, value))


def _both_words(effect: Effect) -> tuple[str, str]:
    """Return the words of the value before and after; of long ones only the part in which they differ."""
    before, after = _value_text(effect.path, effect.before), _value_text(effect.path, effect.after)
    if max(len(before), len(after)) <= _MOST_SHOWN:
        return before, after
    start = _alike(before, after)
    end = max(0, _alike(before[start:][::-1], after[start:][::-1]) - _AROUND)
    start = max(0, start - _AROUND)
    return _part(before, start, end), _part(after, start, end)


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _part(text: str, start: int, end: int) -> str:
    """Return `text` without its first `start` and its last `end` characters, which the other value has as well."""
    first = f"({count(start, 'character')} alike)…" if start else ""
    last = f"…({count(end, 'character')} alike)" if end else ""
    return f"{first}{_cut(text[start : len(text) - end])}{last}"


def _value_text(path: Path, value: Value) -> str:
    if value is None:
        return "not set"
    if (amount := amount_text(path, value)) is not None:
        return amount
    return _pairs_text(value) if path == MINMAX else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    half = _MOST_SHOWN // 2
    cut = f"cut: {len(text) - 2 * half} more characters are in the plan; sha256 of all {digest}…"
    return f"{text[:half]}… ({cut}) …{text[-half:]}"


def _pairs_text(value: Any) -> str:
    def bound(name: str, spec: Any) -> str:
        number = spec[name]
        is_size = name in SPEC_SIZES and isinstance(number, int) and not isinstance(number, bool) and number >= 0
        return exact_size(number) if is_size else json.dumps(number)

    try:
        return "; ".join(
            ", ".join(f"{name} {bound(name, pair['min'])}..{bound(name, pair['max'])}" for name in SPEC_PARAMETERS)
            for pair in value
        )
    except (TypeError, KeyError):
        return json.dumps(value, ensure_ascii=False)
