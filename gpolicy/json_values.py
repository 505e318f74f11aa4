"""Common parts of our JSON reports: values as JSON types, places, and the text."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from gpolicy.findings import Span

PLACE: Final = ("file", "line", "column")


def json_text(data: Mapping[str, Any]) -> str:
    """Return a report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def fields(item: object, *names: str) -> dict[str, Any]:
    """Return the fields `names` of a value, by name."""
    return {name: plain(getattr(item, name)) for name in names}


def plain(value: object, forms: Mapping[type, Callable[[Any], Any]] = MappingProxyType({})) -> Any:
    """Return a value as JSON types. A number that is not finite is null. `forms` are those of some types."""
    if type(value) in forms:
        return forms[type(value)](value)
    if type(value) in (str, int, bool, type(None)):  # most values
        return value
    match value:
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case tuple() | list():
            return [plain(item, forms) for item in value]
        case Mapping():
            return {key: plain(item, forms) for key, item in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    return {item.name: plain(getattr(value, item.name), forms) for item in dataclasses.fields(value)}


def place(span: Span | None, *names: str) -> dict[str, Any]:
    """Return file, line and column (or the fields `names`) of a place; null if there is none."""
    return {name: getattr(span, name) if span else None for name in names or PLACE}
