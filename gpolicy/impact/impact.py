"""What a plan costs: everything that the reports show and the guards judge, in one value.

Each part compares the cluster now with the cluster as it will be. A part is None where it could not be found out;
`unavailable` says why, by the part's name. A wrong number is worse than no number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from gpolicy.analysis.clusters import Clusters
from gpolicy.errors import GpolicyError
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.exclusive_storage_change import exclusive_storage_change
from gpolicy.impact.fit_change import CapacityChange
from gpolicy.impact.location_change import LocationChange, location_change
from gpolicy.impact.redundancy_change import RedundancyChange, redundancy_change
from gpolicy.impact.resource_model_change import ResourceModelChange, resource_model_change
from gpolicy.impact.storage_findings import ExclusiveStorageChange
from gpolicy.impact.violation_change import ViolationChange, violation_change

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Hardware

_Part = TypeVar("_Part")

PARTS: Final = ("violations", "capacity", "redundancy", "location", "exclusive_storage", "resource_model")
"""The parts of an impact, as `Impact` and `unavailable` name them."""


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
    before: ClusterState,
    after: ClusterState,
    *,
    names: PairNames,
    hardware: Mapping[str, Hardware] | None = None,
    failures: int = 1,
    parts: Collection[str] = PARTS,
    observer: Callable[[str], None] | None = None,
) -> Impact:
    """Return what it does to a cluster that it becomes `after`, with `names` for its spec pairs.

    `hardware` is what a policy promises of the nodes of a group; `failures`: how many nodes of a group may fail at once
    in the test of redundancy. Only `parts` are worked out. `observer` is told what is being computed.
    """
    unavailable: dict[str, str] = {}
    clusters = Clusters()

    def part(name: str, compute: Callable[[], _Part]) -> _Part | None:
        if name not in parts:
            return None
        try:
            return compute()
        except GpolicyError as error:
            unavailable[name] = error.message
            return None

    return Impact(
        violations=part("violations", lambda: violation_change(before, after, names)),
        capacity=part(
            "capacity", lambda: capacity_change(before, after, names=names, observer=observer, clusters=clusters)
        ),
        redundancy=part(
            "redundancy",
            lambda: redundancy_change(before, after, failures=failures, observer=observer, clusters=clusters),
        ),
        location=part("location", lambda: location_change(before, after)),
        exclusive_storage=part(
            "exclusive_storage", lambda: exclusive_storage_change(before, after, dict(hardware or {}))
        ),
        resource_model=part(
            "resource_model", lambda: resource_model_change(before, after, observer=observer, clusters=clusters)
        ),
        unavailable=unavailable,
    )
