"""Spec pairs: the names that a policy gives to them; breaches of instances, their amounts, the pair that Ganeti names.

The verdict is Ganeti's own. An instance conforms when it fits entirely into at least one spec pair of the policy of
its primary node's group, and all its disks have templates that the policy lists. Of the pairs that it does not fit
into, Ganeti names the one with the fewest breaches, the first of equal ones. `memory-size` is compared with `maxmem`;
`spindle-use` with the backend parameter `spindle_use`, or with the spindles of the disks if a node of the instance has
exclusive storage. An instance never violates the ratios. Seen on a real 3.0.2 cluster; design document "partitioned
Ganeti", "Constrained instance sizes" and "Spindles as a resource".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpolicy.allocator.cluster_data import SpecPair
from gpolicy.analysis.allocator_input import policy_of
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.parameter import Path, Value
from gpolicy.ganeti.parameters import spec_distance
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.policy.model import INHERIT, Declared, Policy
from gpolicy.printable import count

MINMAX = ("ipolicy", "minmax")

_MOST_SHOWN = 6

Names = tuple[str | None, ...]
"""The name of each pair in the order of `ipolicy.minmax`; None for a pair without one."""


@dataclass(frozen=True, slots=True)
class PairNames:
    """Names by group (its name after the change) and of the cluster's own pairs.

    A group without pairs of its own has those of the cluster. Without a declaration no pair has a name.
    """

    cluster: Names = ()
    groups: Mapping[str, Names] = field(default_factory=dict)

    @property
    def by_object(self) -> dict[str, Names]:
        """The names by object, as plan files write them: cluster, group/NAME."""
        return {"cluster": self.cluster, **{f"group/{name}": pairs for name, pairs in self.groups.items()}}

    def of(self, group: str | None, count: int) -> tuple[str, ...]:
        """Return a name for each of the `count` pairs of `group` (None: of the cluster), by default its place."""
        names = self.cluster if group is None else self.groups.get(group, ())
        if len(names) != count:
            names = (None,) * count
        return tuple(name or str(place) for place, name in enumerate(names, start=1))


def names_by_object(names: Mapping[str, Names]) -> PairNames:
    """Return the names that a plan file has by object."""
    groups = {name.removeprefix("group/"): pairs for name, pairs in names.items() if name != "cluster"}
    return PairNames(names.get("cluster", ()), groups)


def pair_title(name: str) -> str:
    """Return the name of a pair for people; one without a name goes by its place: `pair 1`, `was pair 2`."""
    start, _, place = name.rpartition(" ")
    return f"{start} pair {place}".strip() if place.isascii() and place.isdigit() and start in ("", "was") else name


def pair_names(policy: Policy, state: ClusterState) -> PairNames:
    """Return the names that `policy` gives to the effective pairs of `state` (the cluster after the plan).

    Only effective pairs have names: if the state has other pairs than the policy declares, those have none.
    """
    cluster = _declared(policy.cluster, state.cluster.own.get(MINMAX))
    groups = {}
    for name, group in state.groups.items():
        own = group.own.get(MINMAX)
        effective = group.effective.get(MINMAX)
        names = _declared(policy.groups.get(name), effective)
        if not names and own is None and effective == state.cluster.own.get(MINMAX):
            names = cluster
        groups[name] = names
    return PairNames(cluster, groups)


def _declared(declared: Declared | None, held: Value) -> Names:
    leaf = declared.leaves.get(MINMAX) if declared is not None else None
    if leaf is None or leaf.value is INHERIT or leaf.value != held:
        return ()
    return leaf.pair_names


def find_pair(name: str, names: PairNames, state: ClusterState, group: str | None = None) -> tuple[SpecPair, str]:
    """Return the pair `name` (its name, or its place from 1, also as `pair 1`) in `group` or any group, and its group.

    Groups without nodes count where no other has it. Raise RequestError if there is none, or if it has different sizes
    in the groups.
    """
    place_of = name.removeprefix("pair ")
    found: dict[SpecPair, list[str]] = {}
    known: dict[str, list[str]] = {}
    named: set[str] = set()
    for item in state.groups.values():
        if group not in (None, item.name, item.identity.uuid):
            continue
        pairs = policy_of(item.effective, f"group {item.name}").minmax
        shown = names.of(item.name, len(pairs))
        words = ", ".join(f"{pair_title(called)} ({_size(pair)})" for called, pair in zip(shown, pairs, strict=True))
        known.setdefault(words or "none", []).append(item.name)
        named |= {called for place, called in enumerate(shown, start=1) if called != str(place)}
        for place, pair in enumerate(pairs, start=1):
            if name == shown[place - 1] or place_of == str(place):
                found.setdefault(pair, []).append(item.name)
                break
    if group is not None and not known:
        raise RequestError(f"there is no group {group!r}", hint=did_you_mean_one_of(group, "groups", state.groups))
    if not found:
        there = [f"{', '.join(groups)}: {words}" for words, groups in known.items()]
        more = f"; and in {count(len(there) - _MOST_SHOWN, 'more group')} others" if len(there) > _MOST_SHOWN else ""
        hint = f"the pairs are, in group {'; in group '.join(there[:_MOST_SHOWN])}{more}" if there else None
        if hint and not named:
            hint += ". A pair gets its name in a policy (name: half, beside min and max): say which with --policy PATH"
        elsewhere = [item for item in state.groups if name in names.of(item, _count(state, item))] if group else []
        if elsewhere:
            hint = f"group {', '.join(elsewhere)} has it; {hint}"
        if (instance := state.instances.get(name)) is not None:
            size = f"memory={exact_size(instance.maxmem)} vcpus={instance.vcpus}"
            disks = f" disks={','.join(exact_size(disk.size) for disk in instance.disks)}" if instance.disks else ""
            hint = f"it is an instance; one more of its size is `{size}{disks}`"
        message = f"there is no spec pair {name!r}" + (f" in group {group}" if group else "")
        if ":" in name:
            named = {f"{item}:{bound}" for item in named for bound in ("min", "max")}
        raise RequestError(message, hint=did_you_mean(name, named) or hint)
    filled = {node.group for node in state.nodes.values()}
    usable = {pair: there for pair, groups in found.items() if (there := [item for item in groups if item in filled])}
    found = usable or found
    if len(found) > 1:
        owners = "; ".join(", ".join(groups) for groups in found.values())
        raise RequestError(f"spec pair {name!r} is of different sizes in the groups {owners}", hint="say group=NAME")
    pair, groups = next(iter(found.items()))
    return pair, groups[0]


def _count(state: ClusterState, group: str) -> int:
    return len(policy_of(state.groups[group].effective, f"group {group}").minmax)


def _size(pair: SpecPair) -> str:
    low, high = pair.min, pair.max
    memory, disk = (
        exact_size(least) if least == most else f"{exact_size(least)} to {exact_size(most)}"
        for least, most in ((low.memory, high.memory), (low.disk_size, high.disk_size))
    )
    return f"memory {memory}, disk {disk}"


_MINMAX: Final[Path] = ("ipolicy", "minmax")
_TEMPLATES: Final[Path] = ("ipolicy", "disk-templates")

_Bounds = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBreach:
    """One parameter outside a spec pair, or a disk template that the policy does not list."""

    parameter: str
    """A spec parameter of Ganeti, disk-templates, or spindles (a disk has no spindle count)."""
    value: int | str | None = None
    """The instance's: MiB, a count, or a template."""
    minimum: int | None = None
    """Least of the pair (MiB or a count)."""
    maximum: int | None = None
    """Most of the pair (MiB or a count)."""
    disk: int | None = None
    """Number of the disk, from 0."""
    allowed: tuple[str, ...] = ()
    """Disk templates that the policy lists."""

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
    """Number of the spec pair that Ganeti names, from 1: the fewest breaches, the first of equal ones."""
    pair_name: str | None = None
    """Its name in the policy."""
    breaches: tuple[ParameterBreach, ...]
    """What lies outside that pair."""
    exclusive_storage: bool = False
    """Whether the spindles of its disks were compared instead of its spindle_use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether an instance conforms."""

    violation: PolicyViolation | None = None
    """What is violated whatever the unknown is; None if nothing speaks against it."""
    unknown: tuple[str, ...] = ()
    """Parameters that could still make it violate the policy."""

    @property
    def conforms(self) -> bool | None:
        """Whether the instance conforms; None if unknown."""
        return False if self.violation else None if self.unknown else True


@dataclass(frozen=True, slots=True)
class AllowedSizes:
    """The sizes and disk templates that a group allows."""

    group: str
    pairs: tuple[tuple[_Bounds, _Bounds], ...]
    templates: tuple[str, ...]
    names: tuple[str | None, ...]


def allowed_sizes(values: Mapping[Path, Value], group: str, names: Sequence[str | None]) -> AllowedSizes:
    """Return the sizes that the effective `values` of a group allow. Raise GpolicyError without a policy."""
    minmax, templates = values.get(_MINMAX), values.get(_TEMPLATES)
    if not isinstance(minmax, list) or not minmax or not isinstance(templates, list):
        raise GpolicyError(f"group {group}: its instance policy has no minmax or no disk-templates")
    pairs = bounds_of(minmax)
    return AllowedSizes(
        group, pairs, tuple(str(name) for name in templates), (*names, *(None for _ in pairs))[: len(pairs)]
    )


def bounds_of(minmax: Value) -> tuple[tuple[_Bounds, _Bounds], ...]:
    """Return the least and the greatest values of each spec pair, as far as they are numbers."""
    pairs = minmax if isinstance(minmax, list) else []
    return tuple((_bounds(pair, "min"), _bounds(pair, "max")) for pair in pairs)


def _bounds(pair: Value, key: str) -> _Bounds:
    spec = pair.get(key) if isinstance(pair, dict) else None
    return {name: value for name, value in spec.items() if isinstance(value, int)} if isinstance(spec, dict) else {}


class PolicyJudge:
    """The verdicts in one state of the cluster. `names` are those of the spec pairs of each group.

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
        return verdict_on(
            instance, self.policy(instance), exclusive=self.state.on_exclusive_storage(instance), memory=memory
        )


def verdict_on(instance: LiveInstance, policy: AllowedSizes, *, exclusive: bool, memory: int) -> Verdict:
    """Return the verdict on an instance as if it had `memory` (MiB); `exclusive`: one of its nodes is."""
    general: list[ParameterBreach] = []
    spindles = instance.disk_spindles if exclusive else instance.spindle_use
    if spindles is None:
        general.append(ParameterBreach(parameter="spindles"))
    general += _template_breaches(instance, policy.templates)
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


def distance(breaches: Iterable[ParameterBreach]) -> float:
    """Return how far an instance lies outside a spec pair, given what it breaks there."""
    return spec_distance(
        (item.value, item.minimum, item.maximum)
        for item in breaches
        if isinstance(item.value, int) and item.minimum is not None and item.maximum is not None
    )


def _template_breaches(instance: LiveInstance, allowed: tuple[str, ...]) -> Iterator[ParameterBreach]:
    """Yield the templates of the disks that the policy does not list; without disks it must list `diskless`."""
    used = {disk.template for disk in instance.disks} or {"diskless"}
    for template in sorted(used - set(allowed)):
        yield ParameterBreach(parameter="disk-templates", value=template, allowed=tuple(sorted(allowed)))


_Amount = tuple[str, int | None, int]
"""A spec parameter, the number of its disk, and the value of the instance."""


def _amounts(instance: LiveInstance, memory: int, spindles: int | None) -> tuple[list[_Amount], tuple[str, ...]]:
    """Return the values to compare with each pair, and the parameters that the source does not show.

    A source with one summed disk shows neither the number of disks nor their sizes.
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


def _pair_breaches(pair: tuple[_Bounds, _Bounds], amounts: list[_Amount]) -> Iterator[ParameterBreach]:
    low, high = pair
    for name, disk, value in amounts:
        minimum, maximum = low.get(name, value), high.get(name, value)
        if not minimum <= value <= maximum:
            yield ParameterBreach(parameter=name, value=value, minimum=minimum, maximum=maximum, disk=disk)
