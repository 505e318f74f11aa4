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

MANY_PAIRS = 20000
"""From so many pairs on, equal nodes are put together first."""
_SEEDS = 6
"""How many of the most promising primaries and secondaries give the first upper bound."""
_EPSILON = 2.0**-52


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
        self.primary_terms: dict[int, Floats] = {}
        for place in PRIMARY_ONLY:
            _, variance = replaced_deviation(
                count, stats.sums[place], stats.variances[place], old[:, place], new[:, place]
            )
            self.primary_terms[place] = WEIGHTS[place] * np.sqrt(variance)
        self.after_primary = {
            place: replaced_deviation(
                count, stats.sums[place], stats.variances[place], old[:, place], new[:, place]
            )
            for place in BOTH
        }
        self.n1_after = stats.sums[at.N1_COUNT] + (new[:, at.N1_COUNT] - old[:, at.N1_COUNT])
        self.tags_after = stats.sums[at.TAGS] + (new[:, at.TAGS] - old[:, at.TAGS])
        self.location_change = new[:, at.LOCATION] - old[:, at.LOCATION]
        self.exclusions = np.full(len(old), stats.exclusions)
        self.exclusions[primaries] = exclusion_values_with_primary(
            arrays, instance, stats, primaries, full=False
        )
        self.new = new
        self.locations = [
            node.facts.location_tags if node is not None else frozenset() for node in arrays.nodes
        ]
        self.any_location = any(self.locations)
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
        both = {}
        for place in BOTH:
            total, variance = self.after_primary[place]
            _, after = replaced_deviation(count, total[p], variance[p], old[s, place], second[s, place])
            both[place] = WEIGHTS[place] * np.sqrt(after)
        _, kept = replaced_deviation(
            count, stats.sums[at.RESERVED], stats.variances[at.RESERVED], old[s, at.RESERVED], reserved_new
        )
        terms = self.primary_terms
        score = terms[at.FREE_MEMORY][p] + both[at.FREE_DISK]
        score += WEIGHTS[at.N1_COUNT] * (self.n1_after[p] + (n1_new - old[s, at.N1_COUNT]))
        score += WEIGHTS[at.RESERVED] * np.sqrt(kept)
        score += WEIGHTS[at.OFFLINE_ALL] * stats.sums[at.OFFLINE_ALL]
        score += WEIGHTS[at.OFFLINE_PRIMARIES] * stats.sums[at.OFFLINE_PRIMARIES]
        score += terms[at.CPU][p]
        score += terms[at.CPU_LOAD][p]
        score += terms[at.MEMORY_LOAD][p]
        score += both[at.DISK_LOAD]
        score += terms[at.NET_LOAD][p]
        score += WEIGHTS[at.TAGS] * self.tags_after[p]
        score += both[at.SPINDLES]
        score += terms[at.FORTH_MEMORY][p]
        score += both[at.FORTH_DISK]
        score += terms[at.FORTH_CPU][p]
        score += both[at.FORTH_SPINDLES]
        score += WEIGHTS[at.LOCATION] * (stats.sums[at.LOCATION] + self._location(p, s))
        score += WEIGHTS[at.LOCATION_EXCLUSION] * self.exclusions[p]
        total_reserved = stats.sums[at.RESERVED_TOTAL] + (reserved_new - old[s, at.RESERVED_TOTAL])
        score += WEIGHTS[at.RESERVED_TOTAL] * total_reserved
        return score

    def bounds(self, p: Ints, s: Ints) -> tuple[Floats, Floats, float]:
        """Return F(p), G(s) and a margin: F + G - margin never exceeds the exact score of a pair."""
        stats, old, count = self.stats, self.arrays.values, self.stats.count
        low_p = self.n1_after[p] + WEIGHTS[at.TAGS] * self.tags_after[p] + self.location_change[p]
        low_p += self.exclusions[p] + stats.sums[at.LOCATION]
        for place in PRIMARY_ONLY:
            low_p += self.primary_terms[place][p]
        low_p += (
            WEIGHTS[at.OFFLINE_ALL] * stats.sums[at.OFFLINE_ALL]
            + WEIGHTS[at.OFFLINE_PRIMARIES] * stats.sums[at.OFFLINE_PRIMARIES]
        )
        low_s = np.zeros(len(s))
        for place in BOTH:
            self._chord(place, p, s, low_p, low_s)
        low_s += self.reservation(s, self.reserved[s])
        scale = 1.0 + float(np.abs(low_p).max(initial=0.0)) + float(np.abs(low_s).max(initial=0.0))
        return low_p, low_s, 1e-10 * scale

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

    def _chord(self, place: int, p: Ints, s: Ints, low_p: Floats, low_s: Floats) -> None:
        """Add one component's share of the bound: the chord of the square root over its range."""
        stats, old, count = self.stats, self.arrays.values, self.stats.count
        square = count * count
        total, variance = float(stats.sums[place]), float(stats.variances[place])
        change_p, change_s = self.new[p, place] - old[p, place], self.second[s, place] - old[s, place]
        squares_p = self.new[p, place] ** 2 - old[p, place] ** 2
        squares_s = self.second[s, place] ** 2 - old[s, place] ** 2
        part_p = (count * squares_p - 2.0 * total * change_p - change_p**2) / square
        part_s = (count * squares_s - 2.0 * total * change_s - change_s**2) / square
        most_p, most_s = float(np.abs(change_p).max()), float(np.abs(change_s).max())
        # the cross term is at least this, and rounding makes no more difference than that
        cross = 2.0 * most_p * most_s / square
        if change_p.min() * change_s.min() == change_p.max() * change_s.max() and change_p.min() == change_p.max():
            cross = 2.0 * float(change_p[0]) * float(change_s[0]) / square
        rounding = (
            64
            * _EPSILON
            * (
                variance
                + (count * float(np.abs(squares_p).max() + np.abs(squares_s).max())) / square
                + (2.0 * abs(total) * (most_p + most_s) + (most_p + most_s) ** 2) / square
            )
        )
        base = variance - cross - rounding
        least_p, least_s = float(part_p.min()), float(part_s.min())
        least = base + least_p + least_s
        most = base + float(part_p.max()) + float(part_s.max())
        if least <= 0.0:
            return
        low = float(np.sqrt(least))
        slope = (float(np.sqrt(most)) - low) / (most - least) if most > least else 0.0
        weight = WEIGHTS[place]
        low_p += weight * (low + slope * (part_p - least_p))
        low_s += weight * slope * (part_s - least_s)

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


def find_best_pair(
    scores: PairScores, p: Ints, s: Ints, special: set[tuple[int, int]]
) -> BestPair | None:
    """Return the best pair of a primary in `p` and another node in `s`, both ascending rows of one group.

    Pairs in `special` are left out.
    """
    if not len(p) or not len(s):
        return None
    if len(p) * len(s) <= 512:
        return _best_listed(scores, np.repeat(p, len(s)), np.tile(s, len(p)), special)
    low_p, low_s, margin = scores.bounds(p, s)
    first_p = np.argpartition(low_p, min(_SEEDS, len(p) - 1))[:_SEEDS]
    first_s = np.argpartition(low_s, min(_SEEDS, len(s) - 1))[:_SEEDS]
    seed = _best_listed(
        scores, np.repeat(p[first_p], len(first_s)), np.tile(s[first_s], len(first_p)), special
    )
    if seed is None:
        limit = np.inf
    else:
        limit = seed.score + margin
    order = np.argsort(low_s, kind="stable")
    counts = np.searchsorted(low_s[order], limit - low_p, side="right")
    total = int(counts.sum())
    if total <= MANY_PAIRS:
        listed_p = np.repeat(p, counts)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        listed_s = s[order[np.arange(total) - starts]]
        return better(seed, _best_listed(scores, listed_p, listed_s, special))
    keep_p = p[counts > 0]
    keep_s = s[low_s <= limit - low_p.min()]
    return better(seed, _best_by_class(scores, keep_p, keep_s, special))


def find_best_special(
    scores: PairScores, p: Ints, s: Ints, reserved: Ints, best: BestPair | None
) -> BestPair | None:
    """Return the best of `best` and the listed pairs, which keep `reserved` MiB instead of the usual."""
    if len(p) > 256 and best is not None:
        primaries, place_p = np.unique(p, return_inverse=True)
        secondaries, place_s = np.unique(s, return_inverse=True)
        low_p, low_s, margin = scores.bounds(primaries, secondaries)
        low_s -= scores.reservation(secondaries, scores.reserved[secondaries])
        low = low_p[place_p] + low_s[place_s] + scores.reservation(s, reserved)
        keep = low <= best.score + 2 * margin
        p, s, reserved = p[keep], s[keep], reserved[keep]
    return better(best, best_of(p, s, scores.exact(p, s, reserved))) if len(p) else best


def _best_listed(
    scores: PairScores, p: Ints, s: Ints, special: set[tuple[int, int]]
) -> BestPair | None:
    fine = p != s
    if special:
        fine &= np.array([(a, b) not in special for a, b in zip(p.tolist(), s.tolist(), strict=True)])
    p, s = p[fine], s[fine]
    return best_of(p, s, scores.exact(p, s)) if len(p) else None


def _best_by_class(
    scores: PairScores, p: Ints, s: Ints, special: set[tuple[int, int]]
) -> BestPair | None:
    """Compute one pair for every two classes of equal nodes, then choose members."""
    class_p, class_s = scores.signature(p, secondary=False), scores.signature(s, secondary=True)
    members_p = [p[class_p == number] for number in range(int(class_p.max()) + 1)]
    members_s = [s[class_s == number] for number in range(int(class_s.max()) + 1)]
    best: BestPair | None = None
    first_s = np.array([rows[0] for rows in members_s], dtype=np.int64)
    per_row = max(1, MANY_PAIRS // len(first_s))
    for start in range(0, len(members_p), per_row):
        chunk = members_p[start : start + per_row]
        first_p = np.array([rows[0] for rows in chunk], dtype=np.int64)
        table = scores.exact(np.repeat(first_p, len(first_s)), np.tile(first_s, len(first_p)))
        for place in np.argsort(table, kind="stable"):
            score = float(table[place])
            if best is not None and score > best.score:
                break
            row, column = divmod(int(place), len(first_s))
            pair = _latest(chunk[row], members_s[column], special)
            if pair is not None:
                best = better(best, BestPair(pair[0], pair[1], score))
    return best


def _latest(p: Ints, s: Ints, special: set[tuple[int, int]]) -> tuple[int, int] | None:
    for primary in p[::-1].tolist():
        for secondary in s[::-1].tolist():
            if primary != secondary and (primary, secondary) not in special:
                return primary, secondary
    return None
