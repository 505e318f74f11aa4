"""`redundancy`: which losses of nodes can be absorbed?"""

from __future__ import annotations

from collections import Counter

from gpolicy.analysis.node_losses import GroupRedundancy, Loss, redundancy
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Expectation, Scenario
from gpolicy.printable import count
from gpolicy.testing.outcome import CannotRunError, Check, checked, errors_at, group_with_nodes


def check_redundancy(_policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of a redundancy test."""
    question = scenario.redundancy
    assert question is not None  # noqa: S101 (the schema asks for it)
    group = _group(state, scenario)
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
    return [_check(found, expectation) for expectation in scenario.expectations]


def _group(state: ClusterState, scenario: Scenario) -> str:
    if scenario.group is not None:
        return group_with_nodes(scenario.group, state)
    used = sorted({node.group for node in state.nodes.values()})
    if not used:
        hint = "say `on: {simulate: …}`, or write `hardware` and `nodes` of the groups"
        raise CannotRunError("no cluster to ask: the groups promise too little", scenario.span, hint=hint)
    if len(used) > 1:
        raise CannotRunError("which group is meant?", scenario.span, hint=f"say `group:`, one of {', '.join(used)}")
    return used[0]


def _check(found: GroupRedundancy, expectation: Expectation) -> Check:
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
