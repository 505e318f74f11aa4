"""Changes and steps in words, for every form of report. Nothing is escaped here but for a pair's line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.ganeti.grammar import shell_line
from gpolicy.ganeti.parameter import Value
from gpolicy.ganeti.units import format_size
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, Action, Change, words
from gpolicy.plan.steps import Step
from gpolicy.report.findings_text import printable

_SHORT: Final = {
    "memory-size": "mem",
    "cpu-count": "cpu",
    "disk-size": "disk",
    "disk-count": "disks",
    "nic-count": "nics",
    "spindle-use": "spindles",
}
_LONGEST_VALUE: Final = 72


def change_words(change: Change) -> str:
    """Return what becomes of one value, name, membership or set of tags."""
    match change.path, change.action:
        case path, Action.CREATE if path == NAME:
            return f"create group {change.object_name}"
        case path, Action.REMOVE if path == NAME:
            return f"remove group {change.before}"
        case path, _ if path == NAME:
            return f"rename from {change.before}"
        case path, _ if path == MEMBERSHIP:
            return f"move from group {change.before} to {change.after}"
        case path, _ if path == TAGS:
            before, after = words(change.before), words(change.after)
            added = [f"+{tag}" for tag in after if tag not in before]
            return f"tags {', '.join([*added, *(f'-{tag}' for tag in before if tag not in after)])}"
    name = ".".join(change.path)
    if change.action is Action.RESET:
        return f"{name}: {value_words(change.before)} → inherit"
    return f"{name}: {'not set' if change.before is None else value_words(change.before)} → {value_words(change.after)}"


def differs_in_effect(change: Change) -> bool:
    """Return whether what is in force says more than the own values do."""
    if change.path == ("ipolicy", "minmax"):
        return False
    shown = (change.before, change.after)
    return (change.effective_before, change.effective_after) != shown and change.effective_before is not None


def value_words(value: Value) -> str:
    """Return a value in one line, cut where it is long."""
    match value:
        case bool():
            text = str(value).lower()
        case [[int(), int()], *_]:  # ranges of user ids
            text = ", ".join("-".join(map(str, item)) for item in value if isinstance(item, list))
        case list():
            text = ", ".join(map(value_words, value)) or "(none)"
        case dict():
            text = ", ".join(f"{key}={value_words(below)}" for key, below in value.items()) or "(none)"
        case "":
            text = '""'
        case None:
            text = "not set"
        case _:
            text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _pair_lines(value: Value) -> list[str]:
    return [_pair(pair) for pair in value] if isinstance(value, list) else []


def _pair(pair: Value) -> str:
    low, high = (pair.get("min"), pair.get("max")) if isinstance(pair, dict) else (None, None)
    if not isinstance(low, dict) or not isinstance(high, dict):
        return printable(str(pair))
    return printable(
        " ".join(f"{_SHORT[name]} {_range(name, low.get(name), high.get(name))}" for name in SPEC_PARAMETERS)
    )


def _range(name: str, low: Value, high: Value) -> str:
    texts = [format_size(item) if name in SPEC_SIZES and isinstance(item, int) else str(item) for item in (low, high)]
    return texts[0] if texts[0] == texts[1] else "..".join(texts)


def step_command(step: Step) -> str:
    """Return the shell line of a step, or the request that stands for it."""
    if step.command.argv is not None:
        return shell_line(step.command.argv)
    rapi = step.command.rapi
    return f"RAPI only: {rapi.method} {rapi.path}" if rapi else "no command"


def pair_changes(before: Value, after: Value) -> Iterator[tuple[str, str]]:
    """Give the lines of changed spec pairs with their sign: -, +, a space for one that stays, # for a remark."""
    old, new = _pair_lines(before), _pair_lines(after)
    yield from (("-", line) for line in old if line not in new)
    yield from ((" ", line) if line in old else ("+", line) for line in new)
    if old and not new:
        yield "#", "own pairs removed, the cluster's hold"
    elif sorted(old) == sorted(new):
        yield "#", "same pairs, other order"
