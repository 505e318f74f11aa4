"""Numbers, sizes and lists as htools reads them, with its error texts."""

from __future__ import annotations

import re
from fractions import Fraction

from gpolicy.errors import InputError

_INT64 = 2**64
_NUMBER = re.compile(
    r"\s*(?P<sign>-\s*)?"
    r"(?P<number>0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9]+(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?)"
)
_NOT_FINITE = re.compile(r"\s*(?P<sign>-\s*)?(?P<number>NaN|Infinity)")
_EXACT_UNITS = {"": Fraction(1), "m": Fraction(1), "g": Fraction(1024), "t": Fraction(1024**2)}
_DECIMAL_MEGA = Fraction(1000, 1024) ** 2
_LONG_UNITS = {
    "mib": Fraction(1),
    "gib": Fraction(1024),
    "tib": Fraction(1024**2),
    "mb": _DECIMAL_MEGA,
    "gb": _DECIMAL_MEGA * 1000,
    "tb": _DECIMAL_MEGA * 1000**2,
}
_SHORT_DECIMAL_UNITS = {"M": _DECIMAL_MEGA, "G": _DECIMAL_MEGA * 1000, "T": _DECIMAL_MEGA * 1000**2}


def split(separator: str, text: str) -> list[str]:
    """Split like `str.split`, but the empty text has no parts."""
    return text.split(separator) if text else []


def wrapped(value: int) -> int:
    """Return `value` as a 64-bit signed integer would hold it."""
    return (value + _INT64 // 2) % _INT64 - _INT64 // 2


def parse_int(who: str, text: str) -> int:
    """Return the only number in `text`. Raises InputError that names `who`."""
    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    value = int(match["number"], 0) if match["number"][:2].lower() in {"0x", "0o"} else int(match["number"])
    return wrapped(-value if match["sign"] else value)


def parse_float(who: str, text: str) -> float:
    """Return the only number in `text` as a double; NaN and Infinity are numbers."""
    match = _NUMBER.match(text) or _NOT_FINITE.match(text)
    if match is None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    number = match["number"]
    value = _as_float(int(number, 0)) if number[:2].lower() in {"0x", "0o"} else float(number)
    return -value if match["sign"] else value


def parse_size(who: str, text: str) -> int:
    """Return a size in MiB; the unit is optional (MiB), decimal units are rounded down."""
    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: Can't parse string '{text}'")
    unit = text[match.end() :].lstrip()
    factor = _EXACT_UNITS.get(unit) or _SHORT_DECIMAL_UNITS.get(unit) or _LONG_UNITS.get(unit.lower())
    if factor is None:
        raise InputError(f"{who}: Unknown unit '{unit}'")
    number = match["number"]
    value = int(number, 0) if number[:2].lower() in {"0x", "0o"} else int(number)
    scaled = (-value if match["sign"] else value) * factor
    return wrapped(int(scaled))


def _check_rest(who: str, text: str, end: int) -> None:
    if end < len(text):
        raise InputError(f"{who}: leftover characters when parsing '{text}': '{text[end:]}'")


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
