"""The candidates of a placement under the limits that a policy declares for their groups, which hail does not know.

As with hail's own N+1 test, candidates that are better than the chosen one break a limit; worse ones are not tested for
failures. Source: design document "Resource model".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.engines import engine_cluster, find_placement, is_redundant
from gpolicy.allocator.extended import ExtendedRules, memory_for_instances, memory_left, sets_of
from gpolicy.allocator.node import Node
from gpolicy.allocator.placement import (
    Candidates,
    Nodes,
    PairCandidates,
    SingleCandidates,
    candidates_among,
)
from gpolicy.allocator.redundancy import CapacityRules, settled
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.extended_capacity import rules_of
from gpolicy.analysis.losses import lose
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.place_search import Attempted, PlaceSearch
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError
from gpolicy.ganeti.units import compared_sizes

_MOST_DETAILS: Final = 10
"""Refused candidates whose loss is looked for; the others have the same cause, without numbers."""
_MOST_WORK: Final = 100_000
"""The greatest number of sets of lost nodes, times the nodes, of a group where not all instances are mirrored."""


def under_limits(state: ClusterState, search: PlaceSearch, found: list[Candidate]) -> list[Candidate]:
    """Return `found` (the best first) with the candidates refused that would break the limits of their groups.

    Raise InputError for a group that is too large to tell.
    """
    for tried in search.attempts:
        if not tried.members:
            continue
        group = search.cluster.groups[tried.nodes[tried.members[0]].facts.group]
        limits = state.terms_of(group.name).limits
        if limits.beyond_htools and any(item.ok and item.group == group.name for item in found):
            rules = rules_of(limits, state.instances)
            checked = _Checked(search, tried, rules)
            found = checked.marked(found, group.name)
    return [*(item for item in found if item.ok), *(item for item in found if not item.ok)]


def with_losses(search: PlaceSearch, found: Sequence[Candidate]) -> list[Candidate]:
    """Return `found`, with the loss that could not be absorbed in the first of those that hail's N+1 test refuses."""
    told = list(found)
    failing = [place for place, item in enumerate(found) if item.reason == Cause.REDUNDANCY.key]
    for tried in search.attempts if failing else ():
        names = {tried.nodes[index].facts.name for index in tried.members}
        checked = _Checked(search, tried, ExtendedRules())
        for place in [place for place in failing if found[place].nodes[0] in names][:_MOST_DETAILS]:
            told[place] = checked.explained(found[place], detailed=True)
    return told


class _Checked:
    """One group of a search, under `rules`."""

    def __init__(self, search: PlaceSearch, tried: Attempted, rules: ExtendedRules) -> None:
        self._search, self._tried, self._rules = search, tried, rules
        self._group = tried.nodes[tried.members[0]].facts.group
        others = frozenset(node.facts.group for node in tried.nodes.values()) - {self._group}
        self._strict = CapacityRules(
            ignored_groups=others,
            failures=max(1, rules.max_node_failures),
            cpus=rules.cpus,
            weights=search.options.weights,
        )
        self._index = {node.facts.name: index for index, node in tried.nodes.items()}

    @property
    def _instance(self) -> Instance:
        return self._search.wanted.instance

    def marked(self, found: Sequence[Candidate], group: str) -> list[Candidate]:
        """Return the candidates, with those of the group refused that break a limit."""
        here = [item for item in found if item.ok and item.group == group]
        refused = {item.nodes: item.refused(Cause.OVERSUBSCRIPTION, why) for item, why in self._over(here)}
        left = [item for item in here if item.nodes not in refused]
        # hail tests one failure itself, except by the dedicated metric and without its capacity checks
        untested = self._search.dedicated or not self._search.options.capacity_checks
        tests = self._rules.max_node_failures > 1 or self._rules.cpus or untested
        if left and self._rules.max_node_failures > 0 and tests:
            chosen = self._chosen(left)
            failing = left if chosen is None else left[: left.index(chosen)]
            for number, item in enumerate(failing):
                refused[item.nodes] = self.explained(item, detailed=number < _MOST_DETAILS)
        return [refused.get(item.nodes, item) if item.group == group else item for item in found]

    def _over(self, items: Sequence[Candidate]) -> Iterator[tuple[Candidate, str]]:
        """Yield the candidates whose primary is left with less memory than the over-subscription allows."""
        if self._rules.oversubscription is None:
            return
        for item in items:
            node = self._tried.nodes[self._index[item.nodes[0]]]
            left = memory_left(node, self._tried.instances, self._rules)
            if self._instance.memory > left:
                sizes = self._instance.memory, max(0, int(left)), memory_for_instances(node)
                wanted, free, most = compared_sizes(*sizes)
                times = f"{self._rules.oversubscription:g} times"
                yield item, f"{item.nodes[0]}: {wanted} wanted, {free} left of {most} {times}"

    def _chosen(self, items: Sequence[Candidate]) -> Candidate | None:
        """Return the best of `items`, the best first, after which the group survives the failures."""
        self._refuse_minutes()
        if self._search.dedicated:
            return next((item for item in items if self._survives(item)), None)
        nodes = self._best(frozenset(item.nodes for item in items))
        return next((item for item in items if item.nodes == nodes), None)

    def _refuse_minutes(self) -> None:
        members, table = self._tried.members, self._tried.instances.values()
        mirrored = all(item.template.value == "drbd" for item in (self._instance, *table))
        work = sets_of(len(members), self._strict.failures) * len(members)
        if self._search.left_out or (not mirrored and work > _MOST_WORK):
            raise InputError(
                f"whether {self._strict.failures} of {len(members)} nodes may fail after the placement takes minutes"
                " to tell",
                hint="allow fewer failures in the `limits` of the group",
            )

    def _best(self, allowed: frozenset[tuple[str, ...]]) -> tuple[str, ...] | None:
        """Return the nodes of the best of the `allowed` candidates that keeps the limits, as hail would choose."""
        tried, instance = self._tried, self._instance
        candidates = self._among(allowed)
        found = find_placement(
            tried.nodes,
            tried.instances,
            instance,
            candidates,
            self._strict,
            force=self._search.options.ignore_soft_errors,
            capacity_checks=True,
        )
        if found.solution is None:
            return None
        return tuple(tried.nodes[index].facts.name for index in found.solution.nodes)

    def _among(self, allowed: frozenset[tuple[str, ...]]) -> Candidates:
        """Return the candidates of the search on the nodes of the `allowed` ones.

        Over-subscription refuses primaries, and disks that Ganeti does not make refuse nodes: never single pairs.
        """
        primaries = {self._index[nodes[0]] for nodes in allowed}
        usable = {self._index[name] for nodes in allowed for name in nodes}
        count, restriction = self._search.wanted.count, self._search.options.restriction
        candidates = candidates_among(self._tried.nodes, self._tried.members, count, restriction)
        if isinstance(candidates, SingleCandidates):
            return SingleCandidates(tuple(index for index in candidates.nodes if index in primaries))
        members = (
            (index, tuple(other for other in others if other in usable))
            for index, others in candidates.members
            if index in primaries
        )
        return PairCandidates(tuple(members))

    def _after(self, item: Candidate) -> tuple[dict[int, Node], Mapping[int, Instance]]:
        """Return the group after the placement on a candidate."""
        indices = [self._index[name] for name in item.nodes]
        tried, number = self._tried, len(self._tried.instances)
        placement = self._search.placement(tried, indices)
        nodes = dict(tried.nodes)
        for node in placement.changed:
            nodes[node.index] = settled(node, number)
        return nodes, {**tried.instances, number: replace(placement.instance, index=number)}

    def _survives(self, item: Candidate) -> bool:
        nodes, table = self._after(item)
        return is_redundant(nodes, table, self._strict)

    def explained(self, item: Candidate, *, detailed: bool) -> Candidate:
        """Return the candidate refused, with the first loss that the group could not absorb."""
        several = self._strict.failures > 1
        cause = Cause.NODE_FAILURES if several else Cause.CPUS_AFTER_FAILURE if self._rules.cpus else Cause.REDUNDANCY
        loss = self._first_loss(*self._after(item)) if detailed else None
        if loss is None:
            return item.refused(cause, cause.sentence)
        names, key, text = loss
        if key == Cause.VCPU_RATIO.key:
            cause = Cause.CPUS_AFTER_FAILURE
        return item.refused(cause, f"without {' + '.join(names)}: {text}")

    def _first_loss(self, nodes: Nodes, instances: Mapping[int, Instance]) -> tuple[tuple[str, ...], str, str] | None:
        """Return the nodes of the first loss that is not absorbed, what is missing, and the figures."""
        members = [index for index, node in nodes.items() if node.facts.group == self._group]
        engine = engine_cluster(nodes, instances)
        for size in range(1, self._strict.failures + 1):
            for lost in combinations(members, size):
                homeless = lose(nodes, instances, lost, engine, cpus=self._rules.cpus).homeless
                if homeless:
                    first = homeless[0]
                    names = tuple(nodes[index].facts.name for index in lost)
                    return names, first.key, f"no place for {first.instance} ({first.key}: {first.detail})"
        return None
