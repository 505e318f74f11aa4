"""Numbers, strings and lists as the Haskell original shows them, where that is part of the output."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal

_CONTROL_NAMES = (
    "NUL SOH STX ETX EOT ENQ ACK a b t n v f r SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split()
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
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 0.1 <= abs(value) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{sign}{text[:point]}.{text[point:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}e{point - 1}"


def shown_string(text: str) -> str:
    """Return `text` in quotes, escaped as a Haskell string literal."""
    parts = []
    after_number = after_so = False
    for character in text:
        code = ord(character)
        escape = None
        if character in '"\\':
            escape = f"\\{character}"
        elif code < 32:
            escape = f"\\{_CONTROL_NAMES[code]}"
        elif code == 127:
            escape = "\\DEL"
        elif code > 126:
            escape = f"\\{code}"
        if escape is None and ((after_number and character.isdigit()) or (after_so and character == "H")):
            parts.append("\\&")
        parts.append(escape if escape is not None else character)
        after_number, after_so = escape is not None and code > 127, code == 14
    return f'"{"".join(parts)}"'


def shown_strings(items: Iterable[str]) -> str:
    """Return a list of strings as Haskell shows it."""
    return f"[{','.join(shown_string(item) for item in items)}]"


def shown_ints(items: Iterable[int]) -> str:
    """Return a list of integers as Haskell shows it."""
    return f"[{','.join(str(item) for item in items)}]"
