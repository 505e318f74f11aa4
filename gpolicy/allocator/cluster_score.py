"""The cluster score: twenty weighted components, the smaller the better.

Sums run over the nodes in index order, and the total over the components in table order, since the last bit of the
score can decide. A score comes from the full statistics, or from replacing one node's values in existing statistics;
the two are rounded differently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum

from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.node import Node
from gpolicy.light_dataclasses import dataclass


class Aggregate(Enum):
    """How the nodes' values of a component become one number."""

    DEVIATION = "standard deviation"
    SUM = "sum"
    OFFLINE_SUM = "sum over offline nodes"
    TAG_MAP = "tag map"


@dataclass(frozen=True, slots=True)
class Component:
    """One component of the score."""

    name: str
    weight: float
    aggregate: Aggregate


COMPONENTS = (
    Component("free_mem_cv", 0.5, Aggregate.DEVIATION),
    Component("free_disk_cv", 0.5, Aggregate.DEVIATION),
    Component("n1_cnt", 1.0, Aggregate.SUM),
    Component("reserved_mem_cv", 1.0, Aggregate.DEVIATION),
    Component("offline_all_cnt", 4.0, Aggregate.OFFLINE_SUM),
    Component("offline_pri_cnt", 16.0, Aggregate.OFFLINE_SUM),
    Component("vcpu_ratio_cv", 0.5, Aggregate.DEVIATION),
    Component("cpu_load_cv", 1.0, Aggregate.DEVIATION),
    Component("mem_load_cv", 1.0, Aggregate.DEVIATION),
    Component("disk_load_cv", 1.0, Aggregate.DEVIATION),
    Component("net_load_cv", 1.0, Aggregate.DEVIATION),
    Component("pri_tags_score", 2.0, Aggregate.SUM),
    Component("spindles_cv", 0.5, Aggregate.DEVIATION),
    Component("free_mem_cv_forth", 0.5, Aggregate.DEVIATION),
    Component("free_disk_cv_forth", 0.5, Aggregate.DEVIATION),
    Component("vcpu_ratio_cv_forth", 0.5, Aggregate.DEVIATION),
    Component("spindles_cv_forth", 0.5, Aggregate.DEVIATION),
    Component("location_score", 1.0, Aggregate.SUM),
    Component("location_exclusion_score", 1.0, Aggregate.TAG_MAP),
    Component("reserved_mem_rtotal", 0.25, Aggregate.SUM),
)
"""Name, weight and aggregation of every component, in the order of the sum."""

Weights = tuple[float, ...]
"""A weight for each component, in the order of `COMPONENTS`."""
WEIGHTS: Weights = tuple(component.weight for component in COMPONENTS)
"""Ganeti's own."""
MOST_WEIGHT = 1000.0
"""The greatest weight that the engine accepts (input.c)."""

TagMap = Mapping[tuple[str, str], int]
Deviation = tuple[float, float, float]
"""Number of values, their sum, their variance."""
Statistic = float | Deviation | TagMap


def node_values(node: Node) -> tuple[float, ...]:
    """Return the node's value of each component (0.0 for the tag map)."""
    if node.score_values is None:
        facts, load = node.facts, node.load
        primaries = float(len(node.primaries))
        instances = float(len(node.primaries) + len(node.secondaries))
        tags = sum(node.exclusion_tags.values()) - len(node.exclusion_tags)
        node.score_values = (
            node.ratio_memory,
            node.ratio_disk,
            instances if node.fails_n1 else 0.0,
            node.ratio_reserved,
            instances,
            primaries,
            divide(node.ratio_cpu, facts.cpu_speed),
            load[0],
            load[1],
            load[2],
            load[3],
            float(tags),
            divide(node.instance_spindles, facts.high_spindles),
            node.forth_ratio_memory,
            node.forth_ratio_disk,
            divide(node.forth_ratio_cpu, facts.cpu_speed),
            divide(node.forth_instance_spindles, facts.high_spindles),
            float(node.location_score),
            0.0,
            node.ratio_reserved,
        )
    return node.score_values


def statistics(nodes: Iterable[Node]) -> tuple[Statistic, ...]:
    """Return the full statistics of `nodes` (ascending index); empty if no node is online."""
    everything = list(nodes)
    online = [node_values(node) for node in everything if not node.facts.offline]
    if not online:
        return ()
    offline = [node_values(node) for node in everything if node.facts.offline]
    result: list[Statistic] = []
    for place, component in enumerate(COMPONENTS):
        match component.aggregate:
            case Aggregate.DEVIATION:
                result.append(deviation([values[place] for values in online]))
            case Aggregate.SUM:
                result.append(ordered_sum(values[place] for values in online))
            case Aggregate.OFFLINE_SUM:
                result.append(ordered_sum(values[place] for values in offline))
            case Aggregate.TAG_MAP:
                result.append(merged_maps(node for node in everything if not node.facts.offline))
    return tuple(result)


def ordered_sum(values: Iterable[float]) -> float:
    """Return the sum, strictly from left to right (Python's `sum` compensates from 3.12 on)."""
    total = 0.0
    for value in values:
        total += value
    return total


def deviation(values: list[float]) -> Deviation:
    """Return count, sum and population variance, both sums from left to right."""
    count, total = float(len(values)), ordered_sum(values)
    mean = total / count
    return count, total, ordered_sum((value - mean) * (value - mean) for value in values) / count


def replaced(stats: tuple[Statistic, ...], old: Node, new: Node) -> tuple[Statistic, ...]:
    """Return `stats` with one node's values `old` replaced by `new`, without reading the other nodes."""
    if not stats:
        return stats
    before, after, offline = node_values(old), node_values(new), old.facts.offline
    result: list[Statistic] = []
    for component, stat, x, y in zip(COMPONENTS, stats, before, after, strict=True):
        if offline is not (component.aggregate is Aggregate.OFFLINE_SUM):
            result.append(stat)
        elif isinstance(stat, tuple):
            result.append(_replaced_deviation(stat, x, y))
        elif isinstance(stat, float):
            result.append(stat + (y - x))
        else:
            result.append(replaced_map(stat, old.location_exclusions, new.location_exclusions))
    return tuple(result)


def component_values(stats: tuple[Statistic, ...]) -> tuple[float, ...]:
    """Return the value of every component, empty if no node is online."""
    return tuple(_value(stat) for stat in stats)


def total_score(stats: tuple[Statistic, ...], weights: Weights = WEIGHTS) -> float:
    """Return the weighted sum of all components, left to right; 0 if no node is online."""
    score = 0.0
    for weight, stat in zip(weights, stats, strict=False):
        score += weight * _value(stat)
    return score


def cluster_score(nodes: Iterable[Node], weights: Weights = WEIGHTS) -> float:
    """Return the score of `nodes`, computed from the full statistics."""
    return total_score(statistics(nodes), weights)


def least_reserved(nodes: Iterable[Node]) -> float:
    """Return the theoretical minimum of `reserved_mem_rtotal`: the memory of all mirrored instances, spread evenly.

    hbal takes it, weighted, for the optimum of the score (htools 3.0; design document "allocation efficiency").
    """
    known = list(nodes)
    total, most, mirrored = 0.0, 0.0, 0
    for node in known:
        total, most = total + node.facts.total_memory, max(most, node.facts.total_memory)
        mirrored += sum(node.peers.values())
    if len(known) <= 1 or total - most <= 0:
        return 0.0
    return mirrored / (total - most) - mirrored / total


def _value(stat: Statistic) -> float:
    if isinstance(stat, tuple):
        return math.sqrt(stat[2])
    if isinstance(stat, float):
        return stat
    return float(sum(stat.values()) - len(stat))


def _replaced_deviation(stat: Deviation, x: float, y: float) -> Deviation:
    count, total, variance = stat
    change = y - x
    square_change = y * y - x * x
    step = (count * square_change - (2.0 * total) * change) - change * change
    moved = variance + step / (count * count)
    # htools takes max(0, .) in this order of comparison, which also turns NaN into 0; Python's max does not
    return count, total + change, moved if moved >= 0.0 else 0.0  # noqa: FURB136


def replaced_map(stat: TagMap, old: TagMap, new: TagMap) -> TagMap:
    """Return the counts `stat` with one node's entries `old` replaced by `new`."""
    if not old and not new:
        return stat
    result = dict(stat)
    for key, count in old.items():
        if key in result:
            # an entry that falls to 0 stays and counts as -1
            result[key] -= count
    for key, count in new.items():
        result[key] = result.get(key, 0) + count
    return result


def merged_maps(nodes: Iterable[Node]) -> TagMap:
    """Return the location exclusion entries of all nodes, added up."""
    merged: dict[tuple[str, str], int] = {}
    for node in nodes:
        for key, count in node.location_exclusions.items():
            merged[key] = merged.get(key, 0) + count
    return merged
