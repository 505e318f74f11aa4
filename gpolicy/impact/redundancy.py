"""Which losses of nodes a group can absorb, which not, and for want of what.

`redundancy(state, *, failures=1, observer=None) -> Redundancy` examines one state;
`redundancy_change(before, after, *, failures=1, observer=None) -> RedundancyChange` compares two.

The test is that of htools' global N+1 (`gpolicy.allocator.redundancy`), for several nodes at once
`gpolicy.allocator.survival`: mirrored instances fail over, those on shared storage move, all others need room for a
copy. It is forced: only what cannot be (no memory, no disk, no spindles, forbidden migration) stops it. Limits that
are broken on the way (vcpu-ratio, exclusion tags) are told apart as `strained`.
Sources: design document "resource model" (max_node_failures); hspace(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.impact.capacity import Score


@dataclass(frozen=True, slots=True)
class Homeless:
    """An instance that finds no home (or finds one only against the policy), and for want of what.

    `key` is the policy's own word (`gpolicy.impact.binding.Cause`), `detail` says it in numbers.
    """

    instance: str
    key: str
    explanation: str
    detail: str


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of `nodes` at once: `homeless` instances cannot be kept, `strained` ones only against the policy."""

    nodes: tuple[str, ...]
    homeless: tuple[Homeless, ...]
    strained: tuple[Homeless, ...] = ()

    @property
    def absorbed(self) -> bool:
        """Whether every instance that can be restarted at all finds a home."""
        return not self.homeless


@dataclass(frozen=True, slots=True)
class Shortage:
    """A node that keeps less memory free (MiB) than it needs to take over the instances it is secondary of."""

    node: str
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class GroupRedundancy:
    """One group. `survives` is the number of nodes whose loss, whichever they are, it can absorb: at most `asked`.

    `losses` are the sets of nodes that cannot be absorbed, the smallest sets only (a set that holds one of them is
    not listed again), and those that strain the policy. `examined` counts the sets looked at. `unavailable` says why
    larger sets were not looked at (None: all were).
    """

    group: str
    nodes: int
    asked: int
    survives: int
    losses: tuple[Loss, ...]
    shortages: tuple[Shortage, ...]
    examined: int
    unavailable: str | None = None

    @property
    def not_absorbed(self) -> tuple[Loss, ...]:
        """The losses that leave an instance without a home."""
        return tuple(loss for loss in self.losses if not loss.absorbed)

    @property
    def strained(self) -> tuple[Loss, ...]:
        """The losses that are absorbed, but only against the policy."""
        return tuple(loss for loss in self.losses if loss.absorbed)


@dataclass(frozen=True, slots=True)
class Redundancy:
    """The redundancy of each group of one state, and the cluster score."""

    groups: tuple[GroupRedundancy, ...]
    score: Score


@dataclass(frozen=True, slots=True)
class GroupRedundancyChange:
    """One group before and after; None on the side where there is no such group."""

    group: str
    before: GroupRedundancy | None
    after: GroupRedundancy | None
    renamed_from: str | None = None

    @property
    def newly_lost(self) -> tuple[Loss, ...]:
        """Losses that were absorbed before and will not be."""
        known = set() if self.before is None else {loss.nodes for loss in self.before.not_absorbed}
        return () if self.after is None else tuple(x for x in self.after.not_absorbed if x.nodes not in known)


@dataclass(frozen=True, slots=True)
class RedundancyChange:
    """Redundancy of each group and the score with its components, before and after."""

    failures: int
    groups: tuple[GroupRedundancyChange, ...]
    score_before: Score
    score_after: Score
    notes: tuple[str, ...] = ()
