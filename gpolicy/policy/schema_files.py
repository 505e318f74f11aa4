"""The JSON Schemas as they lie among the package's data."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from gpolicy.data import data_directory
from gpolicy.policy.kinds import file_name


@cache
def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document."""
    text = (data_directory("schemas") / file_name(kind)).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
