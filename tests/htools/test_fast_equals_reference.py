"""The fast engine against the law: equal placements, scores and counts of failures on any cluster."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpolicy.allocator import pair_search
from gpolicy.allocator.capacity import Allocator, State
from gpolicy.allocator.engines import make_allocator, ordinary
from gpolicy.allocator.fast_engine import FastEngine
from gpolicy.allocator.kinds import DiskTemplate, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.model import Disk, Instance
from gpolicy.allocator.placement import NoCandidatesError, candidate_nodes, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, is_redundant, redundancy_predicate
from gpolicy.htools.text_format import parse_cluster

from .random_clusters import TEMPLATES, random_cluster

if TYPE_CHECKING:
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.placement import Attempt, Candidates

SEEDS = st.integers(min_value=0, max_value=2**32)


def some_cluster(seed: int, most_nodes: int) -> tuple[random.Random, Cluster, Candidates, str] | None:
    rng = random.Random(seed)  # noqa: S311 - no secrets here
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "plain"])
    where = merge(parse_cluster(random_cluster(rng, template, most_nodes).text))
    if not ordinary(where.nodes, where.instances):
        return None
    try:
        count = 2 if template == "drbd" else 1
        candidates = candidate_nodes(where.groups, where.nodes, count, drop_unallocable=True)
    except NoCandidatesError:
        return None
    return rng, where, candidates, template


def wanted_instance(rng: random.Random, template: str, where: Cluster) -> Instance:
    size = rng.choice([256, 512, 1000, 3000])
    locations = {tag for node in where.nodes.values() for tag in node.facts.location_tags}
    return Instance(
        index=len(where.instances),
        name="new-0",
        memory=rng.choice([64, 128, 300, 1024, 2000]),
        disk=size,
        disks=(Disk(size, 1),),
        vcpus=rng.choice([1, 2, 4]),
        status=InstanceStatus.RUNNING,
        template=DiskTemplate(template),
        exclusion_tags=("svc:a", "svc:b")[: rng.randrange(3)],
        desired_tags=frozenset(sorted(locations)[: rng.randrange(2)]),
    )


def facts_of(attempt: Attempt) -> tuple[object, ...]:
    solution = attempt.solution
    if solution is None:
        return attempt.failures, attempt.successes
    return attempt.failures, attempt.successes, solution.instance, solution.score, solution.changed


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, checked=st.booleans(), force=st.booleans())
def test_one_attempt(seed: int, checked: bool, force: bool) -> None:
    found = some_cluster(seed, 12)
    if found is None:
        return
    rng, where, candidates, template = found
    engine = FastEngine(candidates, CapacityRules(), where.nodes, where.instances, force=force)
    wanted = wanted_instance(rng, template, where)
    predicate = redundancy_predicate(where.nodes, where.instances, CapacityRules()) if checked else None
    law = try_allocate(where.nodes, wanted, candidates, force=force, predicate=predicate)
    fast = engine.attempt(where.nodes, where.instances, wanted, checked=checked)
    assert facts_of(fast) == facts_of(law)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_pairs_by_bounds(seed: int) -> None:
    """Also clusters so small that all pairs would be computed."""
    found = some_cluster(seed, 12)
    if found is None or found[3] != "drbd":
        return
    rng, where, candidates, template = found
    wanted = wanted_instance(rng, template, where)
    law = try_allocate(where.nodes, wanted, candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_search, "FEW_PAIRS", rng.choice([0, 8, 40]))
        fast = FastEngine(candidates, CapacityRules(), where.nodes, where.instances).attempt(
            where.nodes, where.instances, wanted, checked=False
        )
    assert facts_of(fast) == facts_of(law)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_redundancy(seed: int) -> None:
    found = some_cluster(seed, 12)
    if found is None:
        return
    rng, where, candidates, _ = found
    rules = CapacityRules(skip_offline=rng.random() < 0.7)
    engine = FastEngine(candidates, rules, where.nodes, where.instances)
    law = is_redundant(where.nodes, where.instances, rules)
    assert engine.redundant(where.nodes, where.instances) is law


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, checks=st.booleans(), tiered=st.booleans())
def test_whole_runs(seed: int, checks: bool, tiered: bool) -> None:
    found = some_cluster(seed, 6)
    if found is None:
        return
    rng, where, candidates, template = found
    wanted = wanted_instance(rng, template, where)
    limit = rng.choice([None, None, 3])
    results = []
    for reference in (True, False):
        runner = make_allocator(
            where.nodes,
            where.instances,
            candidates,
            CapacityRules(),
            capacity_checks=checks,
            reference=reference,
        )
        assert type(runner) is Allocator or not reference
        run = runner.tiered if tiered else runner.standard
        results.append(run(State(where.nodes, where.instances), wanted, limit))
    law, fast = results
    assert fast.placed == law.placed
    assert fast.failures == law.failures
    assert dict(fast.nodes) == dict(law.nodes)


def test_equal_nodes_in_great_number_are_put_into_classes() -> None:
    """An empty cluster of equal nodes: every pair ties, and the last one must win."""
    rows = "\n".join(f"n{place}|4096|0|4096|40000|40000|8|N|u0" for place in range(180))
    where = merge(parse_cluster(f"g0|u0|preferred||\n\n{rows}\n\n\n\n"))
    candidates = candidate_nodes(where.groups, where.nodes, 2, drop_unallocable=True)
    wanted = Instance(0, "new-0", 512, 2048, (Disk(2048, 1),), 1, InstanceStatus.RUNNING, DiskTemplate.DRBD)
    engine = FastEngine(candidates, CapacityRules(), where.nodes, where.instances)
    fast = engine.attempt(where.nodes, where.instances, wanted, checked=False)
    law = try_allocate(where.nodes, wanted, candidates)
    assert facts_of(fast) == facts_of(law)
    assert fast.solution is not None
    assert fast.solution.nodes == (179, 178)
