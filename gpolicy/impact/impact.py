"""What a plan costs: everything that the reports show and the guards judge, in one value.

Each part compares the cluster now with the cluster as it will be. A part is None where it could not be found out;
`unavailable` says why, by the part's name. A wrong number is worse than no number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from gpolicy.errors import GpolicyError
from gpolicy.impact.breaches import ViolationChange
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.clusters import Clusters
from gpolicy.impact.exclusive_storage import exclusive_storage_change
from gpolicy.impact.fit_change import CapacityChange
from gpolicy.impact.location import LocationChange, location_change
from gpolicy.impact.pair_names import pair_names
from gpolicy.impact.redundancy import RedundancyChange, redundancy_change
from gpolicy.impact.resource_model import ResourceModelChange, resource_model_change
from gpolicy.impact.storage_findings import ExclusiveStorageChange
from gpolicy.impact.violations import violation_change
from gpolicy.plan.projection import projected

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.plan.change import Change
    from gpolicy.policy.model import Policy

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What the changes of one plan do."""

    violations: ViolationChange | None = None
    capacity: CapacityChange | None = None
    redundancy: RedundancyChange | None = None
    location: LocationChange | None = None
    exclusive_storage: ExclusiveStorageChange | None = None
    resource_model: ResourceModelChange | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)


def impact(
    policy: Policy,
    state: ClusterState,
    changes: Sequence[Change],
    *,
    failures: int = 1,
    observer: Callable[[str], None] | None = None,
) -> Impact:
    """Return what `changes`, made for `policy`, do to the cluster in `state`.

    `failures`: how many nodes of a group may fail at once in the test of redundancy. `observer` is told what is being
    computed.
    """
    after = projected(state, changes)
    names = pair_names(policy, after)
    hardware = {group.name: group.hardware for group in policy.groups.values() if group.hardware}
    unavailable: dict[str, str] = {}

    def part(name: str, compute: Callable[[], _Part]) -> _Part | None:
        try:
            return compute()
        except GpolicyError as error:
            unavailable[name] = error.message
            return None

    clusters = Clusters()
    return Impact(
        violations=part("violations", lambda: violation_change(state, after, names)),
        capacity=part(
            "capacity", lambda: capacity_change(state, after, names=names, observer=observer, clusters=clusters)
        ),
        redundancy=part(
            "redundancy",
            lambda: redundancy_change(state, after, failures=failures, observer=observer, clusters=clusters),
        ),
        location=part("location", lambda: location_change(state, after)),
        exclusive_storage=part("exclusive_storage", lambda: exclusive_storage_change(state, after, hardware)),
        resource_model=part(
            "resource_model", lambda: resource_model_change(state, after, observer=observer, clusters=clusters)
        ),
        unavailable=unavailable,
    )
