"""Allocation with a component of the cluster score left out, to see what the component is for.

Everything else is the allocator's own: the same candidates, checks and N+1 tests, and of equal scores the later
candidate wins. Source: design document "allocation efficiency".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import COMPONENTS, component_values, replaced, statistics
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.placement import Attempt, Placement, SingleCandidates, count_failures, try_pair, try_single
from gpolicy.allocator.redundancy import is_redundant, redundancy_predicate
from gpolicy.allocator.repeated_allocation import Allocator

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.cluster_score import Statistic
    from gpolicy.allocator.placement import Candidates, Nodes
    from gpolicy.allocator.redundancy import CapacityRules, Instances
    from gpolicy.analysis.counted_cluster import CountedCluster


def leaving_out(counted: CountedCluster, without: frozenset[str]) -> CountedCluster:
    """Return the cluster counted without the components of the score that `without` names."""

    def allocator(candidates: Candidates, rules: CapacityRules) -> Allocator:
        return Allocator(_EngineWithout(candidates, rules, without))

    return replace(counted, allocator=allocator)


@dataclass(frozen=True, slots=True)
class _EngineWithout:
    """The allocator's engine (`gpolicy.allocator.capacity.Engine`) without the components named in `without`."""

    candidates: Candidates
    rules: CapacityRules
    without: frozenset[str]

    def attempt(self, nodes: Nodes, instances: Instances, instance: Instance, *, checked: bool) -> Attempt:
        """Try every candidate; with `checked` only a placement that passes the N+1 test counts."""
        predicate = redundancy_predicate(nodes, instances, self.rules) if checked else None
        trials = list(self._trials(nodes, instance))
        possible = [trial for trial in trials if isinstance(trial, Placement)]
        failures = count_failures([trial for trial in trials if not isinstance(trial, Placement)])
        best: Placement | None = None
        for trial in possible:
            if (best is None or not best.score < trial.score) and (predicate is None or predicate(trial)):
                best = trial
        if best is None:
            failures = tuple(
                count + len(possible) * (reason is FailReason.N1)
                for reason, count in zip(FailReason, failures, strict=True)
            )
        return Attempt(failures, len(possible), best)

    def redundant(self, nodes: Nodes, instances: Instances) -> bool:
        """Whether every examined node can be evacuated."""
        return is_redundant(nodes, instances, self.rules)

    def _trials(self, nodes: Nodes, instance: Instance) -> Iterator[Placement | FailReason]:
        if isinstance(self.candidates, SingleCandidates):
            for target in self.candidates.nodes:
                trial = try_single(nodes, instance, target, force=False)
                if isinstance(trial, Placement):
                    (new,) = trial.changed
                    after = statistics([new if index == target else node for index, node in nodes.items()])
                    trial = replace(trial, score=self._score(after))
                yield trial
            return
        stats = statistics(nodes.values())
        for primary, others in self.candidates.pairs:
            for other in others:
                trial = try_pair(stats, nodes[primary], nodes[other], instance, force=False)
                if isinstance(trial, Placement):
                    first, second = trial.changed
                    after = replaced(replaced(stats, nodes[primary], first), nodes[other], second)
                    trial = replace(trial, score=self._score(after))
                yield trial

    def _score(self, stats: tuple[Statistic, ...]) -> float:
        total = 0.0
        for component, value in zip(COMPONENTS, component_values(stats), strict=False):
            total += 0.0 if component.name in self.without else component.weight * value
        return total
