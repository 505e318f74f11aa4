"""The JSON Schemas of the kinds of documents, from the package's data, and a fast check whether a document conforms.

Shapes of values that stand in a schema several times are written once in its file, under `definitions`. Readers put
them back, so that code which reads a schema sees each value's own shape at its place.

Almost every document conforms. The draft-07 keywords of our schemas, compiled to closures, take a small fraction of the
time of a general validator and its import. The general validator (jsonschema) explains the errors of other documents
(`gpolicy.policy.schema_errors`); a test compares the two. The words for patterns of texts that are no words (sizes,
rates, shares, days) are here as well.
"""

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gpolicy.data import data_directory, read_data
from gpolicy.ganeti.releases import POINT_RELEASE
from gpolicy.policy.kinds import KIND_NAMES, KINDS
from gpolicy.policy.source_file import YamlDocument

Schema = dict[str, Any]
VALUE: Final = "value-"
"""What the names of these definitions begin with."""
REFERENCE: Final = f"#/definitions/{VALUE}"
WHOLE: Final = "policy.json"
"""The file of the schema of any document."""


def file_name(kind: str) -> str:
    """Return the file of a kind's schema: `NodeGroup` is in `node-group.json`."""
    return f"{re.sub('(?<!^)(?=[A-Z])', '-', kind).lower()}.json"


def _read_schema(file: str) -> Schema:
    found: Schema = json.loads((data_directory("schemas") / file).read_text(encoding="utf-8"))
    return found


@cache
def schema_of(kind: str) -> Schema:
    """Return the JSON Schema of a kind of document."""
    return with_own_shapes(_read_schema(file_name(kind)))


def whole_schema() -> Schema:
    """Return the schema of any document of a policy, which needs no other file."""
    schema = _read_schema(WHOLE)
    definitions: Schema = {}
    for kind in KINDS:
        own = _read_schema(file_name(kind))
        definitions |= own["definitions"]
        definitions[kind] = {key: value for key, value in own.items() if key not in ("$schema", "definitions")}
    files = {file_name(kind): kind for kind in KINDS}

    def change(part: Schema) -> Schema:
        return {"$ref": f"#/definitions/{files[part['$ref']]}"} if part.get("$ref") in files else part

    return {**rebuilt(schema, change), "definitions": definitions}


def example_document(kind: str) -> str:
    """Return a small document of a kind: what editors offer."""
    offered = next(rule["else"]["defaultSnippets"] for rule in _read_schema(WHOLE)["allOf"] if "else" in rule)
    body = next(item["bodyText"] for item in offered if item["label"] == kind)
    return filled(body).replace("YYYY-MM-DD", "2027-12-31")


def filled(body: str) -> str:
    """Return the text of a snippet with what stands at its places for the cursor."""
    return re.sub(r"\$\{[0-9]+:([^}]*)\}", r"\1", body)


def with_own_shapes(schema: Schema) -> Schema:
    """Return a schema that `share_shapes` made with each shape at its places again."""
    shapes = {name: below for name, below in schema["definitions"].items() if name.startswith(VALUE)}

    def change(part: Schema) -> Schema:
        reference = part.get("$ref")
        if not (isinstance(reference, str) and reference.startswith(REFERENCE)):
            return part
        shape: Schema = rebuilt(shapes[reference.removeprefix("#/definitions/")], change)
        return shape | {key: below for key, below in part.items() if key != "$ref"}

    others = {name: below for name, below in schema["definitions"].items() if name not in shapes}
    whole: Schema = rebuilt({**schema, "definitions": others}, change)
    return whole


def rebuilt(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return a copy of a part of a schema, with each mapping in it changed, the innermost first."""
    if isinstance(value, dict):
        return change({key: rebuilt(below, change) for key, below in value.items()})
    return [rebuilt(below, change) for below in value] if isinstance(value, list) else value


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
        # for editors alone
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


def compile_schema(schema: Schema) -> Test:
    """Return a function that tells whether a value conforms to `schema`; AttributeError for an unknown keyword."""
    return _Compiler(schema.get("definitions", {})).compile(schema)


class _Compiler:
    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self._compiled: dict[str, Test] = {}

    def compile(self, schema: Any) -> Test:
        if isinstance(schema, bool):
            return lambda _: schema
        tests: list[Test] = []
        if "properties" in schema or "additionalProperties" in schema:
            tests.append(self._properties(schema))
        for keyword, argument in schema.items():
            if keyword in _IGNORED or keyword in {"properties", "additionalProperties", "then", "else"}:
                continue
            if keyword == "if":
                tests.append(self._condition(schema))
                continue
            make = _PLAIN.get(keyword) or getattr(self, f"_{keyword.lstrip('$')}")
            tests.append(make(argument))
        return _all(tests)

    def _ref(self, reference: str) -> Test:
        name = reference.removeprefix("#/definitions/")
        if name not in self._compiled:
            # a definition may refer to itself, and is looked up when it has been compiled
            self._compiled[name] = lambda value: self._compiled[name](value)  # noqa: PLW0108
            self._compiled[name] = self.compile(self._definitions[name])
        return self._compiled[name]

    def _properties(self, schema: Schema) -> Test:
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

    def _condition(self, schema: Schema) -> Test:
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


def _one_of(choices: list[Any]) -> Test:
    known = set(map(_hashable, choices))
    return lambda value: _hashable(value) in known


_PLAIN: Final[dict[str, Callable[[Any], Test]]] = {
    "type": lambda named: TYPES[named] if isinstance(named, str) else _any([TYPES[name] for name in named]),
    "const": lambda wanted: _one_of([wanted]),
    "enum": _one_of,
    "required": lambda names: lambda value: not isinstance(value, dict) or all(name in value for name in names),
    "uniqueItems": lambda asked: lambda value: not asked or not isinstance(value, list) or all_different(value),
    # compiled at the first value: few policies have values of all forms
    "pattern": lambda form: lambda value: not isinstance(value, str) or re.search(form, value) is not None,
    # "not below": of what is no number (.nan) other checks tell
    "minimum": lambda least: lambda value: not TYPES["number"](value) or not value < least,
    "exclusiveMinimum": lambda below: lambda value: not TYPES["number"](value) or not value <= below,
    "maximum": lambda most: lambda value: not TYPES["number"](value) or not value > most,
    "minLength": lambda least: lambda value: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda most: lambda value: not isinstance(value, str) or len(value) <= most,
    "minItems": lambda least: lambda value: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most: lambda value: not isinstance(value, list) or len(value) <= most,
    "minProperties": lambda least: lambda value: not isinstance(value, dict) or len(value) >= least,
}
"""The keywords whose arguments hold no schema."""


def _any(tests: list[Test]) -> Test:
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


@dataclass(frozen=True, slots=True)
class PatternWords:
    """What is said of a text that has a pattern: its type, what a finding expects, an editor's message, an example.

    The pattern of releases follows from those that gpolicy knows.
    """

    type: str
    expected: str
    message: str
    example: str
    pattern: str = POINT_RELEASE


@cache
def pattern_words() -> dict[str, PatternWords]:
    """Return what is said of texts, by their patterns: `templates/patterns.toml`."""
    known = [PatternWords(**words) for words in read_data("patterns.toml").values()]
    return {words.pattern: words for words in known}


INHERIT: Final = "inherit"
"""What a policy writes where an object has no own value."""
TAG_PATTERN: Final = "^[A-Za-z0-9_.+*/:@-]{1,128}$"
