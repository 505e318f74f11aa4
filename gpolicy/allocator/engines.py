"""Choosing who answers: the compiled engine, or the law if there is no engine or it cannot answer.

The engine reads a state once and returns the nodes of new instances; the law's own functions then make the new state
(`compiled_allocation`). The engine refuses a cluster that it cannot represent (UnfitError); then the law answers.

Without a compiled engine every question warns (SlowAllocatorWarning).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from gpolicy.allocator import redundancy
from gpolicy.allocator.cluster_data import NO_NODE, AllocPolicy, Group, Instance
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, node_at
from gpolicy.allocator.native.library import EngineQuestion, Leaving, NativeEngine, Status, Unlisted, load
from gpolicy.allocator.native.streams import ClusterNumbers, UnfitError
from gpolicy.allocator.node_changes import accepted, add_primary, add_secondary
from gpolicy.allocator.placement import Attempt, Placement, SingleCandidates, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, Instances, redundancy_predicate
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from typing import Any

    from gpolicy.allocator.evacuation import Departure
    from gpolicy.allocator.native.library import MoveRules, NativeResult
    from gpolicy.allocator.placement import Candidates, FailCounts, Nodes

NO_CANDIDATES = SingleCandidates(())
MOST_PLACEMENTS = 1 << 20
"""The greatest number of instances that a run may place (placing.c)."""
MOST_LEVELS = 1 << 18
"""The greatest number of pending sizes of a run (tiered.c)."""


class TooLongError(InputError):
    """A count takes more steps of work than it may."""


class SlowAllocatorWarning(UserWarning):
    """There is no compiled allocator; answers are the same, but slow."""


def find_placement(
    nodes: Nodes, instances: Instances, instance: Instance, candidates: Candidates, rules: CapacityRules
) -> Attempt:
    """Place one instance (`placement.try_allocate`), and if the rules let nodes fail only where N+1 still holds."""
    if (found := compiled_attempt(nodes, instances, instance, candidates, rules)) is not None:
        return found
    predicate = redundancy_predicate(nodes, instances, rules) if rules.failures else None
    return try_allocate(nodes, instance, candidates, force=rules.force, predicate=predicate, weights=rules.weights)


def compiled_attempt(
    nodes: Nodes, instances: Instances, instance: Instance, candidates: Candidates, rules: CapacityRules
) -> Attempt | None:
    """Return what `find_placement` does; None: ask the law."""
    opened = engine_cluster(nodes, instances, candidates, rules, instance)
    found = _ask_about(instance, EngineQuestion.ATTEMPT, opened, limit=len(instances), checked=rules.failures > 0)
    if found is None:
        return None
    result, best = found
    failures: FailCounts = tuple(result.failures)
    if not best:
        return Attempt(failures, result.successes, None)
    primary, secondary = best if len(best) > 1 else (*best, NO_NODE)
    placed = instance_on_nodes(nodes, instance, instance.index, instance.name, primary, secondary)
    changed = [accepted(add_primary(nodes[primary], placed, force=rules.force))]
    if secondary != NO_NODE:
        changed.append(accepted(add_secondary(nodes[secondary], placed, primary)))
    return Attempt(failures, result.successes, Placement(tuple(changed), placed, result.score))


def instance_on_nodes(
    nodes: Nodes, instance: Instance, index: int, name: str, primary: int, secondary: int
) -> Instance:
    """Return the instance, under this number and name, on its nodes."""
    if secondary == NO_NODE:
        return instance.at(index, name, primary, instance.secondary, instance.location_score)
    common = len(nodes[primary].facts.location_tags & nodes[secondary].facts.location_tags)
    return instance.at(index, name, primary, secondary, common)


def compiled_dedicated(
    nodes: Nodes, instance: Instance, candidates: Candidates, *, force: bool
) -> tuple[FailCounts, int, tuple[int, ...]] | None:
    """Return failures, successes and the nodes of the best candidate (or none) on dedicated nodes.

    `nodes` are those of the candidates (`requests.search_dedicated`). Return None to ask the law.
    """
    opened = engine_cluster(nodes, None, candidates, CapacityRules(force=force), instance)
    found = _ask_about(instance, EngineQuestion.DEDICATED, opened)
    return None if found is None else (tuple(found[0].failures), found[0].successes, found[1])


def is_redundant(nodes: Nodes, instances: Instances, rules: CapacityRules) -> bool:
    """Whether each examined node, alone, can be evacuated (`redundancy.is_redundant`)."""
    found = compiled_redundancy(nodes, instances, rules)
    return redundancy.is_redundant(nodes, instances, rules) if found is None else found


def compiled_redundancy(nodes: Nodes, instances: Instances, rules: CapacityRules) -> bool | None:
    """Return what `is_redundant` does; None: ask the law."""
    opened = engine_cluster(nodes, instances, NO_CANDIDATES, rules)
    if opened is None:
        return None
    status, result = opened.engine.ask(EngineQuestion.REDUNDANT)
    return bool(result.successes) if answered(status, opened.engine, nodes) else None


@dataclass(frozen=True, slots=True)
class Usable:
    """The groups, unusable ones as unallocable; the rules of the N+1 test; whether allocation is forbidden."""

    groups: Mapping[int, Group]
    rules: CapacityRules
    stopped: bool


def usable_groups(
    groups: Mapping[int, Group], nodes: Nodes, instances: Instances, *, accept_existing: bool, independent: bool
) -> Usable:
    """Return the usable groups of the initial state (hspace's `--accept-existing-errors`, `--independent-groups`)."""
    bad = {node.facts.group for node in nodes.values() if not node.facts.offline and node.fails_n1}
    rules = CapacityRules(skip_offline=accept_existing)
    failing = set[int]()
    for index in groups if independent else ():
        members = {key: node for key, node in nodes.items() if node.facts.group == index}
        if not is_redundant(members, instances, rules):
            failing.add(index)
    closed = failing if accept_existing else failing | bad
    result = {
        index: replace(group, alloc_policy=AllocPolicy.UNALLOCABLE) if index in closed else group
        for index, group in groups.items()
    }
    some_open = any(group.alloc_policy is not AllocPolicy.UNALLOCABLE for group in result.values())
    stopped = bool(bad) and not accept_existing and not (independent and some_open)
    return Usable(result, replace(rules, ignored_groups=frozenset(failing)), stopped)


@dataclass(frozen=True, slots=True)
class EngineCluster:
    """A cluster in the engine, for questions about lost or evacuated nodes."""

    nodes: Nodes
    cluster: ClusterNumbers
    engine: NativeEngine

    def targets(self, lost: Sequence[int], *, cpus: bool = False) -> dict[int, int] | None:
        """Return the new node of each instance (by number) of `lost` nodes, or NO_NODE. None: ask the law.

        `lost` are nodes of one group; with `cpus` no node takes more than its vcpu-ratio allows. The result for a
        mirrored instance that loses both nodes has no meaning.
        """
        residents = [number for index in lost for number in self.nodes[index].primaries]
        status, rows = self.engine.lose([self.cluster.rows[index] for index in lost], len(residents), cpus=cpus)
        if not answered(status, self.engine, self.nodes):
            return None
        homes = (self.cluster.indices[row] if row >= 0 else NO_NODE for row in rows)
        return dict(zip(residents, homes, strict=True))

    def move(
        self, instance: Instance, leaving: Leaving, unlisted: Unlisted, candidates: Sequence[int], *, force: bool
    ) -> tuple[int, ...]:
        """Move the instance to the best of `candidates` (ascending); return its nodes, or none if no candidate takes
        it.

        The cluster keeps the state after the move. Raise UnfitError if only the law can answer; the cluster is then
        unusable.
        """
        record = self.cluster.instance(instance, candidates)
        status, result = self.engine.move_away(record, leaving, unlisted, force=force)
        answered(status, self.engine, self.nodes, fit=True)
        return _nodes_of(result, self.cluster)

    def balance(
        self, instances: Instances, movable: Sequence[int], rules: MoveRules
    ) -> tuple[InstanceMove, float] | None:
        """Take the best move of the instances `movable` (ascending), and return it with the score after it.

        None if no move improves the score. `instances` are those of the present state; the cluster keeps the state
        after the move. Raises UnfitError if only the law can answer; the cluster is then unusable.
        """
        status, move = self.engine.balance(self.cluster.slots(movable), rules)
        answered(status, self.engine, self.nodes, fit=True)
        if move.slot < 0:
            return None
        target = self.cluster.indices[move.target] if move.target >= 0 else NO_NODE
        return InstanceMove(MoveKind(move.kind), instances[self.cluster.number(move.slot)], target), move.score


class Narrowing:
    """Finds the best move of each instance in turn with the compiled engine, so that the law tries few candidates.

    Without an engine, or if it cannot answer, the law tries all candidates.
    """

    def __init__(self, nodes: Nodes, instances: Instances) -> None:
        """Begin with the state before the first move."""
        self._engine = engine_cluster(nodes, instances)

    def narrow(self, asked: Departure) -> Sequence[int]:
        """Return the candidates of the best move or, if there is none, those that the error message names."""
        instance, candidates = asked.instance, asked.candidates
        if self._engine is None:
            return candidates
        # an instance that is named twice moves again by its old record, whose nodes do not list it then
        primary, secondary, unlisted = asked.nodes[instance.primary], asked.nodes.get(instance.secondary), Unlisted(0)
        if instance.index not in primary.primaries:
            unlisted |= Unlisted.PRIMARY
        if secondary is not None and instance.index not in secondary.secondaries:
            unlisted |= Unlisted.SECONDARY
        try:
            found = self._engine.move(instance, Leaving[asked.mode.name], unlisted, candidates, force=asked.force)
        except UnfitError:
            self._engine = None
            return candidates
        if found:
            return [node for node in candidates if node in found]
        # the message names the last pair that failed, or each single node
        return candidates[-2:] if asked.by_pairs else candidates


def engine_cluster(
    nodes: Nodes,
    instances: Instances | None,
    candidates: Candidates = NO_CANDIDATES,
    rules: CapacityRules | None = None,
    wanted: Instance | None = None,
) -> EngineCluster | None:
    """Return a cluster in a new engine; None, to ask the law, if there is no engine or it cannot represent this one."""
    library = loaded_library()
    if library is None:
        return None
    try:
        cluster = ClusterNumbers(nodes, instances, candidates, rules or CapacityRules(), wanted=wanted)
        return EngineCluster(nodes, cluster, opened_engine(library, cluster, nodes))
    except UnfitError:
        return None


def _ask_about(
    instance: Instance, question: EngineQuestion, opened: EngineCluster | None, **more: Any
) -> tuple[NativeResult, tuple[int, ...]] | None:
    """Return the result of a question about a wanted instance, and the nodes of the best candidate."""
    if opened is None:
        return None
    try:
        wanted = opened.cluster.instance(instance)
    except UnfitError:
        return None
    status, result = opened.engine.ask(question, wanted, **more)
    if not answered(status, opened.engine, opened.nodes):
        return None
    return result, _nodes_of(result, opened.cluster)


def _nodes_of(result: NativeResult, cluster: ClusterNumbers) -> tuple[int, ...]:
    return tuple(cluster.indices[row] for row in (result.primary, result.secondary) if row >= 0)


def opened_engine(library: ctypes.CDLL, cluster: ClusterNumbers, nodes: Nodes) -> NativeEngine:
    """Return an engine that has read the cluster. Raise UnfitError."""
    engine = NativeEngine(library)
    answered(engine.open(cluster.numbers), engine, nodes, fit=True)
    return engine


def answered(status: Status, engine: NativeEngine, nodes: Nodes, *, fit: bool = False) -> bool:
    """Whether the engine has answered. Raise what the law would raise, and with `fit` UnfitError instead of False."""
    if status is Status.DIVISION_BY_ZERO:
        raise DivisionError("divide by zero")
    if status is Status.MISSING_NODE:
        node_at(nodes, engine.missing_index)
    if status is Status.OUT_OF_MEMORY:
        raise MemoryError("not enough memory for the allocation")
    if status is Status.TOO_MANY_PLACED:
        many = f"more than {MOST_PLACEMENTS:,} instances of this size fit, which is more than are counted"
        raise InputError(many, hint="ask for a greater size, or limit the number of instances")
    if status is Status.TOO_DEEP:
        deep = f"counting takes more than {MOST_LEVELS:,} steps from the greatest size down to those that fit"
        raise InputError(deep, hint="lower the upper bounds of the spec")
    if status is Status.TOO_LONG:
        raise too_long(engine.steps)
    if fit and status is not Status.DONE:
        raise UnfitError("the engine refuses the cluster")
    return status is Status.DONE


def too_long(steps: int) -> TooLongError:
    """Return the error of a count that was given up after so much work."""
    return TooLongError(
        f"counting takes too long, and was given up after {steps:,} steps", hint="count a greater size, or fewer nodes"
    )


def loaded_library() -> ctypes.CDLL | None:
    """Return the compiled engine; None, after a warning, if there is none."""
    loaded = load()
    if loaded.library is None:
        warnings.warn(
            f"{loaded.trouble}; the answers are the same, but take much longer. With a C compiler (or access to a"
            " package index) install gpolicy again; `pip install -v` says why a compiler fails.",
            SlowAllocatorWarning,
            stacklevel=3,
        )
    return loaded.library
