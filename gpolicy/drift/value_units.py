"""Parameters that drifted: the documents that declare them, and the values to write there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from gpolicy.drift.comparing import Drift
from gpolicy.drift.unit_writer import How, Unit, WayToWrite
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.ganeti.parameters import parameter_at, unflatten
from gpolicy.json_values import json_text
from gpolicy.plan.part import Key
from gpolicy.policy.model import Declared, Leaf, NodeSetPolicy, Policy
from gpolicy.policy.source_file import Pointer
from gpolicy.printable import free_name, some
from gpolicy.resolve.desired import Desired
from gpolicy.writing.documents import head
from gpolicy.writing.draft import Draft, UnwritableError, ValuePlace, place_of
from gpolicy.writing.value_edits import INHERIT_WORD, ValueWriter, add_value
from gpolicy.writing.written import Writer
from gpolicy.writing.yaml_text import Node, block_entry

_MOST_NAMED = 3


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
        self._users: dict[tuple[int, Pointer], list[Key]] = defaultdict(list)
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

    def _units(self, items: list[Drift], users: Sequence[Key], *, is_one_value: bool) -> Iterator[Unit]:
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
            node = self._node(items[0], leaf)
        except UnwritableError as error:
            return Unit(_keys(items), reason=str(error))
        labels = [declared.label for declared in self._policy.objects if _same(declared.leaves.get(leaf.path), leaf)]
        place, parameter = place_of(leaf.document), parameter_at(leaf.path)
        assert parameter is not None, leaf.path  # noqa: S101 (only parameters are leaves)

        def write(draft: Draft) -> ValuePlace:
            ValueWriter(draft, place).write(leaf.pointer, parameter, node, (items[0].declared, items[0].found))
            return place, leaf.pointer

        may_change = frozenset((label, leaf.path) for label in labels)
        return Unit(_keys(items), (WayToWrite(How.IN_PLACE, write, may_change),), parts)

    def _override(self, item: Drift, leaf: Leaf, others: Iterable[Key]) -> Unit:
        """Return the unit that writes a value for one object alone."""
        keys = _keys([item])
        level, _, name = item.object.partition("/")
        declared: Declared | None = self._policy.groups[name] if level == Level.GROUP else None
        if level == Level.CLUSTER:
            declared = self._policy.cluster
        if declared is not None and declared.document is leaf.document:
            named = some([key[0] for key in others], _MOST_NAMED)
            return Unit(keys, reason=f"{leaf.span} declares it for {named} as well, which would change")
        try:
            node = self._node(item, leaf)
            if declared is not None:
                return Unit(keys, (add_to(declared, leaf.path, node),))
            return Unit(keys, tuple(self._node_attempts(name, leaf, node)))
        except UnwritableError as error:
            return Unit(keys, reason=str(error))

    def _node_attempts(self, name: str, leaf: Leaf, node: Node) -> Iterator[WayToWrite]:
        """Yield how a value becomes that of one node: in a set of that node alone, else in a new one."""
        sets = [item for item in self._policy.node_sets if _same(item.leaves.get(leaf.path), leaf)]
        for own in sets_of(name, self._policy):
            if leaf.path not in own.leaves:
                yield add_to(own, leaf.path, node)
        if any(name in [pattern.value for pattern in item.nodes] for item in sets):
            said = f"a node set names {name} together with other nodes at {leaf.span}: give it one of its own first"
            raise UnwritableError(said)
        yield new_set(name, place_of(sets[0].document)[0], leaf.path, node, self._policy)

    def _node(self, item: Drift, leaf: Leaf) -> Node:
        """Return the live value in the form of a policy. Raise UnwritableError if a policy cannot say it."""
        level = Level(item.object.partition("/")[0])
        if item.found is None:
            if level is Level.CLUSTER or leaf.path == ("alloc_policy",):
                said = "the cluster has no value there, and a policy cannot declare that: remove the key"
                raise UnwritableError(said)
            return INHERIT_WORD
        written, left_out = self._writer.write({leaf.path: item.found}, level, item.object)
        if leaf.path not in written:
            raise UnwritableError(left_out[0].reason)
        return written[leaf.path]


def sets_of(name: str, policy: Policy) -> list[NodeSetPolicy]:
    """Return the node sets of the policy's own files that are about this node alone."""
    own = (item for item in policy.node_sets if item.document.file in policy.paths and not item.groups)
    return [item for item in own if [pattern.value for pattern in item.nodes] == [name]]


def add_to(declared: Declared, path: Path, node: Node) -> WayToWrite:
    """Return the way to write a value into the document of an object that lacks it."""
    place = place_of(declared.document)
    may_change = frozenset({(declared.label, path)})
    return WayToWrite(How.OVERRIDE, lambda draft: add_value(draft, place, path, node), may_change)


def new_set(name: str, file: str, path: Path, node: Node, policy: Policy) -> WayToWrite:
    """Return the way to write a value into a new node set at the end of a file."""
    called = free_name(name, {item.name for item in policy.node_sets}.__contains__)

    def write(draft: Draft) -> ValuePlace:
        for place in draft.new_documents(file):
            if draft.document(place).root["name"] == called:
                return add_value(draft, place, path, node)
        key, below = unflatten({path: node}).popitem()
        draft.append(file, [*head("NodeSet", name=called, nodes=[name]), *block_entry(key, below, indent=0)])
        return draft.new_documents(file)[-1], path

    labels = {(f"node-set/{called}", where) for where in (path, ("nodes",), ("groups",), ("tags",))}
    return WayToWrite(How.OVERRIDE, write, frozenset(labels))


def _keys(items: Iterable[Drift]) -> frozenset[Key]:
    return frozenset(item.key for item in items)


def _same(one: Leaf | None, other: Leaf) -> bool:
    return one is not None and one.document is other.document and one.pointer == other.pointer
