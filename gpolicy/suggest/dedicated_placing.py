"""Repeated placement by the dedicated metric: what hail does on nodes with exclusive storage, where no N+1 is kept.

A placement changes one node, so only that node is tried anew. Source: design document "dedicated allocation".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.allocator.dedicated_nodes import search_dedicated
from gpolicy.allocator.group_choice import RequestOptions
from gpolicy.allocator.repeated_allocation import AllocationState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Placement


def place_dedicated(state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
    """Return `state` with as many of `instance` placed as fit, at most `limit`: each on the node that loses least."""
    nodes: dict[int, Node] = dict(state.nodes)
    attempts = {index: _attempt(nodes, instance, index) for index, node in nodes.items() if not node.facts.offline}
    instances = dict(state.instances)
    placed = state.placed
    left = limit
    while True:
        best = _best(attempts)
        if best is None or left == 0:
            counts = zip(*(attempt.failures for attempt in attempts.values()), strict=True)
            failures = tuple(sum(count) for count in counts) if attempts else state.failures
            return AllocationState(nodes, instances, placed, failures, attempted=True)
        (node,) = best.changed
        new = replace(best.instance, name=f"new-{len(placed)}", index=len(instances))
        nodes[node.index] = node
        instances[new.index] = new
        placed = (new, *placed)
        attempts[node.index] = _attempt(nodes, instance, node.index)
        left = None if left is None else left - 1


def _attempt(nodes: Mapping[int, Node], instance: Instance, index: int) -> Attempt:
    return search_dedicated(nodes, {}, instance, 1, [index], RequestOptions())


def _best(attempts: Mapping[int, Attempt]) -> Placement | None:
    """Return the placement that loses least, then leaves least disk; of equal ones the last, as hail does."""
    best: Placement | None = None
    for attempt in attempts.values():
        found = attempt.solution
        if found is not None and (best is None or _metric(found) <= _metric(best)):
            best = found
    return best


def _metric(placement: Placement) -> tuple[tuple[int, ...], int]:
    return placement.lost or (), placement.disk_left
