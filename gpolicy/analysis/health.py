"""What is wrong with a cluster as it is: violations of policies, losses that it cannot absorb, conflicts of tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpolicy.analysis.location import LocationFacts
from gpolicy.analysis.node_losses import GroupRedundancy, redundancy
from gpolicy.analysis.node_violations import node_verdicts
from gpolicy.analysis.violations import PolicyJudge
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHealth:
    """One group: the instances and nodes that violate its policy, those of which it is not known, and its redundancy.

    `redundancy` is None where figures of its nodes are missing.
    """

    violating: int
    undecided: int
    violating_nodes: int
    undecided_nodes: int
    redundancy: GroupRedundancy | None


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """Each group by name, and the number of conflicts of tags in the cluster by kind (`CONFLICTS`)."""

    groups: Mapping[str, GroupHealth]
    conflicts: Mapping[str, int]


CONFLICTS: Final = {
    "exclusion": LocationFacts.exclusion_conflicts,
    "exclusion-domain": LocationFacts.domain_conflicts,
    "exclusion-unsatisfiable": LocationFacts.unsatisfiable,
    "failure-domain": LocationFacts.shared_domains,
    "migration": LocationFacts.stranded,
    "desired-location": LocationFacts.desired_missing,
}
"""The kinds of conflicts, and who finds them."""


def cluster_health(state: ClusterState, *, limits: Limits = NO_LIMITS) -> ClusterHealth:
    """Return what is wrong with the cluster in `state`; `limits` replace those that the policy declares.

    The loss of one node of each group is examined. Raise GpolicyError where a group has no instance policy, or no group
    has all figures.
    """
    judge = PolicyJudge(state, {})
    verdicts = Counter(
        (state.nodes[instance.primary_node].group, judge.verdict(instance).conforms)
        for instance in state.instances.values()
    )
    nodes = node_verdicts(state).values()
    violating = Counter(verdict.group for verdict in nodes if verdict.breaches)
    unknown = Counter(verdict.group for verdict in nodes if verdict.unknown and not verdict.breaches)
    examined = {item.group: item for item in redundancy(state, limits=limits)}
    facts = LocationFacts(state, {})
    return ClusterHealth(
        {
            name: GroupHealth(
                violating=verdicts[name, False],
                undecided=verdicts[name, None],
                violating_nodes=violating[name],
                undecided_nodes=unknown[name],
                redundancy=examined.get(name),
            )
            for name in state.groups
        },
        {kind: sum(1 for _ in find(facts)) for kind, find in CONFLICTS.items()},
    )
