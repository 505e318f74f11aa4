"""Choice of the engine that does the allocation attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.allocator.capacity import Engine, ReferenceEngine
from gpolicy.allocator.placement import Attempt, Candidates, Nodes, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, Instances, redundancy_predicate

if TYPE_CHECKING:
    from gpolicy.allocator.model import Instance


def make_engine(candidates: Candidates, rules: CapacityRules) -> Engine:
    """Return an engine for `candidates` under the N+1 `rules`."""
    return ReferenceEngine(candidates, rules)


def find_placement(
    nodes: Nodes,
    instances: Instances,
    instance: Instance,
    candidates: Candidates,
    *,
    force: bool,
    capacity_checks: bool,
) -> Attempt:
    """Place one instance: `gpolicy.allocator.placement.try_allocate`, with the N+1 test if asked for."""
    predicate = redundancy_predicate(nodes, instances, CapacityRules()) if capacity_checks else None
    return try_allocate(nodes, instance, candidates, force=force, predicate=predicate)
