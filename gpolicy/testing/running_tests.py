"""Run the tests of a policy, or those that take no time: whose cluster the policy itself describes, and is small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from math import comb
from typing import Final

from gpolicy.allocator.compiled_allocation import Budget
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Action, Scenario, StageEdit
from gpolicy.testing.checks import check_capacity, check_conformity, check_place, check_redundancy
from gpolicy.testing.outcome import CannotRunError, Check, Outcome
from gpolicy.testing.stage import Stages, edited

_MOST_STEPS: Final = 100_000_000
"""Of all tests of a run: 20 seconds, at 5 million steps a second."""
_MOST_OF_ONE: Final = 30_000_000
"""Of one count of a test."""
_STEPS_OF_RECORD: Final = 500
"""What it takes to make a node or an instance of the cluster of a test."""

_Question = Callable[[Policy, ClusterState, Scenario], list[Check]]


def run_tests(
    policy: Policy, *, chosen: Iterable[Scenario] | None = None, stages: Stages | None = None
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


MOST_TESTS: Final = 100
MOST_NODES: Final = 24
MOST_INSTANCES: Final = 20_000
"""The greatest number of instances that may fit for their capacity to be counted."""
_MOST_LOSSES: Final = 300
_MINMAX: Path = ("ipolicy", "minmax")
_STANDARD: Path = ("ipolicy", "std", "memory-size")


def run_small_tests(policy: Policy) -> list[Outcome]:
    """Return the outcomes of the first MOST_TESTS small tests of a policy; snapshots are not read."""
    stages = Stages(policy)
    small = (scenario for scenario in policy.scenarios if _is_small(stages, scenario))
    return run_tests(policy, chosen=list(islice(small, MOST_TESTS)), stages=stages)


def idle_edits(policy: Policy) -> Iterator[tuple[Scenario, StageEdit]]:
    """Yield the edits of small tests that leave their cluster as it was."""
    stages = Stages(policy)
    small = (scenario for scenario in policy.scenarios if scenario.stage.edits and _is_small(stages, scenario))
    for scenario in islice(small, MOST_TESTS):
        try:
            state = stages.before_edits(scenario.stage, scenario.name.value)
            for edit in scenario.stage.edits:
                before, state = state, edited(policy, state, edit)
                if state == before:
                    yield scenario, edit
        except GpolicyError:
            continue  # the test cannot run, which is said by its outcome


def _is_small(stages: Stages, scenario: Scenario) -> bool:
    stage = scenario.stage
    if stage.snapshot is not None or sum(len(part.nodes) for part in stage.simulated) > MOST_NODES:
        return False
    if sum(existing.count or 1 for part in stage.simulated for existing in part.instances) > MOST_INSTANCES:
        return False
    try:
        state = stages.before_edits(stage, scenario.name.value)
    except GpolicyError:
        return True  # it cannot run, at once
    failures = (scenario.redundancy.failures or 1) if scenario.redundancy is not None else 0
    if len(state.nodes) > MOST_NODES or comb(len(state.nodes), failures) > _MOST_LOSSES:
        return False
    return scenario.action is not Action.CAPACITY or _is_counted_soon(state)


def _is_counted_soon(state: ClusterState) -> bool:
    """Return whether few instances fit, even of the smallest size."""
    sizes = [group.effective.get(_STANDARD) for group in state.groups.values()] + [state.cluster.own.get(_STANDARD)]
    for group in state.groups.values():
        pairs = group.effective.get(_MINMAX)
        for pair in pairs if isinstance(pairs, list) else ():
            low = pair.get("min") if isinstance(pair, dict) else None
            sizes.append(low.get("memory-size") if isinstance(low, dict) else None)
    least = min((size for size in sizes if isinstance(size, int) and size > 0), default=1)
    return sum(node.resources.memory_total or 0 for node in state.nodes.values()) <= MOST_INSTANCES * least
