"""What fits before a change and after it, side by side: which spec pair is which, the rows of a group, all groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from gpolicy.allocator.cluster_data import SpecPair
from gpolicy.analysis.capacity import GroupCapacity
from gpolicy.analysis.counted_cluster import Fit


@dataclass(frozen=True, slots=True)
class FitChange:
    """One row: what fitted and what will fit.

    `name` is "was 2" for the place of a pair that is gone. An instance of the old size may be forbidden afterwards:
    bound by ipolicy.minmax. `templates` are the one now and the one then where they differ. `other_pairs` says of the
    tiered run that it goes through other pairs than before.
    """

    name: str
    """Name of the pair in the policy, otherwise its position; tiered; standard."""
    before: Fit | None
    """Now; None where there is no such pair."""
    after: Fit | None
    """Then; None where there is no such pair."""
    old_size_after: Fit | None = None
    """Instances of the old size and template that fit then, for a pair that is removed or resized, or counted with
    another template.
    """
    other_pairs: bool = False
    templates: tuple[str, ...] = ()

    @property
    def resized(self) -> bool:
        """Whether the sides count instances of different sizes or templates, so that their numbers do not compare."""
        if self.before is None or self.after is None:
            return False
        return self.other_pairs or bool(self.templates) or self.before.spec != self.after.spec

    @property
    def worst_after(self) -> Fit | None:
        """What fits afterwards of the size that is counted before; None where that is not known."""
        return self.old_size_after if self.old_size_after is not None or self.resized else self.after

    @property
    def is_loss(self) -> bool:
        """Whether fewer instances of one and the same size fit than before."""
        then = self.worst_after
        return self.before is not None and then is not None and then.fits < self.before.fits

    @property
    def delta(self) -> int | None:
        """Instances won (or lost, below 0); None where one side is missing."""
        return None if self.before is None or self.after is None else self.after.fits - self.before.fits

    @property
    def percent(self) -> float | None:
        """The change in % of what fitted before; None where nothing fitted, or one side is missing."""
        delta = self.delta
        return None if delta is None or self.before is None or not self.before.fits else 100 * delta / self.before.fits


@dataclass(frozen=True, slots=True)
class AllocationVectors:
    """How many instances of each pair's least size the group's nodes take, one size at a time, biggest disk first.

    Summed over the online nodes (design document "dedicated allocation", "Dedicated Allocation Metric").
    """

    names: tuple[str, ...]
    """Pairs of today's policy."""
    before: tuple[int, ...]
    """By pair of today's policy: on the nodes as they are."""
    after: tuple[int, ...]
    """By pair of today's policy: on the nodes as they will be."""
    new_names: tuple[str, ...]
    """Pairs of the policy after the plan."""
    new_after: tuple[int, ...]
    """By pair of the policy after the plan: on the nodes as they will be."""

    @property
    def lost(self) -> tuple[int, ...]:
        """The lost-allocations vector; below 0 where more fit than before."""
        return tuple(then - now for then, now in zip(self.before, self.after, strict=True))


@dataclass(frozen=True, slots=True)
class GroupCapacityChange:
    """The capacity of one group, or of the whole cluster."""

    group: str | None
    """Name after the changes; None for the whole cluster."""
    before: GroupCapacity | None
    """Everything counted now; None for a new group."""
    after: GroupCapacity | None
    """Everything counted then; None for a group that is removed."""
    rows: tuple[FitChange, ...]
    """Each spec pair alone."""
    tiered: FitChange
    """All pairs in turn, each shrunk to what still fits."""
    standard: FitChange
    """Instances of the policy's std."""
    renamed_from: str | None = None
    """Name before the changes, where it differs."""
    vectors: AllocationVectors | None = None
    """Lost allocations; None where not every node has exclusive storage now and then."""

    @property
    def emptied(self) -> str:
        """Why a group that takes instances today would take none; empty where it takes some or is removed."""
        if self.before is None or self.after is None or not self.before.most_fits or self.after.most_fits:
            return ""
        if any(row.old_size_after and row.old_size_after.fits for row in (*self.rows, self.standard)):
            return ""
        return self.after.refusal_words or ("it would be unallocable" if self.after.nodes else "it would have no nodes")


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """Capacity of each group and of the whole cluster, before and after."""

    groups: tuple[GroupCapacityChange, ...]
    """By name after the changes."""
    cluster: GroupCapacityChange | None
    """The whole cluster, as hail answers requests that name no group."""
    notes: tuple[str, ...] = ()
    """What was left out of the count, and why."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Why a group could not be counted, by its name (empty: the whole cluster)."""


PairMatch = tuple[int | None, int | None]
"""Places (from 0) in the old and in the new policy; None where the pair is new, or gone."""


def matched_pairs(old: Sequence[SpecPair], new: Sequence[SpecPair]) -> list[PairMatch]:
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
