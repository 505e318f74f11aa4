"""The objects that house rules look at, the values that their schemas name, and those that the objects can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from gpolicy.checking.value_schema import REFERENCE, children
from gpolicy.cluster.terms import STATES
from gpolicy.ganeti.amounts import MIB, sensible_range
from gpolicy.ganeti.parameter import Level, Parameter, Type
from gpolicy.ganeti.parameters import parameter_at, parameters_of
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy.conformance import schema_of
from gpolicy.policy.kinds import HouseRule
from gpolicy.policy.model import LEVELS, ClusterPolicy, Declared, Policy
from gpolicy.policy.source_file import Located, Pointer

_FACTS: Final = {"Cluster": (), "NodeGroup": ("nodes",), "NodeSet": ("nodes", "group")}
KINDS: Final = tuple(_FACTS)
"""The kinds that house rules can look at."""
_TERMS: Final = ("limits", "physical_volumes", "hardware")
_OF_THE_SAME: Final = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
"""Keywords whose schemas are about the same value as the one that they stand in."""
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


def known_values(kind: str) -> dict[str, None]:
    """Return what `effective` of an object of a kind may have."""
    paths = [".".join(parameter.path) for parameter in parameters_of(LEVELS[kind])]
    if kind == "NodeSet":  # where resources are counted, the states of the group or the cluster hold for a node
        paths += [".".join(item.path) for item in parameters_of(Level.CLUSTER) if item.path[0] in STATES]
    properties = schema_of(kind)["properties"]
    terms = [f"{family}.{key}" for family in _TERMS for key in properties.get(family, {}).get("properties", ())]
    return dict.fromkeys(["name", "tags", *_FACTS[kind], *paths, *terms])


def _about_one_value(
    house_rule: HouseRule, schema: Any, start: Pointer = ()
) -> Iterator[tuple[Mapping[str, Any], Pointer]]:
    """Yield a schema of a rule and those in it that are about the same value, each with its place in the rule's."""
    todo = [(schema, start)]
    seen = set[int]()
    while todo:
        found, place = todo.pop()
        if not isinstance(found, Mapping) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found, place
        todo += ((inner, (*place, *step)) for step, inner in children(found) if step[0] in _OF_THE_SAME)
        if "$ref" in found:
            name = found["$ref"].removeprefix(REFERENCE)
            todo.append((house_rule.schema.get("definitions", {}).get(name), ("definitions", name)))


def unknown_values(house_rule: HouseRule) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a schema names and no object of its kind has, each with its place in the schema."""
    known = known_values(house_rule.kind.value)
    for found, place in _about_one_value(house_rule, house_rule.schema):
        named = [(name, (*place, "properties", name)) for name in found.get("properties", ())]
        named += [(name, (*place, "required", index)) for index, name in enumerate(found.get("required", ()))]
        # disk_state has names of volume groups in it
        yield from (item for item in named if item[0] not in known and not item[0].startswith("disk_state."))


def idle_parts(house_rule: HouseRule) -> Iterator[tuple[Pointer, str, str]]:
    """Yield the parts of a sound schema that are about what their value never is: place, what is so, what to do."""
    for around, place in _about_one_value(house_rule, house_rule.schema):
        for name, whole in around.get("properties", {}).items():
            parameter = parameter_at(tuple(name.split(".")))
            for schema, at in _about_one_value(house_rule, whole, (*place, "properties", name)):
                yield from _impossible_words(name, parameter, schema, at)
                yield from _idle_keywords(name, parameter, schema, at)


def _idle_keywords(
    name: str, parameter: Parameter | None, schema: Mapping[str, Any], place: Pointer
) -> Iterator[tuple[Pointer, str, str]]:
    kind = _KINDS_OF_FACTS.get(name) or (_KINDS[parameter.type] if parameter is not None else "")
    sensible = sensible_range(tuple(name.split(".")))
    least = (1024 if name.startswith("hardware.") else sensible.least) if sensible and sensible.unit == MIB else 0
    for keyword in ("minimum", "maximum"):
        if 0 < (bound := schema.get(keyword, 0)) < least:
            yield (*place, keyword), f"{name} is in MiB: this is {bound} MiB", f"write {bound * 1024:.0f} for {bound}G"
    for keyword, bound in schema.items() if kind else ():
        if _KEYWORDS.get(keyword, kind) != kind or _demands_nothing(parameter, keyword, bound):
            what = f"{name} is {kind}, and {keyword} accepts every such value"
            yield (*place, keyword), what, f"write a keyword for {kind}, or `const`"


def _impossible_words(
    name: str, parameter: Parameter | None, schema: Mapping[str, Any], place: Pointer
) -> Iterator[tuple[Pointer, str, str]]:
    choices = parameter.choices if parameter is not None and parameter.type is Type.CHOICE else ()
    wanted = [("const", schema["const"])] if "const" in schema else []
    wanted += [("enum", word) for word in schema.get("enum", ())]
    for keyword, word in wanted if choices else ():
        if word not in choices:
            yield (*place, keyword), f"{name} is never {str(word)!r}", did_you_mean_one_of(str(word), "values", choices)


def _demands_nothing(parameter: Parameter | None, keyword: str, bound: object) -> bool:
    """Return whether a bound of numbers lies beyond all that make sense."""
    sensible = parameter.sensible if parameter is not None else None
    if sensible is None or not isinstance(bound, int | float):
        return False
    return bound > sensible.most if keyword == "maximum" else keyword == "minimum" and bound < min(sensible.least, 0)


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
