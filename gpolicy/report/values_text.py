"""Stored values, changes and the verdict of a plan in words, for every form of report.

Nothing is escaped here but for a pair's line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.analysis.size_words import MINMAX
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.parameters import amount_text
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES, Path, Value
from gpolicy.impact.impact import Impact
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, Change, ChangeAction, NotCompared, words
from gpolicy.plan.plan import Plan
from gpolicy.printable import clipped, count, named, printable
from gpolicy.report.answer import Entries, Entry, Name, Section, Weight, plain_text

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
    return [_pair(pair) for pair in value] if isinstance(value, list) else []


def _pair(pair: Value) -> str:
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


def verdict(plan: Plan) -> str:
    """Return in a few words whether the plan may be carried out."""
    errors = sum(item.severity == "error" for item in plan.findings)
    if errors:
        return f"No plan: the policy has {count(errors, 'error')} for this cluster"
    failed = sum(not guard.ok for guard in plan.guards)
    if failed:
        return f"Not to be applied: {count(failed, 'guard')} of {len(plan.guards)} {'fails' if failed == 1 else 'fail'}"
    if plan.changes:
        allowed = sum(guard.allowed for guard in plan.guards)
        return f"Can be applied, {count(allowed, 'guard')} overridden" if allowed else "Can be applied"
    if plan.left_out:
        return f"No changes in this part of the plan: {count(len(plan.left_out), 'change')} left out"
    if plan.unreadable:
        return "No changes in what was compared"
    return "No changes: the cluster is what the policy declares"


def full_verdict(plan: Plan, impact: Impact | None, sections: Iterable[Section]) -> str:
    """Return the verdict with what gets worse; `sections` are those of the impact."""
    change = impact.capacity if impact else None
    emptied = [item.group or "" for item in change.groups if item.emptied] if change else []
    told = [f"{named('group', emptied)} would take no new instance"] if emptied else []
    if not plan.safe:
        return "; ".join((verdict(plan), *told))
    worse = [item for item in sections if item.weight is Weight.WORSE and not (emptied and item.key == "capacity")]
    told += [section.worse or _worse_rows(section) for section in worse]
    return verdict(plan) + (f", but worse: {'; '.join(told)}" if told else "")


def _worse_rows(section: Section) -> str:
    """Return the title of the first table that is worse, with the name of its first row."""
    table = next((table for table in section.tables if table.weight is Weight.WORSE), None)
    if table is None:
        return section.title.lower()
    name = next((plain_text(cell, 1) for cell in table.rows[0] if isinstance(cell, Name)), "")
    more = f" and {len(table) - 1:,} more" if len(table) > 1 else ""
    return f"{table.title[0].lower()}{table.title[1:]}: {name}{more}"


def amount(plan: Plan) -> str:
    """Return how much there is of the plan: 3 changes in 2 steps."""
    much = f"{count(len(plan.changes), 'change')} in {count(len(plan.steps), 'step')}"
    return f"{much}, {len(plan.left_out):,} left out" if plan.left_out else much


def change_words(change: Change) -> str:
    """Return the change of one value, name, membership or set of tags."""
    match change.path, change.action:
        case path, ChangeAction.CREATE if path == NAME:
            return f"create group {change.object_name}"
        case path, ChangeAction.REMOVE if path == NAME:
            return f"remove group {change.before}"
        case path, _ if path == NAME:
            return f"rename from {change.before}"
        case path, _ if path == MEMBERSHIP:
            return f"move from group {change.before} to {change.after}"
        case path, _ if path == MINMAX and change.before is None and change.effective_before is not None:
            return "ipolicy.minmax: own sizes in place of the cluster's"
        case path, _ if path == MINMAX and change.after is None:
            return "ipolicy.minmax: the cluster's sizes in place of its own"
        case path, _ if path in (MINMAX, TAGS):
            return ".".join(path)
    path, name = change.path, ".".join(change.path)
    before, after = value_text(path, change.before), value_text(path, change.after)
    if change.before is None and change.effective_before is not None:
        before = f"{value_text(path, change.effective_before)} (inherited)"
    if change.after is None:
        after = f"inherit ({value_text(path, change.effective_after)})"
    return f"{name}: {before} → {after}"


def tag_changes(change: Change) -> Iterator[tuple[str, str]]:
    """Yield each tag that is removed or added, with its sign."""
    before, after = words(change.before), words(change.after)
    yield from (("-", tag) for tag in before if tag not in after)
    yield from (("+", tag) for tag in after if tag not in before)


def pair_changes(change: Change) -> Iterator[tuple[str, str]]:
    """Yield the lines of effective sizes with their sign: -, +, a space for one that stays, # for a remark."""
    old = pair_lines(change.effective_before if change.before is None else change.before)
    new = pair_lines(change.effective_after if change.after is None else change.after)
    yield from (("-", line) for line in old if line not in new)
    yield from ((" ", line) if line in old else ("+", line) for line in new)
    if old != new and sorted(old) == sorted(new):
        yield "#", "same sizes, other order"
