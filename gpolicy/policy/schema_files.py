"""The JSON Schemas of the kinds of documents, from the package's data.

Shapes of values that stand in a schema several times are written once in its file, under `definitions`. Readers put
them back, so that code which reads a schema sees each value's own shape at its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from gpolicy.data import data_directory
from gpolicy.policy.schema_parameters import SHAPE, Schema

_VALUE: Final = "value-"
"""What the names of these definitions begin with."""

_REFERENCE: Final = f"#/definitions/{_VALUE}"
_SAID_AT_EACH_PLACE: Final = ("description", "examples")


def file_name(kind: str) -> str:
    """Return the file of a kind's schema: `NodeGroup` is in `node-group.json`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind)
    return f"{words.lstrip('-')}.json"


@cache
def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document."""
    text = (data_directory("schemas") / file_name(kind)).read_text(encoding="utf-8")
    return with_own_shapes(json.loads(text))


def share_shapes(schema: Schema) -> Schema:
    """Return `schema` with the named shapes that it has more than once as definitions."""
    places = Counter[Any](_names(schema))
    shared: Schema = {}

    def change(part: Schema) -> Schema:
        own = {key: below for key, below in part.items() if key != SHAPE}
        name = part.get(SHAPE)
        if places[name] < 2:
            return own
        said: Schema = {key: own[key] for key in _SAID_AT_EACH_PLACE if key in own}
        shape = {key: below for key, below in own.items() if key not in said}
        if shared.setdefault(f"{_VALUE}{name}", shape) != shape:
            return own  # two parameters of one name take different values
        return {"$ref": f"{_REFERENCE}{name}", **said}

    whole: Schema = _rebuilt(schema, change)
    return {**whole, "definitions": {**whole["definitions"], **shared}} if shared else whole


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and SHAPE in value:
        yield value[SHAPE]
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(below)


def with_own_shapes(schema: Schema) -> Schema:
    """Return a schema that `share_shapes` made with each shape at its places again."""
    shapes = {name: below for name, below in schema["definitions"].items() if name.startswith(_VALUE)}

    def change(part: Schema) -> Schema:
        reference = part.get("$ref")
        if not (isinstance(reference, str) and reference.startswith(_REFERENCE)):
            return part
        shape: Schema = _rebuilt(shapes[reference.removeprefix("#/definitions/")], change)
        return shape | {key: below for key, below in part.items() if key != "$ref"}

    others = {name: below for name, below in schema["definitions"].items() if name not in shapes}
    whole: Schema = _rebuilt({**schema, "definitions": others}, change)
    return whole


def _rebuilt(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return a copy of a part of a schema, with each mapping in it changed, the innermost first."""
    if isinstance(value, dict):
        return change({key: _rebuilt(below, change) for key, below in value.items()})
    return [_rebuilt(below, change) for below in value] if isinstance(value, list) else value
