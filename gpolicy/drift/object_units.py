"""Groups that were removed or renamed, and nodes that were moved: what the policy should say of them instead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Final

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift
from gpolicy.drift.unit_writer import How, Unit, WayToWrite
from gpolicy.plan.change import MEMBERSHIP, ChangeAction
from gpolicy.policy.edits import remove_entry
from gpolicy.policy.model import GroupPolicy, Policy
from gpolicy.printable import some
from gpolicy.resolve.desired import Desired, is_glob, matches
from gpolicy.writing.draft import Draft, UnwritableError, ValuePlace, place_of
from gpolicy.writing.value_edits import ValueWriter, add_value

NODES = ("nodes",)
REMOVED = ("removed",)
_IDENTITY: Final = frozenset({"gpolicy", "kind", "name", "description"})
"""All that the document of a removed group may have besides `removed`."""


class ObjectUnits:
    """Makes units of groups and of nodes' groups that drifted."""

    def __init__(self, policy: Policy, state: ClusterState, desired: Desired) -> None:
        self._policy = policy
        self._desired = desired
        self._undeclared = [name for name in state.groups if name not in desired.current_groups]

    def group(self, item: Drift, all_drift: Collection[Drift]) -> Unit:
        """Return the unit of a group that is missing, is there although it should not be, or has another name."""
        name = item.object.partition("/")[2]
        group = self._policy.groups[name]
        keys = frozenset({item.key})
        label = frozenset({(group.label, REMOVED)})
        if item.action is ChangeAction.RENAME:
            reason = "its new name is declared; only a plan can give it that, or you take `renamed_from` out"
            return Unit(keys, reason=reason)
        if item.action is ChangeAction.REMOVE:
            return Unit(keys, (WayToWrite(How.IN_PLACE, partial(_declare_again, group=group), label),))
        if self._undeclared or group.document.root.keys() - _IDENTITY:
            known = f"; if it is {some(self._undeclared, 3)} now, write that as its `name`" if self._undeclared else ""
            reason = f"the cluster has no such group{known}; if it is gone for good, remove its document"
            return Unit(keys, reason=reason)
        keys |= {other.key for other in all_drift if other.object == item.object}
        keys |= {other.key for other in all_drift if other.path == MEMBERSHIP and other.declared == name}
        write = partial(add_value, place=place_of(group.document), path=REMOVED, node=True)
        return Unit(keys, (WayToWrite(How.IN_PLACE, write, label),))

    def moves(self, drift: Sequence[Drift]) -> Iterator[Unit]:
        """Yield the units of nodes in another group than declared."""
        for item in drift:
            node = item.object.partition("/")[2]
            source = self._policy.groups[str(item.declared)]
            target = self._desired.current_groups.get(str(item.found))
            changed = [group for group in (source, target) if group is not None]
            write = partial(_move, node=node, source=source, target=target)
            way = WayToWrite(How.IN_PLACE, write, frozenset((group.label, NODES) for group in changed))
            yield Unit(frozenset({item.key}), (way,))


def _declare_again(draft: Draft, group: GroupPolicy) -> ValuePlace:
    place = place_of(group.document)
    draft.edit(place, REMOVED, remove_entry(draft.document(place), REMOVED))
    return place, ()


def _move(draft: Draft, node: str, source: GroupPolicy, target: GroupPolicy | None) -> ValuePlace:
    """Take a node out of the list of one group, and put it into that of another if it has one."""
    globs = [item.value for item in source.nodes or () if is_glob(item.value) and matches(item.value, node)]
    has_list = target is not None and target.nodes is not None
    if globs and not has_list:
        known = "is not declared" if target is None else "declares no nodes"
        raise UnwritableError(f"{source.name} claims the node by `{globs[0]}`, and its group now {known}")
    wrote: list[ValuePlace] = []
    if any(item.value == node for item in source.nodes or ()):
        wrote.append(set_nodes(draft, source, node, is_in=False))
    if target is not None and target.nodes is not None:
        by_glob = [item.value for item in target.nodes if matches(item.value, node)]
        if globs or not by_glob:
            wrote.append(set_nodes(draft, target, node, is_in=True))
    if not wrote:
        raise UnwritableError("the groups declare their nodes in a way that nothing can be added to")
    return wrote[-1]


def set_nodes(draft: Draft, group: GroupPolicy, node: str, *, is_in: bool) -> ValuePlace:
    """Write a node into the list of a group, or take it out."""
    place = place_of(group.document)
    document = draft.document(place)
    if "nodes" not in document.root:
        raise UnwritableError(f"{group.name} takes its nodes from a document that it extends")
    others = [str(item) for item in document.root["nodes"] if item != node]
    ValueWriter(draft, place).set_items(NODES, [*others, node] if is_in else others)
    return place, NODES
