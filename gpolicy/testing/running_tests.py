"""Run the tests of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from gpolicy.allocator.compiled_allocation import Budget
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Action, Scenario
from gpolicy.testing.capacity_checks import check_capacity
from gpolicy.testing.instance_checks import check_conformity
from gpolicy.testing.outcome import CannotRunError, Check, Outcome
from gpolicy.testing.place_checks import check_place
from gpolicy.testing.redundancy_checks import check_redundancy
from gpolicy.testing.stage import Stages

_MOST_STEPS: Final = 100_000_000
"""Of all tests of a run: 20 seconds, at 5 million steps a second."""
_MOST_OF_ONE: Final = 30_000_000
"""Of one count of a test."""
_STEPS_OF_RECORD: Final = 500
"""What it takes to make a node or an instance of the cluster of a test."""

_Question = Callable[[Policy, ClusterState, Scenario], list[Check]]


def run_tests(
    policy: Policy,
    *,
    chosen: Iterable[Scenario] | None = None,
    stages: Stages | None = None,
) -> list[Outcome]:
    """Return the outcomes of the tests of `policy` (by default all, else those in `chosen`), in their order.

    `stages` makes their clusters. A test that cannot run is an outcome, not an exception.
    """
    stages, budget = stages or Stages(policy), Budget(_MOST_STEPS, _MOST_OF_ONE)
    return [_run(policy, stages, scenario, budget) for scenario in (policy.scenarios if chosen is None else chosen)]


def _run(policy: Policy, stages: Stages, scenario: Scenario, budget: Budget) -> Outcome:
    outcome = Outcome(name=scenario.name.value, action=scenario.action, span=scenario.span)
    if budget.left <= 0:
        hint = "run it alone (-k NAME), or split the policy"
        return replace(outcome, error="not run: the tests before it took all the time that there is", hint=hint)
    try:
        cluster = stages.cluster(scenario.stage, scenario.name.value)
        budget.left -= _STEPS_OF_RECORD * (len(cluster.nodes) + len(cluster.instances))
        if scenario.action is Action.CAPACITY:
            return replace(outcome, checks=tuple(check_capacity(policy, cluster, scenario, budget)))
        return replace(outcome, checks=tuple(_ACTIONS[scenario.action](policy, cluster, scenario)))
    except GpolicyError as error:
        place = error.span if isinstance(error, CannotRunError) else None
        return replace(outcome, error=error.message, hint=error.hint, place=place)


_ACTIONS: dict[Action, _Question] = {
    Action.PLACE: check_place,
    Action.CHECK_INSTANCE: check_conformity,
    Action.REDUNDANCY: check_redundancy,
}
