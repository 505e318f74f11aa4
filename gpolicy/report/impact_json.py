"""The `impact` object of a plan's JSON: every number of the reports, as it was computed.

The keys are the fields of `gpolicy.impact`'s values, in their order, and a few figures that follow from them; sizes are
MiB. The form is a contract, described by `schemas/output/plan.json`: a test holds every key against it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.capacity import GroupCapacity, spec_values
from gpolicy.analysis.declared_resources import DeclaredNumber
from gpolicy.analysis.node_losses import GroupRedundancy, Loss
from gpolicy.analysis.resource_models import NodeModel
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.analysis.violations import ParameterBreach
from gpolicy.impact.fit_change import AllocationVectors, FitChange
from gpolicy.impact.impact import Impact
from gpolicy.impact.redundancy_change import GroupRedundancyChange
from gpolicy.impact.storage_findings import DiskTrouble
from gpolicy.json_values import plain
from gpolicy.report.capacity_json import binding_data, capacity_of_group


def impact_data(impact: Impact) -> dict[str, Any]:
    """Return the impact as JSON's own types. A number that is not finite is null."""
    found: dict[str, Any] = plain(impact, _FORMS)
    return found


def _with(*derived: str, without: Collection[str] = ()) -> Callable[[Any], dict[str, Any]]:
    """Return the form of a value with some figures beside its fields, and without those that only serve to compare."""

    def form(value: Any) -> dict[str, Any]:
        names = (*(item.name for item in dataclasses.fields(value) if item.name not in without), *derived)
        return {name: plain(getattr(value, name), _FORMS) for name in names}

    return form


def _score(score: Score) -> dict[str, Any]:
    return {name: plain(getattr(score, name), _FORMS) for name in ("total", "minimum", "components")}


_FORMS: Final[Mapping[type, Callable[[Any], Any]]] = {
    AllocationVectors: _with("lost"),
    Binding: binding_data,
    ParameterBreach: _with("beyond"),
    Cause: lambda cause: cause.key,
    DeclaredNumber: _with("differs"),
    DiskTrouble: lambda trouble: trouble.key,
    FitChange: _with("delta", "percent", without={"other_pairs", "templates"}),
    GroupCapacity: capacity_of_group,
    GroupRedundancy: _with(without={"members"}),
    GroupRedundancyChange: _with("newly_lost"),
    Loss: _with("absorbed"),
    NodeModel: _with("oversubscription"),
    Score: _score,
    ScoreComponent: _with("product"),
    Spec: spec_values,
}
"""The forms of values that are not just their fields."""
