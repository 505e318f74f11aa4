"""The objects that house rules look at, the values that their schemas name, and those that the objects can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from gpolicy.checking.value_schema import SchemaReader, children, referred
from gpolicy.cluster.terms import STATES
from gpolicy.ganeti.parameter import Level, Parameter, Type
from gpolicy.ganeti.parameters import parameter_at, parameters_of
from gpolicy.policy.conformance import schema_of
from gpolicy.policy.kinds import HouseRule
from gpolicy.policy.model import ClusterPolicy, Declared, Policy
from gpolicy.policy.source_file import Located, Pointer

_FACTS: Final = {"Cluster": (), "NodeGroup": ("nodes",), "NodeSet": ("nodes", "group")}
KINDS: Final = tuple(_FACTS)
"""The kinds that house rules can look at."""
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


def _of_the_object(schema: Any) -> Iterator[tuple[Mapping[str, Any], Pointer]]:
    """Yield a schema and those in it that are about the object itself, each with its place."""
    definitions = schema.get("definitions", {}) if isinstance(schema, Mapping) else {}
    todo: list[tuple[Any, Pointer]] = [(schema, ())]
    seen = set[int]()
    while todo:
        found, place = todo.pop()
        if not isinstance(found, Mapping) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found, place
        below = ((inner, (*place, *step)) for step, inner in children(found) if step[0] in _OF_THE_SAME)
        todo += below
        if "$ref" in found:
            todo.append((referred(found, definitions), ("definitions", found["$ref"].rpartition("/")[2])))


def _named_values(schema: Any) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a schema names for the object itself, each with its place in the schema."""
    for found, place in _of_the_object(schema):
        yield from ((name, (*place, "properties", name)) for name in found.get("properties", ()))
        yield from ((name, (*place, "required", index)) for index, name in enumerate(found.get("required", ())))


_OF_THE_SAME: Final = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
"""Keywords whose schemas are about the same value as the one that they stand in."""


def unknown_values(house_rule: HouseRule) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a sound schema names and no object of its kind has, each with its place in the schema."""
    known = known_values(house_rule.kind.value)
    for name, pointer in _named_values(house_rule.schema):
        if name not in known and not name.startswith("disk_state."):  # which has names of volume groups in it
            yield name, pointer


_NUMBER, _TEXT, _LIST, _TABLE = "a number", "a text", "a list", "a table"
_KEYWORDS: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), _TEXT),
    **dict.fromkeys(("items", "contains", "minItems", "maxItems", "uniqueItems"), _LIST),
    **dict.fromkeys(("properties", "patternProperties", "propertyNames", "minProperties", "maxProperties"), _TABLE),
    **dict.fromkeys(("required", "additionalProperties"), _TABLE),
}
"""Keywords of JSON Schema, each with the kind of value that it looks at: it accepts every other kind."""
_KINDS: Final = {
    **dict.fromkeys((Type.INT, Type.SIZE, Type.MIB, Type.FLOAT), _NUMBER),
    **dict.fromkeys((Type.STRING, Type.CHOICE), _TEXT),
    **dict.fromkeys((Type.LIST, Type.SET, Type.MINMAX, Type.UID_RANGES), _LIST),
    Type.DICT: _TABLE,
    Type.BOOL: "true or false",
}
_KINDS_OF_FACTS: Final = {"name": _TEXT, "group": _TEXT, "tags": _LIST, "nodes": _LIST}


def _schemas_of_values(house_rule: HouseRule) -> Iterator[tuple[str, Parameter | None, Mapping[str, Any], Pointer]]:
    """Yield the schemas about values of the object: the value's path and parameter, the schema and its place."""
    for found, place in _of_the_object(house_rule.schema):
        for name, schema in found.get("properties", {}).items():
            parameter = parameter_at(tuple(name.split(".")))
            for inner, step in _of_the_object(schema):
                yield name, parameter, inner, (*place, "properties", name, *step)


def idle_keywords(house_rule: HouseRule) -> Iterator[tuple[str, str, str, Pointer]]:
    """Yield the keywords of a sound schema that are about another kind of value than the one they stand at.

    Each is the path of the value, its kind in words, the keyword, and the place in the schema.
    """
    for name, parameter, schema, place in _schemas_of_values(house_rule):
        kind = _KINDS_OF_FACTS.get(name) or (_KINDS[parameter.type] if parameter is not None else "")
        for keyword, bound in schema.items() if kind else ():
            if _KEYWORDS.get(keyword, kind) != kind or _demands_nothing(parameter, keyword, bound):
                yield name, kind, keyword, (*place, keyword)


def impossible_words(house_rule: HouseRule) -> Iterator[tuple[str, str, tuple[str, ...], Pointer]]:
    """Yield the words of a sound schema that a value never is: its path, the word, what it can be, and the place."""
    for name, parameter, schema, place in _schemas_of_values(house_rule):
        if parameter is None or parameter.type is not Type.CHOICE:
            continue
        wanted = [("const", schema["const"])] if "const" in schema else []
        wanted += [("enum", word) for word in schema.get("enum", ())]
        for keyword, word in wanted:
            if word not in parameter.choices:
                yield name, str(word), parameter.choices, (*place, keyword)


def _demands_nothing(parameter: Parameter | None, keyword: str, bound: object) -> bool:
    """Return whether a bound of numbers lies beyond all that make sense."""
    sensible = parameter.sensible if parameter is not None else None
    if sensible is None or not isinstance(bound, int | float):
        return False
    beyond = {"maximum": bound > sensible.most, "minimum": bound < min(sensible.least, 0)}
    return beyond.get(keyword, False)


def sound_rules(policy: Policy) -> list[HouseRule]:
    """Return the house rules whose schema has no mistake; of several with one name the first."""
    first = {rule.word: rule for rule in reversed(policy.house_rules)}
    return [rule for rule in policy.house_rules if first[rule.word] is rule and not SchemaReader(rule.schema).mistakes]


def subjects(house_rule: HouseRule, policy: Policy) -> Iterator[Declared]:
    """Yield the objects that a house rule looks at."""
    for item in objects_of(policy, house_rule.kind.value):
        by_name = not house_rule.names or fits_any(item.name, house_rule.names)
        by_tag = not house_rule.tags or any(fits_any(tag.value, house_rule.tags) for tag in tags_of(item, policy))
        if by_name and by_tag:
            yield item


def objects_of(policy: Policy, kind: str) -> Iterator[Declared]:
    """Yield the objects of a kind that are to exist."""
    removed = {group.label for group in policy.groups.values() if group.removed is not None}
    return (item for item in policy.objects if item.document.root["kind"] == kind and item.label not in removed)


def fits_any(word: str, globs: Iterable[Located[str]]) -> bool:
    """Return whether a word is one of `globs`, or fits one."""
    return any(glob.value == word or fnmatchcase(word, glob.value) for glob in globs)


def tags_of(item: Declared, policy: Policy) -> Sequence[Located[str]]:
    """Return the tags that an object is to have; the cluster's come from all documents."""
    return (policy.cluster_tags if isinstance(item, ClusterPolicy) else item.tags) or ()
