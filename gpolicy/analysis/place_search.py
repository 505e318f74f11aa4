"""The searches that hail answers a request by, kept so that every candidate of them can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.dedicated_nodes import search_dedicated
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.allocator.group_choice import GroupAnswer, RequestError, choose_group, one_group, search_ordinary
from gpolicy.allocator.placement import PairCandidates, SingleCandidates, candidates_among
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.trials import ExplainedTrial, dedicated_trials, ordinary_trials

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Group, Instance
    from gpolicy.allocator.group_choice import RequestOptions, Search
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.placement import Attempt, Candidates
    from gpolicy.allocator.redundancy import Instances
    from gpolicy.analysis.trials import Nodes

MOST_PAIRS: Final = 100_000
"""Pairs of nodes that are tried one by one to be shown, all those of 316 nodes. The answer is found among all pairs."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """The search of one group: what it was given, and what the allocator says."""

    nodes: Nodes
    instances: Instances
    members: tuple[int, ...]
    attempt: Attempt


@dataclass(slots=True)
class PlaceSearch:
    """One request, and the searches that its answer was found by."""

    cluster: Cluster
    instance: Instance
    count: int
    options: RequestOptions
    group: Group | None
    dedicated: bool
    attempts: list[Attempted] = field(default_factory=list)
    left_out: int = 0
    """Pairs that were not tried one by one."""

    def answer(self) -> GroupAnswer:
        """Return hail's answer; a refused request is an answer as well."""
        group = self.group
        groups, nodes, instances = self.cluster.groups, self.cluster.nodes, self.cluster.instances
        try:
            if group is not None:
                return one_group(
                    group, nodes, instances, self.instance, self.count, self.options, search=self._search()
                )
            return choose_group(
                groups,
                nodes,
                instances,
                self.instance,
                self.count,
                self.options,
                search=self._search(),
                separate_network_messages=not self.dedicated,
            )
        except RequestError as error:
            return GroupAnswer(None, (error.message,))

    def _search(self) -> Search:
        search = search_dedicated if self.dedicated else search_ordinary

        def recorded(
            nodes: Nodes,
            instances: Instances,
            instance: Instance,
            count: int,
            members: Sequence[int],
            options: RequestOptions,
        ) -> Attempt:
            attempt = search(nodes, instances, instance, count, members, options)
            self.attempts.append(Attempted(nodes, instances, tuple(members), attempt))
            return attempt

        return recorded

    def candidates(self, tried: Attempted) -> list[tuple[ExplainedTrial, Candidate]]:
        """Return the candidates of one search: all of them, or of very many pairs some of each primary."""
        return [(trial, self._candidate(trial)) for trial in self._trials(tried, self._listed(tried))]

    def _listed(self, tried: Attempted) -> Candidates:
        listed = candidates_among(tried.nodes, tried.members, self.count, self.options.restriction)
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

    def _trials(self, tried: Attempted, listed: Candidates) -> list[ExplainedTrial]:
        if self.dedicated:
            return dedicated_trials(tried.nodes, self.instance, listed)
        return ordinary_trials(tried.nodes, tried.instances, self.instance, listed, tried.attempt)

    def _candidate(self, trial: ExplainedTrial) -> Candidate:
        nodes = [self.cluster.nodes[index] for index in trial.nodes]
        group = self.cluster.groups[nodes[0].facts.group]
        refusal, placement = trial.refusal, trial.placement
        closed = self.group is None and group.alloc_policy is AllocPolicy.UNALLOCABLE
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


def _preference(trial: ExplainedTrial) -> tuple[bool, tuple[int, ...], int, float]:
    """Sort the possible ones first, the best of them before the others, as the metric says."""
    placement = trial.placement
    if placement is None:
        return True, (), 0, 0.0
    return trial.refusal is not None, placement.lost or (), placement.disk_left, placement.score
