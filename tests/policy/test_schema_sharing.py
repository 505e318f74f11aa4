"""Shapes that a schema has several times stand once in its file, and at each of their places when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from gpolicy.data import data_directory
from gpolicy.policy.conformance import file_name, schema_of, with_own_shapes
from gpolicy.policy.kinds import KIND_NAMES
from scripts.schemas.parameters import SHAPE, SIZE, share_shapes


def test_a_shape_with_two_places_is_a_definition_and_what_is_said_stays_at_each() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "memory": {**SIZE, "description": "Memory."},
            "disk": SIZE,
            "name": {SHAPE: "n", "type": "string"},
        },
        "definitions": {},
    }
    shared = share_shapes(schema)
    assert shared["properties"] == {
        "memory": {"$ref": "#/definitions/value-size", "description": "Memory."},
        "disk": {"$ref": "#/definitions/value-size"},
        "name": {"type": "string"},
    }
    plain = {key: value for key, value in SIZE.items() if key != SHAPE}
    assert shared["definitions"] == {"value-size": plain}
    assert with_own_shapes(shared) == {
        "properties": {"memory": {**plain, "description": "Memory."}, "disk": plain, "name": {"type": "string"}},
        "definitions": {},
    }


def test_two_shapes_of_one_name_stay_apart() -> None:
    one, other = {SHAPE: "mode", "enum": ["a"]}, {SHAPE: "mode", "enum": ["b"]}
    shared = share_shapes({"properties": {"x": one, "y": other}, "definitions": {}})
    assert with_own_shapes(shared)["properties"] == {"x": {"enum": ["a"]}, "y": {"enum": ["b"]}}


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_readers_of_a_kind_see_no_shared_shape(kind: str) -> None:
    assert "value-" not in str(schema_of(kind))
    assert SHAPE not in (data_directory("schemas") / file_name(kind)).read_text(encoding="utf-8")
