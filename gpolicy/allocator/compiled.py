"""The allocation loops and single attempts on the compiled engine; the law is `repeated_allocation.Allocator`.

The engine gets the state once and says where instances go; the nodes of the new state are made by the law's own
functions (`replay`). What the engine cannot represent goes to the law.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.enumerations import NO_NODE
from gpolicy.allocator.instance_moves import node_at
from gpolicy.allocator.native.library import NativeEngine, Question, Status
from gpolicy.allocator.native.streams import ClusterNumbers, UnfitError, refuse_absurd_numbers
from gpolicy.allocator.placement import Attempt, Placement, SingleCandidates
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, DivisionError
from gpolicy.allocator.replay import changed_nodes, instance_on_nodes, with_placements
from gpolicy.errors import InputError

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Sequence

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.native.library import Leaving, NativeResult
    from gpolicy.allocator.placement import Candidates, FailCounts, Nodes
    from gpolicy.allocator.redundancy import CapacityRules, Instances

NO_CANDIDATES = SingleCandidates(())
MOST_PLACEMENTS = 1 << 20
"""How many instances a run may place (placing.c)."""
MOST_LEVELS = 1 << 18
"""How many sizes of a spec a run may have waiting to be looked at again (tiered.c)."""


@dataclass(slots=True)
class _Opened:
    """A cluster inside the engine, as it is in the state `base`, and the states known to follow from it.

    `known` is keyed by the identity of a state's nodes, and says how many placements lead there.
    """

    engine: NativeEngine
    cluster: ClusterNumbers
    base: AllocationState
    known: dict[int, tuple[AllocationState, int]]


@dataclass(slots=True)
class _Session:
    library: ctypes.CDLL
    opened: _Opened | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class CompiledAllocator(Allocator):
    """Standard and tiered allocation by the compiled engine; `engine` is the law, for what that cannot do."""

    candidates: Candidates = field(kw_only=True)
    rules: CapacityRules = field(kw_only=True)
    session: _Session = field(kw_only=True)

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`repeated_allocation.Allocator.standard`)."""
        found = self._run(Question.STANDARD, state, instance, limit)
        return Allocator.standard(self, state, instance, limit) if found is None else found

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place shrinking instances (`repeated_allocation.Allocator.tiered`)."""
        found = self._run(Question.TIERED, state, instance, limit)
        return Allocator.tiered(self, state, instance, limit) if found is None else found

    def _run(
        self, question: Question, state: AllocationState, instance: Instance, limit: int | None
    ) -> AllocationState | None:
        """Ask the engine; None where only the law can tell."""
        if instance.index >= 0:  # its number becomes that of the first one placed: nobody but a test asks like this
            return None
        with self.session.lock:
            return self._ask(question, state, instance, limit)

    def _ask(
        self, question: Question, state: AllocationState, instance: Instance, limit: int | None
    ) -> AllocationState | None:
        try:
            opened, keep = self._follow(state, instance)
            wanted = opened.cluster.instance(instance)
        except UnfitError:
            refuse_absurd_numbers(state.nodes.values(), (*state.instances.values(), instance))
            return None
        opened.known = {key: (known, count) for key, (known, count) in opened.known.items() if count <= keep}
        status, result = opened.engine.ask(question, wanted, keep=keep, limit=limit)
        if not _answered(status, opened.engine, state.nodes):
            return None
        placed = opened.engine.placements(keep)
        after = with_placements(state, instance, placed, opened.cluster.indices)
        after = replace(after, failures=tuple(result.failures), attempted=bool(result.attempted) or state.attempted)
        opened.known[id(after.nodes)] = (after, keep + len(placed))
        return after

    def _follow(self, state: AllocationState, instance: Instance) -> tuple[_Opened, int]:
        """Return the engine, and how many of its placements lead to `state`. Raises UnfitError."""
        opened = self.session.opened
        if opened is not None and opened.cluster.knows(instance):
            known, count = opened.known.get(id(state.nodes), (None, 0))
            if known is not None and known.instances is state.instances and len(known.placed) == len(state.placed):
                return opened, count
        self.session.opened = None
        cluster = ClusterNumbers(
            state.nodes,
            state.instances,
            self.candidates,
            self.rules,
            wanted=instance,
            capacity_checks=self.capacity_checks,
            placed_before=len(state.placed),
        )
        engine = _open(self.session.library, cluster, state.nodes)
        opened = _Opened(engine, cluster, state, {id(state.nodes): (state, 0)})
        self.session.opened = opened
        return opened, 0


def compiled_allocator(
    library: ctypes.CDLL, law: Allocator, candidates: Candidates, rules: CapacityRules
) -> CompiledAllocator:
    """Return what does the work of `law` with the compiled engine."""
    session = _Session(library)
    return CompiledAllocator(
        law.engine, capacity_checks=law.capacity_checks, candidates=candidates, rules=rules, session=session
    )


def compiled_attempt(
    library: ctypes.CDLL,
    nodes: Nodes,
    instances: Instances,
    instance: Instance,
    candidates: Candidates,
    rules: CapacityRules,
    *,
    force: bool,
    checked: bool,
) -> Attempt | None:
    """Place one instance (`placement.try_allocate`); `checked`: only where N+1 is kept. None: ask the law."""
    number = len(instances)
    try:
        cluster = ClusterNumbers(nodes, instances, candidates, rules, wanted=instance, force=force)
        wanted = cluster.instance(instance)
        engine = _open(library, cluster, nodes)
    except UnfitError:
        return None
    status, result = engine.ask(Question.ATTEMPT, wanted, limit=number, checked=checked)
    if not _answered(status, engine, nodes):
        return None
    return _attempt(result, nodes, instance, cluster.indices, force=force)


def compiled_dedicated(
    library: ctypes.CDLL, nodes: Nodes, instance: Instance, candidates: Candidates, *, force: bool
) -> tuple[FailCounts, int, tuple[int, ...]] | None:
    """Return failures, successes and the nodes of the best candidate (none: empty) on dedicated nodes.

    `nodes` are those of the candidates (`dedicated.search_dedicated`). None: ask the law.
    """
    try:
        cluster = ClusterNumbers(nodes, None, candidates, wanted=instance, force=force)
        wanted = cluster.instance(instance)
        engine = _open(library, cluster, nodes)
    except UnfitError:
        return None
    status, result = engine.ask(Question.DEDICATED, wanted)
    if not _answered(status, engine, nodes):
        return None
    rows = (row for row in (result.primary, result.secondary) if row >= 0)
    return tuple(result.failures), result.successes, tuple(cluster.indices[row] for row in rows)


def compiled_redundancy(library: ctypes.CDLL, nodes: Nodes, instances: Instances, rules: CapacityRules) -> bool | None:
    """Whether each examined node can be evacuated (`redundancy.is_redundant`). None: ask the law."""
    try:
        engine = _open(library, ClusterNumbers(nodes, instances, NO_CANDIDATES, rules), nodes)
    except UnfitError:
        return None
    status, result = engine.ask(Question.REDUNDANT)
    return bool(result.successes) if _answered(status, engine, nodes) else None


class Losses:
    """A cluster inside the engine, asked what becomes of the instances of nodes that are lost."""

    def __init__(self, library: ctypes.CDLL, nodes: Nodes, instances: Instances) -> None:
        """Raise UnfitError where the engine could not tell."""
        self._nodes = nodes
        self._cluster = ClusterNumbers(nodes, instances, NO_CANDIDATES)
        self._rows = {index: row for row, index in enumerate(self._cluster.indices)}
        self._engine = _open(library, self._cluster, nodes)

    def targets(self, lost: Sequence[int]) -> dict[int, int] | None:
        """Return per instance (its number) the node where it runs on, NO_NODE: nowhere. None: ask the law.

        `lost` are nodes of one group. Of a mirrored instance both of whose nodes are lost nothing is said that counts.
        """
        residents = [number for index in lost for number in self._nodes[index].primaries]
        status, rows = self._engine.lose([self._rows[index] for index in lost], len(residents))
        if not _answered(status, self._engine, self._nodes):
            return None
        homes = (self._cluster.indices[row] if row >= 0 else NO_NODE for row in rows)
        return dict(zip(residents, homes, strict=True))


class Mover:
    """A cluster inside the engine from which instances are moved away one after the other."""

    def __init__(self, library: ctypes.CDLL, nodes: Nodes, instances: Instances) -> None:
        """Raise UnfitError where the engine could not tell."""
        self._nodes = nodes
        self._cluster = ClusterNumbers(nodes, instances, NO_CANDIDATES)
        self._engine = _open(library, self._cluster, nodes)

    def move(self, instance: Instance, leaving: Leaving, candidates: Sequence[int], *, force: bool) -> tuple[int, ...]:
        """Move the instance to the best of `candidates` (ascending); return its nodes, none if no candidate takes it.

        Raises UnfitError where only the law can tell; the mover is of no more use then.
        """
        record = self._cluster.instance(instance, candidates)
        status, result = self._engine.move_away(record, leaving, force=force)
        _answered(status, self._engine, self._nodes, fit=True)
        return tuple(self._cluster.indices[row] for row in (result.primary, result.secondary) if row >= 0)


def _open(library: ctypes.CDLL, cluster: ClusterNumbers, nodes: Nodes) -> NativeEngine:
    """Return an engine that has read the cluster. Raises UnfitError."""
    engine = NativeEngine(library)
    _answered(engine.open(cluster.numbers), engine, nodes, fit=True)
    return engine


def _answered(status: Status, engine: NativeEngine, nodes: Nodes, *, fit: bool = False) -> bool:
    """Whether the engine had an answer. Raises what the law would raise; with `fit` UnfitError instead of False."""
    if status is Status.DIVISION_BY_ZERO:
        raise DivisionError("divide by zero")
    if status is Status.MISSING_NODE:
        node_at(nodes, engine.missing_index)
    if status is Status.OUT_OF_MEMORY:
        raise MemoryError("not enough memory for the allocation")
    if status is Status.TOO_MANY_PLACED:
        raise InputError(
            f"more than {MOST_PLACEMENTS:,} instances of this size fit, which is more than are counted",
            hint="ask for a greater size, or limit the number of instances",
        )
    if status is Status.TOO_DEEP:
        raise InputError(
            f"counting takes more than {MOST_LEVELS:,} steps from the greatest size down to those that fit",
            hint="lower the upper bounds of the spec",
        )
    if fit and status is not Status.DONE:
        raise UnfitError("the engine refuses the cluster")
    return status is Status.DONE


def _attempt(result: NativeResult, nodes: Nodes, instance: Instance, indices: list[int], *, force: bool) -> Attempt:
    failures: FailCounts = tuple(result.failures)
    if result.primary < 0:
        return Attempt(failures, result.successes, None)
    primary, secondary = indices[result.primary], indices[result.secondary] if result.secondary >= 0 else NO_NODE
    placed = instance_on_nodes(nodes, instance, instance.index, instance.name, primary, secondary)
    changed = changed_nodes(nodes, placed, secondary, force=force)
    return Attempt(failures, result.successes, Placement(changed, placed, result.score))
