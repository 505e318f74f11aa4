"""What a plan costs: everything that the reports show and the guards judge, in one value.

Each part compares the cluster now with the cluster as it will be. A part is None where it could not be found out;
`unavailable` says why, by the part's name. A wrong number is worse than no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.impact.capacity_change import CapacityChange
    from gpolicy.impact.exclusive_storage import ExclusiveStorageChange
    from gpolicy.impact.location import LocationChange
    from gpolicy.impact.redundancy import RedundancyChange
    from gpolicy.impact.resource_model import ResourceModelChange
    from gpolicy.impact.violations import ViolationChange


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
