"""Choice of the engine: the fast one, or the reference where numbers are not ordinary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpolicy.allocator.capacity import Allocator, ReferenceEngine
from gpolicy.allocator.placement import SingleCandidates, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Candidates

ORDINARY = 2**50
"""Quantities beyond this are calculated by the reference, in integers of any size."""
FEW_TRIALS = 64
"""A single request with at most so many candidates is not worth the start of the fast engine."""


def make_allocator(
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    candidates: Candidates,
    rules: CapacityRules,
    *,
    capacity_checks: bool,
    reference: bool = False,
) -> Allocator:
    """Return what allocates on the cluster; `reference` asks for the slow, literal way."""
    if reference or not ordinary(nodes, instances):
        return Allocator(ReferenceEngine(candidates, rules), capacity_checks=capacity_checks)
    from gpolicy.allocator.fast_capacity import FastAllocator  # noqa: PLC0415 - imports numpy
    from gpolicy.allocator.fast_engine import FastEngine  # noqa: PLC0415

    engine = FastEngine(candidates, rules, nodes, instances)
    return FastAllocator(engine, capacity_checks=capacity_checks)


def find_placement(
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    instance: Instance,
    candidates: Candidates,
    *,
    force: bool,
    capacity_checks: bool,
) -> Attempt:
    """Place one instance: `gpolicy.allocator.placement.try_allocate`, with the N+1 test if asked for."""
    rules = CapacityRules()
    if _trials(candidates) > FEW_TRIALS and ordinary(nodes, instances) and not instance.forthcoming:
        from gpolicy.allocator.fast_engine import FastEngine  # noqa: PLC0415 - imports numpy

        engine = FastEngine(candidates, rules, nodes, instances, force=force)
        return engine.attempt(nodes, instances, instance, checked=capacity_checks)
    predicate = redundancy_predicate(nodes, instances, rules) if capacity_checks else None
    return try_allocate(nodes, instance, candidates, force=force, predicate=predicate)


def ordinary(nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> bool:
    """Whether all numbers are finite and far from what 64 bits hold."""
    for node in nodes.values():
        facts = node.facts
        floats = (
            facts.total_memory,
            facts.total_disk,
            facts.total_cpus,
            facts.cpu_speed,
            facts.vcpu_ratio,
            facts.high_spindles,
        )
        whole = (
            node.unallocated_memory,
            node.forth_free_memory,
            node.free_disk,
            node.forth_free_disk,
            node.reserved_memory,
            node.used_cpus,
            node.forth_used_cpus,
            node.free_spindles,
            node.forth_free_spindles,
            facts.low_disk,
            facts.spindles,
        )
        if not all(math.isfinite(value) for value in floats):
            return False
        if not all(-ORDINARY < value < ORDINARY for value in whole):
            return False
    return all(
        -ORDINARY < value < ORDINARY
        for instance in instances.values()
        for value in (instance.memory, instance.disk, instance.vcpus, instance.spindle_use)
    )


def _trials(candidates: Candidates) -> int:
    if isinstance(candidates, SingleCandidates):
        return len(candidates.nodes)
    return sum(len(others) for _, others in candidates.members)
