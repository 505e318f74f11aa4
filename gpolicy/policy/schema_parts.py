"""Parts of which several schemas are made."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.bounds import BOUNDS
from gpolicy.policy.schema_parameters import NAME, Schema

TAG: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_.+*/:@-]{1,128}$"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
"""A number that a test expects."""
NODES: Final[Schema] = {"type": "array", "items": NAME, "minItems": 1, "maxItems": 2, "uniqueItems": True}


def count_of(name: str, *, least: int = 0) -> Schema:
    """Return a whole number that a cluster can have in the place of this name."""
    return {"type": "integer", "minimum": least, "maximum": BOUNDS[name].most}


def object_of(properties: Schema, *, required: tuple[str, ...] = (), minimum: int = 0) -> Schema:
    """Return a mapping with these keys alone, at least `minimum` of them."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    if minimum:
        schema["minProperties"] = minimum
    return schema


def map_of(of: Schema) -> Schema:
    """Return a mapping of names that the policy chooses (specs, nodes) to values."""
    return {"type": "object", "additionalProperties": of, "minProperties": 1}
