"""One attempt to place an instance on one node, over arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.kinds import FailReason
from gpolicy.allocator.node_changes import accepted, add_primary
from gpolicy.allocator.outcomes import OK, Demand, primary_codes
from gpolicy.allocator.placement import Attempt, Placement
from gpolicy.allocator.single_search import SingleScores

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpolicy.allocator.array_score import ArrayStatistics
    from gpolicy.allocator.arrays import Bools, Ints, NodeArrays
    from gpolicy.allocator.model import Instance


class SingleTrial:
    """Outcomes of `instance` on the nodes of `mask`; scores are computed when a choice is asked for."""

    def __init__(self, arrays: NodeArrays, mask: Bools, instance: Instance, policy: Ints, *, force: bool) -> None:
        self.arrays, self.instance, self.force = arrays, instance, force
        self.demand = Demand.of(instance)
        codes = primary_codes(arrays, instance, self.demand, policy, force=force)
        counts = np.bincount(codes[mask], minlength=OK + 1)
        self.failures = tuple(counts[:OK].tolist())
        self.successes = int(counts[OK])
        self.rows: Ints = np.flatnonzero(mask & (codes == OK))

    def choose(self, stats: ArrayStatistics) -> Attempt | None:
        """Return the best placement; None where the arrays cannot tell."""
        scores = self._scores(stats)
        if scores is None:
            return None
        row, score = scores.best()
        return Attempt(self.failures, self.successes, self._placement(row, score))

    def choose_checked(
        self, stats: ArrayStatistics, broken: Bools, accepted: Callable[[Placement], bool]
    ) -> Attempt | None:
        """Return the best placement that leaves the cluster redundant; None as above.

        `broken` are the rows for which it surely does not.
        """
        if bool(broken.all()):
            return self._rejected()
        scores = self._scores(stats)
        if scores is None:
            return None
        exact = scores.exact(np.arange(len(self.rows)))
        order = np.lexsort((-self.rows, exact))
        for rejected, place in enumerate(order.tolist()):
            if broken[place]:
                continue
            placement = self._placement(int(self.rows[place]), float(exact[place]))
            if accepted(placement):
                return Attempt(self._with_n1(rejected), self.successes - rejected, placement)
        return self._rejected()

    def _rejected(self) -> Attempt:
        return Attempt(self._with_n1(self.successes), 0, None)

    def _with_n1(self, count: int) -> tuple[int, ...]:
        failures = list(self.failures)
        failures[FailReason.N1] += count
        return tuple(failures)

    def _scores(self, stats: ArrayStatistics) -> SingleScores | None:
        scores = SingleScores(self.arrays, stats, self.instance, self.demand, self.rows)
        return scores if scores.finite else None

    def _placement(self, row: int, score: float) -> Placement:
        node = self.arrays.nodes[row]
        new = accepted(add_primary(node, self.instance, force=self.force))
        return Placement((new,), replace(self.instance, primary=node.index), score)
