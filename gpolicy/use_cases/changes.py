"""What a policy would change on a cluster, and what that does to capacity and instances."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, Terms, limits_in_force
from gpolicy.findings import Finding, Severity
from gpolicy.impact.declared_guards import failures_asked, guards_for, judge_declared, need_impact, takes_instances
from gpolicy.impact.impact import Impact, measure_impact
from gpolicy.plan.built_in_guards import check_allowed
from gpolicy.plan.part import WHOLE, Part
from gpolicy.plan.plan import Plan, bare_plan, make_plan
from gpolicy.plan.sides import Sides, project
from gpolicy.policy.kinds import Policy
from gpolicy.progress import Working, quietly
from gpolicy.resolve.desired import besides_other_cluster, pair_names
from gpolicy.use_cases.questions import CheckedPolicy
from gpolicy.what_if.supposing import WhatIf, suppose


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be planned: a `part` of the changes, passing the `allowed` guards. `limits` replace the policy's.

    `what_if` is supposed of the cluster before and after the changes, in the names that groups and sizes have
    before them; the changes are those of the real one. `upgrade` is the release that it is supposed to have after them.
    Built-in guards judge the real cluster, guards of the policy the supposed one.
    """

    part: Part = WHOLE
    allowed: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    with_impact: bool = True
    what_if: WhatIf | None = None
    upgrade: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """A plan, the cluster on both `sides` of it, and what it does.

    `impact` is None if nothing changes, nobody asked for it, or errors prevent it. `errors` are those that prevent the
    plan, which then has no changes.
    """

    plan: Plan
    sides: Sides
    impact: Impact | None = None
    errors: tuple[Finding, ...] = ()


def plan_change(
    checked: CheckedPolicy, state: ClusterState, request: PlanRequest = PlanRequest(), *, working: Working = quietly
) -> PlannedChange:
    """Return the plan that makes the cluster in `state` what the policy declares, with its impact and guards.

    Raise RequestError for a guard that is not there, or where what is supposed is impossible.

    For example, `plan_change(checked, state).plan.safe` says whether all guards pass.
    """
    policy, allowed = checked.policy, request.allowed
    if besides_other_cluster(checked.errors):
        refused = bare_plan(policy, state, checked.errors)
        return PlannedChange(plan=refused, sides=Sides(state, state), errors=checked.errors)
    check_allowed(allowed, policy)
    with working("comparing the policy with the cluster"):
        desired = checked.desired_of(state)
        plan, sides = make_plan(
            policy, state, allowed=allowed, part=request.part, limits=request.limits, desired=desired
        )
    supposed = _supposed(sides, policy, plan.terms, request)
    found = _impact(plan, policy, supposed, request, working) if request.with_impact else None
    warnings = (item for item in checked.findings if item.severity is Severity.WARNING)
    plan = replace(
        plan,
        declared_guards=guards_for(policy, plan.left_out),
        findings=(*plan.findings, *warnings),
    )
    verdicts = (*takes_instances(found, allowed), *judge_declared(plan, supposed, found, allowed))
    return PlannedChange(plan=replace(plan, guards=(*plan.guards, *verdicts)), sides=supposed, impact=found)


def _supposed(sides: Sides, policy: Policy, terms: Terms, request: PlanRequest) -> Sides:
    """Return the cluster that the request supposes before and after the plan."""
    before, after = sides.before, sides.after
    if request.what_if is not None:
        before = suppose(before, request.what_if, pair_names(policy, before))
        after = project(before, sides.changes, terms)
    if request.upgrade is not None:
        said = f"Ganeti {request.upgrade} after the changes"
        after = replace(after, software_version=request.upgrade, supposed=(*after.supposed, said))
    return replace(sides, before=before, after=after)


def _impact(plan: Plan, policy: Policy, sides: Sides, request: PlanRequest, working: Working) -> Impact | None:
    """Return what the plan does; None if it changes nothing that anybody asks about, or does not fit the cluster."""
    asked = plan.changes or request.what_if or request.upgrade or need_impact(policy.guards)
    if not asked or any(item.severity is Severity.ERROR for item in plan.findings):
        return None
    failures = failures_asked(policy.guards)  # and as many as the limits of a group allow
    hardware = {group.name: group.hardware for group in policy.groups.values() if group.hardware}
    with working("working out what the changes do") as tell:
        found = measure_impact(sides, hardware=hardware, failures=failures, tell=tell)
    return replace(found, limits=limits_in_force(sides.after, request.limits), what_if=sides.after.supposed)
