"""Sorting as GHC's `Data.List.sortBy` does it, which matters only where a score is NaN.

Anything compared with NaN is "greater", so the result depends on the algorithm: runs are collected
(descending ones reversed) and merged pairwise. Without NaN this is an ordinary stable sort.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")


def sorted_by_score(items: Sequence[Item], score: Callable[[Item], float]) -> list[Item]:
    """Return `items` by ascending score, stable; NaN is placed as htools would place it."""
    keyed = [(score(item), item) for item in items]
    if not any(math.isnan(key) for key, _ in keyed):
        return [item for _, item in sorted(keyed, key=_first)]
    runs = _runs(keyed)
    while len(runs) > 1:
        runs = [
            _merge(runs[place], runs[place + 1]) if place + 1 < len(runs) else runs[place]
            for place in range(0, len(runs), 2)
        ]
    return [item for _, item in runs[0]] if runs else []


def _first(pair: tuple[float, Item]) -> float:
    return pair[0]


def _greater(left: float, right: float) -> bool:
    return not (left < right or left == right)


def _runs(keyed: list[tuple[float, Item]]) -> list[list[tuple[float, Item]]]:
    runs = []
    place = 0
    while place < len(keyed):
        end = place + 1
        descending = end < len(keyed) and _greater(keyed[place][0], keyed[end][0])
        while end < len(keyed) and _greater(keyed[end - 1][0], keyed[end][0]) is descending:
            end += 1
        run = keyed[place:end]
        runs.append(run[::-1] if descending else run)
        place = end
    return runs


def _merge(left: list[tuple[float, Item]], right: list[tuple[float, Item]]) -> list[tuple[float, Item]]:
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if _greater(left[i][0], right[j][0]):
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]
