"""What a change does wrong to where instances are, and what moves would cure of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpolicy.analysis.pair_names import PairNames
from gpolicy.impact.comparison import LoadedComparison, StateComparison
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.remedy import DEFAULT_RATE, begin_remedy, find_remedy

MOST_NODES: Final = 1_000
"""The nodes of the largest cluster in which a plan looks for moves."""
_MOST_WORK: Final = 3_000
"""What a plan searches: about a second. It is no time, so that a plan says the same on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChange:
    """The number of faults of one kind before the change, after it, and after the moves that cure some."""

    kind: FaultKind
    before: int
    after: int
    remedied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyChange:
    """What is wrong before and after, and the moves after the change; none are looked for where nothing new is wrong.

    `new` are the faults that the change brings, `cured` those of them that the moves end, `cured_old` other ones.
    `copied` is MiB, `seconds` the time for it at Ganeti's own rate of DRBD. `exhaustive`: the search ended by itself.
    In a cluster that is too large for a plan it does not begin: `searched` is false.
    """

    kinds: tuple[KindChange, ...] = ()
    new: int = 0
    cured: int = 0
    cured_old: int = 0
    moves: int = 0
    job_sets: int = 0
    copied: int = 0
    seconds: float = 0.0
    searched: bool = True
    exhaustive: bool = True


def remedy_change(
    compared: StateComparison, loaded: LoadedComparison, names: PairNames, tell: Callable[[str], None]
) -> RemedyChange:
    """Return what the change does wrong, and what moves cure of it. `loaded` are the two states of `compared`."""
    beginning = begin_remedy(compared.after, loaded.after)
    before, after = set(begin_remedy(compared.before, loaded.before).faults), beginning.faults
    new = {fault for fault in after if fault not in before}
    if not new:
        return RemedyChange(kinds=_kinds(before, after, after))
    if len(compared.after.nodes) > MOST_NODES:
        return RemedyChange(kinds=_kinds(before, after, after), new=len(new), searched=False, exhaustive=False)
    tell("which moves cure what it does wrong")
    report = find_remedy(
        compared.after,
        names,
        beginning=beginning,
        rate=DEFAULT_RATE,
        most_work=_MOST_WORK,
        explain=False,
        tell=tell,
    )
    ended = set(report.faults) - set(report.faults_after)
    return RemedyChange(
        kinds=_kinds(before, after, report.faults_after),
        new=len(new),
        cured=len(ended & new),
        cured_old=len(ended - new),
        moves=len(report.steps),
        job_sets=report.job_sets,
        copied=report.copied,
        seconds=report.seconds,
        exhaustive=report.exhaustive,
    )


def _kinds(*sides: set[Fault] | tuple[Fault, ...]) -> tuple[KindChange, ...]:
    before, after, remedied = (Counter(fault.kind for fault in side) for side in sides)
    return tuple(
        KindChange(kind=kind, before=before[kind], after=after[kind], remedied=remedied[kind])
        for kind in FaultKind
        if before[kind] or after[kind]
    )
