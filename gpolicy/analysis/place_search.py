"""The searches behind hail's answer to a request, with every candidate.

The allocator itself keeps only the best candidate and counts of failures. Here all trials are kept, and failures are
explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.cluster_score import total_score
from gpolicy.allocator.dedicated_nodes import try_each_dedicated
from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.enumerations import AllocPolicy, FailReason
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.group_choice import GroupAnswer, Wanted
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.placement import (
    Attempt,
    Candidates,
    Nodes,
    PairCandidates,
    Placement,
    SingleCandidates,
    Trial,
    candidates_among,
    try_each,
)
from gpolicy.allocator.redundancy import CapacityRules, Instances, redundancy_predicate
from gpolicy.allocator.request_options import RequestError, RequestOptions
from gpolicy.allocator.requests import answer, search_for
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.refusals import Refusal, as_primary, as_secondary

MOST_PAIRS: Final = 100_000
"""The greatest number of pairs that are listed: all those of 316 nodes. The answer is always found among all pairs."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """One candidate (indices of its nodes): a refusal or a placement, or both if N+1 fails."""

    nodes: tuple[int, ...]
    refusal: Refusal | None = None
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Attempted:
    """The search in one group: its input, and the allocator's answer."""

    nodes: Nodes
    instances: Instances
    members: tuple[int, ...]
    attempt: Attempt


@dataclass(slots=True)
class PlaceSearch:
    """One request, and the searches for its answer."""

    cluster: Cluster
    wanted: Wanted
    options: RequestOptions
    dedicated: bool = False
    """Whether the answer is by the dedicated metric."""
    attempts: list[Attempted] = field(default_factory=list)
    left_out: int = 0
    """Pairs that were not tried one by one."""

    def answer(self) -> GroupAnswer:
        """Return hail's answer, also for a refused request."""
        cluster = self.cluster
        search, self.dedicated = search_for(cluster.groups, cluster.nodes, self.wanted, self.options)

        def recorded(nodes: Nodes, instances: Instances, members: Sequence[int]) -> Attempt:
            attempt = search(nodes, instances, members)
            self.attempts.append(Attempted(nodes, instances, tuple(members), attempt))
            return attempt

        try:
            return answer(
                cluster.groups, cluster.nodes, cluster.instances, self.wanted, recorded, dedicated=self.dedicated
            )
        except RequestError as error:
            return GroupAnswer(None, (error.message,), None, {})

    def candidates(self) -> list[Candidate]:
        """Return the candidates of all searches; of very many pairs only some for each primary."""
        return [self._candidate(trial) for tried in self.attempts for trial in self._trials(tried, self._listed(tried))]

    def placement(self, tried: Attempted, indices: Sequence[int]) -> Placement:
        """Return the placement on nodes that take the instance."""
        single = SingleCandidates(tuple(indices))
        listed = single if len(indices) == 1 else PairCandidates(((indices[0], tuple(indices[1:])),))
        ((_, found),) = next(iter(self._tried_on(tried, listed)))
        if isinstance(found, FailReason):
            raise AssertionError(f"a candidate that was possible is not: {found.title}")  # noqa: TRY004 (no wrong type)
        return found

    def _tried_on(self, tried: Attempted, listed: Candidates) -> Iterable[list[Trial]]:
        force = self.options.ignore_soft_errors
        if self.dedicated:
            return try_each_dedicated(tried.nodes, self.wanted.instance, listed, force=force)
        score = partial(total_score, weights=self.options.weights)
        return try_each(tried.nodes, self.wanted.instance, listed, force=force, score=score)

    def _listed(self, tried: Attempted) -> Candidates:
        listed = candidates_among(tried.nodes, tried.members, self.wanted.count, self.options.restriction)
        if isinstance(listed, SingleCandidates):
            return listed
        pairs = sum(len(others) - (primary in others) for primary, others in listed.members)
        most = MOST_PAIRS // len(self.attempts)
        if pairs <= most:
            return listed
        solution = tried.attempt.solution
        chosen = () if solution is None else solution.nodes
        reference = chosen[0] if chosen else listed.members[0][0]
        beside = PairCandidates(tuple(item for item in listed.members if item[0] == reference))
        best = sorted(self._trials(tried, beside), key=_preference)
        kept = {trial.nodes[1] for trial in best[: max(1, most // len(listed.members))]} | {reference, *chosen}
        shown = PairCandidates(
            tuple(
                (primary, others if primary == reference else tuple(other for other in others if other in kept))
                for primary, others in listed.members
            )
        )
        self.left_out += pairs - sum(len(others) for _, others in shown.pairs)
        return shown

    def _trials(self, tried: Attempted, listed: Candidates) -> list[_Trial]:
        """Try the candidates `listed`, as the allocator does.

        Candidates that are better than the chosen one fail N+1; worse ones are not tested.
        """
        nodes, failures = tried.nodes, tried.attempt.failures[FailReason.N1]
        batches = self._tried_on(tried, listed)
        instances = None  # without a solution all that is possible fails; single nodes are told apart by their scores
        if isinstance(listed, PairCandidates) and tried.attempt.solution is not None:
            instances = tried.instances
        found: list[_Trial] = []
        for batch in batches:
            trials = _explained(nodes, self.wanted.instance, batch, force=self.options.ignore_soft_errors)
            if failures and not self.dedicated:
                rules = CapacityRules(weights=self.options.weights)
                trials = _passed_over(nodes, instances, trials, failures, rules)
                failures -= sum(trial.refusal is not None and trial.placement is not None for trial in trials)
            found += trials
        return found

    def _candidate(self, trial: _Trial) -> Candidate:
        nodes = [self.cluster.nodes[index] for index in trial.nodes]
        group = self.cluster.groups[nodes[0].facts.group]
        refusal, placement = trial.refusal, trial.placement
        closed = self.wanted.group_name is None and group.alloc_policy is AllocPolicy.UNALLOCABLE
        cause = refusal.cause if refusal else Cause.CLOSED if closed else None
        return Candidate(
            group=group.name,
            nodes=tuple(node.facts.name for node in nodes),
            ok=cause is None,
            reason=cause.key if cause else None,
            explanation=cause.sentence if cause else None,
            detail=refusal.detail if refusal else None,
            htools_reason=refusal.reason.title if refusal else None,
            score=placement.score if placement and placement.lost is None else None,
            lost_allocations=placement.lost if placement else None,
            disk_left=sum(node.free_disk for node in placement.changed) if placement else None,
        )


def _preference(trial: _Trial) -> tuple[bool, tuple[int, ...], int, float]:
    """Return a sort key: possible trials first, the best first by the metric."""
    placement = trial.placement
    if placement is None:
        return True, (), 0, 0.0
    return trial.refusal is not None, placement.lost or (), placement.disk_left, placement.score


def _explained(nodes: Nodes, instance: Instance, tried: Sequence[Trial], *, force: bool) -> list[_Trial]:
    """Explain the refusals of trials with the same primary, or of single nodes."""
    primaries: dict[int, Refusal | None] = {}
    found = []
    for where, result in tried:
        primary, *secondary = where
        if isinstance(result, Placement):
            found.append(_Trial(where, None, result))
            continue
        if primary not in primaries:
            primaries[primary] = as_primary(nodes[primary], instance, force=force)
        refusal = primaries[primary]
        if refusal is None:
            refusal = as_secondary(nodes[secondary[0]], instance, primary)
        found.append(_Trial(where, refusal))
    return found


def _passed_over(
    nodes: Nodes, instances: Instances | None, trials: list[_Trial], most: int, rules: CapacityRules
) -> list[_Trial]:
    """Mark the trials that are better than the chosen one and so fail N+1, at most `most`.

    Without `instances` the first `most` trials are those.
    """
    if not most:
        return trials
    predicate = None if instances is None else redundancy_predicate(nodes, instances, rules, is_redundant)
    possible = [(trial.placement, trial) for trial in reversed(trials) if trial.placement is not None]
    failed = set[tuple[int, ...]]()
    for placement, trial in sorted_by_score(possible, lambda pair: pair[0].score):
        if len(failed) == most or (predicate is not None and predicate(placement)):
            break
        failed.add(trial.nodes)
    refusal = Refusal(FailReason.N1, Cause.REDUNDANCY, Cause.REDUNDANCY.sentence)
    return [replace(trial, refusal=refusal) if trial.nodes in failed else trial for trial in trials]
