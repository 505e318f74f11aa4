"""What a value has that a JSON Schema (draft 7) of strangers forbids, within a bounded number of steps.

The keywords are those of the Rule kind's own schema (`gpolicy.policy.schema_rules`), which the document conforms to. A
test compares the answers with jsonschema's, which has no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.checking.linear_pattern import PatternError, linear_pattern
from gpolicy.policy.conformance import TYPES, all_different, equal
from gpolicy.policy.source_file import Pointer

MOST_STEPS: Final = 5_000_000
"""Steps of all Rules of one policy together: some seconds."""
DEEPEST: Final = 32
"""Schemas within schemas, with references followed."""

Schema = Mapping[str, Any]
SCHEMAS: Final = ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else")
SCHEMAS_BY_NAME: Final = ("properties", "patternProperties")
SCHEMA_LISTS: Final = ("allOf", "anyOf", "oneOf")
REFERENCE: Final = "#/definitions/"
_NUMBER: Final = (int, float)
_SIMPLE: Final[dict[str, tuple[type | tuple[type, ...], Callable[[Any, Any], bool]]]] = {
    "type": (object, lambda names, value: any(TYPES[n](value) for n in ([names] if isinstance(names, str) else names))),
    "enum": (object, lambda choices, value: any(equal(value, choice) for choice in choices)),
    "const": (object, lambda constant, value: equal(value, constant)),
    "minimum": (_NUMBER, lambda least, value: value >= least),
    "maximum": (_NUMBER, lambda most, value: value <= most),
    "exclusiveMinimum": (_NUMBER, lambda bound, value: value > bound),
    "exclusiveMaximum": (_NUMBER, lambda bound, value: value < bound),
    "multipleOf": (_NUMBER, lambda part, value: value % part == 0),
    "minLength": (str, lambda least, value: len(value) >= least),
    "maxLength": (str, lambda most, value: len(value) <= most),
    "minItems": (list, lambda least, value: len(value) >= least),
    "maxItems": (list, lambda most, value: len(value) <= most),
    "minProperties": (dict, lambda least, value: len(value) >= least),
    "maxProperties": (dict, lambda most, value: len(value) <= most),
}
"""Keywords that need no other schema: the Python type that they are about, and whether a value has what they ask."""


class TooCostlyError(Exception):
    """The steps of MOST_STEPS are used up."""


@dataclass(slots=True)
class Budget:
    """The steps that are left."""

    left: int = MOST_STEPS

    def spend(self, steps: int) -> None:
        """Take steps. Raise TooCostlyError if there are not so many."""
        self.left -= steps
        if self.left < 0:
            raise TooCostlyError


@dataclass(frozen=True, slots=True)
class Breach:
    """A part of a value, at `path`, that a keyword of the schema with this argument forbids."""

    path: Pointer
    keyword: str
    argument: Any
    value: Any


@dataclass(frozen=True, slots=True)
class SchemaMistake:
    """Something at `pointer` of a schema that makes it useless."""

    pointer: Pointer
    message: str
    hint: str


def children(schema: Schema) -> Iterator[tuple[Pointer, Any]]:
    """Yield the schemas directly inside one, with their places, besides definitions."""
    for keyword in SCHEMAS:
        if keyword in schema:
            yield (keyword,), schema[keyword]
    for keyword in SCHEMAS_BY_NAME:
        for name, below in schema.get(keyword, {}).items():
            yield (keyword, name), below
    for keyword in SCHEMA_LISTS:
        for index, below in enumerate(schema.get(keyword, ())):
            yield (keyword, index), below


def referred(schema: Schema, definitions: Mapping[str, Any]) -> Any:
    """Return the definition that a schema with `$ref` stands for. Raise KeyError."""
    return definitions[schema["$ref"].removeprefix(REFERENCE)]


class SchemaReader:
    """Finds what makes a schema useless: references to nothing or to itself, patterns, too many levels."""

    def __init__(self, schema: Schema) -> None:
        self._definitions: Mapping[str, Any] = schema.get("definitions", {})
        self._heights: dict[str, int] = {}
        self._too_deep = False
        self.mistakes: list[SchemaMistake] = []
        self._height(schema, (), (), 1)
        for name in self._definitions:
            self._height_of_definition(name, (), 1)

    def _height(self, schema: Any, place: Pointer, opened: tuple[str, ...], depth: int) -> int:
        """Return the levels of a schema at a depth; `opened` are the definitions that it is part of."""
        if not isinstance(schema, Mapping):
            return 0
        if not self._has_room(depth, place):
            return 0
        self._check_patterns(schema, place)
        heights = [self._height(below, (*place, *step), opened, depth + 1) for step, below in children(schema)]
        if "$ref" in schema:
            heights.append(self._height_of_reference(schema, (*place, "$ref"), opened, depth + 1))
        return 1 + max(heights, default=0)

    def _height_of_reference(self, schema: Schema, place: Pointer, opened: tuple[str, ...], depth: int) -> int:
        name = schema["$ref"].removeprefix(REFERENCE)
        if name not in self._definitions:
            known = ", ".join(self._definitions)[:200]
            hint = f"the definitions are {known}" if known else "write it below `definitions` of the schema"
            self._report(place, f"there is no definition {name!r}", hint)
            return 0
        if name in opened:
            self._report(place, f"the definition {name!r} refers to itself", "write what is meant instead")
            return 0
        height = self._height_of_definition(name, opened, depth)
        self._has_room(depth + height - 1, place)
        return height

    def _height_of_definition(self, name: str, opened: tuple[str, ...], depth: int) -> int:
        if name not in self._heights:
            place = ("definitions", name)
            self._heights[name] = self._height(self._definitions[name], place, (*opened, name), depth)
        return self._heights[name]

    def _has_room(self, depth: int, place: Pointer) -> bool:
        if depth > DEEPEST and not self._too_deep:
            self._too_deep = True
            self._report(place, f"schemas are nested more than {DEEPEST} deep", "write a flatter one")
        return depth <= DEEPEST

    def _check_patterns(self, schema: Schema, place: Pointer) -> None:
        patterns: list[tuple[Pointer, str]] = [(("pattern",), schema["pattern"])] if "pattern" in schema else []
        patterns += [(("patternProperties", text), text) for text in schema.get("patternProperties", {})]
        for step, text in patterns:
            try:
                linear_pattern(text)
            except PatternError as error:
                self._report(
                    (*place, *step), f"the pattern {text[:60]!r} cannot be used: {error}", "write a plainer one"
                )

    def _report(self, place: Pointer, message: str, hint: str) -> None:
        self.mistakes.append(SchemaMistake(place, message, hint))


def breaches(schema: Schema, value: Any, budget: Budget) -> Iterator[Breach]:
    """Yield what of a value breaks a schema without mistakes. Raise TooCostlyError."""
    return _Judge(schema.get("definitions", {}), budget).breaches(schema, value, ())


class _Judge:
    def __init__(self, definitions: Mapping[str, Any], budget: Budget) -> None:
        self._definitions = definitions
        self._spend = budget.spend

    def breaches(self, schema: Any, value: Any, path: Pointer) -> Iterator[Breach]:
        self._spend(1)
        if isinstance(schema, bool):
            if not schema:
                yield Breach(path, "false", schema, value)
            return
        if "$ref" in schema:  # in draft 7 what stands beside it does not count
            yield from self.breaches(referred(schema, self._definitions), value, path)
            return
        for keyword, argument in schema.items():
            check = getattr(self, f"_on_{keyword}", None)
            if check is not None:
                yield from check(argument, value, path, schema)
            elif keyword in _SIMPLE and not self._holds(keyword, argument, value):
                yield Breach(path, keyword, argument, value)

    def _holds(self, keyword: str, argument: Any, value: Any) -> bool:
        self._spend(1 + _weight(argument))
        kind, test = _SIMPLE[keyword]
        return not isinstance(value, kind) or (isinstance(value, bool) and kind is _NUMBER) or test(argument, value)

    def _fits(self, schema: Any, value: Any) -> bool:
        return next(self.breaches(schema, value, ()), None) is None

    # --- texts, lists, mappings --------------------------------------------------------------------------------

    def _on_pattern(self, argument: str, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        if isinstance(value, str) and not linear_pattern(argument).is_in(value, self._spend):
            yield Breach(path, "pattern", argument, value)

    def _on_items(self, argument: Any, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from self.breaches(argument, item, (*path, index))

    def _on_contains(self, argument: Any, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        if isinstance(value, list) and not any(self._fits(argument, item) for item in value):
            yield Breach(path, "contains", argument, value)

    def _on_uniqueItems(self, argument: bool, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: FBT001, N802
        if argument and isinstance(value, list):
            self._spend(_weight(value))
            if not all_different(value):
                yield Breach(path, "uniqueItems", argument, value)

    def _on_properties(self, argument: Schema, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        if isinstance(value, dict):
            for name, below in argument.items():
                self._spend(1)
                if name in value:
                    yield from self.breaches(below, value[name], (*path, name))

    def _on_patternProperties(self, argument: Schema, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: N802
        for pattern, below in argument.items() if isinstance(value, dict) else ():
            for name, item in value.items():
                if linear_pattern(pattern).is_in(name, self._spend):
                    yield from self.breaches(below, item, (*path, name))

    def _on_additionalProperties(self, argument: Any, value: Any, path: Pointer, schema: Schema) -> Iterator[Breach]:  # noqa: N802
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", ())
        for name, item in value.items() if isinstance(value, dict) else ():
            if name not in known and not any(linear_pattern(text).is_in(name, self._spend) for text in patterns):
                yield from self.breaches(argument, item, (*path, name))

    def _on_propertyNames(self, argument: Any, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: N802
        for name in value if isinstance(value, dict) else ():
            if not self._fits(argument, name):
                yield Breach((*path, name), "propertyNames", argument, name)

    def _on_required(self, argument: list[str], value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        self._spend(len(argument))
        missing = [name for name in argument if isinstance(value, dict) and name not in value]
        if missing:
            yield Breach(path, "required", missing, value)

    # --- combinations ------------------------------------------------------------------------------------------

    def _on_allOf(self, argument: list[Any], value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: N802
        for schema in argument:
            yield from self.breaches(schema, value, path)

    def _on_anyOf(self, argument: list[Any], value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: N802
        if not any(self._fits(schema, value) for schema in argument):
            yield Breach(path, "anyOf", argument, value)

    def _on_oneOf(self, argument: list[Any], value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:  # noqa: N802
        if sum(self._fits(schema, value) for schema in argument) != 1:
            yield Breach(path, "oneOf", argument, value)

    def _on_not(self, argument: Any, value: Any, path: Pointer, _: Schema) -> Iterator[Breach]:
        if self._fits(argument, value):
            yield Breach(path, "not", argument, value)

    def _on_if(self, argument: Any, value: Any, path: Pointer, schema: Schema) -> Iterator[Breach]:
        yield from self.breaches(schema.get("then" if self._fits(argument, value) else "else", True), value, path)


def _weight(value: Any) -> int:
    """Return how many values are inside of one."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(below) + sum(_weight(item) for item in below if isinstance(item, dict | list))
