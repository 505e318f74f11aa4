"""Which spec pair of a new policy is which of the old one."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import SpecPair

Match = tuple[int | None, int | None]
"""Places (from 0) in the old and in the new policy; None where the pair is new, or gone."""


def matched_pairs(old: Sequence[SpecPair], new: Sequence[SpecPair]) -> list[Match]:
    """Return the pairs of both policies: in the order of the new one, then those that are gone.

    Equal pairs belong together. Of the others, equally many on both sides belong together in their order (they were
    resized); otherwise those whose greatest sizes are nearest.
    """
    match: dict[int, int] = {}
    left = list(range(len(old)))
    for place, pair in enumerate(new):
        same = [number for number in left if old[number] == pair]
        if same:
            match[place] = min(same, key=lambda number: abs(number - place))
            left.remove(match[place])
    added = [place for place in range(len(new)) if place not in match]
    if len(added) == len(left):
        match.update(zip(added, left, strict=True))
        left = []
    else:
        while added and left:
            choices = [(_distance(old[number], new[place]), place, number) for place in added for number in left]
            _, place, number = min(choices)
            match[place] = number
            added.remove(place)
            left.remove(number)
    return [*((match.get(place), place) for place in range(len(new))), *((number, None) for number in left)]


def _distance(left: SpecPair, right: SpecPair) -> float:
    """Return how many doublings lie between the greatest sizes: memory, CPUs and disk added up."""
    values = (
        (left.max.memory, right.max.memory),
        (left.max.cpus, right.max.cpus),
        (left.max.disk_size, right.max.disk_size),
    )
    return sum(abs(log2(max(1, a)) - log2(max(1, b))) for a, b in values)
