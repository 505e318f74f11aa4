"""What a plan and an apply compare: each object of a cluster as one mapping of paths to values.

Own values, tags (`("tags", TAG)` is true), a node's group, a group's name and an instance's nodes are all leaves, so
every change of an object is a change of leaves. Values are in the normal form; a value that is not set has no leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpolicy.cluster.state import ClusterState, Identity, Unreadable
from gpolicy.ganeti.parameter import Level, Path, Value, Values
from gpolicy.ganeti.values import canonical
from gpolicy.plan.change import MEMBERSHIP, NAME, NODES, TAGS, Change, ChangeAction

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


def observed(state: ClusterState, objects: Iterable[str]) -> dict[str, Observed]:
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
        names[
            f"group/{change.before}" if change.action in (ChangeAction.RENAME, ChangeAction.REMOVE) else change.object
        ] = None
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
