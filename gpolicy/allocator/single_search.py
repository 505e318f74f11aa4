"""Scores of single-node placements: a full recomputation for every candidate, all at once.

Equal nodes do not give equal scores here, since the order of the summation differs. So nothing may be
put together; instead candidates that are clearly worse are left out by an estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator import array_score as at
from gpolicy.allocator.array_score import (
    WEIGHTS,
    exclusion_values_with_primary,
    replaced_deviation,
    values_with_primary,
)
from gpolicy.allocator.score import COMPONENTS, Aggregate

if TYPE_CHECKING:
    from gpolicy.allocator.array_score import ArrayStatistics
    from gpolicy.allocator.arrays import Floats, Ints, NodeArrays
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.outcomes import Demand

CHANGED = (*at.PRIMARY_ONLY.tolist(), *at.BOTH.tolist())
"""Deviations that a new primary changes."""
ORIGINALS = [at.FREE_MEMORY, at.FREE_DISK, at.CPU, at.SPINDLES, at.CPU_LOAD, at.CPU_LOAD, at.CPU_LOAD]
TWINS = [at.FORTH_MEMORY, at.FORTH_DISK, at.FORTH_CPU, at.FORTH_SPINDLES, at.MEMORY_LOAD, at.DISK_LOAD, at.NET_LOAD]
"""Where there are no instances of the second book only, and loads are alike, these repeat the originals."""
_CELLS = 1 << 18
"""Nodes times candidates times components that are computed in one go."""
MARGIN = 1e-6
"""The estimate of a score is off by much less than this times its size."""


class SingleScores:
    """Exact scores of placing one instance on each of `rows` in one state."""

    def __init__(
        self, arrays: NodeArrays, stats: ArrayStatistics, instance: Instance, demand: Demand, rows: Ints
    ) -> None:
        self.arrays, self.stats, self.rows = arrays, stats, rows
        self.new = values_with_primary(arrays, instance, demand)[rows]
        self.old = arrays.values[rows]
        self.exclusions = exclusion_values_with_primary(arrays, instance, stats, rows, full=True)
        self.finite = bool(np.isfinite(self.new).all())
        self._place = np.cumsum(arrays.online) - 1
        self._distinct()

    def exact(self, which: Ints) -> Floats:
        """Return the scores of the candidates at the places `which` of `rows`."""
        per_turn = max(1, _CELLS // max(1, len(self.arrays.online_rows) * len(self._columns)))
        parts = [self._exact(which[start : start + per_turn]) for start in range(0, len(which), per_turn)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def best(self) -> tuple[int, float]:
        """Return the row of the best candidate (the last one of equals) and its score."""
        estimate = self.estimate()
        least = float(estimate.min())
        near = np.flatnonzero(estimate <= least + MARGIN * (1.0 + abs(least)))
        scores = self.exact(near)
        last = np.flatnonzero(scores == scores.min())[-1]
        return int(self.rows[near[last]]), float(scores[last])

    def estimate(self) -> Floats:
        """Return approximate scores, from replacing one value in the existing statistics."""
        stats, columns = self.stats, self._columns
        _, variance = replaced_deviation(
            stats.count, stats.sums[columns], stats.variances[columns], self.old[:, columns], self.new[:, columns]
        )
        score: Floats = (np.sqrt(variance) * self._weights).sum(axis=1)
        for place, component in enumerate(COMPONENTS):
            if component.aggregate is Aggregate.SUM:
                score += component.weight * (stats.sums[place] + (self.new[:, place] - self.old[:, place]))
            elif component.aggregate is Aggregate.OFFLINE_SUM:
                score += component.weight * stats.sums[place]
            elif component.aggregate is Aggregate.TAG_MAP:
                score += component.weight * self.exclusions
        return score

    def _distinct(self) -> None:
        """Choose the components to compute: where two are the same numbers, one stands for both."""
        values, new = self.arrays.values, self.new
        twins = np.array_equal(values[:, TWINS], values[:, ORIGINALS]) and np.array_equal(
            new[:, TWINS], new[:, ORIGINALS]
        )
        stands_for = dict(zip(TWINS, ORIGINALS, strict=True)) if twins else {}
        columns = [place for place in CHANGED if place not in stands_for]
        self._columns = np.array(columns)
        self._place_of = {place: columns.index(stands_for.get(place, place)) for place in CHANGED}
        self._weights = np.zeros(len(columns))
        for place, column in self._place_of.items():
            self._weights[column] += WEIGHTS[place]

    def _exact(self, which: Ints) -> Floats:
        stats, arrays, columns = self.stats, self.arrays, self._columns
        score = np.zeros(len(which))
        own = self._place[self.rows[which]]
        base = arrays.values[arrays.online_rows[:, None], columns]
        # one table per component, side by side: the sums run along the nodes, one after the other
        table = base[:, None, :].repeat(len(which), axis=1)
        table[own, np.arange(len(which))] = self.new[which[:, None], columns]
        table -= np.add.accumulate(table, axis=0)[-1] / stats.count
        table *= table
        roots = np.sqrt(np.add.accumulate(table, axis=0)[-1] / stats.count)
        for place, component in enumerate(COMPONENTS):
            weight = WEIGHTS[place]
            if component.aggregate is Aggregate.DEVIATION:
                column = self._place_of.get(place)
                score += weight * (np.sqrt(stats.variances[place]) if column is None else roots[:, column])
            elif component.aggregate is Aggregate.SUM:
                # these are whole numbers, or (the last one) not changed by a primary
                change = 0.0 if place == at.RESERVED_TOTAL else self.new[which, place] - self.old[which, place]
                score += weight * (stats.sums[place] + change)
            elif component.aggregate is Aggregate.OFFLINE_SUM:
                score += weight * stats.sums[place]
            else:
                score += weight * self.exclusions[which]
        return score
