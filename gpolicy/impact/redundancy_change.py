"""Which losses of nodes groups can absorb before a change and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan

from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy, group_redundancy
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.impact.comparison import LoadedSides, measure_sides
from gpolicy.progress import Tell


@dataclass(frozen=True, slots=True)
class GroupRedundancyChange:
    """One group before and after; None on the side where there is no such group."""

    group: str
    """Name after the changes."""
    before: GroupRedundancy | None
    """Now; None for a new group."""
    after: GroupRedundancy | None
    """Then; None for a group that is removed."""
    renamed_from: str | None = None
    """Name before the changes, where it differs."""

    @property
    def newly_lost(self) -> tuple[Loss, ...]:
        """Losses that were absorbed before and will not be."""
        known = set() if self.before is None else {loss.nodes for loss in self.before.not_absorbed}
        lost = () if self.after is None else self.after.not_absorbed
        return tuple(loss for loss in lost if loss.nodes not in known and not self.of_other_nodes(loss))

    def of_other_nodes(self, loss: Loss) -> bool:
        """Whether `loss` cannot be compared: not all of its nodes were in the group before, or it has no others now."""
        if self.before is None or self.after is None or self.before.members is None:
            return False
        return len(loss.nodes) == self.after.nodes or not self.before.members.issuperset(loss.nodes)


@dataclass(frozen=True, slots=True)
class RedundancyChange:
    """Redundancy of each group and the score with its components, before and after."""

    failures: int
    """Most nodes that were taken away at once."""
    groups: tuple[GroupRedundancyChange, ...]
    """By name after the changes."""
    score_before: Score
    score_after: Score
    notes: tuple[str, ...] = ()
    """What was left out."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Why a group could not be examined, by its name; the score has no components then."""


def redundancy_change(compared: LoadedSides, failures: int, tell: Tell) -> RedundancyChange:
    """Examine each group before and after: any `failures` nodes, and fewer; more where its limits allow more.

    Raise RequestError for fewer than one.
    """

    def examine(cluster: CountedCluster, title: str) -> GroupRedundancy:
        tell(f"{title}which losses of nodes it can absorb")
        return group_redundancy(cluster, max(failures, cluster.limits.max_node_failures or 0))

    groups = tuple(
        GroupRedundancyChange(
            group=sides.match.name,
            before=before and replace(before, group=sides.match.before or ""),
            after=after and replace(after, group=sides.match.after or ""),
            renamed_from=sides.match.renamed_from,
        )
        for sides, (before, after) in zip(compared.groups, measure_sides(compared.groups, examine), strict=True)
    )
    notes = ["the cluster score is not known for the same reason"] if compared.unavailable else []
    now, then = (
        Score(nan, ()) if side.settled.unknown else score_of(side.whole.as_hspace.cluster.nodes.values())
        for side in (compared.before, compared.after)
    )
    most = max([failures, *(side.asked for item in groups for side in (item.before, item.after) if side is not None)])
    return RedundancyChange(most, groups, now, then, (*notes, *compared.notes), compared.unavailable)
