"""Sizes for the instances that exist: of many sets of sizes the one that leaves the least unused.

Each set fills the nodes as if nothing ran, under the limits of the group, with sizes in the proportions of today's
instances: each counts as the smallest size that holds it. When one size fits no more, the others go on. Unused is what
no instance needs at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.cluster_data import ClusterData, Instance
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.errors import UsageError
from gpolicy.printable import count
from gpolicy.stopping import Stop, Tell, until_stopped
from gpolicy.suggest.mixes import fill_with_mix
from gpolicy.suggest.size_names import size_name
from gpolicy.suggest.suggestion import Choice, NodeKind
from gpolicy.suggest.tiling import Amounts, Ground, Tiling, disk_on_nodes, mean_waste, rounded, tilings

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
    it raises UsageError for sizes that are too similar. After a `stop`, or with Ctrl-C, the best sets so far are the
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
                choice = self._filled(item)
                if choice is not None:
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
        except UsageError:
            return None
        named = {size_name(k): instance for k, instance in instances.items()}
        placed = fill_with_mix(counted, named, {size_name(k): weights[k] for k in item.sizes if weights[k]})
        used: Counter[str] = Counter()
        for k in weights:
            share = placed[size_name(k)] / weights[k]
            for need, number in held[k].items():
                used.update({name: amount * number * share for name, amount in self._amounts(need)})
        room = Counter[str]()
        for kind in self.kinds:
            for node in kind.nodes:
                room.update(dict(_resources(node.room)))
        return Choice(
            sizes={size_name(k): size for k, size in item.sizes.items()},
            weights={size_name(k): weights[k] for k in item.sizes},
            outside=held[None].total() if None in held else 0,
            placed=placed,
            unused={name: 1 - used[name] / amount for name, amount in room.items() if amount},
        )

    def _amounts(self, need: Amounts) -> Iterator[tuple[str, int]]:
        for name, amount in _resources(need):
            yield name, disk_on_nodes(need, self.ground) if name == "disk" else amount


def needs_of(data: ClusterData, ground: Ground, *, local: bool) -> Counter[Amounts]:
    """Return what the instances of a group need, and how many need it; `local`: disks are on the nodes."""
    return Counter(
        Amounts(
            item.memory,
            item.vcpus,
            sum(disk.size for disk in item.disks) if local else None,
            (item.total_spindles or 0) if ground.volume is not None else None,
        )
        for item in data.instances
    )


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
    """Return the mean share of a size that an instance needs."""
    wanted, has = dict(_resources(need)), dict(_resources(size))
    shares = [wanted.get(name, 0) / amount for name, amount in has.items() if amount]
    return sum(shares) / len(shares)
