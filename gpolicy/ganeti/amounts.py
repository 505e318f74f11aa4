"""Stored sizes, rates and ratios as people write them."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.parameter import Path, Type, Value
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.units import exact_size, rate_text

RATE_UNIT: Final = "KiB/s"


def amount_text(path: Path, value: Value) -> str | None:
    """Return a size or rate with its unit (4G, 100M/s), and a ratio of 4.0 as 4; None for another value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    parameter = parameter_at(path)
    if parameter is None or not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    if parameter.type in (Type.SIZE, Type.MIB):
        return exact_size(value)
    return rate_text(value) if parameter.unit == RATE_UNIT else None
