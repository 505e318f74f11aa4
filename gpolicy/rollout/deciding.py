"""What a roll-out does next: pure functions of its waves and of how far each cluster is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gpolicy.rollout.stage import COMPLETE, REVERTED, Stage
from gpolicy.settings.rollout_settings import Wave


@dataclass(frozen=True, slots=True)
class Carry:
    """Carry out the plans of these clusters of a wave, or take them back."""

    wave: Wave
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Look at all clusters of a wave, which is done."""

    wave: Wave


Action = Carry | Look


def next_forward(waves: Sequence[Wave], stages: Mapping[str, Stage], looked_at: AbstractSet[str]) -> Action | None:
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


def next_back(waves: Sequence[Wave], stages: Mapping[str, Stage], tried: AbstractSet[str]) -> Carry | None:
    """Return the next clusters whose plans are taken back, None at the end: the last wave is the first.

    Those that were `tried` once are left alone, whatever came of it: trouble with one hinders no other.
    """
    for wave in reversed(waves):
        left = tuple(name for name in wave.clusters if stages[name] not in REVERTED and name not in tried)
        if left:
            return Carry(wave, left)
    return None
