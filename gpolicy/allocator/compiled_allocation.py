"""Standard and tiered allocation by the compiled engine, which keeps the cluster from one run to the next.

Its placements are repeated with the law's own functions. Many placements on one node are added as one instance of their
total size: the checks get stricter with each placement, so if all pass together, each one passes. If a sum could be
rounded differently, or all together are refused, they are added one by one.

Here is also what htools cannot count, several node failures and over-subscription of memory. Source: Ganeti design
document "Resource model". Both extend htools' node model, checks and score: a limit only removes candidates.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

from gpolicy.allocator.cluster_data import NO_NODE, Disk, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.engines import answered, instance_on_nodes, loaded_library, opened_engine, too_long
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.native.library import EngineQuestion, NativeEngine, Placed
from gpolicy.allocator.native.streams import ClusterNumbers, UnfitError, refuse_absurd_numbers
from gpolicy.allocator.node_changes import accepted, add_load, add_primary, add_secondary
from gpolicy.allocator.placement import NO_FAILURES, Candidates, FailCounts, Nodes, add_counts
from gpolicy.allocator.redundancy import CapacityRules, Instances
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.errors import InputError
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
        found = self._run_engine(EngineQuestion.STANDARD, state, instance, limit)
        return self._law().standard(state, instance, limit) if found is None else found

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place shrinking instances (`Allocator.tiered`)."""
        found = self._run_engine(EngineQuestion.TIERED, state, instance, limit)
        return self._law().tiered(state, instance, limit) if found is None else found

    def _law(self) -> Allocator:
        """Return what makes one count, which takes its steps from the budget."""
        before = self._budget.left
        engine = replace(self.engine, spend=lambda steps: self._budget.spend(steps, before))
        return Allocator(engine, self.capacity_checks, self.each)

    def _run_engine(
        self, question: EngineQuestion, state: AllocationState, instance: Instance, limit: int | None
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
    sizes = _PlacedSizes(wanted, force)
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


class _PlacedSizes:
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


def _with_all(node: Node, added: Sequence[_Added], sizes: _PlacedSizes) -> Node:
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


def _with_primaries(node: Node, added: Sequence[_Added], sizes: _PlacedSizes) -> Node | FailReason:
    if not added:
        return node
    new = add_primary(node, sizes.total([size for _, size, _ in added], kept=True), force=sizes.force)
    if not isinstance(new, FailReason):
        new.primaries = (*(instance.index for instance, _, _ in reversed(added)), *node.primaries)
        new.location_score += sum(instance.location_score for instance, _, _ in added)
    return new


def _with_secondaries(node: Node, added: Sequence[_Added], sizes: _PlacedSizes) -> Node | FailReason:
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


_STEPS_OF_NODE = 100
"""What it takes to open an engine anew, of each node."""


def limited_allocator(candidates: Candidates, rules: CapacityRules, budget: Budget | None = None) -> Allocator:
    """Return an allocator that tests each placement against `rules`, as hail does against one failure."""
    if rules.oversubscription is not None:
        return _OversubscribedAllocator(candidates, rules, budget)
    return CompiledAllocator(candidates, rules, capacity_checks=rules.failures > 0, each=True, budget=budget)


class _OversubscribedAllocator(Allocator):
    """Places as many at a time as fit on any one node, on nodes with memory left for the burst of the instance."""

    def __init__(self, candidates: Candidates, rules: CapacityRules, budget: Budget | None) -> None:
        super().__init__(ReferenceEngine(candidates, rules))
        self._candidates, self._rules, self._budget = candidates, rules, budget

    def standard(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`)."""
        first, most = len(state.placed), self._rules.oversubscription
        rules = replace(self._rules, oversubscription=None)
        budget = self._budget or Budget()
        before = budget.left
        while True:
            budget.spend(_STEPS_OF_NODE * len(state.nodes), before)
            left = {index: memory_left(node, state.instances, most) for index, node in state.nodes.items()}
            fewer, refused = _with_left(self._candidates, left, instance.burst)
            count = len(state.placed)
            steps = [] if limit is None else [limit - (count - first)]
            if instance.burst > 0:
                steps += [int(left[index] // instance.burst) for index in fewer.nodes]
            step = min(steps, default=None)
            state = limited_allocator(fewer, rules, budget).standard(state, instance, step)
            placed = len(state.placed) - count
            if not step or placed < step or len(state.placed) - first == limit:
                return replace(state, failures=add_counts(state.failures, refused))

    def tiered(self, state: AllocationState, instance: Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance`, which ballooning shrinks."""
        return self.standard(state, instance, limit)


def _with_left(candidates: Candidates, left: Mapping[int, float], needed: int) -> tuple[Candidates, FailCounts]:
    """Return the candidates whose primary has enough left, and the others as failures."""
    failures = list(NO_FAILURES)
    failures[FailReason.MEM] = sum(number for index, number in candidates.counts if needed > left[index])
    return candidates.kept(lambda index: needed <= left[index]), tuple(failures)


def refuse_minutes(nodes: Nodes, instances: Instances, instance: Instance, rules: CapacityRules) -> None:
    """Raise InputError if counting under `rules` takes minutes."""
    count, failures = len(nodes), rules.failures
    if failures == 0 or (failures == 1 and not rules.cpus):
        return  # no set of nodes is simulated
    lost = f"the loss of any {failures} nodes" if failures > 1 else "the loss of any node"
    if count > MOST_NODES:
        raise InputError(
            f"{lost} would be tested for every instance that is placed, on at most {MOST_NODES} nodes; there are"
            f" {count}",
            hint="ask about a smaller group",
        )
    if all(item.template is DiskTemplate.DRBD for item in (instance, *instances.values())):
        return
    most = next(number for number in range(count, -1, -1) if sets_of(number, failures) * number**2 <= MOST_WORK)
    if count > most:
        raise InputError(
            f"{lost} would be simulated for every instance that is placed, as not all are mirrored: that takes minutes"
            f" for more than {most} nodes; there are {count}",
            hint="ask for fewer failures, or about a smaller group",
        )


def memory_left(node: Node, instances: Mapping[int, Instance], oversubscription: float | None) -> float:
    """Return the maximum memory of further primaries that `node` may take (MiB).

    An instance that is offline takes none (design document "Resource model").
    """
    if oversubscription is None:
        return math.inf
    used = sum(instances[number].burst for number in node.primaries if instances[number].online)
    return memory_for_instances(node) * oversubscription - used


def memory_for_instances(node: Node) -> int:
    """Return the memory of a node for instances (MiB): all but that of the node itself and of its hypervisor."""
    facts = node.facts
    return max(0, truncate(facts.total_memory) - facts.node_memory - max(0, facts.unaccounted_memory))


MOST_NODES = 100
"""The greatest number of nodes on which sets of lost nodes are tested for each instance."""
MOST_WORK = 300_000
"""The greatest number of sets of lost nodes, each times the square of the nodes, that a run may simulate for each
instance."""


def sets_of(nodes: int, failures: int) -> int:
    """Return the number of sets of at most `failures` of `nodes`."""
    return sum(math.comb(nodes, size) for size in range(1, failures + 1))
