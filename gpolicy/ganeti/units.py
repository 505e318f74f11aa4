"""Sizes as Ganeti's command line reads them.

Ganeti's own unit parser takes a number and one of m/mb/mib, g/gb/gib, t/tb/tib in any case (all of them
powers of 1024, MiB when there is none), rounds up to a whole MiB and then up to a multiple of 4 MiB.
RAPI takes whole MiB as they are. gpolicy rounds once, when a policy is loaded, so that both ways of
applying it end in the same stored value.
"""

from __future__ import annotations

import re
from fractions import Fraction

SIZE_STEP_MIB = 4
"""Ganeti's command line rounds every size up to a multiple of this."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z]*)", re.ASCII)
_FACTOR_MIB = {"": 1, "m": 1, "mb": 1, "mib": 1, "g": 1024, "gb": 1024, "gib": 1024}
_FACTOR_MIB |= {"t": 1024**2, "tb": 1024**2, "tib": 1024**2}
_LONGEST_TEXT = 40  # far above any real size; keeps hostile text from becoming a huge number
_LARGEST_MIB = 2**53  # what a JSON number carries exactly


def parse_size_exact(text: str | float) -> Fraction | int:
    """Return the size that `text` names, in MiB, unrounded. Raise ValueError with a readable reason.

    A number without a fraction may be written as a float (8.0): to JSON Schema it is an integer.
    """
    size: Fraction | int
    if isinstance(text, int):
        size = text
    elif isinstance(text, float):
        if not text.is_integer():
            raise ValueError("not a size: write a whole number of MiB")
        size = int(text)
    else:
        match = _SIZE.fullmatch(text.strip()) if len(text) <= _LONGEST_TEXT else None
        if match is None:
            raise ValueError("not a size: write a number of MiB, or a number with M, G or T")
        factor = _FACTOR_MIB.get(match[2].lower())
        if factor is None:
            raise ValueError(f"Ganeti knows no unit {match[2]!r}: use M, G or T (powers of 1024)")
        number = match[1].rstrip(".")
        size = (int(number) if number.isdigit() else Fraction(number)) * factor
    if size < 0:
        raise ValueError("a size cannot be negative")
    if size > _LARGEST_MIB:
        raise ValueError("larger than any disk or memory")
    return size


def round_size(size: Fraction | int) -> int:
    """Return `size` in MiB rounded up as the command line rounds it: to a whole multiple of 4 MiB."""
    whole = -(-size // 1)
    return int(-(-whole // SIZE_STEP_MIB) * SIZE_STEP_MIB)


def parse_size(text: str | int) -> int:
    """Return the MiB that Ganeti's command line would store for `text`. Raise ValueError if it is no size."""
    return round_size(parse_size_exact(text))


def format_size(mib: int) -> str:
    """Return the shortest text that `parse_size` reads back as `mib`: 1T, 10G, 516."""
    if mib and mib % 1024**2 == 0:
        return f"{mib // 1024**2}T"
    if mib and mib % 1024 == 0:
        return f"{mib // 1024}G"
    return str(mib)


def exact_size(mib: int) -> str:
    """Return MiB as `format_size` does, always with a unit: 64G, 66240M, 0."""
    if mib < 0:
        return f"-{exact_size(-mib)}"
    text = format_size(mib)
    return f"{text}M" if text.isdigit() and mib else text


def rough_size(mib: int) -> str:
    """Return MiB for people, to a tenth of the unit: 251.2G, 8T, 512M."""
    for unit, factor in (("T", 1024**2), ("G", 1024)):
        if abs(mib) >= factor:
            return f"{round(mib / factor, 1):g}{unit}"
    return f"{mib}M"


def compared_sizes(*sizes: int) -> list[str]:
    """Return sizes for people who compare them: rough ones, but all in MiB where two that differ would look alike."""
    shown = [rough_size(size) for size in sizes]
    return shown if len(set(shown)) == len(set(sizes)) else [f"{size}M" for size in sizes]


_RATE_FACTOR_KIB = {"": 1, "k": 1, "kb": 1, "kib": 1, "m": 1024, "mb": 1024, "mib": 1024}
_RATE_FACTOR_KIB |= {"g": 1024**2, "gb": 1024**2, "gib": 1024**2}


def parse_rate(text: str | int) -> int:
    """Return the KiB/s that `text` names: a number of KiB/s, or one with K, M or G. Raise ValueError if it is none.

    The units are gpolicy's own: Ganeti takes such a parameter as a bare number of KiB/s.
    """
    if isinstance(text, int):
        return text
    match = _SIZE.fullmatch(text.strip()) if len(text) <= _LONGEST_TEXT else None
    factor = _RATE_FACTOR_KIB.get(match[2].lower()) if match else None
    if match is None or factor is None or match[1] == ".":
        raise ValueError("not a rate: write a number of KiB/s, or a number with K, M or G")
    rate = Fraction(match[1].rstrip(".")) * factor
    if rate.denominator != 1:
        raise ValueError("not a whole number of KiB/s")
    return int(rate)


def rate_text(kib: int) -> str:
    """Return KiB/s with the greatest unit that needs no fraction: 100M/s, 516K/s."""
    return f"{exact_size(kib // 1024)}/s" if kib >= 1024 and kib % 1024 == 0 else f"{kib}K/s"
