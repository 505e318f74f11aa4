"""`capacity` and `redundancy`: how many instances fit and why no more, and which losses of nodes can be absorbed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from gpolicy.allocator.compiled_allocation import Budget
from gpolicy.analysis.capacity import load_to_count, tiered_run
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.node_losses import GroupRedundancy, Loss, redundancy
from gpolicy.analysis.pair_names import PairNames, pair_names
from gpolicy.analysis.shown_score import with_weights
from gpolicy.analysis.unknown import not_known
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits, limited
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.values import fill
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import CapacityQuestion, Expectation, Scenario
from gpolicy.printable import count
from gpolicy.stopping import silent
from gpolicy.testing.outcome import CannotRunError, Check, checked, errors_at, group_with_nodes


def check_capacity(policy: Policy, state: ClusterState, scenario: Scenario, budget: Budget) -> list[Check]:
    """Return the checks of a capacity test, which counts what it expects and nothing else, within `budget`."""
    question = scenario.capacity
    assert question is not None  # noqa: S101 (the schema asks for it)
    if question.resource_model and any(node.filled for part in scenario.stage.simulated for node in part.nodes):
        hint = "name the instances that are there instead"
        raise CannotRunError("these nodes have used quarters, which the resource model cannot count", hint=hint)
    group = _group(state, scenario, question)
    names = pair_names(policy, state)
    state = _with_standard(state, question)
    with errors_at(question.template.span if question.template else scenario.span):
        counts = _Counts(_cluster(state, group, scenario, question, budget), names, group)
        return [_check(counts, expectation) for expectation in scenario.expectations]


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


def _cluster(
    state: ClusterState, group: str | None, scenario: Scenario, question: CapacityQuestion, budget: Budget
) -> CountedCluster:
    """Return the cluster to count on."""
    weights = with_weights({**dict(question.weights), **dict.fromkeys(question.without, 0.0)})
    limits = Limits(
        max_node_failures=question.max_node_failures,
        oversubscription=question.oversubscription,
        cpus_after_failure=question.cpus_after_failure,
    )
    names = sorted({node.group for node in state.nodes.values()})
    if limits.beyond_htools and group is None:
        hint = f"say `group:`, one of {', '.join(names)}"
        raise CannotRunError("such limits apply to the nodes of one group: which one?", scenario.span, hint=hint)
    template = question.template.value if question.template else None
    loaded = load_to_count(limited(state, limits), group, template=template, declared=question.resource_model)
    if group is None and (loaded.unknown or loaded.limits_differ):
        hint = f"say `group:`, one of {', '.join(names)}"
        reason = "; ".join(not_known({name: why.reason for name, why in loaded.unknown.items()}))
        raise CannotRunError(reason or "the groups have different limits", scenario.span, hint=hint)
    found = loaded.whole if group is None else loaded.groups[group]
    if found.too_slow:
        raise found.too_slow
    return replace(found, weights=weights, budget=budget)


@dataclass(eq=False)
class _Counts:
    """The counts on one cluster; each is worked out when it is asked for."""

    cluster: CountedCluster
    names: PairNames
    group: str | None

    def fit(self, name: str) -> Fit | None:
        """Return how many of the pair (or `standard`) of this name fit; None if there is none."""
        policy = self.cluster.policy
        if name == "standard":
            return self.cluster.standard(policy.std, policy.std.spindle_use)
        pair = dict(zip(self.pairs, policy.minmax, strict=True)).get(name)
        return self.cluster.fit_pair(pair) if pair else None

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """The names of the pairs."""
        return self.names.of(self.group, len(self.cluster.policy.minmax))

    @cached_property
    def tiered(self) -> dict[str, int]:
        """How many fit in the tiered run, by the name of the pair."""
        _, sizes = tiered_run(self.cluster, silent)
        return {name: sum(size.count for size in placed) for name, placed in zip(self.pairs, sizes, strict=True)}


def _check(counts: _Counts, expectation: Expectation) -> Check:
    match expectation.path:
        case ("tiered", *name):
            found = counts.tiered.get(name[0]) if name else sum(counts.tiered.values())
            detail = ", ".join(f"{pair} {fits}" for pair, fits in counts.tiered.items())
            return checked(expectation, found, detail=detail)
        case ("specs" | "binding", name):
            fit = counts.fit(name)
        case _:
            fit = counts.fit("standard")
    if fit is None:
        return checked(expectation, None)
    cause = fit.binding.cause.key
    is_binding = expectation.path[0] == "binding"
    return checked(expectation, cause if is_binding else fit.fits, detail=f"{fit.fits} fit, bound by {cause}")


def check_redundancy(_policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of a redundancy test."""
    question = scenario.redundancy
    assert question is not None  # noqa: S101 (the schema asks for it)
    group = _group_to_lose(state, scenario)
    declared = state.terms_of(group).limits.max_node_failures
    failures = question.failures or declared or 1
    limits = Limits(cpus_after_failure=question.cpus_after_failure)
    with errors_at(scenario.span):
        (found,) = redundancy(state, failures=failures, group=group, limits=limits)
    if found.unavailable is not None:
        raise CannotRunError(found.unavailable, scenario.span, hint="ask for fewer failures, or on fewer nodes")
    if found.nodes < failures:
        raise CannotRunError(
            f"group {group} has {count(found.nodes, 'node')}, so {failures} cannot be lost", scenario.span
        )
    return [_check_losses(found, expectation) for expectation in scenario.expectations]


def _group_to_lose(state: ClusterState, scenario: Scenario) -> str:
    if scenario.group is not None:
        return group_with_nodes(scenario.group, state)
    used = sorted({node.group for node in state.nodes.values()})
    if not used:
        hint = "say `on: {simulate: …}`, or write `hardware` and `nodes` of the groups"
        raise CannotRunError("no cluster to ask: the groups promise too little", scenario.span, hint=hint)
    if len(used) > 1:
        raise CannotRunError("which group is meant?", scenario.span, hint=f"say `group:`, one of {', '.join(used)}")
    return used[0]


def _check_losses(found: GroupRedundancy, expectation: Expectation) -> Check:
    losses = found.not_absorbed
    detail = "; ".join(_in_words(loss) for loss in losses[:3])
    if expectation.path == ("survives",):
        return checked(expectation, not losses, detail=detail)
    with_reasons = isinstance(expectation.wanted, tuple) and any(isinstance(x, tuple) for x in expectation.wanted)
    names = [(title(loss), _reason(loss)) if with_reasons else title(loss) for loss in losses]
    return checked(expectation, tuple(sorted(names)), detail=detail)


def title(loss: Loss) -> str:
    """Return the name of a loss in tests: the node, or the nodes that are lost at once."""
    return " + ".join(loss.nodes)


def _reason(loss: Loss) -> str:
    """Return what most of the instances lack, the first of equal reasons."""
    return Counter(item.key for item in loss.homeless).most_common(1)[0][0]


def _in_words(loss: Loss) -> str:
    first = loss.homeless[0]
    more = f" and {len(loss.homeless) - 1} more" if len(loss.homeless) > 1 else ""
    return f"without {title(loss)}: no place for {first.instance}{more} ({first.key}: {first.detail})"
