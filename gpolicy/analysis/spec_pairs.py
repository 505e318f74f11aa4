"""The names that a policy gives to sizes, for reports, guards and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpolicy.allocator.cluster_data import SpecPair
from gpolicy.analysis.allocator_input import policy_of
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import RequestError
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.vocabulary import Value
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.policy.model import INHERIT, Declared, Policy
from gpolicy.printable import count

MINMAX = ("ipolicy", "minmax")
_MOST_SHOWN = 6
_BOUNDS = {"min": "smallest", "max": "largest"}
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
    """Return the name of a pair for people; one without a name goes by its place: `size 1`, `was size 2`."""
    start, _, place = name.rpartition(" ")
    return f"{start} size {place}".strip() if place.isascii() and place.isdigit() and start in ("", "was") else name


def size_title(name: str) -> str:
    """Return the name of a pair with the word size before it: `size large`, `size 1`, `was size 2`."""
    title = pair_title(name)
    return f"size {name}" if title == name else title


def with_bound(size: str) -> str:
    """Return a size with its bound as people say it: `large:max` is "large at its largest"."""
    name, _, bound = size.rpartition(":")
    return f"{name} at its {_BOUNDS[bound]}" if name and bound in _BOUNDS else size


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
    """Return the pair `name` (its name, or its place from 1, also as `size 1`) in `group` or any group, and its group.

    Groups without nodes count where no other has it. Raise RequestError if there is none, or if it has different sizes
    in the groups.
    """
    place_of = name.removeprefix("size ").removeprefix("pair ")  # until 1.x said size
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
        hint = f"the sizes are, in group {'; in group '.join(there[:_MOST_SHOWN])}{more}" if there else None
        if hint and not named:
            hint += ". None has a name: a policy gives one (name: half, beside min and max), --policy PATH names it"
        elsewhere = [item for item in state.groups if name in names.of(item, _count(state, item))] if group else []
        if elsewhere:
            hint = f"group {', '.join(elsewhere)} has it; {hint}"
        instances = {item.name.partition(".")[0]: item for item in state.instances.values()} | dict(state.instances)
        if (instance := instances.get(name)) is not None:
            size = f"memory={exact_size(instance.maxmem)} vcpus={instance.vcpus}"
            disks = f" disks={','.join(exact_size(disk.size) for disk in instance.disks)}" if instance.disks else ""
            hint = f"it is an instance; one more of its size is `{size}{disks}`"
        hint = f"an amount needs its key: memory={name} or disk={name}" if name[:1].isdigit() else hint
        message = f"there is no size {name!r}" + (f" in group {group}" if group else "")
        if ":" in name:
            named = {f"{item}:{bound}" for item in named for bound in ("min", "max")}
        raise RequestError(message, hint=did_you_mean(name, named) or hint)
    filled = {node.group for node in state.nodes.values()}
    usable = {pair: there for pair, groups in found.items() if (there := [item for item in groups if item in filled])}
    found = usable or found
    if len(found) > 1:
        owners = "; ".join(", ".join(groups) for groups in found.values())
        raise RequestError(f"size {name!r} is not the same in the groups {owners}", hint="say group=NAME")
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
