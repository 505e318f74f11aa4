"""Placing one new instance on a node or a pair of nodes: trials, scores, choice, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gpolicy.allocator.cluster_data import AllocPolicy, FailReason, Group, Instance, Node
from gpolicy.allocator.cluster_score import WEIGHTS, Statistic, Weights, replaced, statistics, total_score
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.node_changes import add_primary, add_secondary
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

Nodes = Mapping[int, Node]
FailCounts = tuple[int, ...]
"""How many candidates failed for each reason, in the order of `FailReason`."""
NO_FAILURES: FailCounts = (0,) * len(FailReason)


@dataclass(frozen=True, slots=True)
class SingleCandidates:
    """Nodes that may take an instance without a secondary, ascending."""

    nodes: tuple[int, ...]

    @property
    def counts(self) -> list[tuple[int, int]]:
        """Each possible primary with the number of its candidates."""
        return [(index, 1) for index in self.nodes]

    def kept(self, primary: Callable[[int], bool], _secondary: Callable[[int], bool] | None = None) -> SingleCandidates:
        """Return those whose primary is wanted."""
        return SingleCandidates(tuple(filter(primary, self.nodes)))


@dataclass(frozen=True, slots=True)
class PairCandidates:
    """Possible primaries (ascending), each with the possible secondaries (ascending, maybe with itself).

    Primaries of one group share one tuple of secondaries.
    """

    members: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def pairs(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The secondaries of each primary, without itself; primaries without any are skipped."""
        for primary, members in self.members:
            if others := tuple(other for other in members if other != primary):
                yield primary, others

    @property
    def nodes(self) -> tuple[int, ...]:
        """The possible primaries."""
        return tuple(primary for primary, _ in self.members)

    @property
    def counts(self) -> list[tuple[int, int]]:
        """Each possible primary with the number of its candidates."""
        return [(index, len(others)) for index, others in self.pairs]

    def kept(self, primary: Callable[[int], bool], secondary: Callable[[int], bool] | None = None) -> PairCandidates:
        """Return those whose primary and secondary are wanted; without `secondary` all secondaries are."""
        members = ((index, others) for index, others in self.members if primary(index))
        if secondary is not None:
            members = ((index, tuple(filter(secondary, others))) for index, others in members)
        return PairCandidates(tuple(members))


Candidates = SingleCandidates | PairCandidates


@dataclass(frozen=True, slots=True)
class Placement:
    """A possible placement: the changed nodes, the instance with its nodes, and the score after it.

    On dedicated nodes (`gpolicy.allocator.requests`) the score is not used; `lost` is the number of lost slots
    of each size, `disk_left` (MiB) the remaining disk.
    """

    changed: tuple[Node, ...]
    instance: Instance
    score: float
    lost: tuple[int, ...] | None = None
    disk_left: int = 0

    @property
    def metric(self) -> tuple[tuple[int, ...], int]:
        """What is compared on dedicated nodes, the smaller the better."""
        return self.lost or (), self.disk_left

    @property
    def nodes(self) -> tuple[int, ...]:
        """The indices of the primary and, if there is one, the secondary."""
        return tuple(node.index for node in self.changed)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of trying every candidate: counts of failures and of successes, and the best one."""

    failures: FailCounts
    successes: int
    solution: Placement | None


CandidateTrial = tuple[tuple[int, ...], Placement | FailReason]
"""A candidate (indices of its nodes), and its placement or the first reason against it."""

Statistics = tuple[Statistic, ...]
Predicate = Callable[[Placement], bool]
"""Whether the state after a placement is acceptable (the N+1 test)."""


class NoCandidatesError(InputError):
    """There is no node, or no pair of nodes, to try, or an instance wants more than two nodes."""


def candidate_nodes(groups: Mapping[int, Group], nodes: Nodes, count: int) -> Candidates:
    """List the online nodes (count 1) or pairs of nodes (count 2) of groups that are not unallocable.

    Raise NoCandidatesError if there is none, and for any other count.
    """
    open_groups = {index for index, group in groups.items() if group.alloc_policy is not AllocPolicy.UNALLOCABLE}
    return _candidates(nodes, [index for index, node in nodes.items() if node.facts.group in open_groups], count)


def candidates_among(
    nodes: Nodes, members: Sequence[int], count: int, restriction: frozenset[str] | None
) -> Candidates:
    """List the online nodes, or pairs of nodes, among `members`. Raise NoCandidatesError as `candidate_nodes` does.

    `restriction` holds the full names of the only nodes to use.
    """
    wanted = [index for index in members if restriction is None or nodes[index].facts.name in restriction]
    return _candidates(nodes, wanted, count)


def _candidates(nodes: Nodes, indices: Sequence[int], count: int) -> Candidates:
    usable = [index for index in indices if not nodes[index].facts.offline]
    if count == 1:
        if not usable:
            raise NoCandidatesError("No online nodes")
        return SingleCandidates(tuple(usable))
    if count != 2:
        raise NoCandidatesError("Unsupported number of nodes, only one or two  supported")
    by_group: dict[int, list[int]] = {}
    for index in usable:
        by_group.setdefault(nodes[index].facts.group, []).append(index)
    shared = {group: tuple(members) for group, members in by_group.items() if len(members) > 1}
    members = tuple((index, shared[nodes[index].facts.group]) for index in usable if nodes[index].facts.group in shared)
    if not members:
        raise NoCandidatesError("Not enough online nodes")
    return PairCandidates(members)


def try_each(
    nodes: Nodes, instance: Instance, candidates: Candidates, *, force: bool = False, weights: Weights = WEIGHTS
) -> Iterator[list[CandidateTrial]]:
    """Try every candidate, and yield the trials with the same primary together, or all trials of single nodes.

    The score is computed over `nodes`: from the full statistics for a single node; for a pair by replacing both nodes
    in the statistics, the primary first. `force` ignores soft limits on the primary (`--ignore-soft-errors`).
    """

    def alone(target: int) -> Placement | FailReason:
        new = with_primary(nodes[target], instance, force=force)
        if isinstance(new, FailReason):
            return new
        after = statistics(new if index == target else other for index, other in nodes.items())
        return Placement((new,), replace(instance, primary=target), total_score(after, weights))

    if isinstance(candidates, SingleCandidates):
        yield [((index,), alone(index)) for index in candidates.nodes]
        return
    stats = statistics(nodes.values())

    def with_each(primary: int, others: Sequence[int]) -> Iterator[CandidateTrial]:
        """Try a primary with each secondary; the values for each number of common locations are computed once."""
        node = nodes[primary]
        begun: dict[int, tuple[Instance, Node, Statistics] | FailReason] = {}
        for other in others:
            secondary = nodes[other]
            common = len(node.facts.location_tags & secondary.facts.location_tags)
            if common not in begun:
                wanted = instance if instance.location_score == common else replace(instance, location_score=common)
                new = with_primary(node, wanted, force=force)
                begun[common] = new if isinstance(new, FailReason) else (wanted, new, replaced(stats, node, new))
            first = begun[common]
            if isinstance(first, FailReason):
                yield (primary, other), first
                continue
            wanted, new_primary, half = first
            new_secondary = add_secondary(secondary, wanted, primary)
            if isinstance(new_secondary, FailReason):
                yield (primary, other), new_secondary
                continue
            placed = replace(wanted, primary=primary, secondary=other)
            after = replaced(half, secondary, new_secondary)
            yield (primary, other), Placement((new_primary, new_secondary), placed, total_score(after, weights))

    yield from (list(with_each(primary, others)) for primary, others in candidates.pairs)


def with_primary(node: Node, instance: Instance, *, force: bool) -> Node | FailReason:
    """Return `node` with a new instance as primary, or why its policy or the node itself refuses it."""
    refused = check_ipolicy(node.facts.policy, instance, exclusive=node.facts.exclusive)
    return add_primary(node, instance, force=force) if refused is None else refused


def try_allocate(
    nodes: Nodes,
    instance: Instance,
    candidates: Candidates,
    *,
    force: bool = False,
    predicate: Predicate | None = None,
    weights: Weights = WEIGHTS,
) -> Attempt:
    """Try every candidate and choose the best that satisfies `predicate`.

    The other arguments are those of `try_each`. Of equal scores the later candidate wins.
    """
    best: Placement | None = None
    failures, successes = NO_FAILURES, 0
    for tried in try_each(nodes, instance, candidates, force=force, weights=weights):
        attempt = _choose([trial for _, trial in tried], predicate)
        failures = add_counts(failures, attempt.failures)
        successes += attempt.successes
        if attempt.solution is not None and not (best is not None and best.score < attempt.solution.score):
            best = attempt.solution
    return Attempt(failures, successes, best)


def add_counts(left: FailCounts, right: FailCounts) -> FailCounts:
    """Element-wise sum."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


def count_failures(reasons: Sequence[FailReason]) -> FailCounts:
    """Count the reasons."""
    return tuple(reasons.count(reason) for reason in FailReason)


def _choose(trials: Sequence[Placement | FailReason], predicate: Predicate | None) -> Attempt:
    failures = list(count_failures([trial for trial in trials if isinstance(trial, FailReason)]))
    possible = [trial for trial in reversed(trials) if isinstance(trial, Placement)]
    for rejected, placement in enumerate(sorted_by_score(possible, lambda trial: trial.score)):
        if predicate is None or predicate(placement):
            failures[FailReason.N1] += rejected
            return Attempt(tuple(failures), len(possible) - rejected, placement)
    failures[FailReason.N1] += len(possible)
    return Attempt(tuple(failures), 0, None)
