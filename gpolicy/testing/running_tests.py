"""Run the tests of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

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

_Question = Callable[[Policy, ClusterState, Scenario], list[Check]]


def run_tests(
    policy: Policy,
    *,
    chosen: Iterable[Scenario] | None = None,
    state: ClusterState | None = None,
) -> list[Outcome]:
    """Return the outcomes of the tests of `policy` (by default all, else those in `chosen`), in their order.

    `state` is the cluster for tests that name none. A test that cannot run is an outcome, not an exception.
    """
    stages = Stages(policy, state)
    return [_run(policy, stages, scenario) for scenario in (policy.scenarios if chosen is None else chosen)]


def _run(policy: Policy, stages: Stages, scenario: Scenario) -> Outcome:
    outcome = Outcome(name=scenario.name.value, action=scenario.action, span=scenario.span)
    try:
        cluster = stages.cluster(scenario.stage, scenario.name.value)
        return replace(outcome, checks=tuple(_ACTIONS[scenario.action](policy, cluster, scenario)))
    except GpolicyError as error:
        place = error.span if isinstance(error, CannotRunError) else None
        return replace(outcome, error=error.message, hint=error.hint, place=place)


_ACTIONS: dict[Action, _Question] = {
    Action.PLACE: check_place,
    Action.CHECK_INSTANCE: check_conformity,
    Action.CAPACITY: check_capacity,
    Action.REDUNDANCY: check_redundancy,
}
