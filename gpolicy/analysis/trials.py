"""Every candidate for one new instance tried, each with what came of it.

The allocator itself keeps only the best candidate and counts of failures. Here the same trials are kept, and those that
fail are explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.dedicated_nodes import try_each_dedicated
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.placement import PairCandidates, Placement, try_each
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.refusals import Refusal, as_primary, as_secondary

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Attempt, Candidates, Trial
    from gpolicy.allocator.redundancy import Instances

Nodes = Mapping[int, "Node"]


@dataclass(frozen=True, slots=True)
class ExplainedTrial:
    """One candidate (indices of its nodes): a refusal, or the placement that it would be. Both after a failed N+1."""

    nodes: tuple[int, ...]
    refusal: Refusal | None = None
    placement: Placement | None = None


def ordinary_trials(
    nodes: Nodes, instances: Instances, instance: Instance, candidates: Candidates, attempt: Attempt
) -> list[ExplainedTrial]:
    """Try all candidates, scored over `nodes`; `attempt` is what the allocator says of the same question.

    Candidates that are better than the chosen one and were passed over fail N+1; those behind it are not tested.
    """
    found: list[ExplainedTrial] = []
    left = attempt.failures[FailReason.N1]
    known = None  # without a solution all that is possible fails; nodes alone are told apart by their scores
    if isinstance(candidates, PairCandidates) and attempt.solution is not None:
        known = instances
    for tried in try_each(nodes, instance, candidates):
        trials = _explained(nodes, instance, tried)
        if left:
            trials = _passed_over(nodes, known, trials, left)
            left -= sum(trial.refusal is not None and trial.placement is not None for trial in trials)
        found += trials
    return found


def dedicated_trials(nodes: Nodes, instance: Instance, candidates: Candidates) -> list[ExplainedTrial]:
    """Try all candidates with the dedicated metric (design document "dedicated allocation")."""
    return [
        trial
        for tried in try_each_dedicated(nodes, instance, candidates)
        for trial in _explained(nodes, instance, tried)
    ]


def _explained(nodes: Nodes, instance: Instance, tried: Sequence[Trial]) -> list[ExplainedTrial]:
    """Say of each trial with one primary, or with none in common, what refuses it."""
    primaries: dict[int, Refusal | None] = {}
    found = []
    for where, result in tried:
        primary, *secondary = where
        if isinstance(result, Placement):
            found.append(ExplainedTrial(where, None, result))
            continue
        if primary not in primaries:
            primaries[primary] = as_primary(nodes[primary], instance)
        refusal = primaries[primary]
        if refusal is None:
            refusal = as_secondary(nodes[secondary[0]], instance, primary)
        found.append(ExplainedTrial(where, refusal))
    return found


def _passed_over(
    nodes: Nodes, instances: Instances | None, trials: list[ExplainedTrial], most: int
) -> list[ExplainedTrial]:
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
