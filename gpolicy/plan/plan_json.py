"""The plan as JSON: what `gpolicy plan -o` writes and other programs rely on. `plan_file` reads it.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gpolicy import __version__
from gpolicy.cluster.terms import Terms
from gpolicy.findings import Finding
from gpolicy.ganeti.commands import RapiCall
from gpolicy.json_values import ANYTHING, COUNT, NOT_EMPTY, TEXTS, Key, Many, Maybe, Shape, plain, version_key
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.change import Change, NotCompared
from gpolicy.plan.effects import Effect, Observed
from gpolicy.plan.part import LeftOut, Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.policy.kinds import Guard

FORMAT_VERSION: Final = "1.7"
KIND: Final = "gpolicy-plan"

_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_OBJECT_NAME: Final = {"type": "string", "pattern": "^(cluster$|group/|node/)"}
_KEYS: Final = {**TEXTS, "minItems": 1}
"""A path, key by key."""
_OWN_KEYS: Final = Key(_KEYS, lambda item: item.path)


def _dotted(item: Change | NotCompared) -> str:
    return ".".join(item.path)


def _size_of(name: str) -> Callable[[Any], int]:
    return lambda plan: len(getattr(plan, name))


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
        Many(Shape(tuple).with_keys(keys=Key(_KEYS, lambda leaf: leaf[0]), value=Key(ANYTHING, lambda leaf: leaf[1]))),
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
_UNREADABLE: Final = Shape(NotCompared).with_keys("object path wanted", object=_OBJECT_NAME, path=Key(str, _dotted))
_FINDING: Final = Shape(Finding, optional="file line column").with_keys(
    "code name severity message hint",
    code={"type": "string", "pattern": "^GP[0-9]{3}$"},
    file=Key(str | None, lambda item: item.span and item.span.file),
    line=Key(int | None, lambda item: item.span and item.span.line),
    column=Key(int | None, lambda item: item.span and item.span.column),
)
ANSWER: Final = "answer"
"""The key under which the file of a plan or remedy has its report, for `gpolicy show`."""
ANSWER_KEY: Final = Key({"type": "object"}, lambda _: None, sparse=True)
"""In files only."""
PLAN_FIRST: Final = Shape(
    Plan, optional="gpolicy cluster_uuid snapshot made_at policy_commit policy_dirty state_read_at staying"
).with_keys(
    "format_version kind gpolicy cluster cluster_uuid source snapshot made_at policy_commit policy_dirty state_read_at"
    " ganeti_version policy_digest state_digest serials state_digest_rapi observed not_shown staying changes steps",
    format_version=version_key(FORMAT_VERSION),
    kind=Key({"const": KIND}, lambda _: KIND),
    gpolicy=Key(NOT_EMPTY, lambda _: __version__),
    made_at="provenance.made_at",
    policy_commit="provenance.commit",
    policy_dirty="provenance.dirty",
    state_read_at=Key(str | None, lambda plan: plan.provenance.state_read_at(plan.source, plan.snapshot)),
    ganeti_version="version",
    policy_digest=_DIGEST,
    state_digest=_DIGEST,
    state_digest_rapi=_DIGEST,
    observed=OBSERVED,
    not_shown="gaps",
    changes=_CHANGE,
    steps=_STEP,
)
"""The keys before `impact`."""
PLAN_LAST: Final = Shape(Plan, optional="declared_guards pair_names terms part left_out answer").with_keys(
    "guards declared_guards pair_names terms unreadable part left_out findings notes",
    guards=_GUARD,
    declared_guards=_DECLARED_GUARD,
    terms=Key({"type": "object"}, lambda plan: terms_data(plan.terms)),
    unreadable=_UNREADABLE,
    part=Shape(Part).with_keys("only exclude"),
    left_out=Shape(LeftOut).with_keys("object keys action", object=_OBJECT_NAME, keys=_OWN_KEYS),
    findings=Key(_FINDING, "all_findings"),
    summary=Key(
        Shape(Plan, optional="left_out").with_keys(
            "changes steps unreadable left_out safe",
            **{name: Key(COUNT, _size_of(name)) for name in ("changes", "steps", "unreadable", "left_out")},
        ),
        lambda plan: plan,
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
