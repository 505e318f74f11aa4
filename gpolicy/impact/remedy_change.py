"""What a change does wrong to where instances are, and what moves would cure of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from gpolicy.analysis.pair_names import PairNames
from gpolicy.impact.comparison import LoadedComparison
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.remedy import DEFAULT_RATE, begin_remedy, find_remedy
from gpolicy.stopping import Tell, after_work

MOST_NODES: Final = 1_000
"""The nodes of the largest cluster in which a plan looks for moves."""
_MOST_WORK: Final = 3_000
"""What a plan searches: about a second. It is no time, so that a plan says the same on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChange:
    """The number of faults of one kind."""

    kind: FaultKind
    """The kind."""
    before: int
    """How many now."""
    after: int
    """How many after the changes."""
    remedied: int
    """How many after the moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyChange:
    """What is wrong before and after, and the moves after the change."""

    kinds: tuple[KindChange, ...] = ()
    """The kinds of faults that there are, as `gpolicy remedy` names them."""
    new: int = 0
    """Faults that the changes bring. Where there are none, no moves are looked for."""
    cured: int = 0
    """How many of them the moves end."""
    cured_old: int = 0
    """How many faults of before the moves end."""
    moves: int = 0
    """Moves."""
    job_sets: int = 0
    """Sets of jobs that may run side by side."""
    copied: int = 0
    """Disk that they copy."""
    seconds: float = 0.0
    """Time for it at Ganeti's own rate of DRBD."""
    searched: bool = True
    """Whether moves were looked for: not in a cluster of more than 200 nodes."""
    exhaustive: bool = True
    """Whether the search ended by itself; false where there was none."""


def remedy_change(compared: LoadedComparison, names: PairNames, tell: Tell) -> RemedyChange:
    """Return what the change does wrong, and what moves cure of it."""
    states = compared.states
    beginning = begin_remedy(states.after, compared.after)
    before, after = set(begin_remedy(states.before, compared.before).faults), beginning.faults
    new = {fault for fault in after if fault not in before}
    if not new:
        return RemedyChange(kinds=_kinds(before, after, after))
    if len(states.after.nodes) > MOST_NODES:
        return RemedyChange(kinds=_kinds(before, after, after), new=len(new), searched=False, exhaustive=False)
    tell("which moves cure what it does wrong")
    report = find_remedy(
        states.after,
        names,
        beginning=beginning,
        rate=DEFAULT_RATE,
        explain=False,
        tell=tell,
        stop=after_work(_MOST_WORK),
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
