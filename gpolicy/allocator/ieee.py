"""Division and truncation as binary64 arithmetic and GHC define them, where Python would raise."""

from __future__ import annotations

import math

INT64_MIN = -(2**63)


def divide(numerator: float, denominator: float) -> float:
    """IEEE-754 quotient: x/0 is a signed infinity, 0/0 is NaN."""
    if denominator != 0.0:
        return numerator / denominator
    if numerator == 0.0 or math.isnan(numerator) or math.isnan(denominator):
        return math.nan
    return math.copysign(math.inf, numerator) * math.copysign(1.0, denominator)


def truncate(value: float) -> int:
    """Toward zero, as a 64-bit integer: what does not fit becomes the smallest one."""
    if math.isfinite(value) and -(2.0**63) <= value < 2.0**63:
        return int(value)
    return INT64_MIN


def floor(value: float) -> int:
    """Toward minus infinity, as a 64-bit integer: what does not fit becomes the smallest one."""
    if math.isfinite(value) and -(2.0**63) <= value < 2.0**63:
        return math.floor(value)
    return INT64_MIN
