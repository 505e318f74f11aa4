"""Numbers and texts as GHC, the compiler of htools, computes, prints and sorts them, where Python differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeVar

    Item = TypeVar("Item")

_INT64_MIN: Final = -(2**63)


class DivisionError(ArithmeticError):
    """A whole number is divided by 0: the step of the capacity checks by the memory of an instance, which is 0."""


def divide(numerator: float, denominator: float) -> float:
    """Return the IEEE-754 quotient: x/0 is a signed infinity, 0/0 is NaN."""
    if denominator != 0.0:
        return numerator / denominator
    if numerator == 0.0 or math.isnan(numerator) or math.isnan(denominator):
        return math.nan
    return math.copysign(math.inf, numerator) * math.copysign(1.0, denominator)


def truncate(value: float) -> int:
    """Round toward zero to a 64-bit integer; a number out of range becomes the smallest one."""
    return int(value) if _is_in_range(value) else _INT64_MIN


def floor(value: float) -> int:
    """Round toward minus infinity to a 64-bit integer; a number out of range becomes the smallest one."""
    return math.floor(value) if _is_in_range(value) else _INT64_MIN


def _is_in_range(value: float) -> bool:
    return -(2.0**63) <= value < 2.0**63


def fixed(value: float, digits: int) -> str:
    """Return `value` with `digits` decimals, as `%.Nf` of GHC's printf: the shortest decimal, rounded half to even."""
    if not math.isfinite(value):
        return _not_finite(value)
    number, power = _shortest(value)
    shift = power + digits
    scaled = number * 10**shift if shift >= 0 else round(number, shift) // 10**-shift
    text = str(scaled).rjust(digits + 1, "0")
    point = len(text) - digits
    return f"{_sign(value)}{text[:point]}{'.' if digits else ''}{text[point:]}"


def general(value: float) -> str:
    """Return `value` as `%.6g` of GHC's printf: six decimals, of the mantissa if the number is small or great."""
    if not math.isfinite(value) or value == 0 or 0.1 <= abs(value) < 1e7:
        return fixed(value, 6)
    number, power = _shortest(value)
    exponent = len(str(number)) - 1 + power
    return f"{_sign(value)}{fixed(float(f'{number}e{power - exponent}'), 6)}e{exponent}"


def shown_float(value: float) -> str:
    """Return `value` as Haskell's `show` prints a Double."""
    if not math.isfinite(value):
        return _not_finite(value)
    sign = _sign(value)
    if value == 0:
        return f"{sign}0.0"
    number, power = _shortest(value)
    point = len(str(number)) + power
    text = str(number).rstrip("0")
    if 0.1 <= abs(value) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{sign}{text[:point]}.{text[point:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}e{point - 1}"


def _shortest(value: float) -> tuple[int, int]:
    """Return the shortest decimal of a finite number, unsigned: a whole number and its power of ten."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def _sign(value: float) -> str:
    return "-" if math.copysign(1.0, value) < 0 else ""


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def sorted_by_score(items: Sequence[Item], score: Callable[[Item], float]) -> list[Item]:
    """Return `items` by ascending score, as GHC's `Data.List.sortBy` does.

    Without NaN this is any stable sort. In GHC a comparison with NaN yields "greater", so the order then depends on the
    algorithm: it collects runs (descending ones reversed) and merges them pairwise.
    """
    keyed = [(score(item), item) for item in items]
    if not any(math.isnan(key) for key, _ in keyed):
        return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]
    runs = _runs(keyed)
    while len(runs) > 1:
        runs = [
            _merge(runs[place], runs[place + 1]) if place + 1 < len(runs) else runs[place]
            for place in range(0, len(runs), 2)
        ]
    return [item for _, item in runs[0]]


def _greater(left: float, right: float) -> bool:
    return not left <= right


def _runs(keyed: list[tuple[float, Item]]) -> list[list[tuple[float, Item]]]:
    runs = []
    place = 0
    while place < len(keyed):
        end = place + 1
        descending = end < len(keyed) and _greater(keyed[place][0], keyed[end][0])
        while end < len(keyed) and _greater(keyed[end - 1][0], keyed[end][0]) is descending:
            end += 1
        run = keyed[place:end]
        runs.append(run[::-1] if descending else run)
        place = end
    return runs


def _merge(left: list[tuple[float, Item]], right: list[tuple[float, Item]]) -> list[tuple[float, Item]]:
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if _greater(left[i][0], right[j][0]):
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]


_CONTROL_NAMES = (  # of the characters below 32
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "a", "b", "t", "n", "v", "f", "r", "SO", "SI", "DLE", "DC1"),
    *("DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)


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


def shown_argument(value: int) -> str:
    """Return a number as Haskell shows it as an argument."""
    return f"({value})" if value < 0 else str(value)


def shown_ints(items: Iterable[int]) -> str:
    """Return a list of integers as Haskell shows it."""
    return f"[{','.join(str(item) for item in items)}]"


def shown_peers(peers: Mapping[int, int]) -> str:
    """Return the memory that a node reserves for each other node, most first, of equals the last one (PeerMap)."""
    ordered = sorted(reversed(list(peers.items())), key=lambda pair: -pair[1])  # noqa: C414 - equals are turned
    return f"[{','.join(f'({peer},{memory})' for peer, memory in ordered)}]"
