"""Other weights of the score than Ganeti's: the engine and the law place alike."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import Disk, DiskTemplate, Instance, InstanceStatus
from gpolicy.allocator.cluster_score import WEIGHTS
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.engines import compiled_attempt, compiled_redundancy
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import Attempt, NoCandidatesError, candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules, is_redundant
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_clusters import TEMPLATES, random_cluster

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)


def instance(memory: int, disk: int, template: DiskTemplate) -> Instance:
    disks = () if template is DiskTemplate.DISKLESS else (Disk(disk, 1),)
    return Instance(-1, "new", memory, disk, disks, 1, InstanceStatus.RUNNING, template)


def told(attempt: Attempt) -> tuple[object, ...]:
    """Return what can be compared of an attempt, also where scores are no numbers."""
    solution = attempt.solution
    return attempt.failures, attempt.successes, solution and solution.nodes, repr(solution and solution.score)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_engine_and_law_place_by_the_same_weights(first: int) -> None:
    placed = 0
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        template = rng.choice([*TEMPLATES, "drbd", "drbd", "plain"])
        where = merge(parse_cluster(random_cluster(rng, template, 6).text))
        try:
            candidates = candidate_nodes(where.groups, where.nodes, 2 if template == "drbd" else 1)
        except NoCandidatesError:
            continue
        weights = tuple(rng.choice([0.0, weight, 3 * weight, 100.0]) for weight in WEIGHTS)
        rules = CapacityRules(weights=weights)
        wanted = instance(rng.choice([512, 1024]), rng.choice([1024, 4096]), DiskTemplate(template))
        law = ReferenceEngine(candidates, rules)
        for checked in (False, True):
            expected = law.attempt(where.nodes, where.instances, wanted, checked=checked)
            found = compiled_attempt(
                where.nodes, where.instances, wanted, candidates, replace(rules, failures=int(checked))
            )
            if found is not None:
                assert told(found) == told(expected), seed
                placed += expected.solution is not None
        assert compiled_redundancy(where.nodes, where.instances, rules) in (
            None, is_redundant(where.nodes, where.instances, rules),
        )  # fmt: skip
        state = AllocationState(where.nodes, where.instances)
        made = CompiledAllocator(candidates, rules, capacity_checks=False)
        runs = [run.standard(state, wanted, 12) for run in (made, Allocator(made.engine, capacity_checks=False))]
        assert [item.primary for item in runs[0].placed] == [item.primary for item in runs[1].placed], seed
    assert placed > 0


def test_weights_that_make_no_sense_are_refused() -> None:
    where = merge(parse_cluster(random_cluster(random.Random(1), "plain", 4).text))
    candidates = candidate_nodes(where.groups, where.nodes, 1)
    for weight in (-1.0, float("nan"), 1001.0):
        rules = CapacityRules(weights=(weight, *WEIGHTS[1:]))
        wanted = instance(512, 1024, DiskTemplate.PLAIN)
        assert compiled_attempt(where.nodes, where.instances, wanted, candidates, replace(rules, failures=0)) is None
