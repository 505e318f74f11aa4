"""Stored sizes and rates as people write them, with their unit."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.parameter import Path, Type, Value
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.units import exact_size, rate_text

RATE_UNIT: Final = "KiB/s"


def amount_text(path: Path, value: Value) -> str | None:
    """Return the size or rate at `path` with its unit: 4G, 100M/s; None for a value that is neither."""
    parameter = parameter_at(path)
    if parameter is None or not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    if parameter.type in (Type.SIZE, Type.MIB):
        return exact_size(value)
    return rate_text(value) if parameter.unit == RATE_UNIT else None
