"""Numbers, sizes, lists and names as htools reads them, with its error messages."""

from __future__ import annotations

import re
from enum import Enum

from gpolicy.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _Named = TypeVar("_Named", bound=Enum)

_INT64 = 2**64
_CHUNK = 4000
"""Digits that are converted at once: the time grows with the square of their number."""
_BLANKS = r"[\t-\r \xa0\u1680\u2000-\u200a\u202f\u205f\u3000]*+"
"""Haskell's blanks; Python's `\\s` has some more."""
_NUMBER = re.compile(
    rf"{_BLANKS}(?P<sign>-{_BLANKS})?"
    r"(?P<number>0[xX][0-9a-fA-F]++|0[oO][0-7]++|[0-9]++(?P<fraction>\.[0-9]++)?(?P<exponent>[eE][-+]?[0-9]++)?)"
)
_NOT_FINITE = re.compile(rf"{_BLANKS}(?P<sign>-{_BLANKS})?(?P<number>NaN|Infinity)")


def split(separator: str, text: str) -> list[str]:
    """Split like `str.split`, but an empty text has no parts."""
    return text.split(separator) if text else []


def wrapped(value: int) -> int:
    """Return `value` as a 64-bit signed integer would hold it."""
    return (value + _INT64 // 2) % _INT64 - _INT64 // 2


def parse_int(who: str, text: str) -> int:
    """Return the only number in `text`. Raises InputError that names `who`.

    Numbers of any length are read, and wrap to 64 bits (htools, Utils: `read` of an Int).
    """
    if _is_plain(text):
        return int(text)
    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    return _integer(match)


def parse_float(who: str, text: str) -> float:
    """Return the only number in `text` as a double; NaN and Infinity are numbers."""
    if _is_plain(text):
        return float(text)
    match = _NUMBER.match(text) or _NOT_FINITE.match(text)
    if match is None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    number = match["number"]
    try:
        value = float(int(number, 0) if number[:2].lower() in {"0x", "0o"} else number)
    except OverflowError:
        value = float("inf")
    return -value if match["sign"] else value


def _is_plain(text: str) -> bool:
    """Return whether this is the common case: some digits and nothing else."""
    return len(text) < 19 and text.isdecimal() and text.isascii()


def parse_size(who: str, text: str) -> int:
    """Return a size in MiB; the unit is optional (MiB), decimal units are rounded toward zero.

    The number wraps before it is scaled (htools, Utils: `parseUnit`).
    """
    from gpolicy.ganeti.htools_formats import MIB, bytes_of  # noqa: PLC0415 - only what is needed

    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: Can't parse string '{text}'")
    unit = text[match.end() :].lstrip()
    size = bytes_of(unit)
    if size is None:
        raise InputError(f"{who}: Unknown unit '{unit}'")
    number = _integer(match)
    scaled = abs(number) * size // MIB
    return wrapped(-scaled if number < 0 else scaled)


def _integer(match: re.Match[str]) -> int:
    """Return the number that was matched as a 64-bit integer, however long it is."""
    number = match["number"]
    if number[:2].lower() in {"0x", "0o"}:
        value = int(number, 0)
    else:
        value = 0
        for place in range(0, len(number), _CHUNK):
            chunk = number[place : place + _CHUNK]
            value = (value * pow(10, len(chunk), _INT64) + int(chunk)) % _INT64
    return wrapped(-value if match["sign"] else value)


def _check_rest(who: str, text: str, end: int) -> None:
    if end < len(text):
        raise InputError(f"{who}: leftover characters when parsing '{text}': '{text[end:]}'")


def parse_choice(value: str | None) -> bool:
    """Return what `yes`, `no` or, without a value, the option alone says."""
    if value is None or value == "yes":
        return True
    if value == "no":
        return False
    raise InputError(f"Invalid choice '{value}', pass one of 'yes' or 'no'")


# --- names of closed lists -------------------------------------------------------------------------------------------


def named(kind: type[_Named], text: str, name: str = "") -> _Named:
    """Return the member of `kind`, which htools calls `name`, with the value `text`."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f'Invalid string value for type {name or kind.__name__}: "{text}"') from None
