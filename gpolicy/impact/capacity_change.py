"""What a change does to capacity: per group and spec pair what fits before and after, and what binds.

Both states are counted with `gpolicy.analysis.capacity`, so every number is one that `gpolicy capacity` shows. What is
the same before and after is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpolicy.allocator.cluster_data import InstancePolicy, SpecPair
from gpolicy.allocator.dedicated_nodes import allocation_vector, biggest_first, sample_instances
from gpolicy.allocator.engines import TooLongError
from gpolicy.allocator.node import Node
from gpolicy.analysis.capacity import GroupCapacity, count_in_time, prefixed
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.pair_names import PairNames
from gpolicy.impact.comparison import CountedSides, LoadedComparison, measure_sides
from gpolicy.impact.fit_change import (
    AllocationVectors,
    CapacityChange,
    FitChange,
    GroupCapacityChange,
    PairMatch,
    matched_pairs,
)
from gpolicy.stopping import Tell


def capacity_change(compared: LoadedComparison, names: PairNames, tell: Tell) -> CapacityChange:
    """Count what fits on the cluster as it is and as it will be; `names` are what the pairs are called afterwards.

    A group that lacks what has to be known (for example the spindles of nodes that get exclusive storage) is told in
    `unavailable`, and with it the whole cluster.
    """
    slow = {item.match.name: why for item in compared.groups if (why := _too_slow(item))}
    sides = [item for item in compared.groups if item.match.name not in slow]
    sides += [compared.whole] if compared.whole and not slow else []

    def count(cluster: CountedCluster, title: str) -> GroupCapacity | TooLongError:
        return count_in_time(cluster, prefixed(tell, title))

    changes: list[GroupCapacityChange] = []
    for item, (before, after) in zip(sides, measure_sides(sides, count), strict=True):
        try:
            changes.append(_group_change(item, _counted(before), _counted(after), names))
        except TooLongError as error:
            slow[item.match.name] = error.message
    whole = changes.pop() if changes and changes[-1].group is None else None
    unavailable = {**compared.unavailable, **slow}
    if unavailable:
        whole = None
        unavailable[""] = next(iter(unavailable.values()))
    return CapacityChange(tuple(changes), whole, tuple(dict.fromkeys(compared.notes)), unavailable)


def _counted(side: GroupCapacity | TooLongError | None) -> GroupCapacity | None:
    if isinstance(side, TooLongError):
        raise side
    return side


def _too_slow(sides: CountedSides) -> str:
    found = [side.too_slow.message for side in (sides.before, sides.after) if side is not None and side.too_slow]
    return f"under its limits {found[0]}" if found else ""


def _group_change(
    sides: CountedSides, before: GroupCapacity | None, after: GroupCapacity | None, names: PairNames
) -> GroupCapacityChange:
    """Compare one group, or the whole cluster."""
    match = sides.match
    before = before and replace(before, group=match.before)
    after = after and after.called(match.after, names)
    pairs = matched_pairs(_pairs(before), _pairs(after))
    templates, counted = _templates(before, after), sides.after
    if templates and before and counted:
        counted = replace(counted, template=before.template)
    rows = [_row(before, after, place, counted, templates) for place in pairs]
    tiered = FitChange(
        "tiered",
        before.tiered_fit if before else None,
        after.tiered_fit if after else None,
        other_pairs=_pairs(before) != _pairs(after),
        templates=templates,
    )
    if before is not None:
        before = before.renamed({old: row.name for (old, _), row in zip(pairs, rows, strict=True) if old is not None})
    return GroupCapacityChange(
        group=match.name or None,
        before=before,
        after=after,
        rows=tuple(rows),
        tiered=tiered,
        standard=_standard(before, after, counted, templates),
        renamed_from=match.renamed_from,
        vectors=_vectors(before, after, sides),
    )


def _templates(before: GroupCapacity | None, after: GroupCapacity | None) -> tuple[str, ...]:
    """Return the disk templates that are counted before and after; nothing where they are the same."""
    if before is None or after is None or before.template is after.template:
        return ()
    return tuple(side.template.value if side.template else "no template" for side in (before, after))


def _row(
    before: GroupCapacity | None,
    after: GroupCapacity | None,
    places: PairMatch,
    counted: CountedCluster | None,
    templates: tuple[str, ...],
) -> FitChange:
    """Return the row of a pair of the old policy, of the new one, or of both.

    `counted` is the cluster after the change, counted with the template of before.
    """
    old, new = places
    was = before.specs[old] if before is not None and old is not None else None
    will = after.specs[new] if after is not None and new is not None else None
    place = str((old or 0) + 1)
    name = will.name if will is not None else place if after is None else f"was {place}"
    old_size = None
    if was is not None and counted is not None and (will is None or will.pair.max != was.pair.max or templates):
        old_size = counted.fit_pair(was.pair, was.spindle_use)
    return FitChange(name, was.fit if was else None, will.fit if will else None, old_size, templates=templates)


def _standard(
    before: GroupCapacity | None,
    after: GroupCapacity | None,
    counted: CountedCluster | None,
    templates: tuple[str, ...],
) -> FitChange:
    """Return the row of the standard size."""
    was, will = (side.standard if side else None for side in (before, after))
    old_size = None
    if was and was.spec and will and counted is not None and (was.spec != will.spec or templates):
        old_size = counted.standard(was.spec, was.spec.spindle_use)
    return FitChange("standard", was, will, old_size, templates=templates)


def _vectors(
    before: GroupCapacity | None, after: GroupCapacity | None, sides: CountedSides
) -> AllocationVectors | None:
    """Return the allocation vectors of a group where every node has exclusive storage, before and after."""
    if before is None or after is None or before.group is None or sides.before is None or sides.after is None:
        return None
    old, new = sides.before.policy, sides.after.policy
    nodes = [*sides.before.data.nodes, *sides.after.data.nodes]
    if not sides.before.data.nodes or not sides.after.data.nodes or not all(node.exclusive_storage for node in nodes):
        return None
    if any(_weightless(pair) for pair in (*old.minmax, *new.minmax)):
        return None
    now, then = (
        [node for node in side.initial.nodes.values() if not node.facts.offline] for side in (sides.before, sides.after)
    )
    return AllocationVectors(
        names=tuple(before.specs[place].name for place in biggest_first(old)),
        before=_summed(now, old),
        after=_summed(then, old),
        new_names=tuple(after.specs[place].name for place in biggest_first(new)),
        new_after=_summed(then, new),
    )


def _pairs(found: GroupCapacity | None) -> list[SpecPair]:
    return [] if found is None else [spec.pair for spec in found.specs]


def _weightless(pair: SpecPair) -> bool:
    return pair.min.memory <= 0 and pair.min.disk_size <= 0 and pair.min.cpus <= 0


def _summed(nodes: Sequence[Node], policy: InstancePolicy) -> tuple[int, ...]:
    samples = sample_instances(policy)
    vectors = [allocation_vector(node, samples) for node in nodes]
    return tuple(sum(vector[place] for vector in vectors) for place in range(len(samples)))
