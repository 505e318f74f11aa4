"""The searches behind hail's answer to a request, with every candidate, also under the limits that a policy declares.

The allocator itself keeps only the best candidate and counts of failures. Here all trials are kept, and failures are
explained. Limits are those that hail does not know (design document "Resource model"): as with hail's own N+1 test,
candidates that are better than the chosen one break a limit; worse ones are not tested for failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpolicy.allocator import placement
from gpolicy.allocator.cluster_data import AllocPolicy, FailReason, Instance, Node
from gpolicy.allocator.compiled_allocation import memory_for_instances, memory_left, sets_of
from gpolicy.allocator.engines import find_placement, is_redundant
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node_changes import accepted
from gpolicy.allocator.placement import Attempt, CandidateTrial, Nodes, Placement
from gpolicy.allocator.redundancy import CapacityRules, Instances, numbered, redundancy_predicate
from gpolicy.allocator.request_options import NotGrantedError, RequestOptions
from gpolicy.allocator.requests import GroupAnswer, Wanted, answer, search_for, try_each_dedicated
from gpolicy.analysis.binding import Cause, Refusal, as_primary, as_secondary
from gpolicy.analysis.hail import rules_of
from gpolicy.analysis.losses import first_loss
from gpolicy.analysis.place_report import Candidate
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError
from gpolicy.ganeti.amounts import compared_sizes

MOST_PAIRS = 100_000
"""The greatest number of pairs that are listed: all those of 316 nodes. The answer is always found among all pairs."""


@dataclass(frozen=True, slots=True)
class _TriedPlace:
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
        search, self.dedicated = search_for(self.cluster, self.wanted, self.options)

        def recorded(nodes: Nodes, instances: Instances, members: Sequence[int]) -> Attempt:
            attempt = search(nodes, instances, members)
            self.attempts.append(Attempted(nodes, instances, tuple(members), attempt))
            return attempt

        try:
            return answer(self.cluster, self.wanted, recorded, dedicated=self.dedicated)
        except NotGrantedError as error:
            return GroupAnswer(None, (error.message,), None, {})

    def candidates(self) -> list[Candidate]:
        """Return the candidates of all searches; of very many pairs only some for each primary."""
        return [self._candidate(trial) for tried in self.attempts for trial in self._trials(tried, self._listed(tried))]

    def placement_on(self, tried: Attempted, indices: Sequence[int]) -> Placement:
        """Return the placement on nodes that take the instance."""
        single = placement.SingleCandidates(tuple(indices))
        listed = single if len(indices) == 1 else placement.PairCandidates(((indices[0], tuple(indices[1:])),))
        ((_, found),) = next(iter(self._tried_on(tried, listed)))
        return accepted(found)

    def _tried_on(self, tried: Attempted, listed: placement.Candidates) -> Iterable[list[CandidateTrial]]:
        force = self.options.ignore_soft_errors
        if self.dedicated:
            return try_each_dedicated(tried.nodes, self.wanted.instance, listed, force=force)
        return placement.try_each(tried.nodes, self.wanted.instance, listed, force=force, weights=self.options.weights)

    def _listed(self, tried: Attempted) -> placement.Candidates:
        listed = placement.candidates_among(tried.nodes, tried.members, self.wanted.count, self.options.restriction)
        if isinstance(listed, placement.SingleCandidates):
            return listed
        pairs = sum(len(others) - (primary in others) for primary, others in listed.members)
        most = MOST_PAIRS // len(self.attempts)
        if pairs <= most:
            return listed
        solution = tried.attempt.solution
        chosen = () if solution is None else solution.nodes
        reference = chosen[0] if chosen else listed.members[0][0]
        beside = placement.PairCandidates(tuple(item for item in listed.members if item[0] == reference))
        best = sorted(self._trials(tried, beside), key=_preference)
        kept = {trial.nodes[1] for trial in best[: max(1, most // len(listed.members))]} | {reference, *chosen}
        shown = placement.PairCandidates(
            tuple(
                (primary, others if primary == reference else tuple(other for other in others if other in kept))
                for primary, others in listed.members
            )
        )
        self.left_out += pairs - sum(len(others) for _, others in shown.pairs)
        return shown

    def _trials(self, tried: Attempted, listed: placement.Candidates) -> list[_TriedPlace]:
        """Try the candidates `listed` as the allocator does: better ones than the chosen one fail N+1."""
        nodes, failures = tried.nodes, tried.attempt.failures[FailReason.N1]
        batches = self._tried_on(tried, listed)
        instances = None  # without a solution all that is possible fails; single nodes are told apart by their scores
        if isinstance(listed, placement.PairCandidates) and tried.attempt.solution is not None:
            instances = tried.instances
        found: list[_TriedPlace] = []
        for batch in batches:
            trials = _explained(nodes, self.wanted.instance, batch, force=self.options.ignore_soft_errors)
            if failures and not self.dedicated:
                rules = CapacityRules(weights=self.options.weights)
                trials = _passed_over(nodes, instances, trials, failures, rules)
                failures -= sum(trial.refusal is not None and trial.placement is not None for trial in trials)
            found += trials
        return found

    def _candidate(self, trial: _TriedPlace) -> Candidate:
        nodes = [self.cluster.nodes[index] for index in trial.nodes]
        group = self.cluster.groups[nodes[0].facts.group]
        refusal, made = trial.refusal, trial.placement
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
            score=made.score if made and made.lost is None else None,
            lost_allocations=made.lost if made else None,
            disk_left=sum(node.free_disk for node in made.changed) if made else None,
        )


def _preference(trial: _TriedPlace) -> tuple[bool, tuple[int, ...], int, float]:
    """Return a sort key: possible trials first, the best first by the metric."""
    made = trial.placement
    if made is None:
        return True, (), 0, 0.0
    return trial.refusal is not None, made.lost or (), made.disk_left, made.score


def _explained(nodes: Nodes, instance: Instance, tried: Sequence[CandidateTrial], *, force: bool) -> list[_TriedPlace]:
    """Explain the refusals of trials with the same primary, or of single nodes."""
    primaries: dict[int, Refusal | None] = {}
    found = []
    for where, result in tried:
        primary, *secondary = where
        if isinstance(result, Placement):
            found.append(_TriedPlace(where, None, result))
            continue
        if primary not in primaries:
            primaries[primary] = as_primary(nodes[primary], instance, force=force)
        refusal = primaries[primary]
        if refusal is None:
            refusal = as_secondary(nodes[secondary[0]], instance, primary)
        found.append(_TriedPlace(where, refusal))
    return found


def _passed_over(
    nodes: Nodes, instances: Instances | None, trials: list[_TriedPlace], most: int, rules: CapacityRules
) -> list[_TriedPlace]:
    """Mark the trials (at most `most`) that are better than the chosen one, or without `instances` the first ones."""
    predicate = None if instances is None else redundancy_predicate(nodes, instances, rules, is_redundant)
    possible = [(trial.placement, trial) for trial in reversed(trials) if trial.placement is not None]
    failed = set[tuple[int, ...]]()
    for made, trial in sorted_by_score(possible, lambda pair: pair[0].score):
        if len(failed) == most or (predicate is not None and predicate(made)):
            break
        failed.add(trial.nodes)
    refusal = Refusal(FailReason.N1, Cause.REDUNDANCY, Cause.REDUNDANCY.sentence)
    return [replace(trial, refusal=refusal) if trial.nodes in failed else trial for trial in trials]


_MOST_DETAILS = 10
"""Refused candidates whose loss is looked for; the others have the same cause, without numbers."""
_MOST_WORK = 100_000
"""The greatest number of sets of lost nodes, times the nodes, of a group where not all instances are mirrored."""


def under_limits(state: ClusterState, search: PlaceSearch, found: list[Candidate]) -> list[Candidate]:
    """Return `found` (the best first) with the candidates refused that would break the limits of their groups.

    Raise InputError for a group that is too large to tell.
    """
    for tried in search.attempts:
        group = search.cluster.groups[tried.nodes[tried.members[0]].facts.group]
        limits = state.terms_of(group.name).limits
        if limits.beyond_htools and any(item.ok and item.group == group.name for item in found):
            rules = rules_of(limits, tests=search.options.capacity_checks and not search.dedicated)
            found = _GroupUnderRules(search, tried, rules).marked(found, group.name)
    return [*(item for item in found if item.ok), *(item for item in found if not item.ok)]


def with_losses(search: PlaceSearch, found: Sequence[Candidate]) -> list[Candidate]:
    """Return `found`, with the loss that could not be absorbed in the first of those that hail's N+1 test refuses."""
    told = list(found)
    failing = [place for place, item in enumerate(found) if item.reason == Cause.REDUNDANCY.key]
    for tried in search.attempts if failing else ():
        names = {tried.nodes[index].facts.name for index in tried.members}
        group = _GroupUnderRules(search, tried, CapacityRules())
        for place in [place for place in failing if found[place].nodes[0] in names][:_MOST_DETAILS]:
            told[place] = group.explained(found[place], detailed=True)
    return told


class _GroupUnderRules:
    """One group of a search, under `rules`."""

    def __init__(self, search: PlaceSearch, tried: Attempted, rules: CapacityRules) -> None:
        self._search, self._tried, self._rules = search, tried, rules
        self._group = tried.nodes[tried.members[0]].facts.group
        others = frozenset(node.facts.group for node in tried.nodes.values()) - {self._group}
        failures, weights = max(1, rules.failures), search.options.weights
        self._strict = replace(rules, ignored_groups=others, failures=failures, weights=weights)
        self._index = {node.facts.name: index for index, node in tried.nodes.items()}

    def marked(self, found: Sequence[Candidate], group: str) -> list[Candidate]:
        """Return the candidates, with those of the group refused that break a limit."""
        here = [item for item in found if item.ok and item.group == group]
        refused = {item.nodes: item.refused(Cause.OVERSUBSCRIPTION, why) for item, why in self._over(here)}
        left = [item for item in here if item.nodes not in refused]
        # hail tests one failure itself, except by lost allocations and without its capacity checks
        untested = self._search.dedicated or not self._search.options.capacity_checks
        tests = self._rules.failures > 1 or self._rules.cpus or untested
        if left and self._rules.failures > 0 and tests:
            chosen = self._chosen(left)
            failing = left if chosen is None else left[: left.index(chosen)]
            for number, item in enumerate(failing):
                refused[item.nodes] = self.explained(item, detailed=number < _MOST_DETAILS)
        return [refused.get(item.nodes, item) if item.group == group else item for item in found]

    def _over(self, items: Sequence[Candidate]) -> Iterator[tuple[Candidate, str]]:
        """Yield the candidates whose primary is left with less memory than the over-subscription allows."""
        if self._rules.oversubscription is None:
            return
        burst = self._search.wanted.instance.burst
        for item in items:
            node = self._tried.nodes[self._index[item.nodes[0]]]
            left = memory_left(node, self._tried.instances, self._rules.oversubscription)
            if burst > left:
                wanted, free, most = compared_sizes(burst, max(0, int(left)), memory_for_instances(node))
                times = f"{self._rules.oversubscription:g} times"
                yield item, f"{item.nodes[0]}: {wanted} wanted, {free} left of {most} {times}"

    def _chosen(self, items: Sequence[Candidate]) -> Candidate | None:
        """Return the best of `items`, the best first, after which the group survives the failures, as hail chooses."""
        self._refuse_minutes()
        if self._search.dedicated:
            return next((item for item in items if is_redundant(*self._after(item), self._strict)), None)
        tried, wanted = self._tried, self._search.wanted
        only = self._search.options.restriction
        candidates = placement.candidates_among(tried.nodes, tried.members, wanted.count, only)
        # over-subscription refuses primaries, and disks that Ganeti does not make refuse nodes: never single pairs
        primaries = {self._index[item.nodes[0]] for item in items}
        usable = {self._index[name] for item in items for name in item.nodes}
        candidates = candidates.kept(primaries.__contains__, usable.__contains__)
        rules = replace(self._strict, force=self._search.options.ignore_soft_errors)
        found = find_placement(tried.nodes, tried.instances, wanted.instance, candidates, rules)
        if found.solution is None:
            return None
        nodes = tuple(tried.nodes[index].facts.name for index in found.solution.nodes)
        return next((item for item in items if item.nodes == nodes), None)

    def _refuse_minutes(self) -> None:
        members, table = self._tried.members, self._tried.instances.values()
        mirrored = all(item.template.value == "drbd" for item in (self._search.wanted.instance, *table))
        work = sets_of(len(members), self._strict.failures) * len(members)
        if self._search.left_out or (not mirrored and work > _MOST_WORK):
            question = f"whether {self._strict.failures} of {len(members)} nodes may fail after the placement"
            hint = "allow fewer failures in the `limits` of the group"
            raise InputError(f"{question} takes minutes to tell", hint=hint)

    def _after(self, item: Candidate) -> tuple[dict[int, Node], Mapping[int, Instance]]:
        """Return the group after the placement on a candidate."""
        indices = [self._index[name] for name in item.nodes]
        tried, number = self._tried, max(self._tried.instances, default=-1) + 1  # hail's number may be taken
        made = self._search.placement_on(tried, indices)
        nodes = {**tried.nodes, **{node.index: numbered(node, number) for node in made.changed}}
        return nodes, {**tried.instances, number: replace(made.instance, index=number)}

    def explained(self, item: Candidate, *, detailed: bool) -> Candidate:
        """Return the candidate refused, with the first loss that the group could not absorb."""
        several = self._strict.failures > 1
        cause = Cause.NODE_FAILURES if several else Cause.CPUS_AFTER_FAILURE if self._rules.cpus else Cause.REDUNDANCY
        loss = None
        if detailed:
            nodes, instances = self._after(item)
            members = [index for index, node in nodes.items() if node.facts.group == self._group]
            loss = first_loss(nodes, instances, members, self._strict)
        if loss is None:
            return item.refused(cause, cause.sentence)
        first = loss.homeless
        if first.key == Cause.VCPU_RATIO.key:
            cause = Cause.CPUS_AFTER_FAILURE
        text = f"no place for {first.instance} ({first.key}: {first.detail})"
        return item.refused(cause, f"without {' + '.join(loss.nodes)}: {text}")
