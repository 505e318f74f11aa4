"""Numbers of the policy that limit a count where hardware would not: what another value would give.

Each answer is counted anew with the other value. That of a ratio is the greatest that a run without it comes to on any
node: a higher one lets no more in. That of a size which no spec allows is a spec for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.node import Node
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.ganeti.number_bounds import GREATEST_OVERSUBSCRIPTION
from gpolicy.ganeti.units import exact_size

Setting = float | Instance
"""The value of a number of the policy; of the bounds of sizes, an instance that a spec allows."""

_UNLIMITED: Final = 1_000_000.0
_MOST_COUNTED: Final = 200_000
"""Instances times nodes up to which another value is tried."""
_MANY: Final = 1_000  # network interfaces, which no count looks at
_RATIOS: Final = {Cause.VCPU_RATIO: "vcpu_ratio", Cause.SPINDLE_RATIO: "spindle_ratio"}
OF_HTOOLS: Final = frozenset({Cause.BOUNDS, *_RATIOS})
"""Causes that are numbers of the policy which htools knows."""


@dataclass(frozen=True, slots=True)
class OtherValue:
    """A number of the policy that limits, the value that it has (None: of bounds), and one that would help."""

    cause: Cause
    now: float | None
    then: Setting

    @property
    def words(self) -> str:
        """What is supposed: a value in place of another."""
        if isinstance(self.then, Instance):
            disk = exact_size(sum(disk.size for disk in self.then.disks))
            size = f"{exact_size(self.then.memory)} · {self.then.vcpus} CPU · {disk}"
            return f"a spec for {size} in {self.cause.key}"
        return f"{self.cause.key} {_words(self.then)} instead of {_words(self.now or 0)}"


@dataclass(frozen=True, slots=True)
class PolicyLimit:
    """A count that a number of the policy limits: `fits` instances of `spec` now, `would_fit` with the `other` value.

    Without another value none helps. `then` is what limits where the number does not.
    """

    group: str
    spec: str
    cause: Cause
    fits: int
    would_fit: int
    other: OtherValue | None
    then: Cause

    @property
    def sentence(self) -> str:
        """The limit in words."""
        where = f"group {self.group}, {self.spec}: the limit is a number of the policy"
        if self.other is None:
            return f"{where}, but another {self.cause.key} lets no more in ({self.then.key})"
        more = f"{self.would_fit:,} fit instead of {self.fits:,}"
        return f"{where}: with {self.other.words}, {more}; beyond that {self.then.key} is the limit"


def with_value(counted: CountedCluster, cause: Cause, value: Setting) -> CountedCluster:
    """Return a cluster that is counted with another value of a number of its policy."""
    changed: dict[str, Any] = {_RATIOS.get(cause, cause.key): value}
    if cause not in OF_HTOOLS:
        return replace(counted, limits=replace(counted.limits, **changed))

    def change(policy: InstancePolicy) -> InstancePolicy:
        return _allowing(policy, value) if isinstance(value, Instance) else replace(policy, **changed)

    groups = tuple(replace(group, policy=change(group.policy)) for group in counted.data.groups)
    return replace(counted, data=replace(counted.data, groups=groups, policy=change(counted.policy)))


def _allowing(policy: InstancePolicy, instance: Instance) -> InstancePolicy:
    """Return a policy with one more spec, for the size of `instance`."""
    largest = max((disk.size for disk in instance.disks), default=0)
    spindles = max(instance.spindle_use, instance.total_spindles or 0)
    low = Spec(instance.memory, instance.vcpus, 0, 0, 0, 0)
    high = Spec(instance.memory, instance.vcpus, largest, len(instance.disks), _MANY, spindles)
    return replace(policy, minmax=(*policy.minmax, SpecPair(low, high)))


def without_limit(counted: CountedCluster, cause: Cause, instance: Instance) -> CountedCluster:
    """Return a cluster that is counted as if what limits `instance`, one of `OF_HTOOLS`, did not."""
    return with_value(counted, cause, instance if cause is Cause.BOUNDS else _UNLIMITED)


def needed(counted: CountedCluster, cause: Cause, instance: Instance, nodes: Iterable[Node]) -> OtherValue | None:
    """Return the value that a run without the limit, which ended with `nodes`, needed; None if it is no other one."""
    if cause is Cause.BOUNDS:
        return OtherValue(cause, None, instance)
    now: float = getattr(counted.policy, _RATIOS[cause])
    value = max((ceil(_in_use(node, cause)) for node in nodes if not node.facts.offline), default=0)
    return OtherValue(cause, now, float(value)) if value > now else None


def _in_use(node: Node, cause: Cause) -> float:
    if cause is Cause.VCPU_RATIO:
        return max(node.used_cpus, node.forth_used_cpus) / (node.facts.total_cpus or 1)
    return max(node.instance_spindles, node.forth_instance_spindles) / (node.facts.spindles or 1)


def limit_of(group: str, spec: str, counted: CountedCluster, instance: Instance, fit: Fit) -> PolicyLimit | None:
    """Return what another value would give a count that a number of the policy limits.

    None if none does, or if without the limit so many fit that counting them takes long.
    """
    cause, most = fit.binding.cause, _MOST_COUNTED // max(1, len(counted.data.nodes))
    if cause not in OF_HTOOLS or fit.fits > most:
        return None
    free = without_limit(counted, cause, instance)
    final = free.place(free.initial, instance, most + 1)
    if len(final.placed) > most:
        return None
    other = needed(counted, cause, instance, final.nodes.values())
    if other is None:
        return PolicyLimit(group, spec, cause, fit.fits, fit.fits, None, free.find_binding(final, instance).cause)
    would_fit, then = len(final.placed), free.find_binding(final, instance).cause
    if cause is Cause.SPINDLE_RATIO or counted.rules.cpus:  # the value is a part of the score, or of the N+1 test
        found = with_value(counted, cause, other.then).fit(instance)
        would_fit, then = found.fits, found.binding.cause if found.binding.cause is not cause else then
    return PolicyLimit(group, spec, cause, fit.fits, would_fit, other if would_fit > fit.fits else None, then)


def declared_limit_of(
    group: str, spec: str, counted: CountedCluster, fit: Fit, count: Callable[[CountedCluster], Fit]
) -> PolicyLimit | None:
    """Return the same for a count under limits that htools does not know; `count` counts a cluster under its own."""
    cause = fit.binding.cause
    now: float | None = getattr(counted.limits, cause.key, None)
    if now is None:
        return None
    values, known = _values(cause, now), dict[int, Fit]()

    def fits(place: int) -> int:
        if place not in known:
            known[place] = count(with_value(counted, cause, values[place]))
        return known[place].fits

    low, high = -1, len(values) - 1
    while high - low > 1:  # the nearest value that gives as much as the last
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) == fits(len(values) - 1) else (middle, high)
    other = OtherValue(cause, now, values[high]) if fits(high) > fit.fits else None
    return PolicyLimit(group, spec, cause, fit.fits, fits(high), other, known[high].binding.cause)


def _values(cause: Cause, now: float) -> Sequence[float]:
    """Return the values that a limit may have in place of `now`, the nearest first."""
    if cause is Cause.OVERSUBSCRIPTION:
        return [quarter / 4 for quarter in range(int(now * 4) + 1, GREATEST_OVERSUBSCRIPTION * 4 + 1)] or [now]
    return range(int(now) - 1, 0, -1) or [1] if cause is Cause.NODE_FAILURES else [False]


def _words(value: float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
