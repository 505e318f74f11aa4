"""Names of sizes: a size of divisor k is the k-th part of a node."""

from __future__ import annotations

from typing import Final

from gpolicy.errors import UsageError

MOST_PARTS: Final = 64
"""The greatest divisor with a name."""

_NAMES: Final = {
    1: "full",
    2: "half",
    3: "third",
    4: "quarter",
    5: "fifth",
    6: "sixth",
    7: "seventh",
    8: "eighth",
    9: "ninth",
    10: "tenth",
    12: "twelfth",
    16: "sixteenth",
}
_DIVISORS: Final = {name: divisor for divisor, name in _NAMES.items()}


def size_name(divisor: int) -> str:
    """Return the name of the size that is the `divisor`-th part of a node."""
    return _NAMES.get(divisor, f"part-{divisor}")


def divisor_of(name: str) -> int:
    """Return the divisor of `name`: full, half, …, part-7 or 1/7. Raise UsageError for an unknown name."""
    word = name.strip().lower()
    if word in _DIVISORS:
        return _DIVISORS[word]
    number = word.removeprefix("1/").removeprefix("part-")
    if number != word and number.isascii() and number.isdigit() and len(number) < 7 and 1 <= int(number) <= MOST_PARTS:
        return int(number)
    hint = f"sizes are {', '.join(_DIVISORS)}, or 1/N with N up to {MOST_PARTS}"
    raise UsageError(f"there is no size {name!r}", hint=hint)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the divisors of `full,half,quarter`, biggest size first. Raise UsageError."""
    divisors = [divisor_of(name) for name in text.split(",")]
    if len(set(divisors)) < len(divisors):
        raise UsageError(f"{text!r} names a size twice")
    return tuple(sorted(divisors))


def parse_mix(text: str) -> dict[int, int]:
    """Return the weight by divisor of `full=2,half=3,quarter=10`. Raise UsageError."""
    weights: dict[int, int] = {}
    for item in text.split(","):
        name, equals, number = item.partition("=")
        count = number.strip()
        if not equals or not (count.isascii() and count.isdigit() and len(count) < 7 and int(count) > 0):
            raise UsageError(
                f"{item!r} is not a valid part of a mix",
                hint="write SIZE=N, N from 1 to 999999: full=2,half=3,quarter=10",
            )
        divisor = divisor_of(name)
        if divisor in weights:
            raise UsageError(f"the mix names size {name.strip()} twice")
        weights[divisor] = int(count)
    return dict(sorted(weights.items()))
