"""The order of keys in a mapping: that of the schemas, which follow the table of parameters.

In a scenario of a Test document keys keep their written order.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.schema_files import schema_of
from gpolicy.writing.first_keys import BELOW, LAST, TOP_LEVEL

Schema = dict[str, Any]
Ranks = dict[str, int]

_ITEM: Final = 0
_TEST: Final = ("tests", _ITEM)
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_CONDITIONAL: Final = ("if", "then", "else")


class KeyOrder:
    """The order of keys at one place of a document, with access to the places below it."""

    def __init__(self, schema: Schema, nodes: tuple[Schema, ...], path: tuple[str | int, ...]) -> None:
        self._schema = schema
        self._nodes = nodes
        self._path = path
        self._below: dict[str | int, KeyOrder] = {}
        self._ranks: Ranks = _ranks(path, [key for node in nodes for key in node.get("properties", {})])

    def rank(self, key: str) -> int:
        """Return the position of a key; unknown keys come last, in their written order."""
        return self._ranks.get(key, len(self._ranks))

    def below(self, key: str) -> KeyOrder:
        """Return the order in the value of a key."""
        return self._at(key, [_value_of(node, key) for node in self._nodes])

    def item(self) -> KeyOrder:
        """Return the order in the items of a list."""
        return self._at(_ITEM, [node.get("items") for node in self._nodes])

    def _at(self, step: str | int, found: list[Any]) -> KeyOrder:
        if step not in self._below:
            if self._path == _TEST:  # scenarios keep their written order
                found = []
            nodes = _resolved([node for node in found if isinstance(node, dict)], self._schema)
            self._below[step] = KeyOrder(self._schema, nodes, (*self._path, step))
        return self._below[step]


@cache
def key_order(kind: str) -> KeyOrder:
    """Return the order of keys in documents of a kind; of an unknown kind only that of the first keys."""
    schema = schema_of(kind) if kind in KIND_NAMES else {}
    return KeyOrder(schema, _resolved([schema], schema), ())


def _value_of(node: Schema, key: str) -> Any:
    known = node.get("properties", {})
    return known.get(key, node.get("additionalProperties"))


def _resolved(nodes: list[Schema], schema: Schema) -> tuple[Schema, ...]:
    """Return `nodes` with all schemas that they refer to or combine."""
    found: list[Schema] = []
    todo = list(nodes)
    while todo:
        node = todo.pop(0)
        if any(node is known for known in found):
            continue
        found.append(node)
        if "$ref" in node:
            todo.append(schema.get("definitions", {}).get(node["$ref"].rpartition("/")[2], {}))
        todo += [below for word in _COMBINED for below in node.get(word, ())]
        todo += [node[word] for word in _CONDITIONAL if word in node]
    return tuple(found)


def _ranks(path: tuple[str | int, ...], keys: list[str]) -> Ranks:
    if path == ():
        keys = [*TOP_LEVEL, *keys]
    elif len(path) == 1:
        keys = [*BELOW.get(str(path[0]), ()), *keys]
    ordered = list(dict.fromkeys(keys))
    if path == () and LAST in ordered:
        ordered = [key for key in ordered if key != LAST] + [LAST]
    return {key: place for place, key in enumerate(ordered)}
