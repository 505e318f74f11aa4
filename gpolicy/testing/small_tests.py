"""Tests that take no time: those whose cluster the policy itself describes, and is small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import comb
from typing import Final

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Action, Scenario, StageEdit
from gpolicy.testing.outcome import Outcome
from gpolicy.testing.running_tests import run_tests
from gpolicy.testing.stage import Stages, edited

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
