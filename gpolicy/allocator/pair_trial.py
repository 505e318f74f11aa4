"""One attempt to place a mirrored instance on a pair of nodes, over arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator import pair_search
from gpolicy.allocator.kinds import FailReason
from gpolicy.allocator.node_changes import accepted, add_primary, add_secondary
from gpolicy.allocator.outcomes import (
    OK,
    Demand,
    known_peer_codes,
    primary_codes,
    secondary_codes,
)
from gpolicy.allocator.pair_search import (
    BestPair,
    PairScores,
    best_of,
    better,
    find_best_pair,
    find_best_special,
)
from gpolicy.allocator.placement import Attempt, Placement

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpolicy.allocator.array_score import ArrayStatistics
    from gpolicy.allocator.arrays import Bools, Ints, NodeArrays
    from gpolicy.allocator.model import Instance


class PairTrial:
    """Outcomes of `instance` on all ordered pairs of a primary and a secondary of the same group.

    `special` pairs are those whose secondary already keeps memory for the primary, so much that the
    reservation grows beyond the usual.
    """

    def __init__(
        self,
        arrays: NodeArrays,
        primaries: Bools,
        secondaries: Bools,
        instance: Instance,
        policy: Ints,
        *,
        force: bool,
    ) -> None:
        self.arrays, self.instance, self.force = arrays, instance, force
        self.secondaries = secondaries
        self.demand = Demand.of(instance)
        codes = primary_codes(arrays, instance, self.demand, policy, force=force)
        group_sizes = np.bincount(arrays.group[secondaries], minlength=arrays.group_count)
        partners = group_sizes[arrays.group] - secondaries
        failures = np.zeros(OK + 1, dtype=np.int64)
        failed = primaries & (codes != OK)
        np.add.at(failures, codes[failed], partners[failed])
        self.rows: Ints = np.flatnonzero(primaries & (codes == OK) & (partners > 0))
        self.special_p = self.special_s = self.special_reserved = np.zeros(0, dtype=np.int64)
        self.listed_p = self.listed_s = self.special_p
        if len(self.rows):
            self.secondary = secondary_codes(arrays, self.demand)
            failures += self._count_secondaries()
        self.failures = tuple(failures[:OK].tolist())
        self.successes = int(failures[OK])

    def _count_secondaries(self) -> Ints:
        arrays, codes = self.arrays, self.secondary.codes
        keys = arrays.group * (OK + 1) + codes
        table = np.bincount(keys[self.secondaries], minlength=arrays.group_count * (OK + 1))
        per_group = np.bincount(arrays.group[self.rows], minlength=arrays.group_count)
        counts: Ints = per_group @ table.reshape(arrays.group_count, OK + 1)
        own = self.rows[self.secondaries[self.rows]]
        counts -= np.bincount(codes[own], minlength=OK + 1)
        p, s, memory = arrays.peer_pairs()
        high = np.flatnonzero(memory + self.demand.kept_memory > self.secondary.reserved[s])
        if not len(high):
            return counts
        p, s = p[high], s[high]
        is_primary = np.zeros(len(arrays.nodes), dtype=bool)
        is_primary[self.rows] = True
        keep = is_primary[p] & self.secondaries[s] & (p != s) & (arrays.group[p] == arrays.group[s])
        p, s = p[keep], s[keep]
        actual, reserved = known_peer_codes(arrays, self.demand, self.secondary, p, s)
        counts -= np.bincount(codes[s], minlength=OK + 1)
        counts += np.bincount(actual, minlength=OK + 1)
        self.listed_p, self.listed_s = p, s
        fine = actual == OK
        self.special_p, self.special_s, self.special_reserved = p[fine], s[fine], reserved[fine]
        return counts

    def choose(self, stats: ArrayStatistics) -> Attempt | None:
        """Return the best placement; None where the arrays cannot tell."""
        scores = self._scores(stats)
        if scores is None:
            return None
        best = self._best(scores, self.rows)
        return None if best is None else Attempt(self.failures, self.successes, self._placement(best))

    def choose_redundant(self, stats: ArrayStatistics, allowed: Bools) -> Attempt | None:
        """Return the best placement among the pairs of `allowed` (a table over all rows).

        For each primary, every pair that is better than its best allowed one counts as FailN1.
        """
        possible = self._possible()
        accepted = possible & allowed
        if not accepted.any():
            return self._with_n1(self.successes, None)
        if not (possible & ~allowed).any():
            return self.choose(stats)
        scores = self._scores(stats)
        if scores is None:
            return None
        best: BestPair | None = None
        rejected = 0
        mixed: Bools = np.asarray((possible & ~allowed).any(axis=1))
        for row in np.flatnonzero(mixed & possible.any(axis=1)).tolist():
            columns = np.flatnonzero(possible[row])
            exact = self._exact_row(scores, row, columns)
            fine: Bools = np.asarray(allowed[row, columns])
            if not fine.any():
                rejected += len(columns)
                continue
            order = np.lexsort((-columns, exact))
            first = int(np.flatnonzero(fine[order])[0])
            rejected += first
            place = order[first]
            best = better(best, BestPair(row, int(columns[place]), float(exact[place])))
        clean = self.rows[~mixed[self.rows]]
        best = better(best, self._best(scores, clean))
        return None if best is None else self._with_n1(rejected, self._placement(best))

    def choose_checked(self, stats: ArrayStatistics, accepted: Callable[[Placement], bool]) -> Attempt | None:
        """Return the best placement that `accepted` agrees to, asking it pair by pair."""
        scores = self._scores(stats)
        if scores is None:
            return None
        possible = self._possible()
        best: BestPair | None = None
        rejected = 0
        for row in self.rows.tolist():
            columns = np.flatnonzero(possible[row])
            exact = self._exact_row(scores, row, columns)
            for place in np.lexsort((-columns, exact)).tolist():
                pair = BestPair(row, int(columns[place]), float(exact[place]))
                if accepted(self._placement(pair)):
                    best = better(best, pair)
                    break
                rejected += 1
        return self._with_n1(rejected, None if best is None else self._placement(best))

    def _with_n1(self, rejected: int, placement: Placement | None) -> Attempt:
        failures = list(self.failures)
        failures[FailReason.N1] += rejected
        return Attempt(tuple(failures), self.successes - rejected, placement)

    def _possible(self) -> Bools:
        """Return the table of pairs that pass all checks."""
        arrays = self.arrays
        table = np.zeros((len(arrays.nodes), len(arrays.nodes)), dtype=bool)
        fine = self.secondaries & (self.secondary.codes == OK)
        table[self.rows] = fine[None, :] & (arrays.group[self.rows][:, None] == arrays.group[None, :])
        if len(self.listed_p):
            table[self.listed_p, self.listed_s] = False
            table[self.special_p, self.special_s] = True
        np.fill_diagonal(table, val=False)
        return table

    def _exact_row(self, scores: PairScores, row: int, columns: Ints) -> np.ndarray:
        arrays = self.arrays
        reserved = np.maximum(arrays.reserved[columns], arrays.peers[row, columns] + self.demand.kept_memory)
        return scores.exact(np.full(len(columns), row, dtype=np.int64), columns, reserved)

    def _scores(self, stats: ArrayStatistics) -> PairScores | None:
        scores = PairScores(self.arrays, stats, self.instance, self.demand, self.secondary, self.rows)
        return scores if scores.finite else None

    def _best(self, scores: PairScores, rows: Ints) -> BestPair | None:
        arrays = self.arrays
        best: BestPair | None = None
        secondaries = np.flatnonzero(self.secondaries & (self.secondary.codes == OK))
        if len(rows) * len(secondaries) <= pair_search.FEW_PAIRS and len(self.special_p) <= pair_search.FEW_PAIRS:
            return self._best_of_few(scores, rows, secondaries)
        if len(rows) and (len(secondaries) or len(self.special_s)):
            either = np.zeros(len(arrays.nodes), dtype=bool)
            either[secondaries] = True
            either[self.special_s] = True
            scores.prepare_bounds(rows, np.flatnonzero(either))
        if arrays.group_count == 1:
            best = find_best_pair(scores, rows, secondaries)
        else:
            for group in np.unique(arrays.group[rows]).tolist():
                p = rows[arrays.group[rows] == group]
                s = secondaries[arrays.group[secondaries] == group]
                best = better(best, find_best_pair(scores, p, s))
        if len(self.special_p):
            mine = np.zeros(len(arrays.nodes), dtype=bool)
            mine[rows] = True
            keep = mine[self.special_p]
            best = find_best_special(
                scores, self.special_p[keep], self.special_s[keep], self.special_reserved[keep], best
            )
        return best

    def _best_of_few(self, scores: PairScores, rows: Ints, secondaries: Ints) -> BestPair | None:
        """Compute all pairs of `rows` and `secondaries`, and the special ones of `rows`, in one go."""
        arrays = self.arrays
        fine: Bools = rows[:, None] != secondaries
        if arrays.group_count > 1:
            fine &= arrays.group[rows][:, None] == arrays.group[secondaries]
        peers = arrays.peers[rows[:, None], secondaries]
        fine &= (peers == 0) | (peers + self.demand.kept_memory <= self.secondary.reserved[secondaries])
        place_p, place_s = np.nonzero(fine)
        p, s = rows[place_p], secondaries[place_s]
        reserved = None
        if len(self.special_p):
            mine = np.zeros(len(arrays.nodes), dtype=bool)
            mine[rows] = True
            keep = mine[self.special_p]
            reserved = np.concatenate([self.secondary.reserved[s], self.special_reserved[keep]])
            p, s = np.concatenate([p, self.special_p[keep]]), np.concatenate([s, self.special_s[keep]])
        return best_of(p, s, scores.exact(p, s, reserved)) if len(p) else None

    def _placement(self, pair: BestPair) -> Placement:
        primary, secondary = self.arrays.nodes[pair.primary], self.arrays.nodes[pair.secondary]
        common = len(primary.facts.location_tags & secondary.facts.location_tags)
        wanted = self.instance
        if wanted.location_score != common:
            wanted = replace(wanted, location_score=common)
        new_primary = accepted(add_primary(primary, wanted, force=self.force))
        new_secondary = accepted(add_secondary(secondary, wanted, primary.index))
        placed = replace(wanted, primary=primary.index, secondary=secondary.index)
        return Placement((new_primary, new_secondary), placed, pair.score)
