"""Checking instances against an instance policy: the breaches, their amounts, and the pair that Ganeti names.

The verdict is Ganeti's own. An instance conforms when it fits entirely into at least one size of the policy of
its primary node's group, and all its disks have templates that the policy lists. Of the pairs that it does not fit
into, Ganeti names the one with the fewest breaches, the first of equal ones. `memory-size` is compared with `maxmem`;
`spindle-use` with the backend parameter `spindle_use`, or with the spindles of the disks if a node of the instance has
exclusive storage. An instance never violates the ratios. Seen on a real 3.0.2 cluster; design document "partitioned
Ganeti", "Constrained instance sizes" and "Spindles as a resource".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from gpolicy.allocator.cluster_data import Node
from gpolicy.analysis.allocator_input import merged
from gpolicy.analysis.basis import MEMORY_AND_CPUS, Settled, settle_readable
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.parameters import spec_distance
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, MINMAX, Path, Value
from gpolicy.printable import count

_SpecValues = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBreach:
    """One parameter outside a size, or a disk template that the policy does not list."""

    parameter: str
    value: int | str | None = None
    minimum: int | None = None
    maximum: int | None = None
    disk: int | None = None
    allowed: tuple[str, ...] = ()

    @property
    def beyond(self) -> int | None:
        """The distance above the maximum if positive, below the minimum if negative; None if no number."""
        if not isinstance(self.value, int) or self.minimum is None or self.maximum is None:
            return None
        return self.value - self.maximum if self.value > self.maximum else self.value - self.minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyViolation:
    """The breaches of a group's policy by an instance."""

    group: str
    pair: int
    """Number of the size that Ganeti names, from 1: the fewest breaches, the first of equal ones."""
    pair_name: str | None = None
    """Its name in the policy."""
    breaches: tuple[ParameterBreach, ...]
    """What lies outside that size."""
    exclusive_storage: bool = False
    """Whether the spindles of its disks were compared instead of its spindle_use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether an instance conforms."""

    violation: PolicyViolation | None = None
    unknown: tuple[str, ...] = ()

    @property
    def conforms(self) -> bool | None:
        """Whether the instance conforms; None if unknown."""
        return False if self.violation else None if self.unknown else True


@dataclass(frozen=True, slots=True)
class AllowedSizes:
    """The sizes and disk templates that a group allows."""

    group: str
    pairs: tuple[tuple[_SpecValues, _SpecValues], ...]
    templates: tuple[str, ...]
    names: tuple[str | None, ...]


def allowed_sizes(values: Mapping[Path, Value], group: str, names: Sequence[str | None]) -> AllowedSizes:
    """Return the sizes that the effective `values` of a group allow. Raise GpolicyError without a policy."""
    minmax, templates = values.get(MINMAX), values.get(ALLOWED_TEMPLATES)
    if not isinstance(minmax, list) or not minmax or not isinstance(templates, list):
        raise GpolicyError(f"group {group}: its instance policy has no `minmax` or no `disk-templates`")
    pairs = bounds_of(minmax)
    known_names = (*names, *(None for _ in pairs))[: len(pairs)]
    return AllowedSizes(group, pairs, tuple(map(str, templates)), known_names)


def bounds_of(minmax: Value) -> tuple[tuple[_SpecValues, _SpecValues], ...]:
    """Return the least and the greatest values of each size, as far as they are numbers."""
    pairs = minmax if isinstance(minmax, list) else []
    return tuple((_bounds(pair, "min"), _bounds(pair, "max")) for pair in pairs)


def _bounds(pair: Value, key: str) -> _SpecValues:
    spec = pair.get(key) if isinstance(pair, dict) else None
    return {name: value for name, value in spec.items() if isinstance(value, int)} if isinstance(spec, dict) else {}


class PolicyJudge:
    """The verdicts in one state of the cluster. `names` are those of the sizes of each group.

    Raise GpolicyError where a group has no instance policy.
    """

    def __init__(self, state: ClusterState, names: Mapping[str, Sequence[str | None]]) -> None:
        self.state = state
        self.policies = {
            name: allowed_sizes(group.effective, name, names.get(name, ())) for name, group in state.groups.items()
        }

    def policy(self, instance: LiveInstance) -> AllowedSizes:
        """Return what the group of an instance allows."""
        return self.policies[self.state.nodes[instance.primary_node].group]

    def verdict(self, instance: LiveInstance) -> Verdict:
        """Return Ganeti's verdict on an instance."""
        return self._with_memory(instance, instance.maxmem)

    def minmem_verdict(self, instance: LiveInstance) -> Verdict:
        """Return the verdict with minmem as memory; one that maxmem violates already is not told twice."""
        return Verdict() if self.verdict(instance).violation else self._with_memory(instance, instance.minmem)

    def _with_memory(self, instance: LiveInstance, memory: int) -> Verdict:
        exclusive = self.state.on_exclusive_storage(instance)
        return verdict_on(instance, self.policy(instance), exclusive=exclusive, memory=memory)


def verdict_on(instance: LiveInstance, policy: AllowedSizes, *, exclusive: bool, memory: int) -> Verdict:
    """Return the verdict on an instance as if it had `memory` (MiB); `exclusive`: one of its nodes is."""
    general: list[ParameterBreach] = []
    spindles = instance.disk_spindles if exclusive else instance.spindle_use
    if spindles is None:
        general.append(ParameterBreach(parameter="spindles"))
    used, allowed = {disk.template for disk in instance.disks} or {"diskless"}, tuple(sorted(policy.templates))
    refused = sorted(used - set(allowed))
    general += (ParameterBreach(parameter="disk-templates", value=name, allowed=allowed) for name in refused)
    amounts, unknown = _amounts(instance, memory, spindles)
    breaches = [list(_pair_breaches(pair, amounts)) for pair in policy.pairs]
    named = min(range(len(breaches)), key=lambda number: len(breaches[number]))  # the first of equal ones, as in Ganeti
    found = (*general, *breaches[named])
    if not found:
        return Verdict(unknown=unknown)
    violation = PolicyViolation(
        group=policy.group, pair=named + 1, pair_name=policy.names[named], breaches=found, exclusive_storage=exclusive
    )
    return Verdict(violation=violation, unknown=unknown)


def allows_as_much(old: AllowedSizes, new: AllowedSizes, instance: LiveInstance, *, exclusive: bool) -> bool:
    """Return whether each size of `old` that an instance may have, as far as it is known, lies in a size of `new`."""
    amounts, _ = _amounts(instance, instance.maxmem, instance.disk_spindles if exclusive else instance.spindle_use)
    possible = (pair for pair in old.pairs if not any(_pair_breaches(pair, amounts)))
    return all(any(_contains(around, pair) for around in new.pairs) for pair in possible)


def _contains(around: tuple[_SpecValues, _SpecValues], pair: tuple[_SpecValues, _SpecValues]) -> bool:
    low = all(pair[0].get(name, -1) >= value for name, value in around[0].items())
    return low and all(pair[1].get(name, value + 1) <= value for name, value in around[1].items())


def distance(breaches: Iterable[ParameterBreach]) -> float:
    """Return how far an instance lies outside a size, given what it breaks there."""
    return spec_distance(
        (item.value, item.minimum, item.maximum)
        for item in breaches
        if isinstance(item.value, int) and item.minimum is not None and item.maximum is not None
    )


_InstanceValue = tuple[str, int | None, int]
"""A spec parameter, the number of its disk, and the value of the instance."""


def _amounts(instance: LiveInstance, memory: int, spindles: int | None) -> tuple[list[_InstanceValue], tuple[str, ...]]:
    """Return the values to compare with each pair, and the parameters that the source does not show.

    A source with one summed disk shows neither the number of disks nor their sizes.
    """
    unknown = []
    amounts: list[_InstanceValue] = [("memory-size", None, memory), ("cpu-count", None, instance.vcpus)]
    if instance.nic_count is None:
        unknown.append("nic-count")
    else:
        amounts.append(("nic-count", None, instance.nic_count))
    if spindles is not None:
        amounts.append(("spindle-use", None, spindles))
    if instance.disks and instance.summed_disk is not None:
        unknown += ["disk-size", "disk-count"]
    else:
        amounts += [("disk-size", number, disk.size) for number, disk in enumerate(instance.disks)]
        amounts += [("disk-count", None, len(instance.disks))] if instance.disks else []
    return amounts, tuple(unknown)


def _pair_breaches(pair: tuple[_SpecValues, _SpecValues], amounts: list[_InstanceValue]) -> Iterator[ParameterBreach]:
    low, high = pair
    for name, disk, value in amounts:
        minimum, maximum = low.get(name, value), high.get(name, value)
        if not minimum <= value <= maximum:
            yield ParameterBreach(parameter=name, value=value, minimum=minimum, maximum=maximum, disk=disk)


# Nodes against the ratios of their group's policy: hbal's own rule for "policy-violating nodes".
#
# A node violates the policy with more virtual CPUs than its CPUs times `vcpu-ratio` (those of the node itself count,
# and those of its primary instances unless they are ADMIN_offline), or with more spindles in use than its
# `spindle_count` times `spindle-ratio` (`spindle_use` of plain and DRBD instances, also as a secondary; none under
# exclusive storage). Exactly as many are no violation. Offline nodes count, too; one that does not answer has no
# CPUs. Ganeti itself never looks at the ratios. Seen with hbal 3.0.2, which does not count nodes that fail N+1 (its
# "bad nodes").


VCPU_RATIO: Final = "vcpu-ratio"
SPINDLE_RATIO: Final = "spindle-ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBreach:
    """A ratio that a node exceeds: it has more in use than its own number times the ratio."""

    parameter: str
    used: int
    own: int
    ratio: float

    @property
    def beyond(self) -> int:
        """How many virtual CPUs or spindles are too many."""
        return max(1, ceil(self.used - self.own * self.ratio))

    @property
    def sentence(self) -> str:
        """The breach in numbers."""
        used, own = "spindle", f"spindle_count {self.own}"
        if self.parameter == VCPU_RATIO:
            used, own = "virtual CPU", count(self.own, "CPU")
        most = f"{self.own * self.ratio:g} allowed: {own} times {self.parameter} {self.ratio:g}"
        return f"{count(self.used, used)} in use, {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The ratios that a node of `group` exceeds, and those of which that is unknown, with the `reason`."""

    group: str
    breaches: tuple[RatioBreach, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str = ""


def node_verdicts(state: ClusterState, settled: Settled | None = None) -> dict[str, NodeVerdict]:
    """Return the verdict on each node by name, by measured figures and, where they are missing, declared ones.

    What cannot be counted is unknown. `settled` is what `settle_readable` makes of the state, if it is known.
    """
    both = (VCPU_RATIO, SPINDLE_RATIO)
    try:
        counted = settled or settle_readable(state)
    except GpolicyError as error:
        reasons = dict.fromkeys(state.groups, error.message)
    else:
        reasons = {group: item.reason for group, item in counted.unknown.items()}
    uncounted = (node for node in state.nodes.values() if node.group in reasons)
    found = {node.name: NodeVerdict(group=node.group, unknown=both, reason=reasons[node.group]) for node in uncounted}
    if len(found) == len(state.nodes):
        return found
    for node in merged(counted.data, counted.resources).nodes.values():
        name = node.facts.name
        observed, breaches = state.nodes[name], ratio_breaches(node)
        figures = counted.figures.get(name)
        if figures is None or MEMORY_AND_CPUS in (*figures.measured, *figures.declared):
            found[name] = NodeVerdict(group=observed.group, breaches=breaches)
        else:
            known, reason = tuple(item for item in breaches if item.parameter != VCPU_RATIO), "its CPUs are not known"
            found[name] = NodeVerdict(group=observed.group, breaches=known, unknown=(VCPU_RATIO,), reason=reason)
    return found


def ratio_breaches(node: Node) -> tuple[RatioBreach, ...]:
    """Return the ratios that a node exceeds."""
    facts, found = node.facts, []
    if node.exceeds_vcpu_ratio:
        cpus = int(facts.total_cpus)
        found.append(RatioBreach(parameter=VCPU_RATIO, used=node.used_cpus, own=cpus, ratio=facts.vcpu_ratio))
    if node.exceeds_spindle_ratio:
        used, ratio = int(node.instance_spindles), facts.policy.spindle_ratio
        found.append(RatioBreach(parameter=SPINDLE_RATIO, used=used, own=facts.spindles, ratio=ratio))
    return tuple(found)
