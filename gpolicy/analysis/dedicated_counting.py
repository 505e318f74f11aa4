"""Counting on dedicated nodes as hail places there: by lost allocations, without N+1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.dedicated_nodes import sample_instances, search_dedicated
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.group_choice import Wanted
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import add_primary
from gpolicy.allocator.placement import NO_FAILURES, Attempt, Candidates, Nodes, Placement, SingleCandidates, add_counts
from gpolicy.allocator.redundancy import CapacityRules, Instances
from gpolicy.allocator.repeated_allocation import Allocator
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.analysis.counted_cluster import CountedCluster


def as_hail_places(counted: CountedCluster) -> CountedCluster:
    """Return the dedicated nodes, ready for counting as hail places on them: by the dedicated metric, without N+1."""
    return replace(counted, accept_existing=True, allocator=_dedicated_allocator)


def placed_by_hail_only(counted: CountedCluster, group: str) -> str | None:
    """Return the note on a group of which hspace finds that nothing fits, if hail may place its smallest sizes."""
    nodes = [node for node in counted.initial.nodes.values() if not node.facts.offline]
    samples = sample_instances(counted.policy)
    takes = (not isinstance(add_primary(node, sample), FailReason) for node in nodes for sample in samples)
    if not all(node.facts.exclusive for node in nodes) or not any(takes):
        return None
    return (
        f"group {group}: hspace, which counts here, asks for N+1 redundancy and finds room for nothing; hail does not"
        " ask for it where all nodes have exclusive storage, and may place instances of a spec's smallest size"
    )


def _dedicated_allocator(candidates: Candidates, _rules: CapacityRules) -> Allocator:
    assert isinstance(candidates, SingleCandidates)  # noqa: S101 (exclusive storage is for plain disks only)
    return Allocator(_DedicatedEngine(candidates), capacity_checks=False)


@dataclass(frozen=True, slots=True)
class _DedicatedEngine:
    """Places by the metric of the design document "dedicated allocation". Only changed nodes are tried again."""

    candidates: SingleCandidates
    tried: dict[int, tuple[Node, Instance, Attempt]] = field(default_factory=dict)

    def attempt(
        self,
        nodes: Nodes,
        instances: Instances,  # noqa: ARG002
        instance: Instance,
        *,
        checked: bool,  # noqa: ARG002 (N+1 is not kept)
    ) -> Attempt:
        """Try every node. The smallest loss wins, then the least disk left, then the last node."""
        wanted = replace(instance, index=-1, name="")
        failures, best = NO_FAILURES, None
        for index in self.candidates.nodes:
            node, size, attempt = self.tried.get(index, (None, None, None))
            if attempt is None or node is not nodes[index] or size != wanted:
                attempt = search_dedicated(Wanted(wanted, 1), RequestOptions(), nodes, {}, [index])
                self.tried[index] = nodes[index], wanted, attempt
            failures = add_counts(failures, attempt.failures)
            if attempt.solution is not None and (best is None or _metric(attempt.solution) <= _metric(best)):
                best = attempt.solution
        if best is not None:
            best = replace(best, instance=replace(best.instance, index=instance.index, name=instance.name))
        return Attempt(failures, 0, best)

    def redundant(self, nodes: Nodes, instances: Instances) -> bool:  # noqa: ARG002
        """Return True: N+1 is not tested here."""
        return True


def _metric(placement: Placement) -> tuple[tuple[int, ...], int]:
    return placement.lost or (), placement.disk_left
