"""How often a complete mix of sizes fits, and the sizes for the instances that exist: the set that leaves least unused.

Each set fills the nodes as if nothing ran, under the limits of the group, with sizes in the proportions of today's
instances: each counts as the smallest size that holds it. When one size fits no more, the others go on. Unused is what
no instance needs at the end. The allocator tries it all.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy
from gpolicy.allocator.merge import ClusterData
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.errors import RequestError
from gpolicy.printable import count
from gpolicy.progress import Stop, Tell, until_stopped
from gpolicy.suggest.suggestion import Choice, Mix, NodeKind, size_name
from gpolicy.suggest.tiling import Amounts, Ground, Tiling, disk_on_nodes, mean_waste, rounded, tilings


def under_policy(counted: CountedCluster, policy: InstancePolicy) -> CountedCluster:
    """Return a cluster of one group under another policy."""
    group = replace(counted.data.groups[0], policy=policy)
    return replace(counted, data=replace(counted.data, groups=(group,), policy=policy))


SizeMap = Mapping[str, Instance]
"""The largest instance of each size, the biggest size first."""


def count_mix(counted: CountedCluster, instances: SizeMap, weights: Mapping[str, int]) -> Mix:
    """Return how often the complete mix fits, by trial, the biggest size first.

    The next mix is then placed in the same order, to find the part that still fits and the reason why not all does.
    """
    low, reached = _most_mixes(counted, instances, weights)
    best, limit, why = _placed(counted, reached, instances, weights, all_or_none=False)
    while limit is None:  # placing mix by mix fits more than size by size
        low, reached = low + 1, best
        best, limit, why = _placed(counted, reached, instances, weights, all_or_none=False)
    return Mix(
        weights=weights,
        mixes=low,
        placed={name: low * weights.get(name, 0) for name in instances},
        limit=limit,
        binding=why,
        best=_placed_in(best, instances),
        more={
            name: len(counted.place(reached, instance).placed) - len(reached.placed)
            for name, instance in instances.items()
        },
        left=_left(reached, counted),
        n1=counted.rules.failures > 0,
    )


def fill_with_mix(counted: CountedCluster, instances: SizeMap, weights: Mapping[str, int]) -> dict[str, int]:
    """Return how many of each size fill the nodes, at any time as near to the proportions `weights` as can be.

    When a size fits no more, the others go on.
    """
    total = sum(weights.values())
    few = {name: max(1, round(_MIX * weight / total)) for name, weight in weights.items()}
    _, reached = _most_mixes(counted, {name: instances[name] for name in weights}, few)
    placed, fitting = Counter(_placed_in(reached, instances)), dict(weights)
    while fitting:
        name = max(fitting, key=lambda item: (fitting[item] / (placed[item] + 1), instances[item].memory))
        after = counted.place(reached, instances[name], 1 if len(fitting) > 1 else None)
        more = len(after.placed) - len(reached.placed)
        reached, placed[name] = after, placed[name] + more
        if not more or len(fitting) == 1:
            del fitting[name]
    return {name: placed[name] for name in instances}


_MIX: Final = 16  # instances in one mix, which is placed as a whole while it fits


def _most_mixes(counted: CountedCluster, instances: SizeMap, weights: Mapping[str, int]) -> tuple[int, AllocationState]:
    """Return how often the complete mix fits when it is placed size by size, and the state then."""
    high = min(counted.fit(instances[name]).fits // weight for name, weight in weights.items())
    low, reached = 0, counted.initial
    middle = high  # the bound is often reached
    while low < high:
        counts = {name: middle * n for name, n in weights.items()}
        final, limit, _ = _placed(counted, counted.initial, instances, counts, all_or_none=True)
        if limit is None:
            low, reached = middle, final
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low, reached


def _placed(
    counted: CountedCluster, state: AllocationState, instances: SizeMap, counts: Mapping[str, int], *, all_or_none: bool
) -> tuple[AllocationState, str | None, Binding | None]:
    """Place as much as fits of `counts` of each size; return the state, the first size that is missing, and why.

    `all_or_none`: nobody asks for the rest, nor why.
    """
    limit, why = None, None
    for name, instance in instances.items():
        before = len(state.placed)
        if wanted := counts.get(name, 0):
            state = counted.place(state, instance, wanted)
            if limit is None and len(state.placed) - before < wanted:
                limit = name
                if all_or_none:
                    break
                why = counted.find_binding(state, instance)
    return state, limit, why


def _placed_in(state: AllocationState, instances: SizeMap) -> dict[str, int]:
    sizes = {instance.burst: name for name, instance in instances.items()}
    counts = Counter(sizes[placed.burst] for placed in state.placed)
    return {name: counts[name] for name in instances}


def _left(state: AllocationState, counted: CountedCluster) -> Amounts:
    nodes = [node for node in state.nodes.values() if not node.facts.offline]
    exclusive = any(node.facts.exclusive for node in nodes)
    return Amounts(
        sum(max(0, node.unallocated_memory) for node in nodes),
        sum(max(0, node.facts.high_cpus - node.used_cpus) for node in nodes),
        sum(node.free_disk for node in nodes) if counted.template and counted.template.local else None,
        sum(node.free_spindles for node in nodes) if exclusive else None,
    )


MOST_WORK: Final = 2_000
"""Sets of sizes that fill the group, times its nodes: first those that look best by what they waste on a node and
beside each instance."""

LEAST_TRIED: Final = 12

_PARTS: Final = (*range(1, 13), 16, 20, 24, 32, 48, 64)
MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class RealMix:
    """Compares sets of sizes on one group.

    `counted` makes of a set the group that is to be filled, without instances, and the largest instance of each size;
    it raises RequestError for sizes that are too similar. After a `stop`, or with Ctrl-C, the best sets so far are the
    answer.
    """

    kinds: tuple[NodeKind, ...]
    ground: Ground
    needs: Counter[Amounts]
    counted: Callable[[Tiling], tuple[CountedCluster, Mapping[int, Instance]]]
    stop: Stop
    tell: Tell

    def choices(self, divisors: Sequence[int] | None) -> tuple[list[tuple[Choice, Tiling]], bool]:
        """Return the best sets of sizes (or that of `divisors`), the best first, and whether all that should be were
        compared."""
        rooms = [(kind.room, len(kind.nodes)) for kind in self.kinds]
        least = min(room.memory for room, _ in rooms)  # full is a whole node
        sets = tilings(rooms, self.ground, divisors, _PARTS)
        found = [(rounded(item, self.ground), cost) for cost, item in sets if item.measure.memory >= least]
        found.sort(key=lambda pair: (self._estimate(pair[0], rooms), pair[1]))
        alike: dict[frozenset[Amounts], Tiling] = {}  # sets that differ only in sizes that no instance needs
        for item, _ in found:
            used = frozenset(item.sizes[k] for k in self._held(item.sizes) if k is not None)
            alike.setdefault(used, item)
        most = max(LEAST_TRIED, MOST_WORK // self.ground.nodes)
        made: list[tuple[Choice, Tiling]] = []
        exhaustive = False
        with until_stopped():
            for item in alike.values():
                if len(made) == most:
                    break
                self.stop.spend()
                if (choice := self._filled(item)) is not None:
                    made.append((choice, item))
                    self.tell(f"{count(len(made), 'set')} of sizes")
            exhaustive = True
        made.sort(key=lambda pair: (pair[0].outside, pair[0].mean_unused))
        return made[:MOST_SHOWN], exhaustive

    def _held(self, sizes: Mapping[int, Amounts]) -> dict[int | None, Counter[Amounts]]:
        """Return the instances by the smallest size that holds them, None for none."""
        found: dict[int | None, Counter[Amounts]] = {}
        for need, number in self.needs.items():
            holding = (k for k in sorted(sizes, reverse=True) if _holds(sizes[k], need))
            found.setdefault(next(holding, None), Counter())[need] += number
        return found

    def _estimate(self, item: Tiling, rooms: Sequence[tuple[Amounts, int]]) -> float:
        """Return what a set wastes on a node and beside each instance, without filling the group."""
        waste = {k: mean_waste(rooms, size, self.ground) for k, size in item.sizes.items()}
        return sum(
            number * (1.0 if k is None else waste[k] + 1 - _share(need, item.sizes[k]))
            for k, needs in self._held(item.sizes).items()
            for need, number in needs.items()
        )

    def _filled(self, item: Tiling) -> Choice | None:
        """Return the set with what fills the group; None if its sizes are too similar."""
        held = self._held(item.sizes)
        weights = Counter({k: needs.total() for k, needs in held.items() if k is not None})
        if not weights:
            return None
        try:
            counted, instances = self.counted(item)
        except RequestError:
            return None
        named = {size_name(k): instance for k, instance in instances.items()}
        placed = fill_with_mix(counted, named, {size_name(k): weights[k] for k in item.sizes if weights[k]})
        used: dict[str, float] = defaultdict(float)
        for k in weights:
            share = placed[size_name(k)] / weights[k]
            for need, number in held[k].items():
                for name, amount in _resources(need):
                    taken = disk_on_nodes(need, self.ground) if name == "disk" else amount
                    used[name] += taken * number * share
        room = Counter[str]()
        for node in (node for kind in self.kinds for node in kind.nodes):
            room.update(dict(_resources(node.room)))
        return Choice(
            sizes={size_name(k): size for k, size in item.sizes.items()},
            weights={size_name(k): weights[k] for k in item.sizes},
            outside=held[None].total() if None in held else 0,
            placed=placed,
            unused={name: 1 - used[name] / amount for name, amount in room.items() if amount},
        )


def needs_of(data: ClusterData, ground: Ground, *, local: bool) -> Counter[Amounts]:
    """Return what the instances of a group need, and how many need it; `local`: disks are on the nodes."""
    found = Counter[Amounts]()
    for item in data.instances:
        disk = sum(disk.size for disk in item.disks) if local else None
        volumes = (item.total_spindles or 0) if ground.volume is not None else None
        found[Amounts(item.memory, item.vcpus, disk, volumes)] += 1
    return found


def _resources(amounts: Amounts) -> Iterator[tuple[str, int]]:
    yield from (("memory", amounts.memory), ("CPUs", amounts.cpus))
    if amounts.volumes is not None:
        yield "volumes", amounts.volumes
    elif amounts.disk is not None:
        yield "disk", amounts.disk


def _holds(size: Amounts, need: Amounts) -> bool:
    pairs = ((size.disk, need.disk), (size.volumes, need.volumes))
    fits = all(has is None or wants is None or wants <= has for has, wants in pairs)
    return fits and need.memory <= size.memory and need.cpus <= size.cpus


def _share(need: Amounts, size: Amounts) -> float:
    wanted, has = dict(_resources(need)), dict(_resources(size))
    shares = [wanted.get(name, 0) / amount for name, amount in has.items() if amount]
    return sum(shares) / len(shares)
