"""Sizes as Ganeti's command line reads them, the numbers that gpolicy refuses, and those that make no sense.

Ganeti's own unit parser takes a number and one of m/mb/mib, g/gb/gib, t/tb/tib in any case (all of them powers of 1024,
MiB when there is none), rounds up to a whole MiB and then up to a multiple of 4 MiB. RAPI takes whole MiB as they are.
gpolicy rounds once, when a policy is loaded, so that both ways of applying it end in the same stored value.

The bounds of numbers are generous: no hardware and no hypervisor comes near them. They keep out typing errors and
hostile input, with which counting would take hours. The sensible ranges are wide as well (Ganeti takes far more): from
clusters for tests to machines of many TiB and networks of 400 Gbit/s. Outside of them, most likely a unit or a digit is
wrong.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gpolicy.data import read_data

SIZE_STEP_MIB = 4
"""Ganeti's command line rounds every size up to a multiple of this."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z]*)", re.ASCII)
_FACTOR_MIB = {"": 1, "m": 1, "mb": 1, "mib": 1, "g": 1024, "gb": 1024, "gib": 1024}
_FACTOR_MIB |= {"t": 1024**2, "tb": 1024**2, "tib": 1024**2}
_LONGEST_TEXT = 40  # far above any real size; keeps hostile text from becoming a huge number
_LARGEST_MIB = 2**53  # what a JSON number carries exactly


def parse_size_exact(text: str | float) -> Fraction | int:
    """Return the size in MiB, unrounded, of a text or a whole number (8.0, too). Raise ValueError with a reason."""
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


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and the most that a number may be, 0 or at least `finest` away from it; `unit` is for people."""

    least: int
    most: int
    unit: str = ""
    finest: float = 0.0

    def refusal(self, number: float) -> str:
        """Return in words why the number is refused; nothing if it is within the bound."""
        if self.least <= number <= self.most and (number == 0 or abs(number) >= self.finest):
            return ""
        unit = f" {self.unit}" if self.unit else ""
        if number < self.least:
            return f"no cluster has less than {self.least}{unit}"
        if number <= self.most:
            return f"no cluster has so little; the minimum is {self.finest:f}{unit}"
        return f"no cluster has more than {self.most}{unit}"

    @property
    def signed(self) -> Bound:
        """The same for a number that may be below zero."""
        return Bound(-self.most, self.most, self.unit)


MEMORY: Final = Bound(0, 2**30, "MiB")  # 1 PiB; x86-64 addresses 64 TiB, with five levels of page tables 4 PiB
DISK: Final = Bound(0, 2**40, "MiB")  # 1 EiB, the largest file system of most kernels
CPUS: Final = Bound(0, 8192)  # of a node: the most that a Linux kernel can be built for
COUNT: Final = Bound(0, 100_000)  # of an instance: some ten times what QEMU takes; 99999 is written for "any number"
RATIO: Final = Bound(-100_000, 100_000, finest=0.00001)  # Ganeti stores any ratio and speed, also below zero

GREATEST_OVERSUBSCRIPTION: Final = 100
"""Of memory; a greater ratio must be a mistake: it would not limit anything."""
MOST_NODE_FAILURES: Final = 8
"""The greatest number of nodes of a group that may fail at once."""

BOUNDS: Final[dict[str, Bound]] = {
    # what a node measures. Free amounts are differences, and Ganeti reports them below zero as well
    "memory_total": MEMORY,
    "memory_node": MEMORY.signed,
    "memory_free": MEMORY.signed,
    "disk_free": DISK.signed,
    "spindles_total": COUNT,
    "spindles_free": COUNT.signed,
    # a physical volume, and a disk
    **dict.fromkeys(("size", "free", "used"), DISK),
    "spindles": COUNT,
    # an instance, and the backend parameters
    **dict.fromkeys(("minmem", "maxmem", "oper_ram"), MEMORY),
    **dict.fromkeys(("vcpus", "spindle_use", "nic_count"), COUNT),
    # a spec
    "memory-size": MEMORY,
    "disk-size": DISK,
    **dict.fromkeys(("cpu-count", "disk-count", "nic-count", "spindle-use"), COUNT),
    # ratios, and what a node is declared to have; Ganeti stores any spindle_count (GP726 says what comes of it)
    **dict.fromkeys(("vcpu-ratio", "spindle-ratio", "cpu_speed"), RATIO),
    "spindle_count": COUNT.signed,
    **dict.fromkeys(("mem_total", "mem_node", "mem_hv"), MEMORY),
    **dict.fromkeys(("disk_total", "disk_reserved", "disk_overhead"), DISK),
    **dict.fromkeys(("cpu_total", "cpu_node"), CPUS),
    # hardware that a policy promises, or a test simulates
    "memory": MEMORY,
    **dict.fromkeys(("disk", "disks", "pv_size", "pvs"), DISK),
    "cpus": CPUS,
    "pv_count": COUNT,
}
"""By the name of the field, key or parameter, wherever it stands."""

BOUNDED_FAMILIES: Final = frozenset({"ipolicy", "ndparams", "beparams", "hv_state", "disk_state"})
"""The parameters that counting depends on. Others (of hypervisors, of disk templates) are passed on as they are."""


def parse_bounded_size(text: str | float, name: str) -> Fraction | int:
    """Return the unrounded MiB of `text` for the value of `name`. Raise ValueError if none, or beyond `BOUNDS`."""
    size = parse_size_exact(text)
    bound = BOUNDS.get(name)
    if bound is not None and size > bound.most:
        raise ValueError(f"no cluster has more than {exact_size(bound.most)}")
    return size


MIB: Final = "MiB"
KIB_PER_SECOND: Final = "KiB/s"

_OF_ONE: Final = {"bits": "bit", "sectors": "sector", "tenths of a second": "tenth of a second"}
"""Units that are words, for the number 1."""


@dataclass(frozen=True, slots=True)
class SensibleRange:
    """The least and the greatest sensible number, in `unit`, of the parameter or key `name`.

    `zero`: what 0 means; empty where a rule of its own is about it, None where it makes no sense. `unlimited`: people
    switch the limit off with a huge number. `gap`: between these two no number makes sense either. `why`: others make
    no sense.
    """

    name: str
    least: float
    most: float
    why: str
    unit: str = ""
    zero: str | None = None
    unlimited: bool = False
    gap: list[float] | None = None

    def takes(self, number: float) -> bool:
        """Return whether a number makes sense."""
        in_gap = self.gap is not None and self.gap[0] < number < self.gap[1]
        return (
            (self.least <= number <= self.most and not in_gap)
            or (number == 0 and self.zero is not None)
            or (self.unlimited and is_without_limit(number))
        )

    def shown(self, number: float) -> str:
        """Return a number with its unit: 4M, 100M/s, 5 ms."""
        if self.unit == MIB:
            return exact_size(int(number))
        if self.unit == KIB_PER_SECOND and number >= 0:
            return rate_text(int(number))
        return f"{_number_text(number)} {self._unit_of(number)}".rstrip()

    def _unit_of(self, number: float) -> str:
        return _OF_ONE.get(self.unit, self.unit) if number == 1 else self.unit

    @property
    def words(self) -> str:
        """The range for people: `64M to 2T`, `0 (no limit), or 4 to 51200 MiB/s`."""
        if self.least == 0:
            return f"up to {self.shown(self.most)}"
        low = (self.least, *(self.gap or ()))
        plain = [self.shown(bound).removesuffix(f" {self._unit_of(bound)}") for bound in low]
        plain.append(self.shown(self.most))
        ranges = ", or ".join(" to ".join(plain[place : place + 2]) for place in range(0, len(plain), 2))
        return f"{f'0 ({self.zero}), or ' if self.zero else ''}{ranges}"

    def meant(self, number: float, usual: float = 0) -> str:
        """Return how a number is written if meant in another unit, that nearest to `usual`; nothing where none fits."""
        found = [
            (number * factor, unit)
            for factor, unit in _OTHER_UNITS.get(self.unit, ())
            if self.least <= number * factor <= self.most and (number * factor).is_integer()
        ]
        if not found:
            return ""
        meant, unit = min(found, key=lambda item: abs(math.log(item[0] / usual))) if usual > 0 else found[0]
        written = self.shown(meant).removesuffix("/s") if self.unit in (MIB, KIB_PER_SECOND) else _number_text(meant)
        return f"write {written}, if {_number_text(number)} {unit} {'are' if number != 1 else 'is'} meant"


def _number_text(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:g}"


_OTHER_UNITS: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    MIB: ((1024.0, "GiB"), (1024.0**2, "TiB"), (1 / 1024, "KiB"), (1 / 1024**2, "bytes")),
    KIB_PER_SECOND: ((1024.0, "MiB/s"), (1024.0**2, "GiB/s"), (1 / 1024, "bytes/s")),
    "MiB/s": ((1 / 1024, "KiB/s"), (1 / 1024**2, "bytes/s")),
    "µs": ((1e6, "s"), (1e3, "ms")),
    "ms": ((1e3, "s"), (1 / 1000, "µs")),
    "s": ((1 / 1000, "ms"), (1 / 1_000_000, "µs")),
    "tenths of a second": ((10.0, "s"), (1 / 100, "ms")),
    "%": ((100.0, "CPUs"),),
}
"""What people take the unit of a number for: by which factor it is wrong then."""

_WITHOUT_LIMIT: Final = re.compile(r"9{3,}|10{3,}")


def is_without_limit(number: float) -> bool:
    """Return whether people write a number to switch a limit off: 999, 1000, 9999, …"""
    return number == int(number) and _WITHOUT_LIMIT.fullmatch(str(int(number))) is not None


_RANGES: Final[dict[str, SensibleRange]] = {}


def sensible_ranges() -> dict[str, SensibleRange]:
    """Return the ranges by the name of the parameter or key, wherever it stands: `templates/parameters.toml`.

    Those of intervals of collectors are by their family.
    """
    if _RANGES:
        return _RANGES
    readers = {MIB: parse_size_exact, KIB_PER_SECOND: parse_rate}
    for name, words in read_data("parameters.toml")["sensible"].items():
        read = readers.get(words.get("unit", ""), float)
        ends = {end: read(words[end]) if isinstance(words[end], str) else words[end] for end in ("least", "most")}
        _RANGES[name] = SensibleRange(**{"name": name, **words, **ends})
    return _RANGES


def sensible_range(path: tuple[str, ...]) -> SensibleRange | None:
    """Return the sensible range of the number at `path`; None where any number may make sense."""
    return sensible_ranges().get(path[0] if path[0] == "data_collector_interval" else path[-1])
