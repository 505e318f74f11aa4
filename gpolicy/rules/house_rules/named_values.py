"""The values that the schema of a house rule names, and those that its objects can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpolicy.checking.value_schema import children, referred
from gpolicy.cluster.terms import STATES
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.parameters import parameters_of
from gpolicy.policy.house_rule import HouseRule
from gpolicy.policy.schema_files import schema_of
from gpolicy.policy.source_file import Pointer

_FACTS: Final = {"Cluster": (), "NodeGroup": ("nodes",), "NodeSet": ("nodes", "group")}
_LEVELS: Final = {"Cluster": Level.CLUSTER, "NodeGroup": Level.GROUP, "NodeSet": Level.NODE}
_TERMS: Final = ("limits", "physical_volumes", "hardware")


def known_values(kind: str) -> dict[str, None]:
    """Return what `effective` of an object of a kind may have."""
    paths = [".".join(parameter.path) for parameter in parameters_of(_LEVELS[kind])]
    if kind == "NodeSet":  # where resources are counted, the states of the group or the cluster hold for a node
        paths += [".".join(item.path) for item in parameters_of(Level.CLUSTER) if item.path[0] in STATES]
    properties = schema_of(kind)["properties"]
    terms = [f"{family}.{key}" for family in _TERMS for key in properties.get(family, {}).get("properties", ())]
    return dict.fromkeys(["name", "tags", *_FACTS[kind], *paths, *terms])


def _named_values(schema: Any) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a schema names for the object itself, each with its place in the schema."""
    definitions = schema.get("definitions", {}) if isinstance(schema, Mapping) else {}
    todo: list[tuple[Any, Pointer]] = [(schema, ())]
    seen = set[int]()
    while todo:
        found, place = todo.pop()
        if not isinstance(found, Mapping) or id(found) in seen:
            continue
        seen.add(id(found))
        yield from ((name, (*place, "properties", name)) for name in found.get("properties", ()))
        yield from ((name, (*place, "required", index)) for index, name in enumerate(found.get("required", ())))
        below = ((inner, (*place, *step)) for step, inner in children(found) if step[0] in _OF_THE_SAME)
        todo += below
        if "$ref" in found:
            todo.append((referred(found, definitions), ("definitions", found["$ref"].rpartition("/")[2])))


_OF_THE_SAME: Final = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
"""Keywords whose schemas are about the same value as the one that they stand in."""


def unknown_values(house_rule: HouseRule) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a sound schema names and no object of its kind has, each with its place in the schema."""
    known = known_values(house_rule.kind.value)
    for name, pointer in _named_values(house_rule.schema):
        if name not in known and not name.startswith("disk_state."):  # which has names of volume groups in it
            yield name, pointer
