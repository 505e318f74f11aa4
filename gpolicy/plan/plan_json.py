"""A plan as JSON: `gpolicy plan --save` writes it, and a file of it is read along the same shapes.

Other programs rely on it. The form is a contract, described by `schemas/output/plan.json`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gpolicy import __version__
from gpolicy.cluster.assembly import held, read
from gpolicy.cluster.record import LARGEST_NUMBER, Record
from gpolicy.cluster.sources import state_read_at
from gpolicy.cluster.state_files import TAKEN, TIME
from gpolicy.cluster.terms import VOLUME_GROUP, GroupTerms, Limits, Terms, VolumeTerms
from gpolicy.errors import InputError
from gpolicy.findings import Finding, Located, Span, told
from gpolicy.ganeti.amounts import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES
from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS
from gpolicy.ganeti.parameters import canonical
from gpolicy.ganeti.releases import is_release
from gpolicy.ganeti.vocabulary import ENABLED_HYPERVISORS, Level, Path, Value
from gpolicy.json_values import DIGEST, LENGTH, NOT_EMPTY, PLACE, Checked, Key, Many, Maybe, OwnFile, Shape, fields_of
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.changes import Change, NotCompared, Risk
from gpolicy.plan.effects import Effect, Observed
from gpolicy.plan.part import LeftOut, Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.policy.kinds import Guard

PLAN_FILE: Final = OwnFile("gpolicy-plan", "1.7", "a plan", exact=True)

OBJECT_NAME: Final = Checked(
    "cluster, group/NAME or node/NAME",
    re.compile("cluster|(group|node)/[^\0]+").fullmatch,
    {"type": "string", "pattern": "^(cluster$|group/|node/)"},
)
TEXT: Final = Checked("text without a null character, which no command can carry", lambda text: "\0" not in text)
_COMMIT: Final = Checked("a commit of git", re.compile("[0-9a-f]{40,64}").fullmatch)
_KEYS: Final = Checked("the path of a value", bool, Many(str, 1))
"""A path, key by key."""
_OWN_KEYS: Final = Key(_KEYS, "path")


def _dotted(item: Change | NotCompared) -> str:
    return ".".join(item.path)


def _at_path(written: Record, *keys: str) -> dict[str, Any]:
    """Return the path in `keys` of the record, and the values there that stand under other keys."""
    path = held(written.texts("keys"), _KEYS, written, "keys")
    return {"path": path, **{key: _value(written, key, path) for key in keys}}


def _value(written: Record, key: str, path: Path) -> Value:
    value = written.fields.get(key)
    if value is None:
        return None
    _check_numbers(value, f"{written.where}: {key}")
    return canonical(path, value)


def _check_numbers(value: Value, where: str) -> None:
    if isinstance(value, int) and abs(value) >= LARGEST_NUMBER:
        raise InputError(f"{where} holds too large a number")
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(below, where)


def effect_shape(name: Any = str) -> Shape:
    """Return the shape of what a command does to one leaf; `name` is the form of the object's name."""
    return Shape(Effect, reader=_read_effect).with_keys("object keys before after", object=name, keys=_OWN_KEYS)


def _read_effect(written: Record) -> Effect:
    return read(_EFFECT, written, **_at_path(written, "before", "after"))


_EFFECT: Final = effect_shape(OBJECT_NAME)


def rapi_shape(body: Any) -> Shape:
    """Return the shape of a request to RAPI; `body` is the form of its body."""
    method, path = {"enum": ["PUT", "POST", "DELETE"]}, {"type": "string", "pattern": "^/2/"}
    return Shape(RapiCall).with_keys(method=method, path=path, body=body)


def _read_observed(written: Record) -> Observed:
    leaves = [_at_path(item, "value") for item in written.objects("values")]
    return read(OBSERVED, written, values={leaf["path"]: leaf["value"] for leaf in leaves})


OBSERVED: Final = Shape(Observed, "observed", reader=_read_observed).with_keys(
    uuid="identity.uuid",
    serial_no="identity.serial_no",
    values=Key(
        Many(Shape(tuple).with_keys(keys=Key(_KEYS, 0), value=Key({}, 1))),
        lambda item: list(item.values.items()),
    ),
)
_COMMAND: Final = Shape(PlannedCommand).with_keys(
    argv=Key(Maybe(Many(str, 2)), lambda command: command.argv),
    rapi=rapi_shape(body={"type": ["object", "null"]}),
    effects=_EFFECT,
)
_INVERSE: Final = Shape(Inverse).with_keys(
    "first more not_restored",
    first=Key(_COMMAND, lambda inverse: (*inverse.commands, PlannedCommand(None))[0], inline=True),
    more=Key(Many(_COMMAND), lambda inverse: inverse.commands[1:]),
)
_STEP: Final = Shape(Step, "step").with_keys(
    id={"type": "string", "pattern": "^[1-9][0-9]*$"},
    wave={"type": "integer", "minimum": 1, "maximum": 8},
    object=OBJECT_NAME,
    title=NOT_EMPTY,
    command=Key(_COMMAND, inline=True),
    inverse=_INVERSE,
)


def _read_change(written: Record) -> Change:
    level, slash, name = held(written.text("object"), OBJECT_NAME, written, "object").partition("/")
    return read(
        _CHANGE,
        written,
        level=Level(level),
        object_name=name if slash else None,
        risk=Risk.LOW,  # found out again from the values
        span=_origin(written),
        **_at_path(written, "before", "after", "effective_before", "effective_after"),
    )


def _origin(written: Record) -> Span | None:
    """Return the place that `origin` names; None for a text that names none, which is then no origin of a plan."""
    file, *numbers = (written.text_or_none("origin") or "").rsplit(":", 2)
    if len(numbers) != 2 or not all(re.fullmatch("[0-9]{1,9}", number) for number in numbers):
        return None
    return _place(file, int(numbers[0]), int(numbers[1]))


def _place(file: str, line: int, column: int) -> Span:
    return Span(file, line, column, line, column)


_CHANGE: Final = Shape(Change, "change", reader=_read_change).with_keys(
    "object path keys action before after effective_before effective_after takes_effect risk reason affects",
    object=OBJECT_NAME,
    path=Key(NOT_EMPTY, _dotted),
    keys=_OWN_KEYS,
    takes_effect=NOT_EMPTY,
    affects=OBJECT_NAME,
    origin=Key(str | None, lambda item: item.span and str(item.span)),
)
_GUARD: Final = Shape(GuardResult, "guard").with_keys(
    "name ok message allowed", **dict.fromkeys(("name", "message"), replace(TEXT, form=NOT_EMPTY))
)


def _read_declared(written: Record) -> Guard:
    limit = written.fields.get("limit")
    if not isinstance(limit, int | float) or isinstance(limit, bool) or not 0 <= limit < LARGEST_NUMBER:
        written.refuse("limit", "a number from 0")
    return read(_DECLARED_GUARD, written, limit=limit, span=Span(written.where, 1, 1, 1, 1))


_DECLARED_GUARD: Final = Shape(
    Guard, "declared_guard", forms={Located: lambda item: item.value}, reader=_read_declared
).with_keys(
    "name measure limit percent group spec",
    name=NOT_EMPTY,
    limit={"type": "number", "minimum": 0},
    **dict.fromkeys(("group", "spec"), Key(str | None)),
)


def _read_not_compared(written: Record) -> NotCompared:
    path = held(written.text("path"), TEXT, written, "path")
    return read(_NOT_COMPARED, written, path=tuple(path.split(".")))


_NOT_COMPARED: Final = Shape(NotCompared, reader=_read_not_compared).with_keys(
    "object path wanted", object=OBJECT_NAME, path=Key(str, _dotted)
)


def _read_finding(written: Record) -> Finding:
    file = written.text_or_none("file")
    span = None if file is None else _place(file, written.whole("line"), written.whole("column"))
    return read(_FINDING, written, span=span)


_FINDING: Final = Shape(Finding, reader=_read_finding).with_keys(
    "code name severity message hint span",
    code={"type": "string", "pattern": "^GP[0-9]{3}$"},
    message=TEXT,
    span=Key(Maybe(PLACE), inline=True),
)


def _read_declared_value(written: Record) -> tuple[Path, Value]:
    keys = written.texts("keys")
    if keys == ALLOCATOR_PARAMETERS:
        return keys, written.record("value").fields
    if keys == ENABLED_HYPERVISORS:
        return keys, [*written.texts("value")]
    if keys == VOLUME_GROUP:
        return keys, written.text("value")
    if not keys or written.whole("value") < 0:
        raise InputError(f"{written.where}: a declared value needs its keys, and is 0 or more")
    return keys, written.whole("value")


def _read_terms(written: Record) -> Terms:
    values = written.record("values")
    declared = {label: dict(map(_read_declared_value, values.objects(label))) for label in values.fields}
    return read(TERMS, written, values=declared)


_SHARE: Final = Checked("a share below 1", lambda share: share is not None and 0 <= share < 1)
_GROUP_TERMS: Final = fields_of(
    GroupTerms,
    limits=fields_of(
        Limits,
        max_node_failures=Checked(
            f"a number from 0 to {MOST_NODE_FAILURES}", lambda number: 0 <= number <= MOST_NODE_FAILURES
        ),
        oversubscription=Checked(
            f"a ratio above 0 and up to {GREATEST_OVERSUBSCRIPTION}",
            lambda ratio: 0 < ratio <= GREATEST_OVERSUBSCRIPTION,
        ),
    ),
    volumes=fields_of(VolumeTerms, margin=_SHARE, reserve=_SHARE),
)
TERMS: Final = Shape(Terms, reader=_read_terms).with_keys(
    "groups others values release",
    groups=_GROUP_TERMS,
    others=_GROUP_TERMS,
    values=Key(
        {"type": "object"},
        lambda terms: {
            label: [{"keys": list(path), "value": value} for path, value in values.items()]
            for label, values in terms.values.items()
        },
    ),
    release=Checked("a release of Ganeti that gpolicy knows", is_release),
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
    **dict.fromkeys(("cluster", "source"), TEXT),
    snapshot=TAKEN,
    made_at=Key(TIME, "provenance.made_at"),
    policy_commit=Key(_COMMIT, "provenance.commit"),
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
    terms=TERMS,
    unreadable=Key(_NOT_COMPARED, "not_compared"),
    part=Shape(Part).with_keys("only exclude"),
    left_out=Shape(LeftOut).with_keys("object keys action", object=OBJECT_NAME, keys=_OWN_KEYS),
    findings=_FINDING,
    summary=Shape(Plan).with_keys(
        changes=LENGTH, steps=LENGTH, unreadable=Key(LENGTH, "not_compared"), left_out=LENGTH, safe=bool
    ),
    answer=ANSWER_KEY,
)
"""The keys behind `impact`."""
PLAN: Final = Shape(Plan).with_keys(**PLAN_FIRST.keys, **PLAN_LAST.keys)
"""Both together: what a plan is read along."""


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    every = replace(plan, findings=tuple(told(plan.findings)))
    return {**PLAN_FIRST(plan), "impact": dict(impact or {}), **PLAN_LAST(every)}
