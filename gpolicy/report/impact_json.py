"""The `impact` object of a plan's JSON: every number of the reports, as it was computed.

The keys are the fields of `gpolicy.impact`'s values, in their order, and a few figures that follow from them; sizes are
MiB. The form is a contract, described with the rest of a plan by `schemas/output/plan.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.declared_resources import DeclaredNumber
from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.analysis.node_violations import SPINDLE_RATIO, VCPU_RATIO, RatioBreach
from gpolicy.analysis.resource_models import GroupModel, NodeModel
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.analysis.violations import ParameterBreach, PolicyViolation
from gpolicy.impact.capacity_change import AllocationVectors, FitChange
from gpolicy.impact.exclusive_storage_change import DiskFinding
from gpolicy.impact.impact import Impact
from gpolicy.impact.redundancy_change import GroupRedundancyChange, RedundancyChange
from gpolicy.json_shape import COUNT, FROM_ONE, NUMBER, Document, Key, Maybe, Shape, fields_of
from gpolicy.plan.plan_json import PLAN_FIRST, PLAN_LAST
from gpolicy.report.capacity_json import BINDING, CAPACITY, SPEC

_FORMS: Final[dict[type, Callable[[Any], Any]]] = {shape.kind: shape for shape in (BINDING, CAPACITY, SPEC)}
"""The forms of values that are not just their fields."""


def _add(kind: type, *derived: str, without: tuple[str, ...] = (), **keys: Key) -> None:
    _FORMS[kind] = fields_of(kind, *derived, without=without, forms=_FORMS, **keys)


_COUNT: Final = Key(form=COUNT)
_NUMBER: Final = Key(form=NUMBER)
_add(AllocationVectors, "lost")
_add(ParameterBreach, "beyond")
_add(DeclaredNumber, "differs")
_add(DiskFinding, disk=_COUNT, trouble=Key(of="trouble.key"))
_add(Fit, fits=_COUNT, without=("run_memory",))
_add(FitChange, "delta", "percent", without=("other_pairs", "templates"))
_add(GroupModel, measured_fits=_COUNT, configured_fits=_COUNT)
_add(
    GroupRedundancy,
    without=("members",),
    **dict.fromkeys(("nodes", "asked", "survives", "examined", "unmirrored", "split"), _COUNT),
)
_add(GroupRedundancyChange, "newly_lost")
_add(Loss, "absorbed")
_add(NodeModel, "oversubscription")
_add(PolicyViolation, pair=Key(form=FROM_ONE))
_add(RatioBreach, parameter=Key(form={"enum": [VCPU_RATIO, SPINDLE_RATIO]}))
_add(RedundancyChange, failures=Key(form=FROM_ONE))
_add(ScoreComponent, "product", value=_NUMBER, least=_NUMBER, product=_NUMBER)
_FORMS[Score] = Shape(Score, "score", None, forms=_FORMS).with_keys(total=_NUMBER, minimum=_NUMBER, components="")
_IMPACT: Final = fields_of(Impact, forms=_FORMS)

PLAN_DOCUMENT: Final = Document(
    "gpolicy plan --format json",
    "What a policy would change on a cluster, by which commands. Readers must ignore keys they do not know: a later 1.x"
    " may add some. `apply` and `render` are stricter: they take a plan of their own format only, and only if all that"
    " follows from `changes`, `observed`, `not_shown`, `staying` and `ganeti_version` is what they make of it"
    " themselves.",
    PLAN_FIRST,
    Shape(Impact).with_keys(
        impact=Key(
            "What the changes do to capacity and instances; empty where nothing changes or nobody asked.",
            Maybe(_IMPACT, {"type": "object", "maxProperties": 0}),
            lambda impact: impact,
        )
    ),
    PLAN_LAST,
)


def impact_data(impact: Impact) -> dict[str, Any]:
    """Return the impact as JSON's own types. A number that is not finite is null."""
    return _IMPACT(impact)
