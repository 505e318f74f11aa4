"""Allocation without a component of the cluster score, to show the effect of the component.

Everything else is the allocator's own. Source: design document "allocation efficiency".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import COMPONENTS, component_values
from gpolicy.allocator.repeated_allocation import Allocator, ReferenceEngine

if TYPE_CHECKING:
    from gpolicy.allocator.placement import Candidates, Statistics
    from gpolicy.allocator.redundancy import CapacityRules
    from gpolicy.analysis.counted_cluster import CountedCluster


def leaving_out(counted: CountedCluster, without: frozenset[str]) -> CountedCluster:
    """Return the cluster with an allocator that ignores the components of the score in `without`."""

    def score(stats: Statistics) -> float:
        total = 0.0
        for component, value in zip(COMPONENTS, component_values(stats), strict=False):
            total += 0.0 if component.name in without else component.weight * value
        return total

    def allocator(candidates: Candidates, rules: CapacityRules) -> Allocator:
        return Allocator(ReferenceEngine(candidates, rules, score))

    return replace(counted, allocator=allocator)
