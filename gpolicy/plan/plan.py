"""A plan: what to change on a cluster so that it becomes what a policy declares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState
from gpolicy.cluster.state_files import state_digest
from gpolicy.cluster.terms import NO_LIMITS, Limits, Terms, names_by_object, with_limits
from gpolicy.errors import ExitCode, GpolicyError, argument
from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.releases import release_of
from gpolicy.plan.built_in_guards import GuardResult, can_be_allowed, judge, objections
from gpolicy.plan.changes import Change, ChangeKey, NotCompared, Objection, key_of
from gpolicy.plan.diff import Difference, diff
from gpolicy.plan.effects import Effect, Observed, net_effects, observed_in, touched
from gpolicy.plan.part import WHOLE, LeftOut, Part, changes_left_out, choose, select, without_change
from gpolicy.plan.sides import Sides, named_by, sides_of
from gpolicy.plan.step import Procedure, Step
from gpolicy.plan.steps import StepBasis, make_steps, one_way_nodes
from gpolicy.policy.kinds import Guard, Policy
from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, NodeSetPolicy
from gpolicy.printable import clipped
from gpolicy.resolve.desired import Desired, besides_other_cluster, terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Procedure):
    """Changes, the steps that make them, and the guards' verdicts.

    `one_way` are the nodes that move and cannot be moved back. `state_digest_rapi` leaves out what the remote API does
    not show, for a plan that is applied through it. Apply judges `declared_guards`, those of the policy, again; for it,
    there are `pair_names`, the names of sizes by object, and the policy's `terms`. `left_out` are the changes that
    the policy asks for and this `part` does not have. `findings` are errors and warnings of the policy on this cluster;
    after an error there are no steps.
    """

    noun: ClassVar[str] = "plan"

    policy_digest: str
    state_digest: str
    state_digest_rapi: str | None = None
    one_way: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    declared_guards: tuple[Guard, ...] = ()
    pair_names: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    not_compared: tuple[NotCompared, ...] = ()
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


class _Stepping(NamedTuple):
    """The steps, what none can do, the objects that they touch as read, and the nodes that cannot be moved back."""

    steps: tuple[Step, ...]
    impossible: tuple[Objection, ...]
    observed: dict[str, Observed]
    one_way: frozenset[str]


def _stepping(policy: Policy, state: ClusterState, difference: Difference) -> _Stepping:
    changes, seen = difference.changes, observed_in(state, touched(difference.changes))
    objects, one_way = {name: item.values for name, item in seen.items()}, one_way_nodes(changes, state)
    basis = StepBasis(objects=objects, gaps=state.unreadable, one_way=one_way)
    errors = any(finding.severity is Severity.ERROR for finding in besides_other_cluster(difference.findings))
    release = release_of(state.software_version) or policy.version
    steps, impossible = make_steps([] if errors else changes, basis, release)
    return _Stepping(tuple(steps), tuple(impossible), seen, one_way)


def _partial(policy: Policy, state: ClusterState, whole: Difference, part: Part, chosen: set[ChangeKey]) -> Difference:
    """Return the difference with only the chosen keys of a part, as if the policy declared nothing else.

    What a group inherits may depend on a change that is left out: then the difference has changes that the whole one
    does not have, and these are left out as well. So is what only a change needs that is none in this part.
    """
    skipped = {key_of(change) for change in whole.changes} - chosen
    while True:
        found = diff(policy, state, skipped, whole.desired)
        more = {key_of(change) for change in found.changes} - (chosen & select(found.changes, part).keys)
        if not more:
            return found
        skipped |= more


def objections_to_plan(policy: Policy, state: ClusterState, sides: Sides) -> dict[str, list[Objection]]:
    """Return what the built-in guards have against the plan that makes `state` what `policy` declares."""
    stepping = _stepping(policy, state, sides.difference)  # of the state as read, not under terms
    return objections(replace(sides, impossible=stepping.impossible))


def make_plan(
    policy: Policy,
    state: ClusterState,
    *,
    allowed: frozenset[str] = frozenset(),
    part: Part = WHOLE,
    limits: Limits = NO_LIMITS,
    desired: Desired | None = None,
) -> tuple[Plan, Sides]:
    """Return the plan that makes `state` what `policy` declares, and the cluster on both sides of it.

    `allowed` guards are overridden. The plan has no verdicts yet of the guards that the policy declares. With `part` it
    has only some changes, and those that they need. RequestError if one of these is excluded. `limits` replace those
    that the policy declares. `desired` is what the policy wants of this state, where it is known already.
    """
    whole = diff(policy, state, desired=desired)
    chosen = choose(policy, state, whole.changes, part)
    difference = whole if part.is_whole else _partial(policy, state, whole, part, chosen.keys)
    stepping = _stepping(policy, state, difference)
    terms = with_limits(terms_of(policy, whole.desired), limits)  # of the whole policy, also for a part of the plan
    sides = named_by(policy, sides_of(state, difference, terms, stepping.impossible))
    plan = replace(
        bare_plan(policy, state, besides_other_cluster(difference.findings)),
        state_digest_rapi=state_digest(state, besides=HIDDEN_BY_RAPI),
        observed=stepping.observed,
        one_way=tuple(sorted(stepping.one_way)),
        gaps=state.unreadable,
        changes=tuple(difference.changes),
        steps=stepping.steps,
        terms=terms,
        pair_names=sides.names.by_object,
        guards=tuple(judge(sides, allowed)),
        not_compared=tuple(difference.not_compared),
        part=part,
        left_out=changes_left_out(whole.changes, set(map(key_of, difference.changes))),
        notes=(*state.notes, *chosen.taken_along, *without_change(part, whole.changes)),
    )
    return plan, sides


def sides_of_plan(plan: Plan, state: ClusterState) -> Sides:
    """Return the cluster in `state` before and after a plan that was made earlier."""
    sides = sides_of(state, Difference([*plan.changes]), plan.terms)
    return replace(sides, names=names_by_object(plan.pair_names))


def bare_plan(policy: Policy, state: ClusterState, findings: Sequence[Finding]) -> Plan:
    """Return a plan without steps: what each one begins with, and all there is of one for a policy with errors."""
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
