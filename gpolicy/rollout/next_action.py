"""How far the plan of each cluster is, as its own journal says, and what the roll-out does next: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from gpolicy.apply.journal import Direction, History
from gpolicy.settings.rollout_settings import RolloutWave


class PlanStage(StrEnum):
    """How far a plan is."""

    EMPTY = "nothing to do"  # it has no steps
    UNTOUCHED = "not begun"
    PARTLY = "partly done"
    DONE = "done"
    PARTLY_BACK = "partly taken back"
    BACK = "taken back"
    UNKNOWN = "unknown"  # its journal cannot be read, or has gone


COMPLETE = frozenset({PlanStage.EMPTY, PlanStage.DONE})
"""Nothing of the plan is left to do."""

REVERTED = frozenset({PlanStage.EMPTY, PlanStage.UNTOUCHED, PlanStage.BACK})
"""Nothing of the plan is left to take back."""


def stage_of(steps: int, history: History | None) -> PlanStage:
    """Return how far a plan of so many steps is; `history` is what its journal says, None without one."""
    if not steps:
        return PlanStage.EMPTY
    if history is None:
        return PlanStage.UNTOUCHED
    if history.direction is Direction.ROLLBACK:
        return PlanStage.BACK if history.ended == "done" else PlanStage.PARTLY_BACK
    return PlanStage.DONE if history.ended == "done" else PlanStage.PARTLY


@dataclass(frozen=True, slots=True)
class Carry:
    """Carry out the plans of these clusters of a wave, or take them back."""

    wave: RolloutWave
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Look at all clusters of a wave, which is done."""

    wave: RolloutWave


Action = Carry | Look


def next_forward(
    waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], looked_at: AbstractSet[str]
) -> Action | None:
    """Return the next action of a roll-out without trouble so far, None at its end.

    A wave begins only when the plans of all waves before it are done, and a look at each of their clusters was good
    (`looked_at`, by the wave's label).
    """
    for wave in waves:
        left = tuple(name for name in wave.clusters if stages[name] not in COMPLETE)
        if left:
            return Carry(wave, left)
        if wave.label not in looked_at:
            return Look(wave)
    return None


def next_back(waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], tried: AbstractSet[str]) -> Carry | None:
    """Return the next clusters whose plans are taken back, None at the end: the last wave is the first.

    Those that were `tried` once are left alone, whatever came of it: trouble with one hinders no other.
    """
    for wave in reversed(waves):
        left = tuple(name for name in wave.clusters if stages[name] not in REVERTED and name not in tried)
        if left:
            return Carry(wave, left)
    return None
