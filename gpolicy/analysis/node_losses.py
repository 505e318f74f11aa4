"""Which losses of nodes a group can absorb, which not, and for want of what.

The test is that of htools' global N+1 (`gpolicy.allocator.redundancy`), for several nodes at once
`gpolicy.allocator.extended`: mirrored instances fail over, those on shared storage move, all others need room for a
copy. It is forced: only what cannot be (no memory, no disk, no spindles, forbidden migration) stops it. Limits that
are broken on the way (vcpu-ratio, exclusion tags) are told apart as `strained`.
Sources: design document "resource model" (max_node_failures); hspace(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.extended import MOST_SIMULATED
from gpolicy.analysis.loaded_state import check_group, load_known_groups
from gpolicy.analysis.losses import Homeless, lose
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.analysis.sure_losses import SureLosses
from gpolicy.errors import UsageError

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.analysis.counted_cluster import CountedCluster
    from gpolicy.analysis.loaded_state import LoadedState
    from gpolicy.cluster.state import ClusterState

MOST_SETS: Final = 100_000
"""Sets of nodes of a group that are looked at: most are told apart at a glance."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of `nodes` at once: `homeless` instances cannot be kept, `strained` ones only against the policy."""

    nodes: tuple[str, ...]
    homeless: tuple[Homeless, ...]
    strained: tuple[Homeless, ...] = ()

    @property
    def absorbed(self) -> bool:
        """Whether every instance that can be restarted at all finds a home."""
        return not self.homeless


@dataclass(frozen=True, slots=True)
class Shortage:
    """A node that keeps less memory free (MiB) than it needs to take over the instances it is secondary of."""

    node: str
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class GroupRedundancy:
    """One group. `survives` is the number of nodes whose loss, whichever they are, it can absorb: at most `asked`,
    and that where there are not so many nodes to lose.

    `losses` are the sets of nodes that cannot be absorbed, the smallest sets only (a set that holds one of them is
    not listed again), and those that strain the policy. `examined` counts the sets looked at. `unavailable` says why
    larger sets were not looked at (None: all were). Strained losses are those of single nodes. `members` are the names
    of its nodes (None: not known).
    """

    group: str
    nodes: int
    asked: int
    survives: int
    losses: tuple[Loss, ...]
    shortages: tuple[Shortage, ...]
    examined: int
    unavailable: str | None = None
    members: frozenset[str] | None = None

    @property
    def not_absorbed(self) -> tuple[Loss, ...]:
        """The losses that leave an instance without a home."""
        return tuple(loss for loss in self.losses if not loss.absorbed)

    @property
    def strained(self) -> tuple[Loss, ...]:
        """The losses that are absorbed, but only against the policy."""
        return tuple(loss for loss in self.losses if loss.absorbed)


def redundancy(state: ClusterState, *, failures: int = 1, group: str | None = None) -> tuple[GroupRedundancy, ...]:
    """Examine each group of `state` (or `group` alone), each as a cluster of its own: any `failures` nodes, and fewer.

    Raise UsageError for fewer than one failure or an unknown group, and GpolicyError where the state does not hold what
    has to be known.
    """
    check_group(state, group)
    groups = load_known_groups(state).groups
    return tuple(
        replace(group_redundancy(cluster, failures), group=name)
        for name, cluster in groups.items()
        if group in (None, name)
    )


def loaded_score(loaded: LoadedState) -> Score:
    """Return the cluster score; not a number where a group is not known."""
    return Score(math.nan, ()) if loaded.gaps else score_of(loaded.whole.cluster.nodes.values())


def group_redundancy(counted: CountedCluster, failures: int) -> GroupRedundancy:
    """Examine the one group of `counted`, not named in the answer. Raise UsageError for fewer than one failure."""
    if failures < 1:
        raise UsageError(f"the number of node failures is {failures}, it must be 1 or more")
    nodes, instances = counted.cluster.nodes, counted.cluster.instances
    lost = set[tuple[int, ...]]()
    losses: list[Loss] = []
    examined, simulated, survives, unavailable = 0, 0, failures, None
    engine = engine_cluster(nodes, instances)
    for size in range(1, min(failures, len(nodes)) + 1):
        sets = _new_sets(tuple(nodes), size, lost, MOST_SETS - examined)
        unsure = _unsure(nodes, instances, sets or [])
        if sets is None:
            unavailable = f"looking at {comb(len(nodes), size)} sets of nodes, at most {MOST_SETS} are"
        elif simulated + len(unsure) > MOST_SIMULATED:
            unavailable = f"simulating the loss of {len(unsure)} sets of nodes, at most {MOST_SIMULATED} are"
        if sets is None or unavailable is not None:
            unavailable = f"losing {size} of {len(nodes)} nodes at once means {unavailable}"
            survives = min(survives, size - 1)
            break
        examined += len(sets)
        simulated += len(unsure)
        for chosen in unsure:
            outcome = lose(nodes, instances, chosen, engine)
            if outcome.homeless:
                lost.add(chosen)
                survives = min(survives, size - 1)
            if outcome.homeless or (outcome.strained and size == 1):
                names = tuple(nodes[index].facts.name for index in chosen)
                losses.append(Loss(names, outcome.homeless, outcome.strained))
    shortages = [
        Shortage(node.facts.name, node.reserved_memory, node.facts.reported_free_memory)
        for node in nodes.values()
        if node.fails_n1 and not node.facts.offline
    ]
    return GroupRedundancy(
        "",
        len(nodes),
        failures,
        survives,
        tuple(losses),
        tuple(shortages),
        examined,
        unavailable,
        frozenset(node.facts.name for node in nodes.values()),
    )


def _new_sets(nodes: Sequence[int], size: int, lost: set[tuple[int, ...]], most: int) -> list[tuple[int, ...]] | None:
    """Return all sets of `size` nodes that hold none of `lost`, which are smaller; None where over `most` are there."""
    if comb(len(nodes), size) > most:
        return None
    alone = [index for index in nodes if (index,) not in lost]
    return [
        chosen
        for chosen in combinations(alone, size)
        if not any(part in lost for smaller in range(2, size) for part in combinations(chosen, smaller))
    ]


def _unsure(
    nodes: Mapping[int, Node], instances: Mapping[int, Instance], sets: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the sets whose loss has to be simulated: all single nodes (a policy may be strained), and unsure sets."""
    if not sets or len(sets[0]) == 1:
        return sets
    sure = SureLosses(nodes, instances, len(sets[0]))
    return [chosen for chosen in sets if not sure.absorb(chosen)]
