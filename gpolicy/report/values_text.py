"""Stored values in words, for every form of report. Nothing is escaped here but for a pair's line."""

from collections.abc import Iterable
from typing import Final

from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.parameters import amount_text
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES, Path, Value
from gpolicy.plan.changes import NotCompared
from gpolicy.printable import clipped, count, printable
from gpolicy.report.answer import Entries, Entry, Section, Weight

_SHORT: Final = {
    "memory-size": "mem",
    "cpu-count": "cpu",
    "disk-size": "disk",
    "disk-count": "disks",
    "nic-count": "nics",
    "spindle-use": "spindles",
}
_LONGEST_VALUE: Final = 72


def value_text(path: Path, value: Value) -> str:
    """Return the stored value at `path` in one short line; it may hold anything, so escape it before printing."""
    return amount_text(path, value) or _short(value)


def _short(value: Value) -> str:
    match value:
        case bool():
            text = str(value).lower()
        case [[int(), int()], *_]:  # ranges of user ids
            text = ", ".join("-".join(map(str, item)) for item in value if isinstance(item, list))
        case list():
            text = ", ".join(map(_short, value)) or "(none)"
        case dict():
            items = (key if below is None else f"{key}={_short(below)}" for key, below in value.items())
            text = ", ".join(items) or "(none)"
        case "":
            text = '""'
        case None:
            text = "not set"
        case _:
            text = str(value)
    return clipped(text, _LONGEST_VALUE)


def pair_lines(value: Value) -> list[str]:
    """Return one line for each size, fit to print."""
    return [_pair_text(pair) for pair in value] if isinstance(value, list) else []


def _pair_text(pair: Value) -> str:
    low, high = (pair.get("min"), pair.get("max")) if isinstance(pair, dict) else (None, None)
    if not isinstance(low, dict) or not isinstance(high, dict):
        return printable(str(pair))
    return printable(
        " ".join(f"{_SHORT[name]} {_range(name, low.get(name), high.get(name))}" for name in SPEC_PARAMETERS)
    )


def _range(name: str, low: Value, high: Value) -> str:
    texts = [exact_size(item) if name in SPEC_SIZES and isinstance(item, int) else str(item) for item in (low, high)]
    return texts[0] if texts[0] == texts[1] else "..".join(texts)


def unseen(number: int) -> tuple[str, ...]:
    """Return the sentence on so many values that the source of the state does not show; nothing of none."""
    verb = "was" if number == 1 else "were"
    return (f"{count(number, 'value')} {verb} not compared",) if number else ()


def not_compared(values: Iterable[NotCompared], wanted: str) -> Section:
    """Return the section of values that the source does not show. `wanted` is the word for what the policy says."""
    entries = [
        Entry(f"{item.object} {'.'.join(item.path)} ({wanted} {value_text(item.path, item.wanted)})", mark="?")
        for item in values
    ]
    title = "Not compared: this source cannot show them"
    return Section("unreadable", title, [Entries("value", entries)], weight=Weight.DETAIL)
