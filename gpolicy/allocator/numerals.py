"""Numbers as htools prints them: `%.Nf` rounds the shortest decimal (GHC, Text.Printf), and Haskell's `show`."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal

_WIDE = Context(prec=1100)


def fixed(value: float, digits: int) -> str:
    """Return `value` with `digits` decimals: the shortest exact decimal, rounded half to even."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    exact = Decimal(repr(value))
    return format(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN, context=_WIDE), "f")


def shown_float(value: float) -> str:
    """Return `value` as Haskell's `show` prints a Double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    _, digits, exponent = Decimal(repr(abs(value))).normalize(_WIDE).as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if 0.1 <= abs(value) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{sign}{text[:point]}.{text[point:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}e{point - 1}"
