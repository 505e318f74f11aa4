"""Standard and tiered allocation by the compiled engine, which keeps the cluster from one run to the next.

Its placements are repeated with the law's own functions. Many placements on one node are added as one instance of their
total size: the checks get stricter with each placement, so if all pass together, each one passes. If a sum could be
rounded differently, or all together are refused, they are added one by one.
"""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from gpolicy.allocator.cluster_data import NO_NODE, Disk, FailReason, Instance, Node
from gpolicy.allocator.engines import answered, instance_on_nodes, loaded_library, opened_engine, too_long
from gpolicy.allocator.native.library import NativeEngine, Placed, Question
from gpolicy.allocator.native.streams import ClusterNumbers, UnfitError, refuse_absurd_numbers
from gpolicy.allocator.node_changes import accepted, add_load, add_primary, add_secondary
from gpolicy.allocator.placement import Candidates
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.light_dataclasses import dataclass, replace

MOST_EXACT = 1 << 31
"""Sums of numbers below this are exact as floats, for as many numbers as a run has placements."""
MOST_STEPS = 150_000_000
"""Of one count: half a minute, at 5 million steps a second."""


class Budget:
    """How many steps of work the counts that share it may still take, and each of them."""

    def __init__(self, left: int = 2**62, each: int = MOST_STEPS) -> None:
        self.left = left
        self.each = each

    def spend(self, steps: int, before: int) -> None:
        """Take steps for a count that began when `before` were left. Raise TooLongError if none are left for it."""
        self.left -= steps
        if self.left < 0 or before - self.left > self.each:
            raise too_long(before - self.left)


@dataclass(slots=True)
class _Opened:
    """A cluster in the engine.

    `known` maps the identity of a state's nodes to the state and the number of placements that lead to it: 0 to the one
    that was read.
    """

    engine: NativeEngine
    cluster: ClusterNumbers
    known: dict[int, tuple[AllocationState, int]]


class CompiledAllocator(Allocator):
    """Standard and tiered allocation by the compiled engine. Raises TooLongError when the work goes beyond `budget`.

    `engine` is the law, if there is no compiled one or it cannot answer.
    """

    def __init__(
        self,
        candidates: Candidates,
        rules: CapacityRules,
        *,
        capacity_checks: bool,
        each: bool = False,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(ReferenceEngine(candidates, rules), capacity_checks, each)
        self._budget = budget or Budget(each=2**62)
        self._library = loaded_library()
        self._opened: _Opened | None = None
        self._lock = threading.Lock()

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`)."""
        found = self._run(Question.STANDARD, state, instance, limit)
        return self._law().standard(state, instance, limit) if found is None else found

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place shrinking instances (`Allocator.tiered`)."""
        found = self._run(Question.TIERED, state, instance, limit)
        return self._law().tiered(state, instance, limit) if found is None else found

    def _law(self) -> Allocator:
        """Return what makes one count, which takes its steps from the budget."""
        before = self._budget.left
        engine = replace(self.engine, spend=lambda steps: self._budget.spend(steps, before))
        return Allocator(engine, self.capacity_checks, self.each)

    def _run(
        self, question: Question, state: AllocationState, instance: Instance, limit: int | None
    ) -> AllocationState | None:
        """Ask the engine; None if only the law can answer."""
        # only tests place an instance that has a number, which becomes that of the first one
        if self._library is None or instance.index >= 0 or instance.forthcoming:
            return None
        with self._lock:
            try:
                opened, keep = self._follow(self._library, state, instance)
                wanted = opened.cluster.instance(instance)
                opened.known = {key: (known, count) for key, (known, count) in opened.known.items() if count <= keep}
                opened.engine.allow(min(self._budget.left, self._budget.each))
                status, result = opened.engine.ask(question, wanted, keep=keep, limit=limit)
                self._budget.left -= opened.engine.steps
                answered(status, opened.engine, state.nodes, fit=True)
            except UnfitError:
                refuse_absurd_numbers(state.nodes.values(), (*state.instances.values(), instance))
                return None
            placed = opened.engine.placements(keep)
            after = _with_placements(state, instance, placed, opened.cluster.indices, force=self.engine.rules.force)
            after = replace(
                after,
                failures=tuple(result.failures),
                attempted=bool(result.attempted) or state.attempted,
                refused=bool(result.refused) or state.refused,
            )
            opened.known[id(after.nodes)] = (after, keep + len(placed))
            return after

    def _follow(self, library: ctypes.CDLL, state: AllocationState, instance: Instance) -> tuple[_Opened, int]:
        """Return the engine, and how many of its placements lead to `state`. Raise UnfitError."""
        opened = self._opened
        if opened is not None and opened.cluster.knows(instance):
            known, count = opened.known.get(id(state.nodes), (None, 0))
            if known is not None and known.instances is state.instances and len(known.placed) == len(state.placed):
                return opened, count
        self._opened = None
        cluster = ClusterNumbers(
            state.nodes,
            state.instances,
            self.engine.candidates,
            self.engine.rules,
            wanted=instance,
            capacity_checks=self.capacity_checks,
            each=self.each,
            placed_before=len(state.placed),
        )
        engine = opened_engine(library, cluster, state.nodes)
        self._opened = _Opened(engine, cluster, {id(state.nodes): (state, 0)})
        return self._opened, 0


def _with_placements(
    state: AllocationState, wanted: Instance, placements: Sequence[Placed], indices: Sequence[int], *, force: bool
) -> AllocationState:
    """Return `state` with shrunk copies of `wanted` on the nodes that the engine chose; `force` ignores soft limits."""
    if not placements:
        return state
    nodes, instances = dict(state.nodes), dict(state.instances)
    placed = list(reversed(state.placed))
    sizes = _Sizes(wanted, force)
    added: defaultdict[int, list[_Added]] = defaultdict(list)
    for primary, mate, *numbers in placements:
        size = sizes.number_of(*numbers)
        secondary = indices[mate] if mate >= 0 else NO_NODE
        name = f"new-{len(placed)}"
        new = instance_on_nodes(nodes, sizes.shapes[size], len(instances), name, indices[primary], secondary)
        added[new.primary].append((new, size, True))
        if secondary != NO_NODE:
            added[secondary].append((new, size, False))
        instances[new.index] = new
        placed.append(new)
    for index, items in added.items():
        nodes[index] = _with_all(nodes[index], items, sizes)
    return replace(state, nodes=nodes, instances=instances, placed=tuple(reversed(placed)))


_Added = tuple[Instance, int, bool]
"""An instance that is added to a node, the number of its size, and whether it is a primary there."""


class _Sizes:
    """The sizes that were placed, the only difference between instances; sums of several ones are made once."""

    def __init__(self, wanted: Instance, force: bool) -> None:  # noqa: FBT001
        self.force = force
        self.shapes: list[Instance] = []
        self._wanted = wanted
        self._numbers: dict[tuple[int, ...], int] = {}
        self._sums: dict[tuple[int, ...], Instance] = {}

    def number_of(self, *size: int) -> int:
        """Return the number of the size in which an instance was placed: memory, smallest disk, vcpus, spindles."""
        number = self._numbers.setdefault(size, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(self._shrunk(*size))
        return number

    def _shrunk(self, memory: int, least_disk: int, vcpus: int, spindles: int) -> Instance:
        """Return the instance in a size: all disks shrink alike, spindles only those of a single disk."""
        wanted = self._wanted
        less = min((disk.size for disk in wanted.disks), default=0) - least_disk
        disks = tuple(Disk(disk.size - less, disk.spindles) for disk in wanted.disks)
        if len(disks) == 1 and disks[0].spindles is not None:
            disks = (Disk(disks[0].size, spindles),)
        return replace(wanted, memory=memory, vcpus=vcpus, disks=disks, disk=wanted.disk - less * len(disks))

    def total(self, numbers: Sequence[int], *, kept: bool) -> Instance:
        """Return an instance with the total size of several ones, but no location score; `kept`: reserved for."""
        key = (kept, *sorted(numbers))
        if key not in self._sums:
            total = _sum_of([self.shapes[number] for number in numbers])
            self._sums[key] = replace(total, auto_balance=kept and total.auto_balance)
        return self._sums[key]


def _with_all(node: Node, added: Sequence[_Added], sizes: _Sizes) -> Node:
    if len(added) > 1 and _add_up_exactly(node, added[0][0]):
        together = _with_primaries(node, [item for item in added if item[2]], sizes)
        if not isinstance(together, FailReason):
            together = _with_secondaries(together, [item for item in added if not item[2]], sizes)
        if not isinstance(together, FailReason):
            return together
    for instance, _, is_primary in added:
        if is_primary:
            node = accepted(add_primary(node, instance, force=sizes.force))
        else:
            node = accepted(add_secondary(node, instance, instance.primary))
    return node


def _add_up_exactly(node: Node, instance: Instance) -> bool:
    """Whether several such instances change the node as one of their total size: no sum of floats is rounded."""
    floats = (*node.load, *node.forth_load, *instance.load, node.instance_spindles, node.forth_instance_spindles)
    exact = all(map(float.is_integer, floats)) and max(map(abs, floats)) < MOST_EXACT
    return exact and instance.spindle_use < MOST_EXACT and not instance.exclusion_tags and not instance.desired_tags


def _sum_of(instances: Sequence[Instance]) -> Instance:
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
        location_score=0,
    )


def _with_primaries(node: Node, added: Sequence[_Added], sizes: _Sizes) -> Node | FailReason:
    if not added:
        return node
    new = add_primary(node, sizes.total([size for _, size, _ in added], kept=True), force=sizes.force)
    if not isinstance(new, FailReason):
        new.primaries = (*(instance.index for instance, _, _ in reversed(added)), *node.primaries)
        new.location_score += sum(instance.location_score for instance, _, _ in added)
    return new


def _with_secondaries(node: Node, added: Sequence[_Added], sizes: _Sizes) -> Node | FailReason:
    """Add all but the last as one, without reservations, which are not sums; the last one also checks these."""
    if not added:
        return node
    *earlier, last = (instance for instance, _, _ in added)
    if earlier:
        new = add_secondary(node, sizes.total([size for _, size, _ in added[:-1]], kept=False), last.primary)
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
