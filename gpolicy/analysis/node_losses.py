"""Which losses of nodes a group can absorb, and why it cannot absorb others.

The test is that of htools' global N+1 (`gpolicy.allocator.redundancy`), for several nodes at once
`gpolicy.allocator.compiled_allocation`: mirrored instances fail over, those on shared storage move, all others need
room for a copy. Evacuation is forced: only lack of memory, disk or spindles and forbidden migration stop it, and beyond
htools the vcpu-ratio ("make sure we can failover while still not going over CPU limits"), unless `cpus_after_failure`
of the group's limits is false. Then a breach of it is reported as `strained`, as one of exclusion tags is. Sources:
design document "resource model" (max_node_failures); hspace(1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from gpolicy.allocator.cluster_data import DiskTemplate, Instance, Node
from gpolicy.allocator.engines import engine_cluster
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import check_group, load_state
from gpolicy.analysis.losses import Loss, SureLosses, lose
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, limited
from gpolicy.errors import RequestError
from gpolicy.printable import count

MOST_SETS = 100_000
"""The greatest number of sets of nodes of a group that are examined; most need no simulation."""
MOST_SIMULATED = 20_000
"""The greatest number of sets of lost nodes that one question may simulate."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A node with less free memory (MiB) than it needs to take over the instances that it mirrors."""

    node: str
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class GroupRedundancy:
    """Which losses of nodes one group can absorb. `members` are the names of its nodes (None: unknown)."""

    group: str
    nodes: int
    asked: int
    survives: int
    losses: tuple[Loss, ...]
    shortages: tuple[Shortage, ...]
    examined: int
    unavailable: str | None = None
    unmirrored: int = 0
    split: int = 0
    members: frozenset[str] | None = None

    @property
    def not_absorbed(self) -> tuple[Loss, ...]:
        """The losses that leave an instance without a new node."""
        return tuple(loss for loss in self.losses if not loss.absorbed)

    @property
    def strained(self) -> tuple[Loss, ...]:
        """The losses that are absorbed, but only against the policy."""
        return tuple(loss for loss in self.losses if loss.absorbed)


def redundancy(
    state: ClusterState, *, failures: int = 1, group: str | None = None, limits: Limits = NO_LIMITS
) -> tuple[GroupRedundancy, ...]:
    """Examine each group of `state` (or `group` alone), each as a cluster of its own, for the loss of any `failures`
    nodes or fewer. `limits` replace those that the policy declares.

    Raise RequestError for fewer than one failure or an unknown group, GpolicyError if the state lacks needed figures.
    """
    check_group(state, group)
    groups = load_state(limited(state, limits), group=group).groups
    chosen = {name: cluster for name, cluster in groups.items() if group in (None, name)}
    return tuple(replace(group_redundancy(cluster, failures), group=name) for name, cluster in chosen.items())


def group_redundancy(counted: CountedCluster, failures: int) -> GroupRedundancy:
    """Examine the one group of `counted`, not named in the answer. Raise RequestError for less than a failure."""
    if failures < 1:
        raise RequestError(f"the number of node failures is {failures}, it must be 1 or more")
    nodes, instances = counted.cluster.nodes, counted.cluster.instances
    lost = set[tuple[int, ...]]()
    losses: list[Loss] = []
    examined, simulated, survives, unavailable = 0, 0, failures, None
    cpus = counted.limits.cpus_after_failure is not False
    sure, engine = SureLosses(nodes, instances, 1), None
    for size in range(1, min(failures, len(nodes)) + 1):
        sets = _new_sets(tuple(nodes), size, lost, MOST_SETS - examined)
        unsure = _unsure(nodes, instances, sets or [], cpus=cpus)
        if sets is None or simulated + len(unsure) > MOST_SIMULATED:
            unavailable = _too_many(len(nodes), size, None if sets is None else len(unsure))
            survives = min(survives, size - 1)
            break
        examined += len(sets)
        simulated += len(unsure)
        for chosen in unsure:
            if size == 1 and sure.strains_nothing(*chosen):
                continue
            engine = engine or engine_cluster(nodes, instances)
            outcome = lose(nodes, instances, chosen, engine, cpus=cpus)
            if outcome.homeless:
                lost.add(chosen)
                survives = min(survives, size - 1)
            if outcome.homeless or (outcome.strained and size == 1):
                losses.append(outcome)
    alone = [item for item in instances.values() if not _has_another_home(item)]
    return GroupRedundancy(
        group="",
        nodes=len(nodes),
        asked=failures,
        survives=survives,
        losses=tuple(losses),
        shortages=tuple(_shortages(counted)),
        examined=examined,
        unavailable=unavailable,
        unmirrored=len(alone) - counted.split,
        split=counted.split,
        members=frozenset(node.facts.name for node in nodes.values()),
    )


def _too_many(nodes: int, size: int, unsure: int | None) -> str:
    """Return that there are too many sets of `size` nodes: so many to simulate, or (None) all of them to examine."""
    number, work, most = comb(nodes, size), "examine", MOST_SETS
    if unsure is not None:
        number, work, most = unsure, "simulate", MOST_SIMULATED
    more = f"{count(number, 'more set')} of nodes to {work}; the limit is {most:,} in all"
    return f"losing {size} of {count(nodes, 'node')} at once means {more}"


def _has_another_home(instance: Instance) -> bool:
    return instance.template.movable_foreign or instance.template is DiskTemplate.DRBD


def _shortages(counted: CountedCluster) -> Iterator[Shortage]:
    by_unallocated = counted.data.n1_by_unallocated
    for node in counted.cluster.nodes.values():
        if node.fails_n1 and not node.facts.offline:
            free = node.unallocated_memory if by_unallocated else node.facts.free_memory
            yield Shortage(node.facts.name, node.reserved_memory, free)


def _new_sets(nodes: Sequence[int], size: int, lost: set[tuple[int, ...]], most: int) -> list[tuple[int, ...]] | None:
    """Return all sets of `size` nodes that contain none of the smaller sets `lost`; None if over `most`."""
    if comb(len(nodes), size) > most:
        return None
    alone = [index for index in nodes if (index,) not in lost]
    return [
        chosen
        for chosen in combinations(alone, size)
        if not any(part in lost for smaller in range(2, size) for part in combinations(chosen, smaller))
    ]


def _unsure(
    nodes: Mapping[int, Node], instances: Mapping[int, Instance], sets: list[tuple[int, ...]], *, cpus: bool
) -> list[tuple[int, ...]]:
    """Return the sets whose loss has to be simulated: all single nodes (a policy may be strained), and unsure sets."""
    if not sets or len(sets[0]) == 1:
        return sets
    sure = SureLosses(nodes, instances, len(sets[0]), cpus=cpus)
    return [chosen for chosen in sets if not sure.absorb(chosen)]
