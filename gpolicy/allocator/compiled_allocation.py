"""Standard and tiered allocation by the compiled engine, which keeps the cluster from one run to the next."""

from __future__ import annotations

import ctypes
import threading

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.engines import answered, loaded_library, opened_engine, too_long
from gpolicy.allocator.native.library import NativeEngine, Question
from gpolicy.allocator.native.streams import ClusterNumbers, UnfitError, refuse_absurd_numbers
from gpolicy.allocator.placement import Candidates
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.allocator.replay import with_placements
from gpolicy.light_dataclasses import dataclass, replace

MOST_STEPS = 150_000_000
"""Of one count: half a minute, at 5 million steps a second."""


class Budget:
    """How many steps of work the counts that share it may still take, and each of them."""

    def __init__(self, left: int = 2**62, each: int = MOST_STEPS) -> None:
        self.left = left
        self.each = each

    def spend(self, steps: int, before: int) -> None:
        """Take steps for a count that began when `before` were left. Raise TooLongError if none are left for it."""
        self.left -= steps
        if self.left < 0 or before - self.left > self.each:
            raise too_long(before - self.left)


@dataclass(slots=True)
class _Opened:
    """A cluster in the engine.

    `known` maps the identity of a state's nodes to the state and the number of placements that lead to it: 0 to the one
    that was read.
    """

    engine: NativeEngine
    cluster: ClusterNumbers
    known: dict[int, tuple[AllocationState, int]]


class CompiledAllocator(Allocator):
    """Standard and tiered allocation by the compiled engine. Raises TooLongError when the work goes beyond `budget`.

    `engine` is the law, if there is no compiled one or it cannot answer.
    """

    def __init__(
        self,
        candidates: Candidates,
        rules: CapacityRules,
        *,
        capacity_checks: bool,
        each: bool = False,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(ReferenceEngine(candidates, rules), capacity_checks, each)
        self._budget = budget or Budget(each=2**62)
        self._library = loaded_library()
        self._opened: _Opened | None = None
        self._lock = threading.Lock()

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`)."""
        found = self._run(Question.STANDARD, state, instance, limit)
        return self._law().standard(state, instance, limit) if found is None else found

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place shrinking instances (`Allocator.tiered`)."""
        found = self._run(Question.TIERED, state, instance, limit)
        return self._law().tiered(state, instance, limit) if found is None else found

    def _law(self) -> Allocator:
        """Return what makes one count, which takes its steps from the budget."""
        before = self._budget.left
        engine = replace(self.engine, spend=lambda steps: self._budget.spend(steps, before))
        return Allocator(engine, self.capacity_checks, self.each)

    def _run(
        self, question: Question, state: AllocationState, instance: Instance, limit: int | None
    ) -> AllocationState | None:
        """Ask the engine; None if only the law can answer."""
        # only tests place an instance that has a number, which becomes that of the first one
        if self._library is None or instance.index >= 0 or instance.forthcoming:
            return None
        with self._lock:
            try:
                opened, keep = self._follow(self._library, state, instance)
                wanted = opened.cluster.instance(instance)
                opened.known = {key: (known, count) for key, (known, count) in opened.known.items() if count <= keep}
                opened.engine.allow(min(self._budget.left, self._budget.each))
                status, result = opened.engine.ask(question, wanted, keep=keep, limit=limit)
                self._budget.left -= opened.engine.steps
                answered(status, opened.engine, state.nodes, fit=True)
            except UnfitError:
                refuse_absurd_numbers(state.nodes.values(), (*state.instances.values(), instance))
                return None
            placed = opened.engine.placements(keep)
            after = with_placements(state, instance, placed, opened.cluster.indices, force=self.engine.rules.force)
            after = replace(
                after,
                failures=tuple(result.failures),
                attempted=bool(result.attempted) or state.attempted,
                refused=bool(result.refused) or state.refused,
            )
            opened.known[id(after.nodes)] = (after, keep + len(placed))
            return after

    def _follow(self, library: ctypes.CDLL, state: AllocationState, instance: Instance) -> tuple[_Opened, int]:
        """Return the engine, and how many of its placements lead to `state`. Raise UnfitError."""
        opened = self._opened
        if opened is not None and opened.cluster.knows(instance):
            known, count = opened.known.get(id(state.nodes), (None, 0))
            if known is not None and known.instances is state.instances and len(known.placed) == len(state.placed):
                return opened, count
        self._opened = None
        cluster = ClusterNumbers(
            state.nodes,
            state.instances,
            self.engine.candidates,
            self.engine.rules,
            wanted=instance,
            capacity_checks=self.capacity_checks,
            each=self.each,
            placed_before=len(state.placed),
        )
        engine = opened_engine(library, cluster, state.nodes)
        self._opened = _Opened(engine, cluster, {id(state.nodes): (state, 0)})
        return self._opened, 0
