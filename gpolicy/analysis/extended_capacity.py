"""Capacity under limits that htools lacks: several node failures at once, over-subscribed memory.

Source: design document "Resource model" (`max_node_failures`; the sums of minimum and maximum memory). Counted with
`gpolicy.allocator.extended`, one instance after the other, each tested against every limit: exact, and slow on large
groups. With over-subscription an instance is guaranteed the least memory of its pair and may burst to the greatest;
without, it gets the greatest. The same holds for existing ones: under over-subscription each counts with its minmem,
since the document (section on memory over-subscription) guarantees only the minimum, and ballooning can take back the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.extended import ExtendedRules, fill, memory_left, refused_for_memory
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.errors import UsageError
from gpolicy.ganeti.number_bounds import GREATEST_OVERSUBSCRIPTION

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import ClusterData, Instance, Spec
    from gpolicy.allocator.repeated_allocation import AllocationState
    from gpolicy.analysis.counted_cluster import CountedCluster
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedOptions:
    """The limits: None if not requested.

    `max_node_failures`: the number of nodes of a group that may fail at once (htools: 1; 0: none).
    `oversubscription`: the sum of the maximum memories of a node's instances may be this many times its memory for
    instances.
    """

    max_node_failures: int | None = None
    oversubscription: float | None = None

    def __post_init__(self) -> None:
        if self.max_node_failures is not None and self.max_node_failures < 0:
            raise UsageError(f"max-node-failures is {self.max_node_failures}, it must be 0 or more")
        if self.oversubscription is not None and not 0 < self.oversubscription <= GREATEST_OVERSUBSCRIPTION:
            words = f"it must be above 0 and at most {GREATEST_OVERSUBSCRIPTION}"
            raise UsageError(f"the over-subscription ratio is {self.oversubscription:g}, {words}")

    @property
    def asked(self) -> bool:
        """Whether there is any limit."""
        return self.max_node_failures is not None or self.oversubscription is not None


@dataclass(frozen=True, slots=True)
class ExtendedFit:
    """The number of instances that fit under the extended limits. Memory in MiB: guaranteed, and at most."""

    name: str
    fits: int
    binding: Binding
    minimum_memory: int
    maximum_memory: int


@dataclass(frozen=True, slots=True)
class ExtendedCapacity:
    """The capacity of each pair alone, and of standard instances, under `options`."""

    options: ExtendedOptions
    specs: tuple[ExtendedFit, ...]
    standard: ExtendedFit

    def called(self, names: Sequence[str]) -> ExtendedCapacity:
        """Return a copy with these names of the pairs."""
        named = tuple(replace(spec, name=name) for spec, name in zip(self.specs, names, strict=True))
        return replace(self, specs=named)


def extended_capacity(
    counted: CountedCluster, options: ExtendedOptions, state: ClusterState, tell: Callable[[str], None]
) -> ExtendedCapacity:
    """Count each pair of the policy of `counted` alone, and its standard size, under `options`.

    The instances of `state` give the guaranteed and the greatest memory of those of `counted`. Raise InputError if
    there are too many sets of nodes that may fail.
    """
    if options.oversubscription is not None:
        least = {name: instance.minmem for name, instance in state.instances.items()}
        counted = replace(counted, data=guaranteed(counted.data, least))
    rules = ExtendedRules(
        max_node_failures=1 if options.max_node_failures is None else options.max_node_failures,
        oversubscription=options.oversubscription,
        maximum_memory={name: instance.maxmem for name, instance in state.instances.items()},
    )
    found = []
    for name, pair in enumerate(counted.policy.minmax, start=1):
        tell(f"spec {name} under the extended limits")
        found.append(_fit(counted, str(name), pair.max, pair.min.memory, counted.spindle_use(pair), rules))
    tell("standard instances under the extended limits")
    std = counted.policy.std
    standard = _fit(counted, "standard", std, std.memory, std.spindle_use, rules)
    return ExtendedCapacity(options, tuple(found), standard)


def guaranteed(data: ClusterData, minimum_memory: Mapping[str, int]) -> ClusterData:
    """Return `data` with its instances at their minimum memory (by name), and the memory above it free.

    An instance with less memory than that now (its minmem was raised while it ran) stays as it is.
    """
    freed: dict[int, int] = {}
    instances = []
    for instance in data.instances:
        least = min(instance.memory, minimum_memory.get(instance.name, instance.memory))
        if instance.uses_memory:
            freed[instance.primary] = freed.get(instance.primary, 0) + instance.memory - least
        instances.append(replace(instance, memory=least))
    nodes = tuple(replace(node, free_memory=node.free_memory + freed.get(node.index, 0)) for node in data.nodes)
    return replace(data, instances=tuple(instances), nodes=nodes)


def _fit(
    counted: CountedCluster, name: str, spec: Spec, least: int, spindle_use: int, rules: ExtendedRules
) -> ExtendedFit:
    minimum = spec.memory if rules.oversubscription is None else min(least, spec.memory)
    if counted.candidates is None:
        return ExtendedFit(name, 0, counted.hindrance, minimum, spec.memory)
    instance = replace(counted.instance(spec, spindle_use), memory=minimum)
    refusal = counted.spindle_refusal(instance)
    if refusal is not None:
        return ExtendedFit(name, 0, Binding(Cause.TOO_FEW_SPINDLES, detail=str(refusal)), minimum, spec.memory)
    final = fill(counted.cluster, counted.candidates, instance, rules, maximum_memory=spec.memory)
    why = _binding(counted, final, instance, spec.memory, rules)
    return ExtendedFit(name, len(final.placed), why, minimum, spec.memory)


def _binding(
    counted: CountedCluster, final: AllocationState, instance: Instance, maximum: int, rules: ExtendedRules
) -> Binding:
    """Return why the next instance does not fit: the cause for most of the refused candidates."""
    found = counted.find_binding(final, instance)
    if found.cause is Cause.NOTHING:
        return found
    top = max(FailReason, key=lambda reason: final.failures[reason])
    if top is FailReason.N1 and rules.max_node_failures > 1:
        return replace(found, cause=Cause.NODE_FAILURES)
    if top is FailReason.MEM and 2 * _over(counted, final, maximum, rules) > final.failures[top]:
        return replace(found, cause=Cause.OVERSUBSCRIPTION)
    return found


def _over(counted: CountedCluster, final: AllocationState, maximum: int, rules: ExtendedRules) -> int:
    """Return how many candidates lack room for the maximum memory of one more primary."""
    assert counted.candidates is not None  # noqa: S101
    bursting = {**rules.maximum_memory, **{item.name: maximum for item in final.placed}}
    rules = replace(rules, maximum_memory=bursting)
    left = {index: memory_left(node, final.instances, rules) for index, node in final.nodes.items()}
    return refused_for_memory(counted.candidates, left, maximum)
