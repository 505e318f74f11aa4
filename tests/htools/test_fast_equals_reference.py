"""The compiled engine against the law: equal placements, scores and counts of failures on any cluster."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gpolicy.allocator.capacity import Allocator, State
from gpolicy.allocator.compiled import compiled_attempt, compiled_redundancy
from gpolicy.allocator.engines import make_allocator
from gpolicy.allocator.kinds import DiskTemplate, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.model import Disk, Instance
from gpolicy.allocator.native.library import load
from gpolicy.allocator.placement import NoCandidatesError, candidate_nodes, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, is_redundant, redundancy_predicate
from gpolicy.htools.text_format import parse_cluster

from .random_clusters import TEMPLATES, random_cluster

if TYPE_CHECKING:
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.placement import Attempt, Candidates

SEEDS = st.integers(min_value=0, max_value=2**32)
LOADED = load()
assert LOADED.library is not None, LOADED.trouble
LIBRARY = LOADED.library


def some_cluster(seed: int, most_nodes: int) -> tuple[random.Random, Cluster, Candidates, str] | None:
    rng = random.Random(seed)  # noqa: S311 - no secrets here
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "plain"])
    where = merge(parse_cluster(random_cluster(rng, template, most_nodes).text))
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


def attempt(
    where: Cluster, wanted: Instance, candidates: Candidates, *, checked: bool = False, force: bool = False
) -> Attempt:
    """One attempt by the engine, which must be able to answer."""
    found = compiled_attempt(
        LIBRARY, where.nodes, where.instances, wanted, candidates, CapacityRules(), force=force, checked=checked
    )
    assert found is not None
    return found


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
    wanted = wanted_instance(rng, template, where)
    predicate = redundancy_predicate(where.nodes, where.instances, CapacityRules()) if checked else None
    law = try_allocate(where.nodes, wanted, candidates, force=force, predicate=predicate)
    assert facts_of(attempt(where, wanted, candidates, checked=checked, force=force)) == facts_of(law)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_one_attempt_on_many_nodes(seed: int) -> None:
    """So many that pairs are found by bounds and classes."""
    found = some_cluster(seed, 60)
    if found is None:
        return
    rng, where, candidates, template = found
    wanted = wanted_instance(rng, template, where)
    law = try_allocate(where.nodes, wanted, candidates)
    assert facts_of(attempt(where, wanted, candidates)) == facts_of(law)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_redundancy(seed: int) -> None:
    found = some_cluster(seed, 12)
    if found is None:
        return
    rng, where, _, _ = found
    rules = CapacityRules(skip_offline=rng.random() < 0.7)
    law = is_redundant(where.nodes, where.instances, rules)
    assert compiled_redundancy(LIBRARY, where.nodes, where.instances, rules) is law


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, checks=st.booleans(), tiered=st.booleans())
def test_whole_runs(seed: int, checks: bool, tiered: bool) -> None:
    found = some_cluster(seed, 6)
    if found is None:
        return
    rng, where, candidates, template = found
    wanted = replace(wanted_instance(rng, template, where), index=-1)  # as hspace asks
    limit = rng.choice([None, None, 3])
    results = []
    for reference in (True, False):
        runner = make_allocator(candidates, CapacityRules(), capacity_checks=checks, reference=reference)
        assert (type(runner) is Allocator) is reference
        run = runner.tiered if tiered else runner.standard
        results.append(run(State(where.nodes, where.instances), wanted, limit))
    law, fast = results
    assert fast.placed == law.placed
    assert fast.failures == law.failures
    assert fast.attempted is law.attempted
    assert dict(fast.nodes) == dict(law.nodes)
    assert dict(fast.instances) == dict(law.instances)


def test_equal_nodes_in_great_number_are_put_into_classes() -> None:
    """An empty cluster of equal nodes: every pair ties, and the last one must win."""
    rows = "\n".join(f"n{place}|4096|0|4096|40000|40000|8|N|u0" for place in range(180))
    where = merge(parse_cluster(f"g0|u0|preferred||\n\n{rows}\n\n\n\n"))
    candidates = candidate_nodes(where.groups, where.nodes, 2, drop_unallocable=True)
    wanted = Instance(0, "new-0", 512, 2048, (Disk(2048, 1),), 1, InstanceStatus.RUNNING, DiskTemplate.DRBD)
    fast = attempt(where, wanted, candidates)
    law = try_allocate(where.nodes, wanted, candidates)
    assert facts_of(fast) == facts_of(law)
    assert fast.solution is not None
    assert fast.solution.nodes == (179, 178)
