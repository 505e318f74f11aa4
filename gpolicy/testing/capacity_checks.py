"""`capacity`: how many instances fit, and why no more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpolicy.analysis.capacity import GroupCapacity, capacity
from gpolicy.analysis.pair_names import PairNames, pair_names
from gpolicy.analysis.score_weights import with_weights
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.values import fill
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import CapacityQuestion, Expectation, Scenario
from gpolicy.testing.outcome import CannotRunError, Check, checked, errors_at, group_with_nodes


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of instances that fit and the binding resource, by spec (its name, or `standard`)."""

    fits: dict[str, int]
    binding: dict[str, str]
    tiered: dict[str, int] | None


def check_capacity(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of a capacity test."""
    question = scenario.capacity
    assert question is not None  # noqa: S101 (the schema asks for it)
    if question.resource_model and any(node.filled for part in scenario.stage.simulated for node in part.nodes):
        hint = "name the instances that are there instead"
        raise CannotRunError("these nodes have used quarters, which the resource model cannot count", hint=hint)
    group = _group(state, scenario, question)
    names = pair_names(policy, state)
    state = _with_standard(state, question)
    with errors_at(question.template.span if question.template else scenario.span):
        counted = _counted(state, group, scenario, question, names)
    return [_check(counted, expectation) for expectation in scenario.expectations]


def _group(state: ClusterState, scenario: Scenario, question: CapacityQuestion) -> str | None:
    """Return the group to count in: the named one, or the only one with nodes; None for the whole cluster."""
    if question.group is not None:
        return group_with_nodes(question.group, state)
    used = {node.group for node in state.nodes.values()}
    if not used:
        hint = "say `on: {simulate: …}`, or write `hardware` and `nodes` of the groups"
        raise CannotRunError("no cluster to count on: the groups promise too little", scenario.span, hint=hint)
    return next(iter(used)) if len(used) == 1 else None


def _with_standard(state: ClusterState, question: CapacityQuestion) -> ClusterState:
    """Return the cluster with the standard instance of the test."""
    if not question.standard:
        return state
    own = state.cluster.own | {("ipolicy", "std", name): value for name, value in question.standard}
    groups = {name: replace(group, effective=fill(group.own, own, Level.GROUP)) for name, group in state.groups.items()}
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups)


def _counted(
    state: ClusterState, group: str | None, scenario: Scenario, question: CapacityQuestion, names: PairNames
) -> Counted:
    template = question.template.value if question.template else None
    weights = with_weights({**dict(question.weights), **dict.fromkeys(question.without, 0.0)})
    limits = Limits(
        max_node_failures=question.max_node_failures,
        oversubscription=question.oversubscription,
        cpus_after_failure=question.cpus_after_failure,
    )
    if limits.beyond_htools and group is None:
        groups = ", ".join(sorted({node.group for node in state.nodes.values()}))
        hint = f"say `group:`, one of {groups}"
        raise CannotRunError("such limits apply to the nodes of one group: which one?", scenario.span, hint=hint)
    report = capacity(
        state,
        group=group,
        template=template,
        names=names,
        limits=limits,
        declared=question.resource_model,
        weights=weights,
    )
    found = report.groups[0] if group is not None else report.cluster
    if found is None:
        hint = f"say `group:`, one of {', '.join(item.group for item in report.groups if item.group)}"
        reason = "; ".join(report.not_known) or "the groups have different limits"
        raise CannotRunError(reason, scenario.span, hint=hint)
    return _all_of(found)


def _all_of(found: GroupCapacity) -> Counted:
    fits = {spec.name: spec.fits for spec in found.specs} | {"standard": found.standard.fits}
    binding = {spec.name: spec.binding.cause.key for spec in found.specs}
    binding["standard"] = found.standard.binding.cause.key
    tiered = {spec.name: sum(size.count for size in spec.tiered) for spec in found.specs}
    return Counted(fits, binding, tiered)


def _check(counted: Counted, expectation: Expectation) -> Check:
    match expectation.path:
        case ("specs", name):
            return checked(expectation, counted.fits.get(name), detail=_bound(counted, name))
        case ("standard",):
            return checked(expectation, counted.fits["standard"], detail=_bound(counted, "standard"))
        case ("tiered",):
            total = None if counted.tiered is None else sum(counted.tiered.values())
            return checked(expectation, total, detail=_by_spec(counted))
        case ("tiered", name):
            return checked(expectation, (counted.tiered or {}).get(name), detail=_by_spec(counted))
        case ("binding", name):
            return checked(expectation, counted.binding.get(name), detail=_bound(counted, name))
    return checked(expectation, counted.binding["standard"], detail=_bound(counted, "standard"))


def _bound(counted: Counted, name: str) -> str:
    return f"{counted.fits[name]} fit, bound by {counted.binding[name]}" if name in counted.fits else ""


def _by_spec(counted: Counted) -> str:
    if counted.tiered is None:
        return "not counted under limits"
    return ", ".join(f"{name} {count}" for name, count in counted.tiered.items())
