"""What a plan costs: everything that the reports show and the guards judge, in one value.

Each part compares the cluster now with the cluster as it will be. A part is None where it could not be found out;
`unavailable` says why, by the part's name. A wrong number is worse than no number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from gpolicy.analysis.resource_models import ResourceModel, resource_models
from gpolicy.errors import GpolicyError
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.comparison import LoadedComparison, compare, load
from gpolicy.impact.exclusive_storage_change import exclusive_storage_change
from gpolicy.impact.fit_change import CapacityChange
from gpolicy.impact.location_change import LocationChange, location_change
from gpolicy.impact.redundancy_change import RedundancyChange, redundancy_change
from gpolicy.impact.storage_findings import ExclusiveStorageChange
from gpolicy.impact.violation_change import ViolationChange, violation_change

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Hardware

_Part = TypeVar("_Part")

PARTS: Final = ("violations", "capacity", "redundancy", "location", "exclusive_storage", "resource_model")
"""The parts of an impact, as `Impact` and `unavailable` name them."""


_COUNTED: Final = frozenset({"capacity", "redundancy", "resource_model"})


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both resource models before and after."""

    before: ResourceModel
    after: ResourceModel


def resource_model_change(compared: LoadedComparison, tell: Callable[[str], None]) -> ResourceModelChange:
    """Compare both models before and after."""
    return ResourceModelChange(*resource_models([compared.before, compared.after], tell))


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

    def measured(part: str, measure: Callable[[], _Part]) -> _Part | None:
        if part not in parts:
            return None
        try:
            return measure()
        except GpolicyError as error:
            unavailable[part] = error.message
            return None

    compared, tell = compare(before, after), observer or (lambda _what: None)
    found = Impact(
        violations=measured("violations", lambda: violation_change(compared, names)),
        location=measured("location", lambda: location_change(compared)),
        exclusive_storage=measured("exclusive_storage", lambda: exclusive_storage_change(compared, hardware or {})),
    )
    counted = _COUNTED.intersection(parts)
    try:
        if counted:
            loaded = load(compared)
            found = replace(
                found,
                capacity=measured("capacity", lambda: capacity_change(loaded, names, tell)),
                redundancy=measured("redundancy", lambda: redundancy_change(loaded, failures, tell)),
                resource_model=measured("resource_model", lambda: resource_model_change(loaded, tell)),
            )
    except GpolicyError as error:
        unavailable |= dict.fromkeys(counted, error.message)
    return replace(found, unavailable={part: unavailable[part] for part in PARTS if part in unavailable})
