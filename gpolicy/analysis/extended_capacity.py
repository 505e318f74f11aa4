"""Capacity under limits that htools lacks: several node failures at once, CPUs after them, over-subscribed memory.

Source: design document "Resource model" (`max_node_failures`; the sums of minimum and maximum memory; "make sure we can
failover while still not going over CPU limits"). Counted with `gpolicy.allocator.extended`, one instance after the
other, each tested against every limit; large groups for which that takes minutes are not counted. Under
over-subscription an instance is guaranteed the least memory of its pair and may burst to the greatest; without, it gets
the greatest. The same holds for existing ones: under over-subscription each counts with its minmem, since the document
(section on memory over-subscription) guarantees only the minimum, and ballooning can take back the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import ClusterData, Instance, Spec, SpecPair
from gpolicy.allocator.compiled_allocation import make_allocator
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.extended import ExtendedRules, fill, memory_left, refused_for_memory
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.cluster.state import Instance as Observed
from gpolicy.cluster.terms import Limits
from gpolicy.errors import InputError


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
    """The capacity of each pair alone, and of standard instances, under `limits`; `unavailable` tells why it is not
    counted."""

    limits: Limits
    specs: tuple[ExtendedFit, ...] = ()
    standard: ExtendedFit | None = None
    unavailable: str | None = None

    @property
    def fits(self) -> tuple[ExtendedFit, ...]:
        """All that was counted."""
        return (*self.specs, *([self.standard] if self.standard else []))

    def called(self, names: Sequence[str]) -> ExtendedCapacity:
        """Return a copy with these names of the pairs."""
        named = tuple(replace(spec, name=name) for spec, name in zip(self.specs, names, strict=False))
        return replace(self, specs=named)


def extended_capacity(
    counted: CountedCluster, instances: Mapping[str, Observed], tell: Callable[[str], None]
) -> ExtendedCapacity:
    """Count each pair of the policy of `counted` alone, and its standard size, under the limits of `counted`.

    `instances` give the guaranteed and the greatest memory of those of `counted`.
    """
    limits = counted.limits
    try:
        found = [_fit(*question) for question in _questions(counted, instances, tell)]
    except InputError as error:
        return ExtendedCapacity(limits, unavailable=error.message)
    return ExtendedCapacity(limits, tuple(found[:-1]), found[-1])


def extended_fit(counted: CountedCluster, pair: SpecPair, spindle_use: int, instances: Mapping[str, Observed]) -> Fit:
    """Return how many instances at the maximum of `pair`, which need not be one of the policy, fit under the limits.

    Raise InputError where `extended_capacity` counts nothing.
    """
    prepared, rules = _prepared(counted, instances)
    found = _fit(prepared, "", pair.max, pair.min.memory, spindle_use, rules)
    return Fit(found.fits, found.binding, pair.max)


def rules_of(limits: Limits, instances: Mapping[str, Observed]) -> ExtendedRules:
    """Return the allocator's rules for `limits`."""
    return ExtendedRules(
        max_node_failures=1 if limits.max_node_failures is None else limits.max_node_failures,
        cpus=limits.cpus_after_failure is True,
        oversubscription=limits.oversubscription,
        maximum_memory={name: instance.maxmem for name, instance in instances.items()},
    )


def _prepared(counted: CountedCluster, instances: Mapping[str, Observed]) -> tuple[CountedCluster, ExtendedRules]:
    rules = replace(rules_of(counted.limits, instances), weights=counted.weights)
    if rules.oversubscription is not None:
        least = {name: instance.minmem for name, instance in instances.items()}
        counted = replace(counted, data=guaranteed(counted.data, least))
    return counted, rules


def _questions(
    counted: CountedCluster, instances: Mapping[str, Observed], tell: Callable[[str], None]
) -> Iterator[tuple[CountedCluster, str, Spec, int, int, ExtendedRules]]:
    counted, rules = _prepared(counted, instances)
    for name, pair in enumerate(counted.policy.minmax, start=1):
        tell(f"spec {name} under the limits")
        yield counted, str(name), pair.max, pair.min.memory, counted.spindle_use(pair), rules
    tell("standard instances under the limits")
    std = counted.policy.std
    yield counted, "standard", std, std.memory, std.spindle_use, rules


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
    refusal = counted.refusal(instance)
    if refusal is not None:
        return ExtendedFit(name, 0, Binding(refusal.cause, detail=refusal.sentence), minimum, spec.memory)
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
    if top is FailReason.N1 and rules.cpus and _fits_without_cpus(counted, final, instance, rules):
        return replace(found, cause=Cause.CPUS_AFTER_FAILURE)
    if top is FailReason.N1 and rules.max_node_failures > 1:
        return replace(found, cause=Cause.NODE_FAILURES)
    if top is FailReason.MEM and 2 * _over(counted, final, maximum, rules) > final.failures[top]:
        return replace(found, cause=Cause.OVERSUBSCRIPTION)
    return found


def _fits_without_cpus(
    counted: CountedCluster, final: AllocationState, instance: Instance, rules: ExtendedRules
) -> bool:
    """Return whether one more instance would fit if nodes that take over need not keep their vcpu-ratio."""
    assert counted.candidates is not None  # noqa: S101
    strict = CapacityRules(failures=rules.max_node_failures, weights=rules.weights)
    allocator = make_allocator(counted.candidates, strict, capacity_checks=True, each=True)
    return len(allocator.standard(final, instance, 1).placed) > len(final.placed)


def _over(counted: CountedCluster, final: AllocationState, maximum: int, rules: ExtendedRules) -> int:
    """Return how many candidates lack room for the maximum memory of one more primary."""
    assert counted.candidates is not None  # noqa: S101
    bursting = {**rules.maximum_memory, **{item.name: maximum for item in final.placed}}
    rules = replace(rules, maximum_memory=bursting)
    left = {index: memory_left(node, final.instances, rules) for index, node in final.nodes.items()}
    return refused_for_memory(counted.candidates, left, maximum)
