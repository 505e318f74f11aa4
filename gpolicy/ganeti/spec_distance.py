"""How far a size lies outside a spec pair: which pair a cure leads to, and which one is nearest to a refused size."""

from __future__ import annotations

from collections.abc import Iterable


def spec_distance(outside: Iterable[tuple[int, int, int]]) -> float:
    """Return the distance of values from their ranges: each is a value (0 or more) with the least and the greatest one.

    What a value would have to change counts as a share of the larger of both: 4G from a range that begins at 8G is 0.5,
    as is 8G from a range that ends at 4G. The shares are added up. The nearest pair is the first with the least sum.
    """
    legal = ((value, min(max(value, low), high)) for value, low, high in outside)
    return sum(abs(value - nearest) / max(value, nearest) for value, nearest in legal if value != nearest)
