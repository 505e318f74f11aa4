"""Choice of the way: the compiled engine, or the law where there is no engine or numbers are not ordinary."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from gpolicy.allocator import redundancy
from gpolicy.allocator.compiled import (
    Losses,
    Mover,
    compiled_allocator,
    compiled_attempt,
    compiled_dedicated,
    compiled_redundancy,
)
from gpolicy.allocator.native.library import load
from gpolicy.allocator.native.streams import UnfitError
from gpolicy.allocator.placement import try_allocate
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate
from gpolicy.allocator.repeated_allocation import Allocator, ReferenceEngine

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Mapping

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Candidates, FailCounts


class SlowAllocatorWarning(UserWarning):
    """There is no compiled allocator, so answers are right, but slow."""


def make_allocator(
    candidates: Candidates, rules: CapacityRules, *, capacity_checks: bool, reference: bool = False
) -> Allocator:
    """Return what allocates to `candidates`; `reference` asks for the slow, literal way.

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


def find_dedicated(
    nodes: Mapping[int, Node], instance: Instance, candidates: Candidates, *, force: bool
) -> tuple[FailCounts, int, tuple[int, ...]] | None:
    """Return failures, successes and the nodes of the best candidate on dedicated nodes; None: ask the law.

    Warns as `make_allocator` does.
    """
    library = _library()
    return None if library is None else compiled_dedicated(library, nodes, instance, candidates, force=force)


def is_redundant(nodes: Mapping[int, Node], instances: Mapping[int, Instance], rules: CapacityRules) -> bool:
    """Whether each examined node, alone, can be evacuated: `gpolicy.allocator.redundancy.is_redundant`.

    Warns as `make_allocator` does.
    """
    library = _library()
    found = None if library is None else compiled_redundancy(library, nodes, instances, rules)
    return redundancy.is_redundant(nodes, instances, rules) if found is None else found


def losses(nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> Losses | None:
    """Return what says where instances of lost nodes run on; None: ask the law. Warns as `make_allocator` does."""
    library = _library()
    try:
        return None if library is None else Losses(library, nodes, instances)
    except UnfitError:
        return None


def mover(nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> Mover | None:
    """Return what moves instances away; None: ask the law. Warns as `make_allocator` does."""
    library = _library()
    try:
        return None if library is None else Mover(library, nodes, instances)
    except UnfitError:
        return None


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
