"""A group that is filled under its limits, and how many more instances fit at the mix of sizes that it has today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Instance, InstanceStatus
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.basis import Basis, StateReport, node_uses, origin_of
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.policy_limits import OF_HTOOLS, PolicyLimit, needed, with_value, without_limit
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits, limited, limits_in_force
from gpolicy.errors import GpolicyError, RequestError, argument
from gpolicy.printable import some
from gpolicy.progress import Stop, Tell, silent, until_stopped
from gpolicy.what_if.supposing import one_of


def only_group(state: ClusterState, group: str | None) -> str:
    """Return the group: the one of this name, or the only one with nodes. Raise RequestError."""
    if group is not None:
        return one_of("group", group, state.groups, "group")
    filled = sorted({node.group for node in state.nodes.values()})
    if len(filled) != 1:
        raise RequestError("which group?", hint=f"say {argument('group')}, one of {some(filled)}")
    return filled[0]


@dataclass(frozen=True)
class FillingGroup:
    """A group that takes instances of any template one after the other, under the limits of its policy."""

    counted: CountedCluster

    @cached_property
    def _by_template(self) -> dict[DiskTemplate | None, CountedCluster]:
        return {self.counted.template: self.counted}

    def _for(self, instance: Instance) -> CountedCluster:
        return self._by_template.setdefault(instance.template, replace(self.counted, template=instance.template))

    def place(self, state: AllocationState, instance: Instance, limit: int | None = None) -> AllocationState:
        """Return `state` with as many copies of `instance` as fit, at most `limit`."""
        return self._for(instance).place(state, instance, limit)

    def place_by_parts(
        self, state: AllocationState, instance: Instance, limit: float, stop: Stop, share: float = 1.0
    ) -> AllocationState:
        """Return the same, placed a few at a time. Raise StoppedError after that share of the time of `stop`."""
        size, left = 1, limit
        most = max(1, _PART_WORK // max(1, len(state.nodes)))
        while left > 0:
            stop.spend(share=share)
            before = len(state.placed)
            state = self.place(state, instance, int(min(size, left)))
            if len(state.placed) - before < min(size, left):
                break
            left -= size
            size = min(2 * size, most)
        return state

    def binding(self, state: AllocationState, instance: Instance) -> Binding:
        """Return why `instance` did not fit in a run that ended with `state`."""
        return self._for(instance).find_binding(state, instance)


_PART_WORK = 100_000
"""Nodes times instances that are placed before the stop is asked again: some tenths of a second."""


def room_of(state: ClusterState, group: str) -> tuple[FillingGroup, Basis]:
    """Return a group ready for placing, and what its figures rest on.

    Raise GpolicyError if a figure is missing, or if only some of its nodes have exclusive storage.
    """
    if len({state.has_exclusive_storage(node) for node in state.nodes_of(group) if node.is_usable}) > 1:
        hint = "split the group: Ganeti makes other instances on nodes with exclusive storage"
        raise GpolicyError(f"group {group}: exclusive storage is on for only some of its nodes", hint=hint)
    loaded = load_state(state, group=group)
    return FillingGroup(loaded.groups[group]), loaded.basis(group)


@dataclass(frozen=True, slots=True)
class MixPart:
    """Instances of one size of today's mix: how many there are, and how many more fit."""

    instance: Instance
    now: int
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullReport(StateReport):
    """How many more instances fit in a group at the mix of sizes that it has today, and why no more.

    So many `failures` of nodes at once are absorbed then. `left_out` instances have sizes that the policy does not
    allow. Without a `binding` more may fit, but the count stopped: at `MOST_MORE`, or when the time was over.
    `policy_limit`: what another value of the policy would give.
    """

    group: str
    parts: tuple[MixPart, ...]
    failures: int
    binding: Binding | None
    left_out: int
    policy_limit: PolicyLimit | None = None


MOST_MORE = 5_000
"""More instances than these are not counted at a mix."""


def count_until_full(
    state: ClusterState, group: str, limits: Limits, tell: Tell = silent, stop: Stop | None = None
) -> FullReport:
    """Return how many more instances fit in `group` at the mix of sizes that run there, one after the other.

    At any number the sizes are as near to the mix as whole instances can be. The first that does not fit ends the
    count, or the `stop` or Ctrl-C does. Instances that the policy does not allow are left out. Raise RequestError for a
    group without instances.
    """
    stop = stop or Stop()
    room, basis = room_of(limited(state, limits), group)
    sizes = Counter(map(_size_alone, room.counted.data.instances))
    allowed = {size: number for size, number in sizes.items() if _is_allowed(room, size)}
    if not allowed:
        hint = f"say what must fit: {argument('wanted')} '10x SIZE'"
        raise RequestError(f"group {group} has no instances whose sizes its policy allows", hint=hint)

    def fill(room: FillingGroup) -> _Filled:
        reached, more, full, last = room.counted.initial, Counter[Instance](), None, next(iter(allowed))
        with until_stopped():
            while full is None and len(reached.placed) < MOST_MORE:
                stop.spend()
                last = max(
                    allowed, key=lambda item: (allowed[item] / (more[item] + 1), item.memory, item.disk, item.vcpus)
                )
                after = room.place(reached, last, 1)
                if len(after.placed) == len(reached.placed):
                    full = room.binding(after, last)
                else:
                    reached, more[last] = after, more[last] + 1
                    tell(f"{len(reached.placed)} more")
        return _Filled(reached, more, full, last)

    found = fill(room)
    more, full = found.more, found.full
    parts = sorted(allowed, key=lambda item: (item.memory, item.disk, item.vcpus), reverse=True)
    return FullReport(
        **origin_of(state),
        basis=basis,
        group=group,
        parts=tuple(MixPart(size, allowed[size], more[size]) for size in parts),
        failures=room.counted.rules.failures,
        binding=full,
        left_out=sum(sizes.values()) - sum(allowed.values()),
        policy_limit=_policy_limit(group, room, found, fill),
        limits=limits_in_force(state, limits, group),
        nodes_before=node_uses(state, room.counted.initial.nodes.values(), group),
        nodes_after=node_uses(state, found.reached.nodes.values(), group),
    )


@dataclass(frozen=True, slots=True)
class _Filled:
    """A group filled at a mix: the state reached, how many more of each size, why no more, and the last size tried."""

    reached: AllocationState
    more: Counter[Instance]
    full: Binding | None
    last: Instance


def _policy_limit(
    group: str, room: FillingGroup, found: _Filled, fill: Callable[[FillingGroup], _Filled]
) -> PolicyLimit | None:
    """Return what another value would give where a number of the policy ended the count."""
    if found.full is None or found.full.cause not in OF_HTOOLS:
        return None
    cause, counted, fits = found.full.cause, room.counted, len(found.reached.placed)
    free = fill(FillingGroup(without_limit(counted, cause, found.last)))
    other = needed(counted, cause, found.last, free.reached.nodes.values())
    then = found if other is None else fill(FillingGroup(with_value(counted, cause, other.then)))
    if None in (free.full, then.full):
        return None  # the count stopped: what it came to is no answer
    would_fit = len(then.reached.placed)
    other = other if would_fit > fits else None
    return PolicyLimit(group, "today's mix", cause, fits, would_fit, other, (free.full or found.full).cause)


def _size_alone(instance: Instance) -> Instance:
    """Return the instance without what tells it from others of its size."""
    alone = instance.at(-1, "", NO_NODE, NO_NODE, 0)
    alone = replace(alone, status=InstanceStatus.RUNNING, forthcoming=False)
    alone = replace(alone, ignores_policy=alone.maximum_memory is not None)  # `_is_allowed` asks it
    return replace(alone, tags=(), exclusion_tags=(), desired_tags=frozenset(), networks=())


def _is_allowed(room: FillingGroup, instance: Instance) -> bool:
    exclusive = any(node.facts.exclusive for node in room.counted.cluster.nodes.values())  # as all of them are
    whole = replace(instance, memory=instance.burst, maximum_memory=None, ignores_policy=False)
    return check_ipolicy(room.counted.policy, whole, exclusive=exclusive) is None
