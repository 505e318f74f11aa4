"""Which losses of nodes groups can absorb before a change and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpolicy.analysis.cluster_score import Score
from gpolicy.analysis.clusters import Clusters
from gpolicy.analysis.redundancy import Examiner, GroupRedundancy, Loss, Observer, silent
from gpolicy.impact.group_match import matched_groups

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


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
        lost = () if self.after is None else self.after.not_absorbed
        return tuple(loss for loss in lost if loss.nodes not in known and not self.of_other_nodes(loss))

    def of_other_nodes(self, loss: Loss) -> bool:
        """Whether `loss` cannot be compared: not all of its nodes were in the group before, or it has no others now."""
        if self.before is None or self.after is None or self.before.members is None:
            return False
        return len(loss.nodes) == self.after.nodes or not self.before.members.issuperset(loss.nodes)


@dataclass(frozen=True, slots=True)
class RedundancyChange:
    """Redundancy of each group and the score with its components, before and after.

    `unavailable` says by group why it could not be examined; the score has no components then.
    """

    failures: int
    groups: tuple[GroupRedundancyChange, ...]
    score_before: Score
    score_after: Score
    notes: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)


def redundancy_change(
    before: ClusterState,
    after: ClusterState,
    *,
    failures: int = 1,
    observer: Observer | None = None,
    clusters: Clusters | None = None,
) -> RedundancyChange:
    """Examine each group before and after; what is the same is examined once. Errors as for `redundancy`.

    `clusters` are shared with other parts of an impact.
    """
    examiner = Examiner(failures, observer or silent, clusters or Clusters())
    old, new = examiner.clusters.part(before), examiner.clusters.part(after)
    groups, unavailable = [], {}
    for match in matched_groups(before, after):
        reason = old.gaps.get(match.before or "") or new.gaps.get(match.after or "")
        if reason is not None:
            unavailable[match.name] = reason
            continue
        groups.append(
            GroupRedundancyChange(
                group=match.name,
                before=None if match.before is None else examiner.group(old, match.before),
                after=None if match.after is None else examiner.group(new, match.after),
                renamed_from=match.before if match.after is not None and match.before != match.after else None,
            )
        )
    notes = [f"group {name}: {reason}" for name, reason in unavailable.items()]
    if unavailable:
        notes.append("the cluster score is not known for the same reason")
    return RedundancyChange(
        failures, tuple(groups), examiner.score(old), examiner.score(new), (*notes, *old.notes, *new.notes), unavailable
    )
