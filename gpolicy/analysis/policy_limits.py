"""Numbers of the policy that limit a count where hardware would not, and what would let more in.

Each answer is counted anew with the other value. That of a ratio is the greatest that a run without it comes to on any
node: a higher one lets no more in. That of a size which no spec allows is a spec for it.

A group that takes none since it cannot absorb the loss of a node may take some again: an instance whose size the policy
forbids finds no new home (htools, GlobalN1.hs); at a size that it allows, it may, or with a policy that allows the
size. Where room is missing, another place of an instance may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from typing import Any, Final

from gpolicy.allocator.balancing import possible_moves
from gpolicy.allocator.cluster_data import NO_NODE, FailReason, Instance, InstancePolicy, Node, Spec, SpecPair
from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move
from gpolicy.allocator.merge import ClusterData
from gpolicy.allocator.native.library import ANY_MOVE
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.losses import FirstLoss
from gpolicy.analysis.place_report import nearest_allowed
from gpolicy.ganeti.amounts import GREATEST_OVERSUBSCRIPTION, exact_size

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
            return f"a size for {size} in {self.cause.key}"
        return f"{self.cause.key} {_shown_value(self.then)} instead of {_shown_value(self.now or 0)}"


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
    if fit.fits > most:
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
    group: str, spec: str, counted: CountedCluster, fit: Fit, pair: SpecPair, spindle_use: int
) -> PolicyLimit | None:
    """Return the same for instances at the maximum of `pair`, under limits that htools does not know."""
    cause = fit.binding.cause
    now: float | None = getattr(counted.limits, cause.key, None)
    if now is None:
        return None
    values, known = _values(cause, now), dict[int, Fit]()

    def fits(place: int) -> int:
        if place not in known:
            known[place] = with_value(counted, cause, values[place]).fit_pair(pair, spindle_use)
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


def _shown_value(value: float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


_MOST_CHANGES: Final = 3
_MOST_WORK: Final = 200_000
"""Moves that are tried at most, times the nodes and instances, which each trial looks at."""


@dataclass(frozen=True, slots=True)
class Cure:
    """Changes of instances or of the policy, in words, and how many instances of each pair and of the standard size
    then fit."""

    changes: tuple[str, ...]
    fits: tuple[int, ...]
    standard: int


_Changed = tuple[str, CountedCluster]
"""One change in words, and the cluster with it."""


def find_cure(counted: CountedCluster) -> Cure | None:
    """Return a few changes after which the group takes instances, legal sizes first; None if none are found."""
    changes, pairs, std = list[str](), counted.policy.minmax, counted.policy.std
    while (loss := counted.loss) is not None:
        found = next(_changes(counted, loss), None) if len(changes) < _MOST_CHANGES else None
        if found is None:
            return None
        words, counted = found
        changes.append(words)
    fits = tuple(counted.fit_pair(pair).fits for pair in pairs)
    standard = counted.standard(std, std.spindle_use).fits
    return Cure(tuple(changes), fits, standard) if changes and (standard or any(fits)) else None


def _changes(counted: CountedCluster, loss: FirstLoss) -> Iterator[_Changed]:
    """Yield changes that may end a loss, the best first."""
    if loss.homeless.key != Cause.BOUNDS.key:
        yield from _saving_moves(counted, loss)
        return
    item = next(one for one in counted.data.instances if one.name == loss.homeless.instance)
    exclusive = any(node.exclusive for node in counted.data.nodes)
    if (legal := nearest_allowed(item, counted.policy, exclusive=exclusive)) is not None:
        new, words = legal
        yield f"{item.name} at {words}", replace(counted, data=_with_instance(counted.data, item, new))
    yield OtherValue(Cause.BOUNDS, None, item).words, with_value(counted, Cause.BOUNDS, item)


def _saving_moves(counted: CountedCluster, loss: FirstLoss) -> Iterator[_Changed]:
    """Yield single moves after which every loss is absorbed."""
    nodes, instances, rules = counted.cluster.nodes, counted.cluster.instances, counted.rules
    for move in islice(_possible(counted, loss), _MOST_WORK // (len(nodes) + len(instances))):
        moved = apply_move(nodes, move, force=False)
        if isinstance(moved, FailReason):
            continue
        old, new = move.instance, moved.instance
        if is_redundant({**nodes, **moved.changed}, {**instances, old.index: new}, rules):
            where = " + ".join(nodes[index].facts.name for index in (new.primary, new.secondary) if index != NO_NODE)
            yield f"{old.name} on {where}", replace(counted, data=_with_instance(counted.data, old, new))


def _possible(counted: CountedCluster, loss: FirstLoss) -> Iterator[InstanceMove]:
    """Yield moves of instances within their group: fail-overs, then other moves, first from the nodes of the loss."""
    nodes, instances = counted.cluster.nodes, counted.cluster.instances
    movable = [item for item in instances.values() if item.primary in nodes and not item.forthcoming]
    movable.sort(key=lambda item: nodes[item.primary].facts.name not in loss.nodes)
    for fail_over in (True, False):
        for item in movable:
            group = nodes[item.primary].facts.group
            for move in possible_moves(nodes, item, ANY_MOVE):
                inside = move.target == NO_NODE or nodes[move.target].facts.group == group
                if inside and (move.kind is MoveKind.FAILOVER) is fail_over:
                    yield move
                if fail_over:  # of a mirrored instance, the first possible move
                    break


def _with_instance(data: ClusterData, old: Instance, new: Instance) -> ClusterData:
    """Return `data` with another size of an instance, or on other nodes."""
    nodes = {node.index: node for node in data.nodes}
    for item, sign in ((old, 1), (new, -1)):
        for index in (item.primary, item.secondary):
            if index in nodes:
                nodes[index] = nodes[index].freed(item, sign)
    instances = tuple(new if one.index == old.index else one for one in data.instances)
    return replace(data, nodes=tuple(nodes.values()), instances=instances)
