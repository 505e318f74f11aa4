"""What a change does to capacity: per group and spec pair what fits before and after, and what binds.

Both states are counted with `gpolicy.analysis.capacity`, so every number is one that `gpolicy capacity` shows. What is
the same before and after is counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpolicy.allocator.cluster_data import InstancePolicy, SpecPair
from gpolicy.allocator.dedicated_nodes import allocation_vector, biggest_first, sample_instances
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.node import Node
from gpolicy.allocator.policy_check import check_policy
from gpolicy.analysis.capacity import GroupCapacity, Observer, count_cluster, prefixed, refused_by_hail
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.dedicated_counting import placed_by_hail_only
from gpolicy.analysis.extended_capacity import extended_capacity, extended_fit
from gpolicy.analysis.pair_names import PairNames
from gpolicy.cluster.state import Instance
from gpolicy.errors import InputError
from gpolicy.impact.comparison import CountedSides, LoadedComparison, measure_sides
from gpolicy.impact.fit_change import AllocationVectors, CapacityChange, FitChange, GroupCapacityChange, matched_pairs
from gpolicy.printable import some


def capacity_change(compared: LoadedComparison, names: PairNames, tell: Observer) -> CapacityChange:
    """Count what fits on the cluster as it is and as it will be; `names` are what the pairs are called afterwards.

    A group that lacks what has to be known (for example the spindles of nodes that get exclusive storage) is told in
    `unavailable`, and with it the whole cluster.
    """
    sides = [*compared.groups, *([compared.whole] if compared.whole else [])]
    instances = {**compared.after.state.instances, **compared.before.state.instances}

    def count(cluster: CountedCluster, title: str) -> GroupCapacity:
        counted = count_cluster(cluster, prefixed(tell, title))
        if not cluster.limits.beyond_htools:
            return counted
        return replace(counted, extended=extended_capacity(cluster, instances, prefixed(tell, title)))

    found = measure_sides(sides, count)
    changes = []
    for item, (before, after) in zip(sides, found, strict=True):
        if item.match.name:
            changes.append(_limited(_group_change(item, before, after, names), item.after, instances))
        else:  # limits are those of groups
            exact = [side and replace(side, extended=None) for side in (before, after)]
            changes.append(_group_change(item, exact[0], exact[1], names))
    whole = changes.pop() if compared.whole else None
    notes = [note for item, change in zip(compared.groups, changes, strict=True) for note in _stuck(item, change)]
    notes += [
        f"{f'group {item.group}' if item.group else 'the whole cluster'}: {text}"
        for item in (*changes, *([whole] if whole else []))
        for text in (item.after.differences if item.after else ())
    ]
    unavailable = dict(compared.unavailable)
    if compared.whole is None and unavailable:
        unavailable[""] = next(iter(unavailable.values()))
    return CapacityChange(tuple(changes), whole, tuple(dict.fromkeys((*notes, *compared.notes))), unavailable)


def _group_change(
    sides: CountedSides, before: GroupCapacity | None, after: GroupCapacity | None, names: PairNames
) -> GroupCapacityChange:
    """Compare one group, or the whole cluster."""
    match = sides.match
    before = before and replace(before, group=match.before)
    after = after and after.called(match.after, names)
    pairs = matched_pairs(_pairs(before), _pairs(after))
    rows = [_row(before, after, old, new, sides.after) for old, new in pairs]
    tiered = FitChange(
        "tiered",
        before.tiered_fit if before else None,
        after.tiered_fit if after else None,
        other_pairs=_pairs(before) != _pairs(after),
    )
    if before is not None:
        before = before.renamed({old: row.name for (old, _), row in zip(pairs, rows, strict=True) if old is not None})
    return GroupCapacityChange(
        group=match.name or None,
        before=before,
        after=after,
        rows=tuple(rows),
        tiered=tiered,
        standard=_standard(before, after, sides.after),
        renamed_from=match.renamed_from,
        vectors=_vectors(before, after, sides),
    )


def _limited(
    change: GroupCapacityChange, counted: CountedCluster | None, instances: Mapping[str, Instance]
) -> GroupCapacityChange:
    """Return `change` with its rows under the group's limits, if it has any."""
    before, after = change.before, change.after
    sides = [side.extended for side in (before, after) if side is not None and side.extended is not None]
    reasons = [side.unavailable for side in sides if side.unavailable is not None]
    if reasons or not sides:
        return replace(change, not_limited=reasons[0] if reasons else None)
    was, will = (_limited_fits(side) for side in (before, after))
    rows = []
    try:
        for row in change.rows:
            old, old_size = was.get(row.name), None
            if old is not None and row.old_size_after is not None and counted is not None:
                pair, spindle_use, _ = old
                old_size = extended_fit(counted, pair, spindle_use, instances)
            new = will.get(row.name)
            rows.append(FitChange(row.name, old[2] if old else None, new[2] if new else None, old_size))
    except InputError as error:
        return replace(change, not_limited=error.message)
    return replace(change, limited=tuple(rows))


def _limited_fits(side: GroupCapacity | None) -> dict[str, tuple[SpecPair, int, Fit]]:
    """Return each pair by its name, with its spindle use and what fits under the limits."""
    if side is None or side.extended is None:
        return {}
    return {
        spec.name: (spec.pair, spec.spindle_use, Fit(fit.fits, fit.binding, spec.pair.max))
        for spec, fit in zip(side.specs, side.extended.specs, strict=True)
    }


def _row(
    before: GroupCapacity | None,
    after: GroupCapacity | None,
    old: int | None,
    new: int | None,
    counted: CountedCluster | None,
) -> FitChange:
    """Return the row of a pair of the old policy (its place), of the new one, or of both."""
    was = before.specs[old] if before is not None and old is not None else None
    will = after.specs[new] if after is not None and new is not None else None
    place = str((old or 0) + 1)
    name = will.name if will is not None else place if after is None else f"was {place}"
    old_size = None
    if was is not None and counted is not None and (will is None or will.pair.max != was.pair.max):
        old_size = counted.standard(was.pair.max, was.spindle_use)
    return FitChange(name, was.fit if was else None, will.fit if will else None, old_size)


def _standard(before: GroupCapacity | None, after: GroupCapacity | None, counted: CountedCluster | None) -> FitChange:
    """Return the row of the standard size."""
    was, will = (side.standard if side else None for side in (before, after))
    old_size = None
    if was and was.spec and will and counted is not None and was.spec != will.spec:
        old_size = counted.standard(was.spec, was.spec.spindle_use)
    return FitChange("standard", was, will, old_size)


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


def _stuck(sides: CountedSides, change: GroupCapacityChange) -> list[str]:
    """Return a note where nothing fits, since instances that violate the new policy find no other home, or by hspace;
    or where hspace counts what hail refuses.

    N+1 places a copy of each instance that is neither mirrored nor on shared storage, and holds it against the policy.
    """
    side = sides.after
    if side is None or change.after is None or not side.data.nodes:
        return []
    if change.after.most_fits:
        refused = refused_by_hail(side, sides.match.name)
        return [refused] if refused else []
    exclusive = {node.index: node.exclusive_storage for node in side.data.nodes}
    bad = [
        item.name
        for item in side.data.instances
        if item.template is not DiskTemplate.DRBD
        and not item.template.movable_foreign
        and check_policy(side.policy, item, exclusive=exclusive[item.primary]) is not None
    ]
    if not bad:
        by_hail = placed_by_hail_only(side, sides.match.name)
        return [by_hail] if by_hail else []
    said = (
        f"group {sides.match.name}: nothing fits as long as instances that are not mirrored violate its policy"
        f" ({some(bad, 3)}): N+1 needs another node for each of them, and the policy allows them on none"
    )
    return [said]


def _pairs(found: GroupCapacity | None) -> list[SpecPair]:
    return [] if found is None else [spec.pair for spec in found.specs]


def _weightless(pair: SpecPair) -> bool:
    return pair.min.memory <= 0 and pair.min.disk_size <= 0 and pair.min.cpus <= 0


def _summed(nodes: Sequence[Node], policy: InstancePolicy) -> tuple[int, ...]:
    samples = sample_instances(policy)
    vectors = [allocation_vector(node, samples) for node in nodes]
    return tuple(sum(vector[place] for vector in vectors) for place in range(len(samples)))
