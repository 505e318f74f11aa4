"""The cluster score: twenty weighted components, the smaller the better.

Sums run over the nodes in index order, and the total over the components in table order, since the last bit of the
score can decide. A score comes from the full statistics, or from replacing one node's values in existing statistics;
the two are rounded differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.light_dataclasses import dataclass


class Aggregate(Enum):
    """How the nodes' values of a component become one number."""

    DEVIATION = "standard deviation"
    SUM = "sum"
    OFFLINE_SUM = "sum over offline nodes"
    TAG_MAP = "tag map"


@dataclass(frozen=True, slots=True)
class Component:
    """One component of the score, and its value of one node."""

    name: str
    weight: float
    aggregate: Aggregate
    value: Callable[[Node], float]


def _instances(node: Node) -> float:
    return float(len(node.primaries) + len(node.secondaries))


_DEVIATION, _SUM, _OFFLINE_SUM, _TAG_MAP = Aggregate
COMPONENTS = (
    Component("free_mem_cv", 0.5, _DEVIATION, lambda node: node.ratio_memory),
    Component("free_disk_cv", 0.5, _DEVIATION, lambda node: node.ratio_disk),
    Component("n1_cnt", 1.0, _SUM, lambda node: _instances(node) if node.fails_n1 else 0.0),
    Component("reserved_mem_cv", 1.0, _DEVIATION, lambda node: node.ratio_reserved),
    Component("offline_all_cnt", 4.0, _OFFLINE_SUM, _instances),
    Component("offline_pri_cnt", 16.0, _OFFLINE_SUM, lambda node: float(len(node.primaries))),
    Component("vcpu_ratio_cv", 0.5, _DEVIATION, lambda node: divide(node.ratio_cpu, node.facts.cpu_speed)),
    Component("cpu_load_cv", 1.0, _DEVIATION, lambda node: node.load[0]),
    Component("mem_load_cv", 1.0, _DEVIATION, lambda node: node.load[1]),
    Component("disk_load_cv", 1.0, _DEVIATION, lambda node: node.load[2]),
    Component("net_load_cv", 1.0, _DEVIATION, lambda node: node.load[3]),
    Component("pri_tags_score", 2.0, _SUM, lambda node: float(sum(each - 1 for each in node.exclusion_tags.values()))),
    Component("spindles_cv", 0.5, _DEVIATION, lambda node: divide(node.instance_spindles, node.facts.high_spindles)),
    Component("free_mem_cv_forth", 0.5, _DEVIATION, lambda node: node.forth_ratio_memory),
    Component("free_disk_cv_forth", 0.5, _DEVIATION, lambda node: node.forth_ratio_disk),
    Component("vcpu_ratio_cv_forth", 0.5, _DEVIATION, lambda node: divide(node.forth_ratio_cpu, node.facts.cpu_speed)),
    Component(
        "spindles_cv_forth",
        0.5,
        _DEVIATION,
        lambda node: divide(node.forth_instance_spindles, node.facts.high_spindles),
    ),
    Component("location_score", 1.0, _SUM, lambda node: float(node.location_score)),
    Component("location_exclusion_score", 1.0, _TAG_MAP, lambda _node: 0.0),
    Component("reserved_mem_rtotal", 0.25, _SUM, lambda node: node.ratio_reserved),
)
"""Every component, in the order of the sum."""

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

_VALUES = tuple(component.value for component in COMPONENTS)


def node_values(node: Node) -> tuple[float, ...]:
    """Return the node's value of each component (0.0 for the tag map)."""
    if node.score_values is None:
        node.score_values = tuple([value(node) for value in _VALUES])
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
    return tuple(_value_of(stat) for stat in stats)


def total_score(stats: tuple[Statistic, ...], weights: Weights = WEIGHTS) -> float:
    """Return the weighted sum of all components, left to right; 0 if no node is online."""
    score = 0.0
    for weight, stat in zip(weights, stats, strict=False):
        score += weight * _value_of(stat)
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


def _value_of(stat: Statistic) -> float:
    if isinstance(stat, tuple):
        return math.sqrt(stat[2])
    return stat if isinstance(stat, float) else float(sum(stat.values()) - len(stat))


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
