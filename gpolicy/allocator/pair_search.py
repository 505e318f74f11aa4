"""The best pair of nodes for a mirrored instance, without looking at every pair.

Most components of the score depend on the primary alone or on the secondary alone. For the five that
depend on both, the variance after the placement is a constant plus a number of the primary plus one of
the secondary (up to a small cross term that is bounded), and the square root of that lies above its
chord. So a lower bound of the score is a sum F(primary) + G(secondary); only pairs whose bound does not
exceed the best exact score found so far are computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator import array_score as at
from gpolicy.allocator.array_score import (
    BOTH,
    PRIMARY_ONLY,
    WEIGHTS,
    exclusion_values_with_primary,
    replaced_deviation,
    values_with_primary,
    values_with_secondary,
)

if TYPE_CHECKING:
    from gpolicy.allocator.array_score import ArrayStatistics
    from gpolicy.allocator.arrays import Floats, Ints, NodeArrays
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.outcomes import Demand, SecondaryCodes

FEW_PAIRS = 2048
"""Up to so many pairs are simply all computed."""
MANY_PAIRS = 20000
"""From so many pairs on, equal nodes are put together first."""
_SEEDS = 6
"""How many of the most promising primaries and secondaries give the first upper bound."""
_EPSILON = 2.0**-52
_ORIGINALS = [at.FREE_MEMORY, at.FREE_DISK, at.CPU, at.SPINDLES, at.CPU_LOAD, at.CPU_LOAD]
_TWINS = [at.FORTH_MEMORY, at.FORTH_DISK, at.FORTH_CPU, at.FORTH_SPINDLES, at.MEMORY_LOAD, at.NET_LOAD]


@dataclass(frozen=True, slots=True)
class BestPair:
    """Rows of the best pair, and its score."""

    primary: int
    secondary: int
    score: float


class PairScores:
    """Exact scores and lower bounds of pairs in one state for one instance."""

    def __init__(
        self,
        arrays: NodeArrays,
        stats: ArrayStatistics,
        instance: Instance,
        demand: Demand,
        secondary: SecondaryCodes,
        primaries: Ints,
    ) -> None:
        self.arrays, self.stats = arrays, stats
        self.reserved = secondary.reserved
        count, old = stats.count, arrays.values
        new = values_with_primary(arrays, instance, demand)
        self.second = values_with_secondary(arrays, instance, demand, secondary.reserved)
        # one row per component from here on, so that picking nodes gives contiguous rows
        # where the second book says the same as the first one, its components are the same numbers
        twins = all(np.array_equal(t[:, _TWINS], t[:, _ORIGINALS]) for t in (old, new, self.second))
        self.both = both = BOTH[:3] if twins else BOTH
        self.both_rows = (0, 1, 2, 0, 2) if twins else (0, 1, 2, 3, 4)
        alone = PRIMARY_ONLY[:3] if twins else PRIMARY_ONLY
        self.alone_rows = (0, 1, 2, 2, 2, 0, 1) if twins else (0, 1, 2, 3, 4, 5, 6)
        self.old_both = np.ascontiguousarray(old[:, both].T)
        self.new_both = np.ascontiguousarray(new[:, both].T)
        self.second_both = np.ascontiguousarray(self.second[:, both].T)
        self.total_both, self.variance_both = replaced_deviation(
            count, stats.sums[both, None], stats.variances[both, None], self.old_both, self.new_both
        )
        _, variance = replaced_deviation(
            count,
            stats.sums[alone, None],
            stats.variances[alone, None],
            old[:, alone].T,
            new[:, alone].T,
        )
        self.primary_terms = WEIGHTS[alone, None] * np.sqrt(variance)
        self.n1_after = stats.sums[at.N1_COUNT] + (new[:, at.N1_COUNT] - old[:, at.N1_COUNT])
        self.tags_after = stats.sums[at.TAGS] + (new[:, at.TAGS] - old[:, at.TAGS])
        self.location_change = new[:, at.LOCATION] - old[:, at.LOCATION]
        self.exclusions = np.full(len(old), stats.exclusions)
        self.exclusions[primaries] = exclusion_values_with_primary(arrays, instance, stats, primaries, full=False)
        self.new = new
        self.kept_memory = demand.kept_memory
        self.locations = arrays.location_tags
        self.any_location = arrays.any_location
        self.finite = bool(np.isfinite(new[primaries]).all())

    def exact(self, p: Ints, s: Ints, reserved: Ints | None = None) -> Floats:
        """Return the scores of the pairs (p[i], s[i]); `reserved` where it is not the usual one."""
        arrays, stats, old = self.arrays, self.stats, self.arrays.values
        count = stats.count
        second = self.second
        if reserved is None:
            n1_new, reserved_new = second[s, at.N1_COUNT], second[s, at.RESERVED]
        else:
            n1_new = np.where(arrays.unallocated[s] <= reserved, arrays.instances[s] + 1.0, 0.0)
            reserved_new = reserved / arrays.total_memory[s]
        _, after = replaced_deviation(
            count,
            self.total_both[:, p],
            self.variance_both[:, p],
            self.old_both[:, s],
            self.second_both[:, s],
        )
        shared = WEIGHTS[self.both, None] * np.sqrt(after)
        disk, disk_load, spindles, forth_disk, forth_spindles = (shared[row] for row in self.both_rows)
        terms = self.primary_terms[:, p]
        memory, cpu, cpu_load, memory_load, net_load, forth_memory, forth_cpu = (terms[row] for row in self.alone_rows)
        _, kept = replaced_deviation(
            count, stats.sums[at.RESERVED], stats.variances[at.RESERVED], old[s, at.RESERVED], reserved_new
        )
        score: Floats = memory + disk
        score += WEIGHTS[at.N1_COUNT] * (self.n1_after[p] + (n1_new - old[s, at.N1_COUNT]))
        score += WEIGHTS[at.RESERVED] * np.sqrt(kept)
        score += WEIGHTS[at.OFFLINE_ALL] * stats.sums[at.OFFLINE_ALL]
        score += WEIGHTS[at.OFFLINE_PRIMARIES] * stats.sums[at.OFFLINE_PRIMARIES]
        score += cpu
        score += cpu_load
        score += memory_load
        score += disk_load
        score += net_load
        score += WEIGHTS[at.TAGS] * self.tags_after[p]
        score += spindles
        score += forth_memory
        score += forth_disk
        score += forth_cpu
        score += forth_spindles
        score += WEIGHTS[at.LOCATION] * (stats.sums[at.LOCATION] + self._location(p, s))
        score += WEIGHTS[at.LOCATION_EXCLUSION] * self.exclusions[p]
        total_reserved = stats.sums[at.RESERVED_TOTAL] + (reserved_new - old[s, at.RESERVED_TOTAL])
        score += WEIGHTS[at.RESERVED_TOTAL] * total_reserved
        return score

    def prepare_bounds(self, p: Ints, s: Ints) -> None:
        """Compute the parts of the lower bounds for all possible primaries `p` and secondaries `s`.

        For every pair, `low_p[primary] + low_s[secondary] - margin` does not exceed its exact score.
        `rest_s` is `low_s` without the share of the reservation.
        """
        stats, size = self.stats, len(self.arrays.nodes)
        change = WEIGHTS[at.LOCATION] * (stats.sums[at.LOCATION] + self.location_change[p])
        low_p = self.n1_after[p] + WEIGHTS[at.TAGS] * self.tags_after[p] + change + self.exclusions[p]
        low_p += np.bincount(self.alone_rows).astype(np.float64) @ self.primary_terms[:, p]
        low_p += (
            WEIGHTS[at.OFFLINE_ALL] * stats.sums[at.OFFLINE_ALL]
            + WEIGHTS[at.OFFLINE_PRIMARIES] * stats.sums[at.OFFLINE_PRIMARIES]
        )
        chord_p, chord_s = self._chords(p, s)
        low_p += chord_p
        self.low_p, self.rest_s, self.low_s = np.zeros(size), np.zeros(size), np.zeros(size)
        self.low_p[p], self.rest_s[s] = low_p, chord_s
        self.low_s[s] = chord_s + self.reservation(s, self.reserved[s])
        scale = 1.0 + float(np.abs(low_p).max()) + float(np.abs(self.low_s).max())
        self.margin = 1e-10 * scale

    def _chords(self, p: Ints, s: Ints) -> tuple[Floats, Floats]:
        """Return the shares of the components that both nodes change: chords of the square roots."""
        stats, count = self.stats, self.stats.count
        square = count * count
        totals, variances = stats.sums[self.both], stats.variances[self.both]
        new_p, old_p = self.new_both[:, p], self.old_both[:, p]
        new_s, old_s = self.second_both[:, s], self.old_both[:, s]
        change_p, change_s = new_p - old_p, new_s - old_s
        squares_p, squares_s = change_p * (new_p + old_p), change_s * (new_s + old_s)
        part_p = (count * squares_p - 2.0 * totals[:, None] * change_p - change_p * change_p) / square
        part_s = (count * squares_s - 2.0 * totals[:, None] * change_s - change_s * change_s) / square
        least_p, most_p = part_p.min(axis=1), part_p.max(axis=1)
        least_s, most_s = part_s.min(axis=1), part_s.max(axis=1)
        low_p, high_p = change_p.min(axis=1), change_p.max(axis=1)
        low_s, high_s = change_s.min(axis=1), change_s.max(axis=1)
        # the greatest product of two changes bounds the cross term
        product = np.maximum(np.maximum(low_p * low_s, high_p * high_s), np.maximum(low_p * high_s, high_p * low_s))
        reach = np.maximum(np.abs(low_p), np.abs(high_p)) + np.maximum(np.abs(low_s), np.abs(high_s))
        size = np.abs(squares_p).max(axis=1) + np.abs(squares_s).max(axis=1)
        rounding = variances + (count * size + 2.0 * np.abs(totals) * reach + reach * reach) / square
        base = variances - 2.0 * product / square - 64.0 * _EPSILON * rounding
        least, most = base + least_p + least_s, base + most_p + most_s
        # where the argument may fall to 0 the square root's share is bounded by 0
        sound = least > 0.0
        low = np.sqrt(np.where(sound, least, 0.0))
        width = np.where(most > least, most - least, 1.0)
        slope = np.where(sound, (np.sqrt(np.where(sound, most, 0.0)) - low) / width, 0.0)
        weights = WEIGHTS[self.both] * np.bincount(self.both_rows)
        chord_p = (weights * slope) @ (part_p - least_p[:, None]) + float((weights * low).sum())
        chord_s = (weights * slope) @ (part_s - least_s[:, None])
        return chord_p, chord_s

    def reservation(self, s: Ints, reserved: Ints) -> Floats:
        """Return the share of the score that follows from keeping `reserved` MiB on the secondaries."""
        arrays, stats, old = self.arrays, self.stats, self.arrays.values
        share = reserved / arrays.total_memory[s]
        _, kept = replaced_deviation(
            stats.count,
            stats.sums[at.RESERVED],
            stats.variances[at.RESERVED],
            old[s, at.RESERVED],
            share,
        )
        n1_new = np.where(arrays.unallocated[s] <= reserved, arrays.instances[s] + 1.0, 0.0)
        total = stats.sums[at.RESERVED_TOTAL] + (share - old[s, at.RESERVED_TOTAL])
        result: Floats = np.sqrt(kept) + (n1_new - old[s, at.N1_COUNT]) + WEIGHTS[at.RESERVED_TOTAL] * total
        return result

    def _location(self, p: Ints, s: Ints) -> Floats:
        change = self.location_change[p]
        if not self.any_location:
            return change
        common = np.array(
            [len(self.locations[a] & self.locations[b]) for a, b in zip(p, s, strict=True)], dtype=np.float64
        )
        return change + common

    def signature(self, rows: Ints, *, secondary: bool) -> Ints:
        """Return a class number for each row: rows of one class give bit-equal scores."""
        old = self.arrays.values[rows]
        parts = [old, (self.second if secondary else self.new)[rows]]
        if not secondary:
            parts.append(self.exclusions[rows, None])
        if self.any_location:
            known: dict[frozenset[str], int] = {}
            numbers = [known.setdefault(self.locations[row], len(known)) for row in rows]
            parts.append(np.array(numbers, dtype=np.float64)[:, None])
        table = np.ascontiguousarray(np.concatenate(parts, axis=1))
        keys = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
        _, numbers_of = np.unique(keys, return_inverse=True)
        return np.asarray(numbers_of, dtype=np.int64).ravel()


def better(best: BestPair | None, other: BestPair | None) -> BestPair | None:
    """Return the better of two; of equal scores the later primary, then the later secondary."""
    if best is None or other is None:
        return other if best is None else best
    if best.score != other.score:
        return best if best.score < other.score else other
    return max(best, other, key=lambda pair: (pair.primary, pair.secondary))


def best_of(p: Ints, s: Ints, scores: Floats) -> BestPair | None:
    """Return the best of the listed pairs."""
    if not len(p):
        return None
    least = scores.min()
    tied = np.flatnonzero(scores == least)
    latest = p[tied].max()
    tied = tied[p[tied] == latest]
    return BestPair(int(latest), int(s[tied].max()), float(least))


def find_best_pair(scores: PairScores, p: Ints, s: Ints) -> BestPair | None:
    """Return the best pair of a primary in `p` and another node in `s`, both ascending rows of one group.

    Pairs whose secondary keeps an unusual amount of memory are left out.
    """
    if not len(p) or not len(s):
        return None
    if len(p) * len(s) <= FEW_PAIRS:
        return _best_listed(scores, np.repeat(p, len(s)), np.tile(s, len(p)))
    low_p, low_s = scores.low_p[p], scores.low_s[s]
    first_p = np.argpartition(low_p, min(_SEEDS, len(p) - 1))[:_SEEDS]
    first_s = np.argpartition(low_s, min(_SEEDS, len(s) - 1))[:_SEEDS]
    seed = _best_listed(scores, np.repeat(p[first_p], len(first_s)), np.tile(s[first_s], len(first_p)))
    limit = np.inf if seed is None else seed.score + scores.margin
    # only nodes that are good enough beside the best partner need be looked at
    keep_p = low_p + low_s.min() <= limit
    keep_s = low_s + low_p.min() <= limit
    p, s, low_p, low_s = p[keep_p], s[keep_s], low_p[keep_p], low_s[keep_s]
    if len(p) * len(s) <= MANY_PAIRS:
        near_p, near_s = np.nonzero(low_p[:, None] + low_s[None, :] <= limit)
        return better(seed, _best_listed(scores, p[near_p], s[near_s]))
    order = np.argsort(low_s, kind="stable")
    counts = np.searchsorted(low_s[order], limit - low_p, side="right")
    total = int(counts.sum())
    if total <= MANY_PAIRS:
        listed_p = np.repeat(p, counts)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        listed_s = s[order[np.arange(total) - starts]]
        return better(seed, _best_listed(scores, listed_p, listed_s))
    return better(seed, _best_by_class(scores, p, s))


def find_best_special(scores: PairScores, p: Ints, s: Ints, reserved: Ints, best: BestPair | None) -> BestPair | None:
    """Return the best of `best` and the listed pairs, which keep `reserved` MiB instead of the usual."""
    if best is not None and len(p) > FEW_PAIRS // 4:
        # a reservation adds nothing negative, save that a node may cease to fail N+1
        low = scores.low_p[p] + scores.rest_s[s] - scores.arrays.values[s, at.N1_COUNT]
        near = low <= best.score + 2 * scores.margin
        p, s, reserved = p[near], s[near], reserved[near]
        low = scores.low_p[p] + scores.rest_s[s] + scores.reservation(s, reserved)
        near = low <= best.score + 2 * scores.margin
        p, s, reserved = p[near], s[near], reserved[near]
    return better(best, best_of(p, s, scores.exact(p, s, reserved))) if len(p) else best


def _best_listed(scores: PairScores, p: Ints, s: Ints) -> BestPair | None:
    peers = scores.arrays.peers[p, s]
    fine = (p != s) & ((peers == 0) | (peers + scores.kept_memory <= scores.reserved[s]))
    if not fine.all():
        p, s = p[fine], s[fine]
    return best_of(p, s, scores.exact(p, s)) if len(p) else None


def _best_by_class(scores: PairScores, p: Ints, s: Ints) -> BestPair | None:
    """Compute one pair for every two classes of equal nodes, then choose members."""
    class_p, class_s = scores.signature(p, secondary=False), scores.signature(s, secondary=True)
    members_p = [p[class_p == number] for number in range(int(class_p.max()) + 1)]
    members_s = [s[class_s == number] for number in range(int(class_s.max()) + 1)]
    best: BestPair | None = None
    first_s = np.array([rows[0] for rows in members_s], dtype=np.int64)
    per_turn = max(1, MANY_PAIRS // len(first_s))
    for start in range(0, len(members_p), per_turn):
        chunk = members_p[start : start + per_turn]
        first_p = np.array([rows[0] for rows in chunk], dtype=np.int64)
        table = scores.exact(np.repeat(first_p, len(first_s)), np.tile(first_s, len(first_p)))
        for place in np.argsort(table, kind="stable").tolist():
            score = float(table[place])
            if best is not None and score > best.score:
                break
            row, column = divmod(place, len(first_s))
            pair = _latest(scores, chunk[row], members_s[column])
            if pair is not None:
                best = better(best, BestPair(pair[0], pair[1], score))
    return best


def _latest(scores: PairScores, p: Ints, s: Ints) -> tuple[int, int] | None:
    for primary in p[::-1].tolist():
        for secondary in s[::-1].tolist():
            peer = int(scores.arrays.peers[primary, secondary])
            if primary != secondary and (peer == 0 or peer + scores.kept_memory <= scores.reserved[secondary]):
                return primary, secondary
    return None
