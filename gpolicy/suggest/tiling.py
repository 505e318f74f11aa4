"""How many instances of a size fill a node, and what they leave: plain integers, without the allocator.

k instances of divisor k fill the node that is the measure. Without a mirror a size is the k-th part of each resource.
With DRBD every node is also the secondary of k instances: it holds their disks, and for N+1 the memory of those that
fail over from one other node. With k instances on each of n nodes, spread evenly, those are ceil(k / (n - 1))
instances, so memory is divided by k + ceil(k / (n - 1)) and disk by 2k.

Under exclusive storage a disk takes whole physical volumes, and a size has the k-th part of the node's volumes.
Sources: design documents "partitioned Ganeti" and "dedicated allocation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import inf, log2
from typing import Final

from gpolicy.ganeti.amounts import SIZE_STEP_MIB as STEP
from gpolicy.ganeti.vocabulary import DRBD_METADATA

USUAL: Final = (1, 2, 4)
"""Full, half, quarter: the default suggestion."""

MOST_DIVISOR: Final = 12
"""The greatest divisor that is suggested without a request."""

LEAST_MEMORY: Final = 128
LEAST_DISK: Final = 1024
"""MiB: Ganeti's own minimum sizes; smaller parts are not suggested."""

_GRAINS: Final = (1024, 512, 256, 64, 16)
_LOST_BY_ROUNDING: Final = 0.01
_FRACTIONS: Final = ((1, 2), (1, 3), (2, 3), (3, 4), (2, 5), (3, 5), (4, 5))
"""Fractions of a larger node that may serve as the measure, if it is not a multiple of a smaller one."""
_MOST_MEASURES: Final = 8  # the most frequent kinds of nodes are tried as the measure
_UNUSUAL: Final = 0.02  # an unusual size must save 2 % of waste, a missing one 3 %
_NOT_NESTED: Final = 0.03
_MISSING: Final = 0.03
_SHRUNK: Final = 0.2  # full should be a whole node


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of a node: the most that instances may use together. Of a size: what one instance uses at most."""

    memory: int
    """Memory, MiB."""
    cpus: int
    """Virtual CPUs."""
    disk: int | None
    """Disk, MiB; None where it is not on the nodes."""
    volumes: int | None = None
    """Physical volumes; None without exclusive storage."""

    def is_below(self, other: Amounts) -> bool:
        """Return whether these are less memory, and fewer volumes if they count."""
        fewer = self.volumes is None or other.volumes is None or self.volumes < other.volumes
        return self.memory < other.memory and fewer


def combined(combine: Callable[[Sequence[int]], int], items: Sequence[Amounts]) -> Amounts:
    """Return `combine` of each resource of `items`; None if an item lacks the resource."""

    def of(amounts: Sequence[int | None]) -> int | None:
        known = [amount for amount in amounts if amount is not None]
        return combine(known) if len(known) == len(amounts) else None

    return Amounts(
        combine([item.memory for item in items]),
        combine([item.cpus for item in items]),
        of([item.disk for item in items]),
        of([item.volumes for item in items]),
    )


@dataclass(frozen=True, slots=True)
class Ground:
    """Properties of all nodes of a group.

    `threads` are the CPUs of the smallest node (no instance has more virtual ones), `volume` the usable size of a
    physical volume (MiB; None without exclusive storage).
    """

    mirrored: bool
    nodes: int
    threads: int
    volume: int | None = None

    def kept(self, count: int) -> int:
        """Return for how many instances a node reserves memory when each node has `count` of them."""
        return -(-count // (self.nodes - 1)) if self.mirrored and count else 0


def part(node: Amounts, divisor: int, ground: Ground) -> Amounts | None:
    """Return the size of which `divisor` instances fill `node`, unrounded; None if it is too small."""
    memory = node.memory // (divisor + ground.kept(divisor))
    cpus = min(node.cpus // divisor, ground.threads)
    disk = node.disk
    if disk is not None:
        disk = disk // (2 * divisor) - DRBD_METADATA if ground.mirrored else disk // divisor
    volumes = node.volumes
    if volumes is not None and ground.volume is not None:
        volumes //= divisor
        disk = min(volumes * ground.volume, disk if disk is not None else volumes * ground.volume)
    found = Amounts(_floor(memory, STEP), cpus, None if disk is None else _floor(disk, STEP), volumes)
    too_small = found.memory < LEAST_MEMORY or cpus < 1 or volumes == 0
    return None if too_small or (found.disk is not None and found.disk < LEAST_DISK) else found


def fitting(node: Amounts, size: Amounts, ground: Ground, allowed: int | None = None) -> int:
    """Return how many instances of `size` the empty `node` takes; if mirrored, with as many as secondary, and N+1.

    `allowed` is the limit of the spindle-ratio, if there is one.
    """
    most = [node.memory // size.memory, node.cpus // size.cpus]
    if allowed is not None:
        most.append(allowed)
    if node.disk is not None and size.disk is not None:
        most.append(node.disk // disk_on_nodes(size, ground))
    if node.volumes is not None and size.volumes is not None:
        most.append(node.volumes // size.volumes)
    count = min(most)
    while count and (count + ground.kept(count)) * size.memory > node.memory:
        count -= 1
    return count


def left_over(node: Amounts, size: Amounts, count: int, ground: Ground) -> Amounts:
    """Return what `count` instances of `size` leave of `node`, without memory reserved for N+1."""
    return Amounts(
        node.memory - (count + ground.kept(count)) * size.memory,
        node.cpus - count * size.cpus,
        None if node.disk is None or size.disk is None else node.disk - count * disk_on_nodes(size, ground),
        None if node.volumes is None or size.volumes is None else node.volumes - count * size.volumes,
    )


def disk_on_nodes(size: Amounts, ground: Ground) -> int:
    """Return the disk that an instance takes on all of its nodes."""
    assert size.disk is not None  # noqa: S101 (asked by the callers)
    return 2 * (size.disk + DRBD_METADATA) if ground.mirrored else size.disk


def wasted(node: Amounts, size: Amounts, ground: Ground, count: int | None = None) -> float:
    """Return the unused share of `node` when it is filled with `size`: the greatest of all resources.

    `count` is how many fill it, by default `fitting`.
    """
    left = left_over(node, size, fitting(node, size, ground) if count is None else count, ground)
    capped = size.cpus >= ground.threads  # more virtual CPUs would be of no use to one instance
    cpus = None if capped else left.cpus
    storage = (left.disk, node.disk) if node.volumes is None else (left.volumes, node.volumes)
    amounts = ((left.memory, node.memory), (cpus, node.cpus), storage)
    return max(rest / whole for rest, whole in amounts if rest is not None and whole)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Sizes by divisor, biggest first, and the node of which they are parts."""

    measure: Amounts
    sizes: dict[int, Amounts]


Kinds = Sequence[tuple[Amounts, int]]
"""What nodes have, and how many have it."""


def tiling(kinds: Kinds, ground: Ground, divisors: Sequence[int] | None) -> Tiling | None:
    """Return the sizes that waste least on nodes of these kinds (with their number); None if there is none.

    The measure is one kind of node, the minimum of each resource over all nodes, or slightly less so that it divides
    them. The sizes are `divisors`, by default full, half and quarter unless others waste clearly less.
    """
    least, best = inf, None
    for cost, found in tilings(kinds, ground, divisors):
        if cost < least - 1e-12:
            least, best = cost, found
    return None if best is None else rounded(best, ground)


def tilings(
    kinds: Kinds, ground: Ground, divisors: Sequence[int] | None, possible: Sequence[int] = range(1, MOST_DIVISOR + 1)
) -> Iterator[tuple[float, Tiling]]:
    """Yield the sets of sizes, not rounded, each with its cost: what it wastes, and how unusual it is.

    There is one set of `divisors`; without them there are those of full and up to two others that are `possible`.
    """
    least = min(node.memory for node, _ in kinds)
    for measure in _measures(kinds):
        shrunk = max(0.0, 1 - measure.memory / least) * _SHRUNK
        parts = {k: found for k in divisors or possible if (found := part(measure, k, ground))}
        waste = {k: mean_waste(kinds, found, ground) for k, found in parts.items()}
        for chosen in [tuple(divisors)] if divisors else _choices(parts):
            if all(k in parts for k in chosen):
                cost = sum(waste[k] for k in chosen) / len(chosen) + shrunk + (0 if divisors else _strangeness(chosen))
                yield cost, Tiling(measure, {k: parts[k] for k in chosen})


def rounded(found: Tiling, ground: Ground) -> Tiling:
    """Return the sizes with memory and disk rounded down to a common multiple, so that they nest and read easily."""
    memory = _grain([size.memory for size in found.sizes.values()])
    disks = [size.disk for size in found.sizes.values() if size.disk is not None]
    disk = _grain(disks) if disks else STEP
    sizes = {
        k: Amounts(_floor(size.memory, memory), size.cpus, _round_disk(size, disk, ground), size.volumes)
        for k, size in found.sizes.items()
    }
    return Tiling(found.measure, sizes)


def _measures(kinds: Sequence[tuple[Amounts, int]]) -> list[Amounts]:
    least = combined(min, [node for node, _ in kinds])
    frequent = [node for node, _ in sorted(kinds, key=lambda kind: -kind[1])[:_MOST_MEASURES]]
    shared = []
    for node, (over, under) in product(frequent, _FRACTIONS) if len(kinds) > 1 else ():
        fraction = combined(lambda amounts: amounts[0] * over // under, [node])  # noqa: B023
        shared.append(combined(min, [fraction, least]))
    return list(dict.fromkeys([least, *frequent, *shared]))


def mean_waste(kinds: Sequence[tuple[Amounts, int]], size: Amounts, ground: Ground) -> float:
    """Return the share of a node that `size` leaves unused, on average."""
    total = sum(count for _, count in kinds)
    return sum(wasted(node, size, ground) * count for node, count in kinds) / total


def _choices(parts: dict[int, Amounts]) -> Iterator[tuple[int, ...]]:
    """Yield the possible sets of divisors: full, and up to two smaller parts."""
    others = [k for k in parts if k > 1]
    for more in range(len(USUAL) if parts else 0):
        for chosen in combinations(others, more):
            if all(parts[small].is_below(parts[big]) for big, small in pairwise((1, *chosen))):
                yield 1, *chosen


def _strangeness(divisors: tuple[int, ...]) -> float:
    """Return the share of waste that these divisors must save to be preferred to the usual ones."""
    far = sum(abs(log2(k) - log2(usual)) for k, usual in zip(divisors, USUAL, strict=False))
    crossed = sum(small % big > 0 for big, small in pairwise(divisors))
    return far * _UNUSUAL + crossed * _NOT_NESTED + (len(USUAL) - len(divisors)) * _MISSING


def _round_disk(size: Amounts, grain: int, ground: Ground) -> int | None:
    """Return the disk rounded down, but not so far that it takes fewer volumes."""
    if size.disk is None:
        return None
    found = _floor(size.disk, grain)
    if ground.volume is not None and -(-found // ground.volume) < -(-size.disk // ground.volume):
        return size.disk
    return found


def _grain(amounts: Sequence[int]) -> int:
    """Return the coarsest rounding that reduces no amount by more than one percent."""
    fine = (grain for grain in _GRAINS if all(amount % grain <= amount * _LOST_BY_ROUNDING for amount in amounts))
    return next(fine, STEP)


def _floor(amount: int, grain: int) -> int:
    return amount // grain * grain
