"""Check fast whether a document conforms to its JSON Schema.

Almost every document conforms. The draft-07 keywords of our schemas, compiled to closures, take a small fraction of the
time of a general validator and its import. The general validator (jsonschema) explains the errors of other documents
(`gpolicy.policy.schema_errors`); a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import cache
from operator import gt, le, lt
from typing import Any, Final

from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.schema_files import schema_of
from gpolicy.policy.source_file import YamlDocument

Test = Callable[[Any], bool]

TYPES: dict[str, Test] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
_IGNORED = frozenset(
    {
        *("$schema", "title", "description", "definitions", "default"),
        # for editors alone (gpolicy.policy.schema_editing, which would be imported here for nothing else)
        *("defaultSnippets", "enumDescriptions", "patternErrorMessage", "x-intellij-enum-metadata", "examples"),
    }
)


@cache
def _test_of(kind: str) -> Test:
    return compile_schema(schema_of(kind))


def conforms(document: YamlDocument) -> bool:
    """Return whether a document has the shape that the schema of its kind describes."""
    root: Any = document.root
    has_head = isinstance(root, dict) and root.get("gpolicy") == "v1" and root.get("kind") in KIND_NAMES
    return has_head and _test_of(root["kind"])(root)


class UnknownKeywordError(ValueError):
    """A schema uses a keyword that this module does not know: a bug of gpolicy."""


def compile_schema(schema: dict[str, Any]) -> Test:
    """Return a function that tells whether a value conforms to `schema`. Raise `UnknownKeywordError`."""
    return _Compiler(schema.get("definitions", {})).compile(schema)


class _Compiler:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._compiled: dict[str, Test] = {}

    def compile(self, schema: Any) -> Test:
        if schema is False:
            return lambda _: False
        if schema is True:
            return lambda _: True
        tests: list[Test] = []
        if "properties" in schema or "additionalProperties" in schema:
            tests.append(self._properties(schema))
        for keyword, argument in schema.items():
            if keyword in _IGNORED or keyword in {"properties", "additionalProperties", "then", "else"}:
                continue
            if keyword == "if":
                tests.append(self._condition(schema))
                continue
            make = _PLAIN.get(keyword) or getattr(self, f"_{keyword.lstrip('$')}", None)
            if keyword in _LIMITS:
                tests.append(_within(keyword, argument))
            elif make is None:
                raise UnknownKeywordError(keyword)
            else:
                tests.append(make(argument))
        return _all(tests)

    def _ref(self, reference: str) -> Test:
        name = reference.removeprefix("#/definitions/")
        if name not in self._compiled:
            # a definition may refer to itself, and is looked up when it has been compiled
            self._compiled[name] = lambda value: self._compiled[name](value)  # noqa: PLW0108
            self._compiled[name] = self.compile(self._definitions[name])
        return self._compiled[name]

    def _properties(self, schema: dict[str, Any]) -> Test:
        known = {name: self.compile(below) for name, below in schema.get("properties", {}).items()}
        others = self.compile(schema.get("additionalProperties", True))
        closed = schema.get("additionalProperties", True) is False

        def test(value: Any) -> bool:
            if not isinstance(value, dict):
                return True
            for name, below in value.items():
                check = known.get(name)
                if check is None:
                    if closed or not others(below):
                        return False
                elif not check(below):
                    return False
            return True

        return test

    def _condition(self, schema: dict[str, Any]) -> Test:
        when, then = self.compile(schema["if"]), self.compile(schema.get("then", True))
        otherwise = self.compile(schema.get("else", True))
        return lambda value: then(value) if when(value) else otherwise(value)

    def _items(self, argument: Any) -> Test:
        each = self.compile(argument)
        return lambda value: not isinstance(value, list) or all(map(each, value))

    def _anyOf(self, argument: list[Any]) -> Test:  # noqa: N802 (the keyword's own name)
        return _any([self.compile(branch) for branch in argument])

    def _allOf(self, argument: list[Any]) -> Test:  # noqa: N802
        return _all([self.compile(branch) for branch in argument])

    def _oneOf(self, argument: list[Any]) -> Test:  # noqa: N802
        branches = [self.compile(branch) for branch in argument]
        return lambda value: sum(branch(value) for branch in branches) == 1


_PLAIN: Final[dict[str, Callable[[Any], Test]]] = {
    "type": lambda named: TYPES[named] if isinstance(named, str) else _any([TYPES[name] for name in named]),
    "const": lambda wanted: lambda value: equal(value, wanted),
    "enum": lambda choices: lambda value: any(equal(value, choice) for choice in choices),
    "required": lambda names: lambda value: not isinstance(value, dict) or all(name in value for name in names),
    "uniqueItems": lambda asked: lambda value: not asked or not isinstance(value, list) or all_different(value),
    # compiled at the first value: few policies have values of all forms
    "pattern": lambda form: lambda value: not isinstance(value, str) or re.search(form, value) is not None,
}
"""The keywords whose arguments hold no schema."""


_LIMITS: Final[dict[str, tuple[type[Any], Callable[[float, float], bool]]]] = {
    "minimum": (float, lt),
    "exclusiveMinimum": (float, le),
    "maximum": (float, gt),
    "minLength": (str, lt),
    "maxLength": (str, gt),
    "minItems": (list, lt),
    "maxItems": (list, gt),
    "minProperties": (dict, lt),
}
"""What a limit is about: numbers (float), or the length of other values; and which comparison with it breaks it."""


def _within(keyword: str, limit: float) -> Test:
    kind, breaks = _LIMITS[keyword]
    if kind is float:
        return lambda value: not TYPES["number"](value) or not breaks(value, limit)
    return lambda value: not isinstance(value, kind) or not breaks(len(value), limit)


def _any(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) or second(value)
    return lambda value: any(test(value) for test in tests)


def _all(tests: list[Test]) -> Test:
    """Return the conjunction of `tests`, without a generator for short ones, which are the rule."""
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) and second(value)

    def conjunction(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 (a generator for each of thousands of values takes twice as long)
            if not test(value):
                return False
        return True

    return conjunction


def equal(value: Any, other: Any) -> bool:
    """JSON equality: true is not 1, at any depth."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(equal(below, other[key]) for key, below in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(equal, value, other))
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def first_double(items: list[Any]) -> int:
    """Return the place of the first item that equals an earlier one by JSON's rules; there must be one."""
    seen = set[Hashable]()
    for place, item in enumerate(items):
        key = _hashable(item)
        if key in seen:
            return place
        seen.add(key)
    raise ValueError("all items differ")


def all_different(items: list[Any]) -> bool:
    """Return whether no item equals another by JSON's rules."""
    return len(set(map(_hashable, items))) == len(items)


def _hashable(value: Any) -> Hashable:
    """Return a hashable value, equal for equal JSON values."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(below)) for key, below in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return type(value) is bool, value
