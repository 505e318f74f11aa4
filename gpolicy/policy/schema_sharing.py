"""Shapes of values that stand in a schema several times are written once in its file, under `definitions`.

Readers put them back, so that code which reads a schema sees each value's own shape at its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from gpolicy.policy.schema_parameters import SHAPE, Schema

_VALUE: Final = "value-"
"""What the names of these definitions begin with."""

_REFERENCE: Final = f"#/definitions/{_VALUE}"
_SAID_AT_EACH_PLACE: Final = ("description", "examples")


def share_shapes(schema: Schema) -> Schema:
    """Return `schema` with the named shapes that it has more than once as definitions."""
    places = Counter[Any](_names(schema))
    shared: Schema = {}

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(each) for each in value]
        if not isinstance(value, dict):
            return value
        own = {key: walk(below) for key, below in value.items() if key != SHAPE}
        name = value.get(SHAPE)
        if places[name] < 2:
            return own
        said = {key: own[key] for key in _SAID_AT_EACH_PLACE if key in own}
        shape = {key: below for key, below in own.items() if key not in said}
        if shared.setdefault(f"{_VALUE}{name}", shape) != shape:
            return own  # two parameters of one name take different values
        return {"$ref": f"{_REFERENCE}{name}", **said}

    whole: Schema = walk(schema)
    return {**whole, "definitions": {**whole["definitions"], **shared}} if shared else whole


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and SHAPE in value:
        yield value[SHAPE]
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(below)


def with_own_shapes(schema: Schema) -> Schema:
    """Return a schema that `share_shapes` made with each shape at its places again."""
    shapes = {name: below for name, below in schema["definitions"].items() if name.startswith(_VALUE)}

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(each) for each in value]
        if not isinstance(value, dict):
            return value
        own = {key: walk(below) for key, below in value.items()}
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_REFERENCE):
            return walk(shapes[reference.removeprefix("#/definitions/")]) | {
                k: v for k, v in own.items() if k != "$ref"
            }
        return own

    whole: Schema = walk({key: below for key, below in schema.items() if key != "definitions"})
    return whole | {"definitions": {n: walk(below) for n, below in schema["definitions"].items() if n not in shapes}}
