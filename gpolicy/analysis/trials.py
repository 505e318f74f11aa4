"""Every candidate for one new instance tried, each with what came of it.

The allocator itself keeps only the best candidate and counts of failures. Here the same checks and scores are kept
for each: the functions are the allocator's own, in its own order, so that scores are the same doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import Statistic, replaced, statistics, total_score
from gpolicy.allocator.dedicated_nodes import allocation_vector, sample_instances
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.node_changes import add_primary, add_secondary
from gpolicy.allocator.placement import Placement, SingleCandidates, try_single
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.refusals import Refusal, as_primary, as_secondary

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Candidates, PairCandidates
    from gpolicy.allocator.redundancy import Instances

Nodes = Mapping[int, "Node"]
Lost = Callable[["Node", "Node", "Node"], tuple[int, ...]]
"""Lost allocations of a node: before, after, and the node whose policy gives the sizes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate (indices of its nodes): a refusal, or the placement that it would be. Both after a failed N+1."""

    nodes: tuple[int, ...]
    refusal: Refusal | None = None
    placement: Placement | None = None


def ordinary_trials(
    nodes: Nodes, instances: Instances, instance: Instance, candidates: Candidates, attempt: Attempt
) -> list[Trial]:
    """Try all candidates, scored over `nodes`; `attempt` is what the allocator says of the same question.

    Candidates that are better than the chosen one and were passed over fail N+1; those behind it are not tested.
    """
    if isinstance(candidates, SingleCandidates):
        trials = [_single(nodes, instance, target) for target in candidates.nodes]
        return _passed_over(nodes, None, trials, attempt.failures[FailReason.N1])
    found: list[Trial] = []
    left = attempt.failures[FailReason.N1]
    stats = statistics(nodes.values())
    known = None if attempt.solution is None else instances  # without a solution, all that is possible fails
    for primary, others in candidates.pairs:
        trials = _with_primary(nodes, stats, instance, primary, others)
        if left:
            trials = _passed_over(nodes, known, trials, left)
            left -= sum(trial.refusal is not None and trial.placement is not None for trial in trials)
        found += trials
    return found


def dedicated_trials(nodes: Nodes, instance: Instance, candidates: Candidates) -> list[Trial]:
    """Try all candidates with the dedicated metric (design document "dedicated allocation")."""
    known: dict[tuple[int, int], tuple[int, ...]] = {}

    def vector(node: Node, policy_of: Node) -> tuple[int, ...]:
        key = (node.index, policy_of.facts.group)
        if key not in known:
            known[key] = allocation_vector(node, sample_instances(policy_of.facts.policy))
        return known[key]

    def lost(before: Node, after: Node, policy_of: Node) -> tuple[int, ...]:
        now = allocation_vector(after, sample_instances(policy_of.facts.policy))
        return tuple(then - left for then, left in zip(vector(before, policy_of), now, strict=True))

    if isinstance(candidates, SingleCandidates):
        return [_dedicated_single(nodes[target], instance, lost) for target in candidates.nodes]
    return _dedicated_pairs(nodes, instance, candidates, lost)


def _single(nodes: Nodes, instance: Instance, target: int) -> Trial:
    refusal = as_primary(nodes[target], instance)
    if refusal is not None:
        return Trial((target,), refusal)
    placement = try_single(nodes, instance, target, force=False)
    assert isinstance(placement, Placement)  # noqa: S101 (the same checks have just passed)
    return Trial((target,), None, placement)


def _with_primary(
    nodes: Nodes, stats: tuple[Statistic, ...], instance: Instance, primary: int, others: Sequence[int]
) -> list[Trial]:
    """Try a primary with each secondary; what depends on the primary alone is computed once."""
    node = nodes[primary]
    refusal = as_primary(node, instance)
    if refusal is not None:
        return [Trial((primary, other), refusal) for other in others]
    started: dict[int, tuple[Instance, Node, tuple[Statistic, ...]]] = {}
    trials = []
    for other in others:
        secondary = nodes[other]
        common = len(node.facts.location_tags & secondary.facts.location_tags)
        if common not in started:
            wanted = replace(instance, location_score=common)
            new = add_primary(node, wanted)
            assert not isinstance(new, FailReason)  # noqa: S101 (checked above; the location changes no check)
            started[common] = wanted, new, replaced(stats, node, new)
        wanted, new, half = started[common]
        new_secondary = add_secondary(secondary, wanted, primary)
        if isinstance(new_secondary, FailReason):
            trials.append(Trial((primary, other), as_secondary(secondary, wanted, primary)))
            continue
        score = total_score(replaced(half, secondary, new_secondary))
        placed = replace(wanted, primary=primary, secondary=other)
        trials.append(Trial((primary, other), None, Placement((new, new_secondary), placed, score)))
    return trials


def _passed_over(nodes: Nodes, instances: Instances | None, trials: list[Trial], most: int) -> list[Trial]:
    """Mark the trials that come before the best one that keeps N+1; at most `most` are to be found.

    Without `instances` it is known that the first `most` are those.
    """
    if not most:
        return trials
    predicate = None if instances is None else redundancy_predicate(nodes, instances, CapacityRules())
    possible = [(trial.placement, trial) for trial in reversed(trials) if trial.placement is not None]
    failed = set[tuple[int, ...]]()
    for placement, trial in sorted_by_score(possible, lambda pair: pair[0].score):
        if len(failed) == most or (predicate is not None and predicate(placement)):
            break
        failed.add(trial.nodes)
    refusal = Refusal(FailReason.N1, Cause.REDUNDANCY, Cause.REDUNDANCY.sentence)
    return [replace(trial, refusal=refusal) if trial.nodes in failed else trial for trial in trials]


def _dedicated_single(node: Node, instance: Instance, lost: Lost) -> Trial:
    refusal = as_primary(node, instance)
    if refusal is not None:
        return Trial((node.index,), refusal)
    new = add_primary(node, instance)
    assert not isinstance(new, FailReason)  # noqa: S101
    placed = replace(instance, primary=node.index)
    return Trial(
        (node.index,),
        None,
        Placement((new,), placed, 0.0, lost=lost(node, new, node), disk_left=new.free_disk),
    )


def _dedicated_pairs(nodes: Nodes, instance: Instance, candidates: PairCandidates, lost: Lost) -> list[Trial]:
    trials = []
    for primary, others in candidates.pairs:
        node = nodes[primary]
        first = _dedicated_single(node, instance, lost)
        for other in others:
            if first.placement is None:
                trials.append(Trial((primary, other), first.refusal))
                continue
            secondary = nodes[other]
            new = add_secondary(secondary, instance, primary)
            if isinstance(new, FailReason):
                trials.append(Trial((primary, other), as_secondary(secondary, instance, primary)))
                continue
            more = lost(secondary, new, node)
            placement = Placement(
                (*first.placement.changed, new),
                replace(instance, primary=primary, secondary=other),
                0.0,
                lost=tuple(a + b for a, b in zip(first.placement.lost or (), more, strict=True)),
                disk_left=first.placement.disk_left + new.free_disk,
            )
            trials.append(Trial((primary, other), None, placement))
    return trials
