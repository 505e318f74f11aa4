"""Which group after a change is which group before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class GroupMatch:
    """A group's name before and after; None where there is no such group. Both None: the whole cluster."""

    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        """What to call it: its name after the change, else the one before; empty for the whole cluster."""
        return self.after or self.before or ""


def matched_groups(before: ClusterState, after: ClusterState) -> list[GroupMatch]:
    """Return all groups in the order of `after`, then those that are removed. A renamed group keeps its UUID."""
    by_uuid = {group.identity.uuid: name for name, group in before.groups.items() if group.identity.uuid}
    found = []
    for name, group in after.groups.items():
        known = by_uuid.get(group.identity.uuid) if group.identity.uuid else None
        found.append(GroupMatch(known or (name if name in before.groups and known is None else None), name))
    left = [name for name in before.groups if name not in {match.before for match in found}]
    return [*found, *(GroupMatch(name, None) for name in left)]
