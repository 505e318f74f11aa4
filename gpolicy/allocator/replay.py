"""Repeat the engine's placements with the law's own functions.

Many placements on one node are added as one instance of their total size: the checks get stricter with each placement,
so if all pass together, each one passes. If a sum could be rounded differently, or all together are refused, they are
added one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

from gpolicy.allocator.cluster_data import Disk, Instance
from gpolicy.allocator.enumerations import NO_NODE, FailReason
from gpolicy.allocator.node_changes import accepted, add_load, add_primary, add_secondary
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from gpolicy.allocator.native.library import NativePlacement
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.repeated_allocation import AllocationState

MOST_EXACT: Final = 1 << 31
"""Sums of numbers below this are exact as floats, for as many numbers as a run has placements."""


def with_placements(
    state: AllocationState,
    wanted: Instance,
    placements: Sequence[NativePlacement],
    indices: Sequence[int],
    *,
    force: bool = False,
) -> AllocationState:
    """Return `state` with shrunk copies of `wanted` on the nodes that the engine chose; `force` ignores soft limits."""
    if not placements:
        return state
    nodes, instances = dict(state.nodes), dict(state.instances)
    placed = list(reversed(state.placed))
    shapes: dict[tuple[int, ...], Instance] = {}
    added: defaultdict[int, list[_Added]] = defaultdict(list)
    for item in placements:
        size = item.memory, item.least_disk, item.vcpus, item.spindles
        if size not in shapes:
            shapes[size] = _shrunk(wanted, item)
        secondary = indices[item.secondary] if item.secondary >= 0 else NO_NODE
        name = f"new-{len(placed)}"
        new = instance_on_nodes(nodes, shapes[size], len(instances), name, indices[item.primary], secondary)
        added[new.primary].append(_Added(new, size, True))
        if secondary != NO_NODE:
            added[secondary].append(_Added(new, size, False))
        instances[new.index] = new
        placed.append(new)
    sums = _Sums(force)
    for index, items in added.items():
        nodes[index] = _with_all(nodes[index], items, sums)
    return replace(state, nodes=nodes, instances=instances, placed=tuple(reversed(placed)))


def instance_on_nodes(
    nodes: Mapping[int, Node], instance: Instance, index: int, name: str, primary: int, secondary: int
) -> Instance:
    """Return the instance, under this number and name, on its nodes."""
    if secondary == NO_NODE:
        return instance.at(index, name, primary, instance.secondary, instance.location_score)
    common = len(nodes[primary].facts.location_tags & nodes[secondary].facts.location_tags)
    return instance.at(index, name, primary, secondary, common)


def changed_nodes(
    nodes: Mapping[int, Node], placed: Instance, secondary: int, *, force: bool = False
) -> tuple[Node, ...]:
    """Return the nodes of a placement with the instance on them; `secondary` overrides that of its record."""
    primary = accepted(add_primary(nodes[placed.primary], placed, force=force))
    if secondary == NO_NODE:
        return (primary,)
    return primary, accepted(add_secondary(nodes[secondary], placed, placed.primary))


def _shrunk(wanted: Instance, item: NativePlacement) -> Instance:
    """Return `wanted` in the size that was placed: all disks shrink alike, spindles only those of a single disk."""
    less = min((disk.size for disk in wanted.disks), default=0) - item.least_disk
    disks = tuple(Disk(disk.size - less, disk.spindles) for disk in wanted.disks)
    if len(disks) == 1 and disks[0].spindles is not None:
        disks = (Disk(disks[0].size, item.spindles),)
    return replace(wanted, memory=item.memory, vcpus=item.vcpus, disks=disks, disk=wanted.disk - less * len(disks))


@dataclass(frozen=True, slots=True)
class _Added:
    """An instance that is added to a node, and its size, the only difference between such instances."""

    instance: Instance
    size: tuple[int, ...]
    primary: bool


def _with_all(node: Node, added: Sequence[_Added], sums: _Sums) -> Node:
    """Return `node` with the instances."""
    if len(added) > 1 and _add_up_exactly(node, added[0].instance):
        together = _with_primaries(node, [item for item in added if item.primary], sums)
        if not isinstance(together, FailReason):
            together = _with_secondaries(together, [item for item in added if not item.primary], sums)
        if not isinstance(together, FailReason):
            return together
    for item in added:
        instance = item.instance
        if item.primary:
            node = accepted(add_primary(node, instance, force=sums.force))
        else:
            node = accepted(add_secondary(node, instance, instance.primary))
    return node


def _add_up_exactly(node: Node, instance: Instance) -> bool:
    """Whether several such instances change the node as one of their total size: no sum of floats is rounded."""
    floats = (*node.load, *node.forth_load, *instance.load, node.instance_spindles, node.forth_instance_spindles)
    exact = all(number.is_integer() and abs(number) < MOST_EXACT for number in floats)
    return exact and instance.spindle_use < MOST_EXACT and not instance.exclusion_tags and not instance.desired_tags


class _Sums:
    """Instances with the total size of several ones, each made once."""

    def __init__(self, force: bool) -> None:  # noqa: FBT001
        self.force = force
        self._known: dict[tuple[object, ...], Instance] = {}

    def of(self, added: Sequence[_Added], *, kept: bool) -> Instance:
        """Return the sum; `kept`: a secondary reserves memory for it."""
        instances = [item.instance for item in added]
        locations = sum(instance.location_score for instance in instances)
        key = (kept, locations, *(item.size for item in added))
        if key not in self._known:
            self._known[key] = _sum_of(instances, locations, auto_balance=kept and instances[0].auto_balance)
        return self._known[key]


def _sum_of(instances: Sequence[Instance], location_score: int, *, auto_balance: bool) -> Instance:
    spindles = [instance.total_spindles for instance in instances]
    known = [number for number in spindles if number is not None]
    disk = sum(instance.disk for instance in instances)
    return replace(
        instances[0],
        memory=sum(instance.memory for instance in instances),
        disk=disk,
        disks=(Disk(disk, sum(known) if len(known) == len(spindles) else None),),
        vcpus=sum(instance.vcpus for instance in instances),
        spindle_use=sum(instance.spindle_use for instance in instances),
        load=reduce(add_load, (instance.load for instance in instances)),
        auto_balance=auto_balance,
        location_score=location_score,
    )


def _with_primaries(node: Node, added: Sequence[_Added], sums: _Sums) -> Node | FailReason:
    if not added:
        return node
    new = add_primary(node, sums.of(added, kept=True), force=sums.force)
    if not isinstance(new, FailReason):
        new.primaries = (*(item.instance.index for item in reversed(added)), *node.primaries)
    return new


def _with_secondaries(node: Node, added: Sequence[_Added], sums: _Sums) -> Node | FailReason:
    """Add all but the last as one, without reservations, which are not sums; the last one also checks these."""
    if not added:
        return node
    *earlier, last = (item.instance for item in added)
    if earlier:
        new = add_secondary(node, sums.of(added[:-1], kept=False), last.primary)
        if isinstance(new, FailReason):
            return new
        new.secondaries = (*(instance.index for instance in reversed(earlier)), *node.secondaries)
        new.peers = dict(node.peers)
        for instance in earlier:
            kept = instance.memory if instance.needs_secondary_memory else 0
            new.peers[instance.primary] = new.peers.pop(instance.primary, 0) + kept
            new.reserved_memory = max(new.reserved_memory, new.peers[instance.primary])
        node = new
    return add_secondary(node, last, last.primary)
