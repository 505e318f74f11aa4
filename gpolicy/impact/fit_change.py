"""What fits before a change and after it, side by side: a row a spec pair, the rows of a group, all groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpolicy.analysis.capacity import GroupCapacity
from gpolicy.analysis.counted_cluster import Fit

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class FitChange:
    """One row: what fitted and what will fit. None on the side where there is no such pair, or no such group.

    `name` is the pair's name in the policy, otherwise its position ("was 2" for the place of one that is gone);
    `tiered` and `standard` are rows of their own.
    `old_size_after` is how many instances of the old size fit under the new policy, for a pair that is removed or
    resized (an instance of that size may be forbidden then: bound by ipolicy.minmax).
    """

    name: str
    before: Fit | None
    after: Fit | None
    old_size_after: Fit | None = None

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

    Summed over the online nodes (design document "dedicated allocation", "Dedicated Allocation Metric"). `names` are
    the pairs of the old policy, `before` and `after` count their least sizes on the nodes now and as they will be;
    `lost` is the difference. `new_names` and `new_after` are the same for the pairs of the new policy.
    """

    names: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    new_names: tuple[str, ...]
    new_after: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """The lost-allocations vector; below 0 where more fit than before."""
        return tuple(then - now for then, now in zip(self.before, self.after, strict=True))


@dataclass(frozen=True, slots=True)
class GroupCapacityChange:
    """One group (None: the whole cluster). `before` or `after` is None for a group that is new or removed.

    `rows` are the pairs. `group` is the name after the change, `renamed_from` the one before where it differs.
    `vectors` is None where not every node has exclusive storage before and after.
    """

    group: str | None
    before: GroupCapacity | None
    after: GroupCapacity | None
    rows: tuple[FitChange, ...]
    tiered: FitChange
    standard: FitChange
    renamed_from: str | None = None
    vectors: AllocationVectors | None = None


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """Capacity of each group and of the whole cluster, before and after.

    `unavailable` says by group name why a group could not be counted ("" stands for the whole cluster).
    """

    groups: tuple[GroupCapacityChange, ...]
    cluster: GroupCapacityChange | None
    notes: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
