"""Choice of the way: the compiled engine, or the law where there is no engine or numbers are not ordinary."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from gpolicy.allocator.capacity import Allocator, ReferenceEngine
from gpolicy.allocator.compiled import compiled_allocator, compiled_attempt
from gpolicy.allocator.native.library import load
from gpolicy.allocator.placement import try_allocate
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Candidates


class SlowAllocatorWarning(UserWarning):
    """There is no compiled allocator, so answers are right, but slow."""


def make_allocator(
    nodes: Mapping[int, Node],  # noqa: ARG001 - callers say where they start, though each run brings its state
    instances: Mapping[int, Instance],  # noqa: ARG001
    candidates: Candidates,
    rules: CapacityRules,
    *,
    capacity_checks: bool,
    reference: bool = False,
) -> Allocator:
    """Return what allocates on the cluster; `reference` asks for the slow, literal way.

    Warns (SlowAllocatorWarning) where the literal way is all there is.
    """
    law = Allocator(ReferenceEngine(candidates, rules), capacity_checks=capacity_checks)
    library = None if reference else _library()
    return law if library is None else compiled_allocator(library, law, candidates, rules)


def find_placement(
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    instance: Instance,
    candidates: Candidates,
    *,
    force: bool,
    capacity_checks: bool,
) -> Attempt:
    """Place one instance: `gpolicy.allocator.placement.try_allocate`, with the N+1 test if asked for.

    Warns as `make_allocator` does.
    """
    rules = CapacityRules()
    library = _library()
    if library is not None:
        found = compiled_attempt(
            library, nodes, instances, instance, candidates, rules, force=force, checked=capacity_checks
        )
        if found is not None:
            return found
    predicate = redundancy_predicate(nodes, instances, rules) if capacity_checks else None
    return try_allocate(nodes, instance, candidates, force=force, predicate=predicate)


def _library() -> ctypes.CDLL | None:
    loaded = load()
    if loaded.library is None:
        warnings.warn(
            f"{loaded.trouble}; the answers are the same, but take much longer. With a C compiler (or access to a"
            " package index) install gpolicy again.",
            SlowAllocatorWarning,
            stacklevel=3,
        )
    return loaded.library
