"""The `impact` object of a plan's JSON: every number of the reports, as it was computed.

The keys are the fields of `gpolicy.impact`'s values, in their order, and a few figures that follow from them; sizes are
MiB. The form is a contract, described by `schemas/output/plan.json`: a test holds every key against it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.capacity import GroupCapacity, spec_values
from gpolicy.analysis.declared_resources import DeclaredNumber
from gpolicy.analysis.node_losses import GroupRedundancy, Loss
from gpolicy.analysis.resource_models import NodeModel
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.analysis.violations import Breach
from gpolicy.impact.fit_change import AllocationVectors, FitChange
from gpolicy.impact.impact import Impact
from gpolicy.impact.redundancy_change import GroupRedundancyChange
from gpolicy.impact.storage_findings import DiskTrouble
from gpolicy.report.capacity_json import binding_data, capacity_of_group

_DERIVED: Final[Mapping[type, tuple[str, ...]]] = {
    AllocationVectors: ("lost",),
    Breach: ("beyond",),
    DeclaredNumber: ("differs",),
    FitChange: ("delta", "percent"),
    GroupRedundancyChange: ("newly_lost",),
    Loss: ("absorbed",),
    NodeModel: ("oversubscription",),
    ScoreComponent: ("product",),
}
"""What is not a field, but belongs beside the fields."""

_LEFT_OUT: Final[Mapping[type, tuple[str, ...]]] = {GroupRedundancy: ("members",)}
"""Fields that only serve to compare."""


def impact_data(impact: Impact) -> dict[str, Any]:
    """Return the impact as JSON's own types. A number that is not finite is null."""
    return {field.name: _value(getattr(impact, field.name)) for field in dataclasses.fields(impact)}


def _value(value: object) -> Any:
    match value:
        case Binding():
            return binding_data(value)
        case Spec():
            return spec_values(value)
        case GroupCapacity():
            return capacity_of_group(value)
        case Score():
            score = {"total": value.total, "minimum": value.minimum, "components": value.components}
            return {name: _value(item) for name, item in score.items()}
        case DiskTrouble() | Cause():
            return value.key
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case None | str() | int():
            return value
        case Mapping():
            return {str(key): _value(item) for key, item in value.items()}
        case tuple() | list():
            return [_value(item) for item in value]
    if not dataclasses.is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    names = (*(field.name for field in dataclasses.fields(value)), *_DERIVED.get(type(value), ()))
    left_out = _LEFT_OUT.get(type(value), ())
    return {name: _value(getattr(value, name)) for name in names if name not in left_out}
