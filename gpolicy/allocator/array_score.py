"""The cluster score over arrays: full statistics, and the values that a placement would lead to.

Bit for bit what `gpolicy.allocator.score` computes: sums along the nodes are accumulated one after the
other (never pairwise), and every formula has the same operations in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.node_changes import desired_misses, with_counts
from gpolicy.allocator.score import COMPONENTS, Aggregate, merged_maps, replaced_map

if TYPE_CHECKING:
    from gpolicy.allocator.arrays import Floats, Ints, NodeArrays
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.outcomes import Demand

WEIGHTS = np.array([component.weight for component in COMPONENTS])
DEVIATIONS = tuple(place for place, component in enumerate(COMPONENTS) if component.aggregate is Aggregate.DEVIATION)
(
    FREE_MEMORY,
    FREE_DISK,
    N1_COUNT,
    RESERVED,
    OFFLINE_ALL,
    OFFLINE_PRIMARIES,
    CPU,
    CPU_LOAD,
    MEMORY_LOAD,
    DISK_LOAD,
    NET_LOAD,
    TAGS,
    SPINDLES,
    FORTH_MEMORY,
    FORTH_DISK,
    FORTH_CPU,
    FORTH_SPINDLES,
    LOCATION,
    LOCATION_EXCLUSION,
    RESERVED_TOTAL,
) = range(20)
BOTH = np.array([FREE_DISK, DISK_LOAD, SPINDLES, FORTH_DISK, FORTH_SPINDLES])
"""Deviations that the primary and the secondary both change."""
PRIMARY_ONLY = np.array([FREE_MEMORY, CPU, CPU_LOAD, MEMORY_LOAD, NET_LOAD, FORTH_MEMORY, FORTH_CPU])
"""Deviations that only the primary changes."""


@dataclass(frozen=True, slots=True)
class ArrayStatistics:
    """Count of online nodes, and per component the sum and (for deviations) the variance.

    `exclusions` is the value of the location exclusion component.
    """

    count: float
    sums: Floats
    variances: Floats
    exclusions: float

    @property
    def finite(self) -> bool:
        """Whether every number is an ordinary one."""
        return bool(np.isfinite(self.sums).all() and np.isfinite(self.variances).all())


def array_statistics(arrays: NodeArrays) -> ArrayStatistics:
    """Return the full statistics of the current state; at least one node must be online."""
    online = arrays.values if arrays.online.all() else arrays.values[arrays.online_rows]
    count = float(len(online))
    sums = np.add.accumulate(online, axis=0)[-1]
    distance = online - sums / count
    distance *= distance
    variances = np.add.accumulate(distance, axis=0)[-1] / count
    offline = arrays.values[~arrays.online]
    for place in (OFFLINE_ALL, OFFLINE_PRIMARIES):
        sums[place] = np.add.accumulate(offline[:, place])[-1] if len(offline) else 0.0
    return ArrayStatistics(count, sums, variances, exclusion_value(arrays))


def exclusion_value(arrays: NodeArrays) -> float:
    """Return the location exclusion component."""
    if not arrays.any_location:
        return 0.0
    nodes = [node for node in arrays.nodes if node.location_exclusions and not node.facts.offline]
    if not nodes:
        return 0.0
    merged = merged_maps(nodes)
    return float(sum(merged.values()) - len(merged))


def replaced_deviation(
    count: float, total: Floats | float, variance: Floats | float, x: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Return sum and variance after replacing value x by y, elementwise."""
    change = y - x
    square_change = y * y - x * x
    step = (count * square_change - (2.0 * total) * change) - change * change
    moved = variance + step / (count * count)
    return total + change, np.where(moved >= 0.0, moved, 0.0)


def disk_ratio(arrays: NodeArrays, spindles: Ints, disk: Ints) -> Floats:
    """Return the free share of the scarce disk resource."""
    by_space = np.where(arrays.total_disk == 0, 1.0, disk / arrays.total_disk)
    if not arrays.any_exclusive:
        return by_space
    by_spindles = np.where(arrays.spindles == 0, 1.0, spindles / arrays.spindles)
    return np.where(arrays.exclusive, by_spindles, by_space)


def values_with_primary(arrays: NodeArrays, instance: Instance, demand: Demand) -> Floats:
    """Return each node's component values with `instance` added as a primary.

    The pair's common locations are not in it.
    """
    new = arrays.values.copy()
    free = arrays.unallocated - demand.used_memory
    disk_change = demand.disk if demand.local else 0
    use_change = float(demand.spindle_use) if demand.local else 0.0
    left, forth_left = (
        (free_spindles - demand.spindles if demand.spindles is not None else free_spindles * 0 - 1)
        for free_spindles in (arrays.free_spindles, arrays.forth_spindles)
    )
    new[:, FREE_MEMORY] = free / arrays.total_memory
    new[:, FREE_DISK] = disk_ratio(arrays, left, arrays.disk - disk_change)
    new[:, N1_COUNT] = np.where(free <= arrays.reserved, arrays.instances + 1.0, 0.0)
    new[:, CPU] = (arrays.cpus + demand.cpus) / arrays.total_cpus / arrays.speed
    for place, load in zip((CPU_LOAD, MEMORY_LOAD, DISK_LOAD, NET_LOAD), instance.load, strict=True):
        new[:, place] += load
    use = np.where(arrays.exclusive, 0.0, arrays.spindle_use + use_change)
    new[:, SPINDLES] = use / arrays.high_spindles
    new[:, FORTH_MEMORY] = (arrays.forth_memory - demand.memory) / arrays.total_memory
    new[:, FORTH_DISK] = disk_ratio(arrays, forth_left, arrays.forth_disk - disk_change)
    new[:, FORTH_CPU] = (arrays.forth_cpus + demand.cpus) / arrays.total_cpus / arrays.speed
    forth_use = np.where(arrays.exclusive, 0.0, arrays.forth_spindle_use + use_change)
    new[:, FORTH_SPINDLES] = forth_use / arrays.high_spindles
    if instance.exclusion_tags:
        for row, node in enumerate(arrays.nodes):
            tags = with_counts(node.exclusion_tags, instance.exclusion_tags, 1)
            new[row, TAGS] = float(sum(tags.values()) - len(tags))
    if instance.desired_tags:
        new[:, LOCATION] += [desired_misses(node, instance) for node in arrays.nodes]
    if instance.location_score:
        new[:, LOCATION] += instance.location_score
    return new


def values_with_secondary(arrays: NodeArrays, instance: Instance, demand: Demand, reserved: Ints) -> Floats:
    """Return each node's component values with `instance` added as a secondary, keeping `reserved` MiB."""
    new = arrays.values.copy()
    left, forth_left = (
        (free_spindles - demand.spindles if demand.spindles is not None else free_spindles * 0 - 1)
        for free_spindles in (arrays.free_spindles, arrays.forth_spindles)
    )
    new[:, FREE_DISK] = disk_ratio(arrays, left, arrays.disk - demand.disk)
    new[:, N1_COUNT] = np.where(arrays.unallocated <= reserved, arrays.instances + 1.0, 0.0)
    new[:, RESERVED] = reserved / arrays.total_memory
    new[:, DISK_LOAD] += instance.load[2]
    use = np.where(arrays.exclusive, 0.0, arrays.spindle_use + demand.spindle_use)
    new[:, SPINDLES] = use / arrays.high_spindles
    new[:, FORTH_DISK] = disk_ratio(arrays, forth_left, arrays.forth_disk - demand.disk)
    forth_use = np.where(arrays.exclusive, 0.0, arrays.forth_spindle_use + demand.spindle_use)
    new[:, FORTH_SPINDLES] = forth_use / arrays.high_spindles
    new[:, RESERVED_TOTAL] = new[:, RESERVED]
    return new


def exclusion_values_with_primary(
    arrays: NodeArrays, instance: Instance, stats: ArrayStatistics, rows: Ints, *, full: bool
) -> Floats:
    """Return the location exclusion component with `instance` on each of `rows`.

    `full` counts from scratch, else the node's entries are replaced in the existing counts (where an
    entry that falls to 0 stays).
    """
    if not instance.exclusion_tags or not any(node.facts.location_tags for node in arrays.nodes):
        return np.full(len(rows), stats.exclusions)
    base = merged_maps([node for node in arrays.nodes if not node.facts.offline])
    result = np.empty(len(rows), dtype=np.float64)
    for place, row in enumerate(rows):
        node = arrays.nodes[row]
        keys = tuple((location, tag) for location in node.facts.location_tags for tag in instance.exclusion_tags)
        new = with_counts(node.location_exclusions, keys, 1)
        after = replaced_map(base, node.location_exclusions, new)
        entries = [count for count in after.values() if count > 0] if full else list(after.values())
        result[place] = float(sum(entries) - len(entries))
    return result
