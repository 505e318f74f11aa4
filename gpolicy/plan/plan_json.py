"""A plan as JSON: `gpolicy plan --save` writes it, `plan_file` reads it.

Other programs rely on it. The form is a contract, described by `schemas/output/plan.json`.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpolicy import __version__
from gpolicy.cluster.sources import state_read_at
from gpolicy.cluster.terms import Terms
from gpolicy.findings import Finding, told
from gpolicy.ganeti.commands import RapiCall
from gpolicy.json_values import DIGEST, LENGTH, NOT_EMPTY, PLACE, TEXTS, Key, Many, Maybe, OwnFile, Shape, plain
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.changes import Change, NotCompared
from gpolicy.plan.effects import Effect, Observed
from gpolicy.plan.part import LeftOut, Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.policy.kinds import Guard

PLAN_FILE: Final = OwnFile("gpolicy-plan", "1.7", "a plan", exact=True)

_OBJECT_NAME: Final = {"type": "string", "pattern": "^(cluster$|group/|node/)"}
_KEYS: Final = {**TEXTS, "minItems": 1}
"""A path, key by key."""
_OWN_KEYS: Final = Key(_KEYS, lambda item: item.path)


def _dotted(item: Change | NotCompared) -> str:
    return ".".join(item.path)


def effect_shape(name: Any = str) -> Shape:
    """Return the shape of what a command does to one leaf; `name` is the form of the object's name."""
    return Shape(Effect).with_keys("object keys before after", object=name, keys=_OWN_KEYS)


def rapi_shape(body: Any) -> Shape:
    """Return the shape of a request to RAPI; `body` is the form of its body."""
    method, path = {"enum": ["PUT", "POST", "DELETE"]}, {"type": "string", "pattern": "^/2/"}
    return Shape(RapiCall).with_keys(method=method, path=path, body=body)


OBSERVED: Final = Shape(Observed, "observed").with_keys(
    uuid="identity.uuid",
    serial_no="identity.serial_no",
    values=Key(
        Many(Shape(tuple).with_keys(keys=Key(_KEYS, 0), value=Key({}, 1))),
        lambda item: list(item.values.items()),
    ),
)
_COMMAND: Final = Shape(PlannedCommand).with_keys(
    argv=Key(Maybe({**TEXTS, "minItems": 2}), lambda command: command.argv),
    rapi=rapi_shape(body={"type": ["object", "null"]}),
    effects=effect_shape(_OBJECT_NAME),
)
_INVERSE: Final = Shape(Inverse).with_keys(
    "first more not_restored",
    first=Key(_COMMAND, lambda inverse: (*inverse.commands, PlannedCommand(None))[0], inline=True),
    more=Key(Many(_COMMAND), lambda inverse: inverse.commands[1:]),
)
_STEP: Final = Shape(Step, "step").with_keys(
    id={"type": "string", "pattern": "^[1-9][0-9]*$"},
    wave={"type": "integer", "minimum": 1, "maximum": 8},
    object=_OBJECT_NAME,
    title=NOT_EMPTY,
    command=Key(_COMMAND, inline=True),
    inverse=_INVERSE,
)
_CHANGE: Final = Shape(Change, "change").with_keys(
    "object path keys action before after effective_before effective_after takes_effect risk reason affects",
    object=_OBJECT_NAME,
    path=Key(NOT_EMPTY, _dotted),
    keys=_OWN_KEYS,
    takes_effect=NOT_EMPTY,
    affects=_OBJECT_NAME,
    origin=Key(str | None, lambda item: item.span and str(item.span)),
)
_GUARD: Final = Shape(GuardResult, "guard").with_keys("name ok message allowed", name=NOT_EMPTY, message=NOT_EMPTY)
_DECLARED_GUARD: Final = Shape(Guard, "declared_guard").with_keys(
    "name measure limit percent",
    name=Key(NOT_EMPTY, "name.value"),
    limit={"type": "number", "minimum": 0},
    group=Key(str | None, lambda item: item.group and item.group.value),
    spec=Key(str | None, lambda item: item.spec and item.spec.value),
)
_NOT_COMPARED: Final = Shape(NotCompared).with_keys("object path wanted", object=_OBJECT_NAME, path=Key(str, _dotted))
_FINDING: Final = Shape(Finding).with_keys(
    "code name severity message hint span",
    code={"type": "string", "pattern": "^GP[0-9]{3}$"},
    span=Key(Maybe(PLACE), inline=True),
)
ANSWER: Final = "answer"
"""The key under which the file of a plan or remedy has its report, for `gpolicy show`."""
ANSWER_KEY: Final = Key({"type": "object"}, lambda _: None, sparse=True)
"""In files only."""
PLAN_FIRST: Final = Shape(Plan).with_keys(
    "format_version kind gpolicy cluster cluster_uuid source snapshot made_at policy_commit policy_dirty state_read_at"
    " ganeti_version policy_digest state_digest serials state_digest_rapi observed not_shown staying changes steps",
    **PLAN_FILE.head,
    gpolicy=Key(NOT_EMPTY, lambda _: __version__),
    made_at="provenance.made_at",
    policy_commit="provenance.commit",
    policy_dirty="provenance.dirty",
    state_read_at=Key(str | None, lambda plan: state_read_at(plan.provenance, plan.source, plan.snapshot)),
    ganeti_version="version",
    **dict.fromkeys(("policy_digest", "state_digest", "state_digest_rapi"), DIGEST),
    observed=OBSERVED,
    not_shown="gaps",
    staying="one_way",
    changes=_CHANGE,
    steps=_STEP,
)
"""The keys before `impact`."""
PLAN_LAST: Final = Shape(Plan).with_keys(
    "guards declared_guards pair_names terms unreadable part left_out findings notes",
    guards=_GUARD,
    declared_guards=_DECLARED_GUARD,
    terms=Key({"type": "object"}, lambda plan: terms_data(plan.terms)),
    unreadable=Key(_NOT_COMPARED, "not_compared"),
    part=Shape(Part).with_keys("only exclude"),
    left_out=Shape(LeftOut).with_keys("object keys action", object=_OBJECT_NAME, keys=_OWN_KEYS),
    findings=Key(Many(_FINDING), lambda plan: list(told(plan.findings))),
    summary=Shape(Plan).with_keys(
        changes=LENGTH, steps=LENGTH, unreadable=Key(LENGTH, "not_compared"), left_out=LENGTH, safe=bool
    ),
    answer=ANSWER_KEY,
)
"""The keys behind `impact`."""


def terms_data(terms: Terms) -> dict[str, Any]:
    """Return the terms of a policy as JSON types; `plan_file` reads them for guards that `apply` judges again."""
    leaves = {
        label: [{"keys": list(path), "value": value} for path, value in values.items()]
        for label, values in terms.values.items()
    }
    return {"groups": plain(terms.groups), "others": plain(terms.others), "values": leaves, "release": terms.release}


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    return {**PLAN_FIRST(plan), "impact": dict(impact or {}), **PLAN_LAST(plan)}
