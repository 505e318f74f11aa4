"""Instances against the instance policy, before and after: who newly violates it, still does, or no longer.

The verdict is Ganeti's own. An instance conforms when it fits entirely into at least one spec pair of the policy of
its primary node's group, and all its disks have templates that the policy lists. Of the pairs that it does not fit
into, the nearest is the one with the fewest breaches, the first of equal ones. `memory-size` is compared with
`maxmem`; `spindle-use` with the backend parameter `spindle_use`, but where a node of the instance has exclusive storage
with the spindles of its disks. The ratios are never violated by an instance. Seen on a real 3.0.2 cluster;
design document "partitioned Ganeti", "Constrained instance sizes" and "Spindles as a resource".

Ganeti warns about an instance only when it has begun to violate the policy, says nothing when nodes change their
group, and judges with the node parameters as they were. Here all of it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpolicy.errors import GpolicyError
from gpolicy.ganeti.parameter import Path, Value
from gpolicy.impact.breaches import (
    Breach,
    InstanceViolation,
    PolicyViolation,
    UnknownViolation,
    Verdict,
    ViolationChange,
)
from gpolicy.impact.pair_names import PairNames

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState, Instance

_EXCLUSIVE: Final[Path] = ("ndparams", "exclusive_storage")
_MINMAX: Final[Path] = ("ipolicy", "minmax")
_TEMPLATES: Final[Path] = ("ipolicy", "disk-templates")

_Bounds = Mapping[str, int]


def violation_change(before: ClusterState, after: ClusterState, names: PairNames | None = None) -> ViolationChange:
    """Return whose verdict the changes between two states of a cluster change, and who violates the policy anyway.

    `names` are those of the spec pairs after the changes. Raise GpolicyError where a group has no instance policy.
    """
    names = names or PairNames()
    then = _Judge(after, {name: names.groups.get(name, ()) for name in after.groups})
    now = _Judge(
        before, {name: _names_of_equal_pairs(group.effective, then, name) for name, group in before.groups.items()}
    )
    found = _Found()
    for instance in after.instances.values():
        old, new = now.verdict(instance), then.verdict(instance)
        if None in (old.conforms, new.conforms):
            if not _same_measure(now, then, instance):
                found.unknown.append(_unknown(instance, old, new))
            continue
        _sort(instance, old, new, (found.newly, found.still, found.no_longer))
        if instance.minmem != instance.maxmem:
            old, new = now.minmem_verdict(instance), then.minmem_verdict(instance)
            _sort(instance, old, new, (found.minmem_newly, found.minmem_still, found.minmem_no_longer))
    return found.change()


def violations_of(
    instance: Instance,
    policy: Mapping[Path, Value],
    *,
    group: str,
    exclusive_storage: bool,
    names: Sequence[str | None] = (),
) -> Verdict:
    """Return the verdict on an instance under the effective values `policy` of a group.

    `exclusive_storage`: some node of the instance has it. Raise GpolicyError where `policy` holds no instance policy.
    """
    return _verdict(instance, _policy(policy, group, names), exclusive=exclusive_storage, memory=instance.maxmem)


@dataclass(frozen=True, slots=True)
class _Policy:
    """What an instance is held against."""

    group: str
    pairs: tuple[tuple[_Bounds, _Bounds], ...]
    templates: tuple[str, ...]
    names: tuple[str | None, ...]


def _policy(values: Mapping[Path, Value], group: str, names: Sequence[str | None]) -> _Policy:
    minmax, templates = values.get(_MINMAX), values.get(_TEMPLATES)
    if not isinstance(minmax, list) or not minmax or not isinstance(templates, list):
        raise GpolicyError(f"group {group}: its instance policy has no minmax or no disk-templates")
    pairs = tuple((_bounds(pair, "min"), _bounds(pair, "max")) for pair in minmax)
    return _Policy(group, pairs, tuple(str(name) for name in templates), (*names, *(None for _ in pairs))[: len(pairs)])


def _bounds(pair: Value, key: str) -> _Bounds:
    spec = pair.get(key) if isinstance(pair, dict) else None
    return {name: value for name, value in spec.items() if isinstance(value, int)} if isinstance(spec, dict) else {}


class _Judge:
    """The verdicts in one state of the cluster."""

    def __init__(self, state: ClusterState, names: Mapping[str, Sequence[str | None]]) -> None:
        self.state = state
        self.policies = {name: _policy(group.effective, name, names[name]) for name, group in state.groups.items()}
        self.exclusive_nodes = {node.name for node in state.nodes.values() if state.in_force(node, _EXCLUSIVE) is True}

    def policy(self, instance: Instance) -> _Policy:
        return self.policies[self.state.nodes[instance.primary_node].group]

    def exclusive(self, instance: Instance) -> bool:
        return not self.exclusive_nodes.isdisjoint((instance.primary_node, *instance.secondary_nodes))

    def verdict(self, instance: Instance) -> Verdict:
        return self._with_memory(instance, instance.maxmem)

    def minmem_verdict(self, instance: Instance) -> Verdict:
        """Return the verdict with minmem as memory; one that maxmem violates already is not told twice."""
        return Verdict() if self.verdict(instance).violation else self._with_memory(instance, instance.minmem)

    def _with_memory(self, instance: Instance, memory: int) -> Verdict:
        return _verdict(instance, self.policy(instance), exclusive=self.exclusive(instance), memory=memory)


def _names_of_equal_pairs(values: Mapping[Path, Value], then: _Judge, group: str) -> list[str | None]:
    """Return the names that the pairs of a group have now: that of an equal pair after the changes."""
    later = then.policies.get(group)
    named = list(zip(later.pairs, later.names, strict=True)) if later else []
    pairs = _policy(values, group, ()).pairs
    return [next((name for other, name in named if other == pair), None) for pair in pairs]


def _same_measure(old: _Judge, new: _Judge, instance: Instance) -> bool:
    """Return whether an instance is held against the same before and after, so that nothing changes for it."""
    one, other = old.policy(instance), new.policy(instance)
    same = (one.pairs, set(one.templates)) == (other.pairs, set(other.templates))
    return same and old.exclusive(instance) == new.exclusive(instance)


def _verdict(instance: Instance, policy: _Policy, *, exclusive: bool, memory: int) -> Verdict:
    general: list[Breach] = []
    spindles: int | None = instance.spindle_use
    if exclusive:
        counts = [disk.spindles for disk in instance.disks]
        known = [count for count in counts if count is not None]
        spindles = sum(known) if len(known) == len(counts) else None
        if spindles is None:
            general.append(Breach(parameter="spindles"))
    general += _template_breaches(instance, policy.templates)
    amounts, unknown = _amounts(instance, memory, spindles)
    breaches = [list(_pair_breaches(pair, amounts)) for pair in policy.pairs]
    nearest = min(range(len(breaches)), key=lambda number: len(breaches[number]))  # the first of equal ones
    found = (*general, *breaches[nearest])
    if not found:
        return Verdict(unknown=unknown)
    violation = PolicyViolation(
        group=policy.group,
        pair=nearest + 1,
        pair_name=policy.names[nearest],
        breaches=found,
        exclusive_storage=exclusive,
    )
    return Verdict(violation=violation, unknown=unknown)


def _template_breaches(instance: Instance, allowed: tuple[str, ...]) -> Iterator[Breach]:
    """Give the templates of the disks that the policy does not list; without disks it must list `diskless`."""
    used = {disk.template for disk in instance.disks} or {"diskless"}
    for template in sorted(used - set(allowed)):
        yield Breach(parameter="disk-templates", value=template, allowed=tuple(sorted(allowed)))


_Amount = tuple[str, int | None, int]
"""A spec parameter, the number of the disk that it is about, and what the instance has."""


def _amounts(instance: Instance, memory: int, spindles: int | None) -> tuple[list[_Amount], tuple[str, ...]]:
    """Return what is compared with each pair, and the parameters that the source does not show.

    A source with one summed disk says neither how many disks there are nor how large each is.
    """
    unknown = []
    amounts: list[_Amount] = [("memory-size", None, memory), ("cpu-count", None, instance.vcpus)]
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


def _pair_breaches(pair: tuple[_Bounds, _Bounds], amounts: list[_Amount]) -> Iterator[Breach]:
    low, high = pair
    for name, disk, value in amounts:
        minimum, maximum = low.get(name, value), high.get(name, value)
        if not minimum <= value <= maximum:
            yield Breach(parameter=name, value=value, minimum=minimum, maximum=maximum, disk=disk)


class _Found:
    """Instances by what becomes of them."""

    def __init__(self) -> None:
        self.newly: list[InstanceViolation] = []
        self.still: list[InstanceViolation] = []
        self.no_longer: list[InstanceViolation] = []
        self.unknown: list[UnknownViolation] = []
        self.minmem_newly: list[InstanceViolation] = []
        self.minmem_still: list[InstanceViolation] = []
        self.minmem_no_longer: list[InstanceViolation] = []

    def change(self) -> ViolationChange:
        return ViolationChange(
            newly=tuple(self.newly),
            still=tuple(self.still),
            no_longer=tuple(self.no_longer),
            unknown=tuple(self.unknown),
            minmem_newly=tuple(self.minmem_newly),
            minmem_still=tuple(self.minmem_still),
            minmem_no_longer=tuple(self.minmem_no_longer),
        )


def _sort(instance: Instance, old: Verdict, new: Verdict, lists: tuple[list[InstanceViolation], ...]) -> None:
    newly, still, no_longer = lists
    item = InstanceViolation(
        instance=instance.name, primary_node=instance.primary_node, before=old.violation, after=new.violation
    )
    if item.after:
        (still if item.before else newly).append(item)
    elif item.before:
        no_longer.append(item)


def _unknown(instance: Instance, old: Verdict, new: Verdict) -> UnknownViolation:
    parameters = dict.fromkeys((*old.unknown, *new.unknown))
    return UnknownViolation(
        instance=instance.name,
        primary_node=instance.primary_node,
        parameters=tuple(parameters),
        before=old,
        after=new,
    )
