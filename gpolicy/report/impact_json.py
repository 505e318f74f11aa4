"""The `impact` object of a plan's JSON: every number of the reports, as it was computed.

The keys are the fields of `gpolicy.impact`'s values, in their order, and a few figures that follow from them; sizes are
MiB. The form is a contract, described with the rest of a plan by `schemas/output/plan.json`.
"""

from typing import Any, Final

from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.analysis.node_resources import DeclaredNumber
from gpolicy.analysis.resource_models import GroupModel, NodeModel
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.analysis.violations import SPINDLE_RATIO, VCPU_RATIO, ParameterBreach, PolicyViolation, RatioBreach
from gpolicy.impact.capacity_change import AllocationVectors, FitChange
from gpolicy.impact.exclusive_storage_change import DiskFinding
from gpolicy.impact.impact import GroupRedundancyChange, Impact, RedundancyChange
from gpolicy.json_values import COUNT, FROM_ONE, NUMBER, Document, Maybe, Shape, fields_of
from gpolicy.plan.plan_json import PLAN_FIRST, PLAN_LAST
from gpolicy.report.capacity_json import BINDING, CAPACITY, SPEC

_FORMS: Final[dict[type, Any]] = {shape.kind: shape for shape in (BINDING, CAPACITY, SPEC)}
"""The forms of values that are not just their fields."""


def _add_form(kind: type, *derived: str, without: tuple[str, ...] = (), **keys: Any) -> None:
    _FORMS[kind] = fields_of(kind, *derived, without=without, forms=_FORMS, **keys)


_add_form(AllocationVectors, "lost")
_add_form(ParameterBreach, "beyond")
_add_form(DeclaredNumber, "differs")
_add_form(DiskFinding, disk=COUNT, trouble="trouble.key")
_add_form(Fit, fits=COUNT, without=("run_memory",))
_add_form(FitChange, "delta", "percent", without=("other_pairs", "templates"))
_add_form(GroupModel, measured_fits=COUNT, configured_fits=COUNT)
_add_form(
    GroupRedundancy,
    without=("members",),
    **dict.fromkeys(("nodes", "asked", "survives", "examined", "unmirrored", "split"), COUNT),
)
_add_form(GroupRedundancyChange, "newly_lost")
_add_form(Loss, "absorbed")
_add_form(NodeModel, "oversubscription")
_add_form(PolicyViolation, pair=FROM_ONE)
_add_form(RatioBreach, parameter={"enum": [VCPU_RATIO, SPINDLE_RATIO]})
_add_form(RedundancyChange, failures=FROM_ONE)
_add_form(ScoreComponent, "product", value=NUMBER, least=NUMBER, product=NUMBER)
_FORMS[Score] = Shape(Score, "score", documented=True, forms=_FORMS).with_keys(
    "total minimum components", total=NUMBER, minimum=NUMBER
)
IMPACT: Final = fields_of(Impact, forms=_FORMS)
"""The form of an impact. A number that is not finite is null."""

PLAN_DOCUMENT: Final = Document(
    "gpolicy plan --format json",
    PLAN_FIRST,
    Shape(Impact).with_keys(impact=Maybe(IMPACT, {"type": "object", "maxProperties": 0})),
    PLAN_LAST,
)
