"""Where the policy declares what drifted, and what to write there: parameters, tags, groups and the groups of nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift
from gpolicy.ganeti.parameters import parameter_at, unflatten
from gpolicy.ganeti.vocabulary import Level, Path
from gpolicy.json_values import json_text
from gpolicy.plan.changes import MEMBERSHIP, TAGS, ChangeAction, ChangeKey, words
from gpolicy.policy.edits import remove_entry
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import RULES, Declared, GroupPolicy, Leaf, NodeSetPolicy, is_glob, matches
from gpolicy.policy.source_file import Pointer, YamlDocument
from gpolicy.printable import free_name, some
from gpolicy.resolve.desired import Desired, members
from gpolicy.writing import value_edits
from gpolicy.writing.documents import head
from gpolicy.writing.yaml_text import Writer, YamlNode, block_entry, rule_tags

_Tags = frozenset[str]
_TagDifference = tuple[_Tags, _Tags]
"""The tags that the policy does not declare, and those that are missing."""


class How(StrEnum):
    """How the live state was written into the policy."""

    IN_PLACE = "in-place"  # where the policy declares it
    OVERRIDE = "override"  # in the document of the object alone, over what that takes from others


@dataclass(frozen=True, slots=True)
class WayToWrite:
    """One way to write a unit: `write` edits a draft and returns the place of what it wrote.

    `may_change` are the declared values that this changes, by the labels of their documents.
    """

    how: How
    write: Callable[[value_edits.Draft], value_edits.ValuePlace]
    may_change: frozenset[ChangeKey]


@dataclass(frozen=True, slots=True)
class Unit:
    """Drift that is written together, or not at all.

    The attempts are tried in their order, then the `parts` each for itself. Without either, `reason` says why.
    """

    keys: frozenset[ChangeKey]
    attempts: tuple[WayToWrite, ...] = ()
    parts: tuple[Unit, ...] = ()
    reason: str = ""


class ValueUnits:
    """Makes units of parameters that drifted. With `in_bases`, a value of a base is written there in any case."""

    def __init__(self, policy: Policy, desired: Desired, *, in_bases: bool) -> None:
        self._policy = policy
        self._in_bases = in_bases
        self._writer = Writer(policy.version)
        groups = {name: group.policy for name, group in desired.groups.items() if group.policy.removed is None}
        declared = [
            ("cluster", policy.cluster.leaves if policy.cluster else {}),
            *((f"group/{name}", group.leaves) for name, group in groups.items()),
            *((f"node/{name}", node.leaves) for name, node in desired.nodes.items()),
        ]
        self._declared = {(label, path): leaf for label, leaves in declared for path, leaf in leaves.items()}
        self._users: dict[tuple[int, Pointer], list[ChangeKey]] = defaultdict(list)
        for key, leaf in self._declared.items():
            self._users[id(leaf.document), leaf.pointer].append(key)

    def units(self, drift: Sequence[Drift]) -> Iterator[Unit]:
        """Yield the units of drift in parameters."""
        found: dict[tuple[int, Pointer], dict[str, list[Drift]]] = defaultdict(lambda: defaultdict(list))
        for item in drift:
            leaf = self._declared[item.key]
            found[id(leaf.document), leaf.pointer][json_text({"found": item.found})].append(item)
        for place, by_value in found.items():
            for items in by_value.values():
                yield from self._units(items, self._users[place], is_one_value=len(by_value) == 1)

    def _units(self, items: list[Drift], users: Sequence[ChangeKey], *, is_one_value: bool) -> Iterator[Unit]:
        """Yield the units of drift to one value in what one document declares for all `users`."""
        leaf = self._declared[items[0].key]
        others = [key for key in users if key not in _keys(items)]
        at_base = self._in_bases and all(item.document is not leaf.document for item in self._policy.objects)
        if at_base and not is_one_value:
            yield Unit(_keys(items), reason=f"{leaf.span} declares it for objects whose values differ now")
        elif at_base:
            yield self._in_place(items, leaf, ())
        elif not others:
            overrides = (self._override(item, leaf, ()) for item in items)
            yield self._in_place(items, leaf, tuple(part for part in overrides if part.attempts))
        else:
            yield from (self._override(item, leaf, others) for item in items)

    def _in_place(self, items: list[Drift], leaf: Leaf, parts: tuple[Unit, ...]) -> Unit:
        try:
            node = self._live_value(items[0], leaf)
        except value_edits.UnwritableError as error:
            return Unit(_keys(items), reason=str(error))
        labels = [declared.label for declared in self._policy.objects if _same(declared.leaves.get(leaf.path), leaf)]
        place, parameter = value_edits.place_of(leaf.document), parameter_at(leaf.path)
        assert parameter is not None, leaf.path  # noqa: S101 (only parameters are leaves)

        def write(draft: value_edits.Draft) -> value_edits.ValuePlace:
            values = (items[0].declared, items[0].found)
            value_edits.ValueWriter(draft, place).write(leaf.pointer, parameter, node, values)
            return place, leaf.pointer

        may_change = frozenset((label, leaf.path) for label in labels)
        return Unit(_keys(items), (WayToWrite(How.IN_PLACE, write, may_change),), parts)

    def _override(self, item: Drift, leaf: Leaf, others: Iterable[ChangeKey]) -> Unit:
        keys = _keys([item])
        level, _, name = item.object.partition("/")
        declared: Declared | None = self._policy.groups[name] if level == Level.GROUP else None
        if level == Level.CLUSTER:
            declared = self._policy.cluster
        if declared is not None and declared.document is leaf.document:
            named = some([key[0] for key in others], 3)
            return Unit(keys, reason=f"{leaf.span} declares it for {named} as well, which would change")
        try:
            node = self._live_value(item, leaf)
            if declared is not None:
                return Unit(keys, (add_to(declared, leaf.path, node),))
            return Unit(keys, tuple(self._node_attempts(name, leaf, node)))
        except value_edits.UnwritableError as error:
            return Unit(keys, reason=str(error))

    def _node_attempts(self, name: str, leaf: Leaf, node: YamlNode) -> Iterator[WayToWrite]:
        """Yield how a value becomes that of one node: in a set of that node alone, else in a new one."""
        sets = [item for item in self._policy.node_sets if _same(item.leaves.get(leaf.path), leaf)]
        for own in sets_of(name, self._policy):
            if leaf.path not in own.leaves:
                yield add_to(own, leaf.path, node)
        if any(name in [pattern.value for pattern in item.nodes] for item in sets):
            said = f"a node set names {name} together with other nodes at {leaf.span}: give it one of its own first"
            raise value_edits.UnwritableError(said)
        yield new_set(name, value_edits.place_of(sets[0].document)[0], leaf.path, node, self._policy)

    def _live_value(self, item: Drift, leaf: Leaf) -> YamlNode:
        """Return the live value in the form of a policy. Raise UnwritableError if a policy cannot say it."""
        level = Level(item.object.partition("/")[0])
        if item.found is None:
            if level is Level.CLUSTER or leaf.path == ("alloc_policy",):
                said = "the cluster has no value there, and a policy cannot declare that: remove the key"
                raise value_edits.UnwritableError(said)
            return "inherit"
        written, left_out = self._writer.write({leaf.path: item.found}, level, item.object)
        if leaf.path not in written:
            raise value_edits.UnwritableError(left_out[0].reason)
        return written[leaf.path]


def sets_of(name: str, policy: Policy) -> list[NodeSetPolicy]:
    """Return the node sets of the policy's own files that are about this node alone."""
    own = (item for item in policy.node_sets if item.document.file in policy.paths and not item.groups)
    return [item for item in own if [pattern.value for pattern in item.nodes] == [name]]


def add_to(declared: Declared, path: Path, node: YamlNode) -> WayToWrite:
    """Return the way to write a value into the document of an object that lacks it."""
    place = value_edits.place_of(declared.document)
    may_change = frozenset({(declared.label, path)})
    return WayToWrite(How.OVERRIDE, lambda draft: value_edits.add_value(draft, place, path, node), may_change)


def new_set(name: str, file: str, path: Path, node: YamlNode, policy: Policy) -> WayToWrite:
    """Return the way to write a value into a new node set at the end of a file."""
    called = free_name(name, {item.name for item in policy.node_sets}.__contains__)

    def write(draft: value_edits.Draft) -> value_edits.ValuePlace:
        for place in draft.new_documents(file):
            if draft.document(place).root["name"] == called:
                return value_edits.add_value(draft, place, path, node)
        key, below = unflatten({path: node}).popitem()
        draft.append(file, [*head("NodeSet", name=called, nodes=[name]), *block_entry(key, below, indent=0)])
        return draft.new_documents(file)[-1], path

    labels = {(f"node-set/{called}", where) for where in (path, ("nodes",), ("groups",), ("tags",))}
    return WayToWrite(How.OVERRIDE, write, frozenset(labels))


def _keys(items: Iterable[Drift]) -> frozenset[ChangeKey]:
    return frozenset(item.key for item in items)


def _same(one: Leaf | None, other: Leaf) -> bool:
    return one is not None and one.document is other.document and one.pointer == other.pointer


class TagUnits:
    """Makes units of tags that drifted."""

    def __init__(self, policy: Policy, state: ClusterState, desired: Desired) -> None:
        self._policy = policy
        scratch = Desired(groups=desired.groups, current_groups=desired.current_groups, nodes=desired.nodes)
        self._members = [(item, frozenset(members(item, state, scratch))) for item in policy.node_sets]

    def units(self, drift: Sequence[Drift]) -> Iterator[Unit]:
        """Yield the units of drift in tags."""
        nodes: dict[_TagDifference, list[Drift]] = defaultdict(list)
        for item in drift:
            level, _, name = item.object.partition("/")
            if level == Level.NODE:
                nodes[_difference(item)].append(item)
                continue
            how, write = How.IN_PLACE, partial(_write_cluster_tags, policy=self._policy, difference=_difference(item))
            if level == Level.GROUP:
                group = self._policy.groups[name]
                how = How.IN_PLACE if "tags" in group.document.root else How.OVERRIDE
                write = partial(_write_list, declared=group, difference=_difference(item))
            yield Unit(_keys([item]), (WayToWrite(how, write, _keys([item])),))
        for (extra, missing), items in nodes.items():
            yield from self._units_of_nodes(items, extra, missing)

    def _units_of_nodes(self, items: Sequence[Drift], extra: _Tags, missing: _Tags) -> Iterator[Unit]:
        """Yield the units of nodes that all have the same tags too many and too few."""
        names = frozenset(item.object.partition("/")[2] for item in items)
        near = [(item, who) for item, who in self._members if who & names]
        giving = [(item, who) for item, who in near if any(tag.value in missing for tag in item.tags or ())]
        whole = [item for item, who in self._members if item.tags is not None and who == names]
        if all(who <= names for _, who in giving) and (whole or not extra):
            lists = [item for item, _ in giving]
            lists += [item for item in whole[:1] if item not in lists]
            yield Unit(_keys(items), (_in_sets(lists, whole[:1], (extra, missing)),))
        elif len(names) > 1:
            for item in items:
                yield from self._units_of_nodes([item], extra, missing)
        else:
            yield self._unit_of_node(_keys(items), next(iter(names)), giving, extra)

    def _unit_of_node(
        self, keys: frozenset[ChangeKey], name: str, giving: Sequence[tuple[NodeSetPolicy, _Tags]], extra: _Tags
    ) -> Unit:
        """Return the unit of one node whose tags come from sets of several nodes."""
        for item, who in giving:
            if len(who) > 1:
                reason = f"the node set {item.name} gives the missing tags to {len(who)} nodes: take {name} out of it"
                return Unit(keys, reason=reason)
        node: list[YamlNode] = [*sorted(extra)]
        if (own := next(iter(sets_of(name, self._policy)), None)) is not None:
            return Unit(keys, (add_to(own, TAGS, node),))
        around = next(item for item, who in self._members if item.tags is not None and name in who)
        try:
            return Unit(keys, (new_set(name, value_edits.place_of(around.document)[0], TAGS, node, self._policy),))
        except value_edits.UnwritableError as error:
            return Unit(keys, reason=str(error))


def _in_sets(sets: Sequence[NodeSetPolicy], adding: Sequence[NodeSetPolicy], difference: _TagDifference) -> WayToWrite:
    extra, missing = difference

    def write(draft: value_edits.Draft) -> value_edits.ValuePlace:
        wrote = [_write_list(draft, item, (extra if item in adding else _Tags(), missing)) for item in sets]
        return wrote[0]

    return WayToWrite(How.IN_PLACE, write, frozenset((item.label, TAGS) for item in sets))


def _difference(item: Drift) -> _TagDifference:
    found, declared = frozenset(words(item.found)), frozenset(words(item.declared))
    return found - declared, declared - found


def _write_list(draft: value_edits.Draft, declared: Declared, difference: _TagDifference) -> value_edits.ValuePlace:
    """Write the tags of an object into its own list; where it takes them from a base, make it one of its own."""
    extra, missing = difference
    place = value_edits.place_of(declared.document)
    kept = [tag.value for tag in declared.tags or () if tag.value not in missing]
    items = [*kept, *sorted(extra - set(kept))]
    if "tags" in declared.document.root:
        value_edits.ValueWriter(draft, place).set_items(TAGS, items)
    else:
        value_edits.add_value(draft, place, TAGS, [*items])
    return place, TAGS


def _write_cluster_tags(draft: value_edits.Draft, policy: Policy, difference: _TagDifference) -> value_edits.ValuePlace:
    extra, missing = difference
    wrote: list[value_edits.ValuePlace] = []
    own = {tag.value for tag in (policy.cluster.tags if policy.cluster else None) or ()}
    for rules in policy.tag_rules:
        gone = [where for where, tag in rules.by_place.items() if tag.value in missing]
        wrote += [_remove_rule(draft, rules.document, where) for where in gone]
    added = {tag: _add_rule(draft, policy, tag) for tag in sorted(extra)}
    wrote += [place for place in added.values() if place]
    plain = {tag for tag, place in added.items() if not place}
    if plain or own & missing:
        if policy.cluster is None:
            said = f"no document declares a cluster that the tag {min(plain)} could be added to"
            raise value_edits.UnwritableError(said)
        wrote.append(_write_list(draft, policy.cluster, (frozenset(plain), missing)))
    return wrote[0]


def _remove_rule(draft: value_edits.Draft, rules: YamlDocument, was: Pointer) -> value_edits.ValuePlace:
    """Remove the item of tag rules that was here; others may be removed already."""
    place = value_edits.place_of(rules)
    items = draft.document(place).value(was[:-1])
    pointer = was[:-1] if len(items) == 1 else (*was[:-1], list(items).index(rules.value(was)))
    draft.edit(place, was[:-1], remove_entry(draft.document(place), pointer, climb=True))
    return place, ()


def _add_rule(draft: value_edits.Draft, policy: Policy, tag: str) -> value_edits.ValuePlace | None:
    """Add what means a tag to the rules that own its family; None if it is no tag of a rule."""
    family, item = next(((family, items[0]) for family, items in rule_tags([tag]).items.items() if items), ("", None))
    owners = [rules for rules in policy.tag_rules if any(tag.startswith(owned.value.prefix) for owned in rules.owns)]
    if not family or not owners:
        return None
    place, pointer = value_edits.place_of(owners[0].document), RULES[family]
    document = draft.document(place)
    parent = document.root
    for key in pointer[:-1]:
        parent = parent.get(key, {})
    if pointer[-1] in parent:
        draft.edit(place, pointer, value_edits.add_item(document, pointer, item))
    else:
        value_edits.add_value(draft, place, pointer, [item])
    return place, pointer


NODES = ("nodes",)
REMOVED = ("removed",)
_IDENTITY = frozenset({"gpolicy", "kind", "name", "description"})
"""All that the document of a removed group may have besides `removed`."""


class ObjectUnits:
    """Makes units of groups and of nodes' groups that drifted."""

    def __init__(self, policy: Policy, state: ClusterState, desired: Desired) -> None:
        self._policy = policy
        self._desired = desired
        self._undeclared = [name for name in state.groups if name not in desired.current_groups]

    def group(self, item: Drift, all_drift: Collection[Drift]) -> Unit:
        """Return the unit of a group that is missing, is there although it should not be, or has another name."""
        name, keys = item.object.partition("/")[2], _keys([item])
        group = self._policy.groups[name]
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
        write = partial(value_edits.add_value, place=value_edits.place_of(group.document), path=REMOVED, node=True)
        return Unit(keys, (WayToWrite(How.IN_PLACE, write, label),))

    def moves(self, drift: Sequence[Drift]) -> Iterator[Unit]:
        """Yield the units of nodes in another group than declared."""
        for item in drift:
            node = item.object.partition("/")[2]
            source = self._policy.groups[str(item.declared)]
            target = self._desired.current_groups.get(str(item.found))
            write = partial(_move, node=node, source=source, target=target)
            may_change = frozenset((group.label, NODES) for group in (source, target) if group is not None)
            yield Unit(_keys([item]), (WayToWrite(How.IN_PLACE, write, may_change),))


def _declare_again(draft: value_edits.Draft, group: GroupPolicy) -> value_edits.ValuePlace:
    place = value_edits.place_of(group.document)
    draft.edit(place, REMOVED, remove_entry(draft.document(place), REMOVED))
    return place, ()


def _move(
    draft: value_edits.Draft, node: str, source: GroupPolicy, target: GroupPolicy | None
) -> value_edits.ValuePlace:
    """Take a node out of the list of one group, and put it into that of another if it has one."""
    globs = [item.value for item in source.nodes or () if is_glob(item.value) and matches(item.value, node)]
    has_list = target is not None and target.nodes is not None
    if globs and not has_list:
        known = "is not declared" if target is None else "declares no nodes"
        raise value_edits.UnwritableError(f"{source.name} claims the node by `{globs[0]}`, and its group now {known}")
    wrote: list[value_edits.ValuePlace] = []
    if any(item.value == node for item in source.nodes or ()):
        wrote.append(set_nodes(draft, source, node, is_in=False))
    if target is not None and target.nodes is not None:
        by_glob = [item.value for item in target.nodes if matches(item.value, node)]
        if globs or not by_glob:
            wrote.append(set_nodes(draft, target, node, is_in=True))
    if not wrote:
        raise value_edits.UnwritableError("the groups declare their nodes in a way that nothing can be added to")
    return wrote[-1]


def set_nodes(draft: value_edits.Draft, group: GroupPolicy, node: str, *, is_in: bool) -> value_edits.ValuePlace:
    """Write a node into the list of a group, or take it out."""
    place = value_edits.place_of(group.document)
    document = draft.document(place)
    if "nodes" not in document.root:
        raise value_edits.UnwritableError(f"{group.name} takes its nodes from a document that it extends")
    others = [str(item) for item in document.root["nodes"] if item != node]
    value_edits.ValueWriter(draft, place).set_items(NODES, [*others, node] if is_in else others)
    return place, NODES
