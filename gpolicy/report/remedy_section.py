"""What a plan does wrong to where instances are, before, after, and after the moves that cure some of it."""

from __future__ import annotations

from typing import Final

from gpolicy.impact.impact import MOST_NODES, RemedyChange
from gpolicy.printable import count
from gpolicy.report.answer import Number, Section, Table, Weight, number, size
from gpolicy.report.remedy_answer import duration

TITLE: Final = "Remedy"
_NEXT: Final = (
    "the moves come after the plan, and cure nothing that stops it; to list them: gpolicy plan --save PLAN.json, then"
    " gpolicy remedy PLAN.json --state SRC"
)


def remedy_section(change: RemedyChange) -> Section:
    """Return the figures of the remedy of a plan; nothing where the plan does nothing wrong to places of instances."""
    if not change.new:
        return Section("remedy", TITLE, weight=Weight.SAME)
    columns = 4 if change.searched else 3
    table = Table(
        "Today, after, and after the moves" if change.searched else "Today and after",
        "kinds",
        ("fault", Number("today"), Number("after"), Number("after the remedy"))[:columns],
        [(item.kind.words, *map(number, (item.before, item.after, item.remedied)))[:columns] for item in change.kinds],
    )
    ended = change.searched and not change.exhaustive
    notes = (_NEXT, "the search of a plan is short: more moves may cure more" if ended else "")
    return Section("remedy", TITLE, [table], notes, summary=remedy_figures(change), never_cut=True)


def remedy_figures(change: RemedyChange) -> str:
    """Return what the moves cure, in a few words."""
    if not change.searched:
        return f"{count(change.new, 'new fault')}; a plan looks for no moves in more than {MOST_NODES:,} nodes"
    if not change.cured:
        none = "no move cures any" if change.exhaustive else "the search of a plan found no moves"
        return f"{count(change.new, 'new fault')}; {none}"
    old = f", and {count(change.cured_old, 'fault')} of today" if change.cured_old else ""
    time = f" (about {duration(change.seconds)})" if change.copied else ""
    verb = "cures" if change.moves == 1 else "cure"
    cured = f"{change.cured:,} of {count(change.new, 'new fault')}"
    return f"{count(change.moves, 'move')}, {size(change.copied)} to copy{time}, {verb} {cured}{old}"
