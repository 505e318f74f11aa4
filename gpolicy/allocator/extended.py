"""Capacity beyond what htools can express: several node failures, over-subscription, volume groups.

Source: Ganeti design document "Resource model". These are options of our own beside the exact mode, on the
same node model, checks and score: an extra limit takes candidates away, it never adds one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.capacity import State
from gpolicy.allocator.kinds import FailReason
from gpolicy.allocator.placement import (
    NO_FAILURES,
    Attempt,
    PairCandidates,
    SingleCandidates,
    add_counts,
    try_allocate,
)
from gpolicy.allocator.redundancy import CapacityRules, settled
from gpolicy.allocator.survival import survives
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.placement import Candidates, FailCounts, Placement

Amounts = dict[tuple[str, str], float]
"""What is left of each extra resource of a node, under (kind, name)."""

GREATEST_RATIO: Final = 100
"""Over-subscription beyond this is a slip of the pen: sums of memory would no longer bind anything."""


@dataclass(frozen=True, slots=True)
class VolumeGroup:
    """Free space (MiB) and free spindles of one volume group of a node; None: spindles not counted."""

    free: int
    spindles: int | None = None


@dataclass(frozen=True, slots=True)
class DiskDemand:
    """What an instance takes from one volume group on each of its nodes (MiB, spindles)."""

    size: int
    spindles: int = 0


@dataclass(frozen=True, slots=True)
class ExtraDemand:
    """What an instance needs beside what `Instance` says.

    `maximum_memory` (MiB) is its memory when it bursts; its `memory` is the minimum, which alone is
    guaranteed. `disks` are its demands by volume group.
    """

    maximum_memory: int | None = None
    disks: Mapping[str, DiskDemand] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtendedRules:
    """The extra limits.

    `max_node_failures`: how many nodes of a group may fail at once. `oversubscription`: the sum of the
    maximum memories of a node's primaries may be this many times its memory for instances (total less
    node memory); None: no limit. `volume_groups`: per node name, what each volume group has left.
    `maximum_memory`: of existing instances by name, their own memory where not given.
    """

    max_node_failures: int = 1
    oversubscription: float | None = None
    volume_groups: Mapping[str, Mapping[str, VolumeGroup]] = field(default_factory=dict)
    maximum_memory: Mapping[str, int] = field(default_factory=dict)
    capacity: CapacityRules = field(default_factory=CapacityRules)

    def __post_init__(self) -> None:
        if self.max_node_failures < 0:
            raise InputError(f"max_node_failures is {self.max_node_failures}, which is less than 0")
        if self.oversubscription is not None and not 0 < self.oversubscription <= GREATEST_RATIO:
            words = f"it must be above 0 and at most {GREATEST_RATIO}"
            raise InputError(f"the over-subscription ratio is {self.oversubscription:g}, {words}")


def fill(
    cluster: Cluster,
    candidates: Candidates,
    instance: Instance,
    demand: ExtraDemand,
    rules: ExtendedRules,
    *,
    limit: int | None = None,
) -> State:
    """Place copies of `instance` one by one until none fits under all limits, or `limit` are placed.

    Every placement is tested against `max_node_failures`. Raises InputError where the rules do not make
    sense for the cluster.
    """
    left = {index: _initial_amounts(node, cluster.instances, rules) for index, node in cluster.nodes.items()}
    state = State(cluster.nodes, cluster.instances)
    while limit is None or len(state.placed) < limit:
        number = len(state.instances)
        wanted = replace(instance, index=number, name=f"new-{len(state.placed)}")
        attempt = _attempt(state, candidates, wanted, demand, rules, left)
        state = replace(state, failures=attempt.failures, attempted=True)
        if attempt.solution is None:
            break
        placed = attempt.solution.instance
        changed = {node.index: node for node in attempt.solution.changed}
        for place, index in enumerate(attempt.solution.nodes):
            for key, amount in _needs(wanted, demand, rules, primary=place == 0).items():
                left[index][key] = left[index].get(key, 0.0) - amount
        state = replace(
            state,
            nodes={**state.nodes, **changed},
            instances={**state.instances, number: placed},
            placed=(placed, *state.placed),
        )
    return state


def _attempt(
    state: State,
    candidates: Candidates,
    wanted: Instance,
    demand: ExtraDemand,
    rules: ExtendedRules,
    left: Mapping[int, Amounts],
) -> Attempt:
    primary = _needs(wanted, demand, rules, primary=True)
    secondary = _needs(wanted, demand, rules, primary=False)
    refused = {index: _refusal(amounts, primary) for index, amounts in left.items()}
    refused_second = {index: _refusal(amounts, secondary) for index, amounts in left.items()}
    failures = list(NO_FAILURES)

    def satisfied(placement: Placement) -> bool:
        number = len(state.instances)
        nodes = {**state.nodes, **{node.index: settled(node, number) for node in placement.changed}}
        table = {**state.instances, number: placement.instance}
        return survives(nodes, table, rules.capacity, rules.max_node_failures)

    fewer: Candidates
    if isinstance(candidates, SingleCandidates):
        for index in candidates.nodes:
            _count(failures, refused[index])
        fewer = SingleCandidates(tuple(index for index in candidates.nodes if refused[index] is None))
    else:
        pairs = []
        for index, others in candidates.pairs:
            if refused[index] is not None:
                failures[refused[index] or FailReason.MEM] += len(others)
                continue
            for other in others:
                _count(failures, refused_second[other])
            pairs.append((index, tuple(other for other in others if refused_second[other] is None)))
        fewer = PairCandidates(tuple(pairs))
    attempt = try_allocate(state.nodes, wanted, fewer, predicate=satisfied)
    return replace(attempt, failures=_sum(attempt.failures, failures))


def _count(failures: list[int], reason: FailReason | None) -> None:
    if reason is not None:
        failures[reason] += 1


def _sum(left: FailCounts, right: list[int]) -> FailCounts:
    return add_counts(left, tuple(right))


def _needs(wanted: Instance, demand: ExtraDemand, rules: ExtendedRules, *, primary: bool) -> Amounts:
    needs: Amounts = {}
    if primary and rules.oversubscription is not None:
        most = demand.maximum_memory if demand.maximum_memory is not None else wanted.memory
        if most < wanted.memory:
            raise InputError(f"the maximum memory {most} is below the memory {wanted.memory}")
        needs["memory", ""] = float(most)
    if wanted.template.local:
        for name, disk in demand.disks.items():
            needs["disk", name] = float(disk.size)
            if disk.spindles:
                needs["spindles", name] = float(disk.spindles)
    return needs


def _initial_amounts(node: Node, instances: Mapping[int, Instance], rules: ExtendedRules) -> Amounts:
    amounts: Amounts = {}
    facts = node.facts
    if rules.oversubscription is not None:
        used = sum(
            rules.maximum_memory.get(instances[number].name, instances[number].memory) for number in node.primaries
        )
        amounts["memory", ""] = (facts.total_memory - facts.node_memory) * rules.oversubscription - used
    for name, group in rules.volume_groups.get(facts.name, {}).items():
        amounts["disk", name] = float(group.free)
        if group.spindles is not None:
            amounts["spindles", name] = float(group.spindles)
    return amounts


def _refusal(left: Amounts, needs: Amounts) -> FailReason | None:
    """Return why a node cannot give what is needed; a volume group that it does not have is empty."""
    for (kind, name), amount in needs.items():
        if kind == "spindles" and (kind, name) not in left:
            continue
        if amount > left.get((kind, name), 0.0):
            return {"memory": FailReason.MEM, "disk": FailReason.DISK}.get(kind, FailReason.SPINDLES)
    return None
