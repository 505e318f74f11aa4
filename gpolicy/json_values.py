"""Common parts of our JSON reports: values as JSON types, places, and the text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any, Final

from gpolicy.findings import Span

PLACE: Final = ("file", "line", "column")


def json_text(data: Mapping[str, Any]) -> str:
    """Return a report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def head(version: str, report: Any) -> dict[str, Any]:
    """Return the first fields of a report about one cluster."""
    return {"format_version": version, **fields(report, "cluster_name", "source", "snapshot")}


def fields(item: object, *names: str) -> dict[str, Any]:
    """Return the fields `names` of a value, by name."""
    return {name: plain(getattr(item, name)) for name in names}


def plain(value: object) -> Any:
    """Return a value as JSON types. A number that is not finite is null."""
    match value:
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case tuple() | list():
            return [plain(item) for item in value]
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def place(span: Span | None, *names: str) -> dict[str, Any]:
    """Return file, line and column (or the fields `names`) of a place; null if there is none."""
    return {name: getattr(span, name) if span else None for name in names or PLACE}
