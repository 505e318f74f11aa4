"""A plan: what to change on a cluster so that it becomes what a policy declares; and the plan as JSON.

`gpolicy plan --save` writes that JSON, and other programs rely on it. `plan_file` reads it. The form is a contract,
described by `schemas/output/plan.json`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple

from gpolicy import __version__
from gpolicy.cluster.sources import state_read_at
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState
from gpolicy.cluster.state_files import state_digest
from gpolicy.cluster.terms import Terms
from gpolicy.errors import ExitCode, GpolicyError, argument
from gpolicy.findings import Finding, Severity, told
from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.releases import release_of
from gpolicy.json_values import DIGEST, LENGTH, NOT_EMPTY, PLACE, TEXTS, Key, Many, Maybe, OwnFile, Shape, plain
from gpolicy.plan import changes
from gpolicy.plan.built_in_guards import GuardResult, can_be_allowed, judge, objections, outlook
from gpolicy.plan.changes import WHOLE, Change, LeftOut, NotCompared, Objection, Part, left_out
from gpolicy.plan.diff import Difference, Prospect, before_and_after, diff
from gpolicy.plan.effects import Effect, Observed, net_effects, observed, touched
from gpolicy.plan.step import Inverse, PlannedCommand, Procedure, Step
from gpolicy.plan.steps import StepBasis, make_steps, nodes_that_stay
from gpolicy.policy.kinds import Guard
from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, NodeSetPolicy, Policy
from gpolicy.printable import clipped
from gpolicy.resolve.desired import OTHER_CLUSTER, Desired, terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Procedure):
    """Changes, the steps that make them, and the guards' verdicts.

    `staying` are the nodes that move and cannot be moved back. `state_digest_rapi` leaves out what the remote API does
    not show, for a plan that is applied through it. Apply judges `declared_guards`, those of the policy, again; for it,
    there are `pair_names`, the names of sizes by object, and the policy's `terms`. `left_out` are the changes that
    the policy asks for and this `part` does not have. `findings` are errors and warnings of the policy on this cluster;
    after an error there are no steps.
    """

    noun: ClassVar[str] = "plan"

    policy_digest: str
    state_digest: str
    state_digest_rapi: str | None = None
    staying: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    declared_guards: tuple[Guard, ...] = ()
    pair_names: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    unreadable: tuple[NotCompared, ...] = ()
    part: Part = WHOLE
    left_out: tuple[LeftOut, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def serials(self) -> dict[str, int | None]:
        """The versions of the objects that the plan touches, by object."""
        return {name: item.identity.serial_no for name, item in self.observed.items()}

    @property
    def outcome(self) -> tuple[Effect, ...]:
        """What the changes do in all."""
        return tuple(net_effects(self.changes))

    @property
    def done_words(self) -> str:
        """What is there after the last step, in words."""
        return f"all {len(self.changes)} changes are there"

    @property
    def safe(self) -> bool:
        """Whether every guard passes, and the policy fits the cluster."""
        return not self.obstacles

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why the plan is not safe: the guards that fail, and errors of the policy on this cluster."""
        failed = [f"{guard.name}: {guard.message}" for guard in self.guards if not guard.ok]
        return (*failed, *(finding.message for finding in self.findings if finding.severity is Severity.ERROR))


class UnsafePlanError(GpolicyError):
    """A guard of the plan fails: a verdict on the plan, not a fault."""

    exit_code = ExitCode.FINDINGS


def check_safe(plan: Plan) -> None:
    """Raise UnsafePlanError for a plan that must not be carried out."""
    if plan.obstacles:
        allowed = " ".join(f"{argument('allowed')} {guard.name}" for guard in plan.guards if can_be_allowed(guard))
        hint = f"change the policy{f', or make the plan again with {allowed}' if allowed else ''}"
        first, *others = plan.obstacles
        more = f" (and {len(others)} more, which `gpolicy show` says)" if others else ""
        raise UnsafePlanError(f"the plan is not safe: {clipped(first, 200)}{more}", hint=hint)


def _misfits(difference: Difference) -> list[Finding]:
    """Return where the policy does not fit the cluster. That it is another one, the guard right-cluster says."""
    return [item for item in difference.findings if item.code != OTHER_CLUSTER.code]


class _Stepping(NamedTuple):
    """The steps, what none can do, the objects that they touch as read, and the nodes that cannot be moved back."""

    steps: list[Step]
    impossible: list[Objection]
    observed: dict[str, Observed]
    staying: frozenset[str]


def _stepping(policy: Policy, state: ClusterState, difference: Difference) -> _Stepping:
    planned, seen = difference.changes, observed(state, touched(difference.changes))
    objects, staying = {name: item.values for name, item in seen.items()}, nodes_that_stay(planned, state)
    basis = StepBasis(objects=objects, gaps=state.unreadable, staying=staying)
    errors = any(finding.severity is Severity.ERROR for finding in _misfits(difference))
    release = release_of(state.software_version) or policy.version
    return _Stepping(*make_steps([] if errors else planned, basis, release), seen, staying)


def _partial(
    policy: Policy, state: ClusterState, whole: Difference, part: Part, keys: set[changes.ChangeKey]
) -> Difference:
    """Return the difference with only these keys of a part, as if the policy declared nothing else.

    What a group inherits may depend on a change that is left out: then the difference has changes that the whole one
    does not have, and these are left out as well. So is what only a change needs that is none in this part.
    """
    dropped = {changes.key_of(change) for change in whole.changes} - keys
    while True:
        found = diff(policy, state, dropped)
        more = {changes.key_of(change) for change in found.changes} - (keys & changes.select(found.changes, part)[0])
        if not more:
            return found
        dropped |= more


def objections_to_plan(prospect: Prospect, state: ClusterState) -> dict[str, list[Objection]]:
    """Return what the built-in guards have against the plan that does this to the cluster in `state`."""
    stepping = _stepping(prospect.policy, state, prospect.difference)
    return objections(outlook(prospect, stepping.impossible))


def make_plan(
    policy: Policy,
    state: ClusterState,
    *,
    allowed: frozenset[str] = frozenset(),
    part: Part = WHOLE,
    desired: Desired | None = None,
) -> tuple[Plan, Prospect]:
    """Return the plan that makes `state` what `policy` declares, and what it does; `allowed` guards are overridden.

    With `part` the plan has only some changes, and those that they need. RequestError if one of these is excluded.
    `desired` is that of `diff`.
    """
    difference = whole = diff(policy, state, desired=desired)
    taken_along: list[str] = []
    if not part.is_whole:
        changes.check_words("only", part.only, policy, state)
        changes.check_words("exclude", part.exclude, policy, state)
        keys, taken_along = changes.select(whole.changes, part)
        difference = _partial(policy, state, whole, part, keys)
    stepping = _stepping(policy, state, difference)
    terms = terms_of(policy, whole.desired)
    prospect = Prospect(policy, difference, *before_and_after(state, difference.changes, terms))
    plan = replace(
        refused_plan(policy, state, _misfits(difference)),
        state_digest_rapi=state_digest(state, besides=HIDDEN_BY_RAPI),
        observed=stepping.observed,
        staying=tuple(sorted(stepping.staying)),
        gaps=state.unreadable,
        changes=tuple(difference.changes),
        steps=tuple(stepping.steps),
        terms=terms,
        guards=tuple(judge(outlook(prospect, stepping.impossible), allowed)),
        unreadable=tuple(difference.unreadable),
        part=part,
        left_out=left_out(whole.changes, set(map(changes.key_of, difference.changes))),
        notes=(*state.notes, *taken_along, *changes.without_change(part, whole.changes)),
    )
    return plan, prospect


def refused_plan(policy: Policy, state: ClusterState, findings: list[Finding]) -> Plan:
    """Return the plan of a policy with errors, as `findings` say: it has no steps."""
    return Plan(
        cluster=state.name or (policy.cluster.name if policy.cluster else ""),
        cluster_uuid=state.cluster.identity.uuid,
        source=state.source,
        snapshot=state.snapshot,
        version=release_of(state.software_version) or policy.version,
        policy_digest=policy_digest(policy),
        state_digest=state_digest(state),
        findings=tuple(findings),
        notes=state.notes,
    )


def policy_digest(policy: Policy) -> str:
    """Return `sha256:…` over the declarations of `policy`, independent of its files, comments and order."""
    content = {
        "version": policy.version,
        "cluster": policy.cluster.name if policy.cluster else None,
        "objects": {declared.label: _content(declared) for declared in policy.objects},
        "cluster_tags": None if policy.cluster_tags is None else sorted({tag.value for tag in policy.cluster_tags}),
        "owned": sorted([owned.prefix, sorted(owned.levels)] for owned in policy.owned),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _content(declared: Declared) -> dict[str, object]:
    content: dict[str, object] = {
        "leaves": [
            [list(path), {"inherit": True} if leaf.value is INHERIT else {"value": leaf.value}]
            for path, leaf in sorted(declared.leaves.items())
        ],
        "tags": None if declared.tags is None else sorted(tag.value for tag in declared.tags),
    }
    if isinstance(declared, GroupPolicy):
        content["nodes"] = None if declared.nodes is None else [node.value for node in declared.nodes]
        content["removed"] = declared.removed is not None
        content["renamed_from"] = declared.renamed_from.value if declared.renamed_from else None
    if isinstance(declared, NodeSetPolicy):
        content["nodes"] = [node.value for node in declared.nodes]
        content["groups"] = [group.value for group in declared.groups]
    return content


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
_UNREADABLE: Final = Shape(NotCompared).with_keys("object path wanted", object=_OBJECT_NAME, path=Key(str, _dotted))
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
    changes=_CHANGE,
    steps=_STEP,
)
"""The keys before `impact`."""
PLAN_LAST: Final = Shape(Plan).with_keys(
    "guards declared_guards pair_names terms unreadable part left_out findings notes",
    guards=_GUARD,
    declared_guards=_DECLARED_GUARD,
    terms=Key({"type": "object"}, lambda plan: terms_data(plan.terms)),
    unreadable=_UNREADABLE,
    part=Shape(Part).with_keys("only exclude"),
    left_out=Shape(LeftOut).with_keys("object keys action", object=_OBJECT_NAME, keys=_OWN_KEYS),
    findings=Key(Many(_FINDING), lambda plan: list(told(plan.findings))),
    summary=Shape(Plan).with_keys(changes=LENGTH, steps=LENGTH, unreadable=LENGTH, left_out=LENGTH, safe=bool),
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
