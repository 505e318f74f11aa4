"""Choice of the engine that does the allocation attempts."""

from __future__ import annotations

from gpolicy.allocator.capacity import Engine, ReferenceEngine
from gpolicy.allocator.placement import Candidates
from gpolicy.allocator.redundancy import CapacityRules


def make_engine(candidates: Candidates, rules: CapacityRules) -> Engine:
    """Return an engine for `candidates` under the N+1 `rules`."""
    return ReferenceEngine(candidates, rules)
