"""What a policy would change on a cluster, and what that does to capacity and instances."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpolicy.analysis.size_words import pair_names
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, limited, limits_in_force, with_limits
from gpolicy.findings import Finding, Severity
from gpolicy.impact.comparison import Sides
from gpolicy.impact.declared_guards import extent_of, failures_asked, need_impact, with_declared_guards
from gpolicy.impact.impact import Impact, impact
from gpolicy.plan.built_in_guards import check_allowed
from gpolicy.plan.changes import WHOLE, Part
from gpolicy.plan.diff import projected
from gpolicy.plan.plan import Plan, make_plan, refused_plan
from gpolicy.policy.model import Policy
from gpolicy.progress import Working, quietly
from gpolicy.resolve.desired import OTHER_CLUSTER
from gpolicy.use_cases.questions import CheckedPolicy
from gpolicy.what_if.supposing import WhatIf, suppose


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be planned: a `part` of the changes, passing the `allowed` guards. `limits` replace the policy's.

    `what_if` is supposed of the cluster before and after the changes, in the names that groups and sizes have
    before them; the changes are those of the real one. `upgrade` is the release that it is supposed to have after them.
    """

    part: Part = WHOLE
    allowed: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    with_impact: bool = True
    what_if: WhatIf | None = None
    upgrade: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedChange(Sides):
    """A plan, the cluster before and after it, and what it does. `names` are what sizes are called after it.

    `impact` is None if nothing changes, nobody asked for it, or errors prevent it. `errors` are those that prevent the
    plan, which then has no changes.
    """

    plan: Plan
    impact: Impact | None = None
    errors: tuple[Finding, ...] = ()


def plan_change(
    checked: CheckedPolicy, state: ClusterState, request: PlanRequest = PlanRequest(), *, working: Working = quietly
) -> PlannedChange:
    """Return the plan that makes the cluster in `state` what the policy declares, with its impact and guards.

    Raise RequestError for a guard that is not there, or where what is supposed is impossible.

    For example, `plan_change(checked, state).plan.safe` says whether all guards pass.
    """
    policy = checked.policy
    if any(error.code != OTHER_CLUSTER.code for error in checked.errors):  # that one is a guard's
        refused = refused_plan(policy, state, list(checked.errors))
        return PlannedChange(state, state, plan=refused, errors=checked.errors)
    check_allowed(request.allowed, policy)
    with working("comparing the policy with the cluster"):
        desired = checked.desired_of(state)
        plan, prospect = make_plan(policy, state, allowed=request.allowed, part=request.part, desired=desired)
    warnings = (item for item in checked.findings if item.severity is Severity.WARNING)
    plan = replace(plan, findings=(*plan.findings, *warnings))
    terms, before, after = with_limits(plan.terms, request.limits), prospect.before, prospect.after
    if request.limits != NO_LIMITS:
        before, after = limited(before, request.limits), limited(after, request.limits)
    if request.what_if is not None:
        before = suppose(before, request.what_if, pair_names(policy, before))
        after = projected(before, plan.changes, terms)
    if request.upgrade is not None:
        said = f"Ganeti {request.upgrade} after the changes"
        after = replace(after, software_version=request.upgrade, supposed=(*after.supposed, said))
    sides = Sides(before, after, pair_names(policy, after))
    found = None
    asked = plan.changes or request.what_if or request.upgrade or need_impact(policy.guards)
    if request.with_impact and asked and not any(item.severity is Severity.ERROR for item in plan.findings):
        found = _impact(policy, sides, request.limits, working)
    extent = extent_of(plan.left_out, sides)
    plan = with_declared_guards(plan, policy, terms, sides.names, found, request.allowed, extent)
    return PlannedChange(before, after, sides.names, plan=plan, impact=found)


def _impact(policy: Policy, sides: Sides, asked: Limits, working: Working) -> Impact:
    failures = max(asked.max_node_failures or 1, failures_asked(policy.guards))
    hardware = {group.name: group.hardware for group in policy.groups.values() if group.hardware}
    with working("working out what the changes do") as tell:
        found = impact(sides, hardware=hardware, failures=failures, tell=tell)
    return replace(found, limits=limits_in_force(sides.after, asked), what_if=sides.after.supposed)
