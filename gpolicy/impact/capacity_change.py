"""What a change does to capacity: per group and spec pair what fits before and after, and what binds.

Both states are counted with `gpolicy.analysis.capacity`, so every number is one that `gpolicy capacity` shows. What is
the same before and after is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import SpecPair
from gpolicy.allocator.dedicated_nodes import allocation_vector, sample_instances
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.policy_check import check_policy
from gpolicy.analysis.capacity import GroupCapacity, Observer, SpecCapacity, StandardCapacity, count
from gpolicy.analysis.clusters import Clusters
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed
from gpolicy.analysis.pair_names import PairNames
from gpolicy.analysis.side_by_side import side_by_side
from gpolicy.impact.fit_change import AllocationVectors, CapacityChange, Fit, FitChange, GroupCapacityChange
from gpolicy.impact.group_match import GroupMatch, matched_groups
from gpolicy.impact.pair_match import matched_pairs
from gpolicy.plan.change import some

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import ClusterData, Policy
    from gpolicy.allocator.node import Node
    from gpolicy.analysis.capacity_run import Run
    from gpolicy.analysis.clusters import SharedCluster
    from gpolicy.analysis.known_part import KnownPart
    from gpolicy.cluster.state import ClusterState


def capacity_change(
    before: ClusterState,
    after: ClusterState,
    *,
    names: PairNames | None = None,
    observer: Observer | None = None,
    clusters: Clusters | None = None,
) -> CapacityChange:
    """Count what fits on the cluster as it is in `before` and as it will be in `after`.

    `names` are what the pairs of `after` are called. A group that lacks what has to be known (for example the spindles
    of nodes that get exclusive storage) is told in `unavailable`, and with it the whole cluster; raise GpolicyError
    where nothing can be counted at all. `clusters` are shared with other parts of an impact.
    """
    clusters = clusters or Clusters()
    old, new = clusters.part(before), clusters.part(after)
    counter = _Counter(names or PairNames(), observer or (lambda _what: None))
    compared: list[tuple[GroupMatch, _Sides]] = []
    unavailable = {}
    for match in matched_groups(before, after):
        reason = old.gaps.get(match.before or "") or new.gaps.get(match.after or "")
        if reason is not None:
            unavailable[match.name] = reason
            continue
        sides = (
            None if match.before is None else _side(clusters, old, match.before),
            None if match.after is None else _side(clusters, new, match.after),
        )
        compared.append((match, sides))
    as_a_whole = None
    if old.gaps or new.gaps:
        unavailable[""] = next(iter({**old.gaps, **new.gaps}.values()))
    else:
        as_a_whole = GroupMatch(None, None), (_side(clusters, old, None), _side(clusters, new, None))
    counter.count_all([*compared, *([as_a_whole] if as_a_whole else [])])
    groups, notes = [], list[str]()
    for match, sides in compared:
        groups.append(counter.change(match, sides))
        notes += _stuck(match.name, groups[-1], sides[1])
    whole = None if as_a_whole is None else counter.change(*as_a_whole)
    return CapacityChange(tuple(groups), whole, tuple(dict.fromkeys((*notes, *old.notes, *new.notes))), unavailable)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: the cluster to count on, and the template of the instances."""

    shared: SharedCluster
    template: DiskTemplate | None

    @property
    def data(self) -> ClusterData:
        """The allocator's input."""
        return self.shared.data

    @property
    def run(self) -> Run:
        """The run that counts this side."""
        return self.shared.run(self.template)


_Sides = tuple[_Side | None, _Side | None]


def _side(clusters: Clusters, part: KnownPart, group: str | None) -> _Side:
    shared = clusters.of(part, group)
    return _Side(shared, first_allowed(enabled_templates(part.state), shared.data.policy))


@dataclass(slots=True)
class _Counter:
    """Counts each side once."""

    names: PairNames
    tell: Observer
    counted: dict[_Side, GroupCapacity] = field(default_factory=dict)

    def count_all(self, compared: Sequence[tuple[GroupMatch, _Sides]]) -> None:
        """Count all sides, as many at once as there are cores."""
        jobs: dict[_Side, Callable[[], GroupCapacity]] = {}
        for match, sides in compared:
            for side, group, when in zip(sides, (match.before, match.after), ("now", "after"), strict=True):
                if side is not None and side not in jobs:
                    jobs[side] = partial(self.counting, side.run, side, group, when)
        # N+1 takes longest where what is lost with a node is not mirrored
        longest_first = sorted(jobs, key=lambda side: (side.template is DiskTemplate.DRBD, -len(side.data.nodes)))
        found = side_by_side([jobs[side] for side in longest_first])
        self.counted.update(zip(longest_first, found, strict=True))

    def counting(self, run: Run, side: _Side, group: str | None, when: str) -> GroupCapacity:
        """Count one side."""
        return count(run, group, side.template, PairNames(), lambda what: self.tell(f"{what}, {when}"))

    def change(self, match: GroupMatch, sides: _Sides) -> GroupCapacityChange:
        """Compare one group, or the whole cluster."""
        before = None if sides[0] is None else self.capacity(sides[0], match.before)
        after = None if sides[1] is None else self.capacity(sides[1], match.after)
        after = None if after is None else self.named(after, match.after)
        pairs = matched_pairs(_pairs(before), _pairs(after))
        rows = []
        for old, new in pairs:
            rows.append(self.row(before, after, old, new, sides[1]))
        before = (
            None
            if before is None
            else _renamed(before, {row[0]: fit.name for row, fit in zip(pairs, rows, strict=True)})
        )
        return GroupCapacityChange(
            group=match.name or None,
            before=before,
            after=after,
            rows=tuple(rows),
            tiered=FitChange("tiered", _tiered(before), _tiered(after)),
            standard=self.standard(before, after, sides[1]),
            renamed_from=match.before if match.before != match.name and match.after is not None else None,
            vectors=self.vectors(before, after, sides),
        )

    def capacity(self, side: _Side, group: str | None) -> GroupCapacity:
        """Return the capacity of one side, which is among those counted, as that of `group`."""
        found = self.counted[side]
        return replace(found, group=group, nodes=len(side.data.nodes), instances=len(side.data.instances))

    def named(self, found: GroupCapacity, group: str | None) -> GroupCapacity:
        """Give the pairs of the new policy their names."""
        shown = self.names.of(group, len(found.specs))
        return _renamed(found, dict(enumerate(shown)))

    def row(
        self,
        before: GroupCapacity | None,
        after: GroupCapacity | None,
        old: int | None,
        new: int | None,
        side: _Side | None,
    ) -> FitChange:
        """Return the row of a pair of the old policy (its place), of the new one, or of both."""
        was = before.specs[old] if before is not None and old is not None else None
        will = after.specs[new] if after is not None and new is not None else None
        place = str((old or 0) + 1)
        name = will.name if will is not None else place if after is None else f"was {place}"
        gone = was is not None and side is not None and (will is None or will.pair.max != was.pair.max)
        old_size = self.old_size(was, side) if was is not None and side is not None and gone else None
        return FitChange(name, _fit(was), _fit(will), old_size)

    def old_size(self, was: SpecCapacity, side: _Side) -> Fit:
        fits, why = side.run.standard(was.pair.max, was.spindle_use)
        return Fit(fits, why, was.pair.max)

    def standard(self, before: GroupCapacity | None, after: GroupCapacity | None, side: _Side | None) -> FitChange:
        """Return the row of the standard size."""
        was = None if before is None else before.standard
        will = None if after is None else after.standard
        old_size = None
        if was is not None and will is not None and side is not None and was.spec != will.spec:
            fits, why = side.run.standard(was.spec, was.spec.spindle_use)
            old_size = Fit(fits, why, was.spec)
        return FitChange("standard", _standard(was), _standard(will), old_size)

    def vectors(
        self, before: GroupCapacity | None, after: GroupCapacity | None, sides: _Sides
    ) -> AllocationVectors | None:
        """Return the allocation vectors of a group where every node has exclusive storage, before and after."""
        if before is None or after is None or before.group is None or sides[0] is None or sides[1] is None:
            return None
        if not all(side.data.nodes and all(n.exclusive_storage for n in side.data.nodes) for side in sides if side):
            return None
        old, new = sides[0].data.policy, sides[1].data.policy
        if any(_weightless(pair) for pair in (*old.minmax, *new.minmax)):
            return None
        now = [node for node in sides[0].run.initial.nodes.values() if not node.facts.offline]
        then = [node for node in sides[1].run.initial.nodes.values() if not node.facts.offline]
        return AllocationVectors(
            names=_by_disk(before, old),
            before=_summed(now, old),
            after=_summed(then, old),
            new_names=_by_disk(after, new),
            new_after=_summed(then, new),
        )


def _stuck(name: str, change: GroupCapacityChange, side: _Side | None) -> list[str]:
    """Return a note where nothing fits since instances that violate the new policy find no other home.

    N+1 places a copy of each instance that is neither mirrored nor on shared storage, and holds it against the policy.
    """
    after = [row.after for row in (*change.rows, change.tiered, change.standard) if row.after is not None]
    if side is None or not side.data.nodes or any(fit.fits for fit in after):
        return []
    exclusive = {node.index: node.exclusive_storage for node in side.data.nodes}
    bad = [
        item.name
        for item in side.data.instances
        if item.template is not DiskTemplate.DRBD
        and not item.template.movable_foreign
        and check_policy(side.data.policy, item, exclusive=exclusive[item.primary]) is not None
    ]
    if not bad:
        return []
    said = (
        f"group {name}: nothing fits as long as instances that are not mirrored violate its policy ({some(bad, 3)}):"
        " N+1 puts what is lost with a node elsewhere under the policy, and these it may put nowhere"
    )
    return [said]


def _pairs(found: GroupCapacity | None) -> list[SpecPair]:
    return [] if found is None else [spec.pair for spec in found.specs]


def _renamed(found: GroupCapacity, names: Mapping[int | None, str]) -> GroupCapacity:
    specs = tuple(replace(spec, name=names.get(place, spec.name)) for place, spec in enumerate(found.specs))
    return replace(found, specs=specs)


def _fit(spec: SpecCapacity | None) -> Fit | None:
    return None if spec is None else Fit(spec.fits, spec.binding, spec.pair.max)


def _tiered(found: GroupCapacity | None) -> Fit | None:
    return None if found is None else Fit(sum(size.count for size in found.tiered), found.tiered_binding)


def _standard(standard: StandardCapacity | None) -> Fit | None:
    return None if standard is None else Fit(standard.fits, standard.binding, standard.spec)


def _weightless(pair: SpecPair) -> bool:
    return pair.min.memory <= 0 and pair.min.disk_size <= 0 and pair.min.cpus <= 0


def _by_disk(found: GroupCapacity, policy: Policy) -> tuple[str, ...]:
    """Return the names of the pairs in the order in which allocation vectors count them."""
    order = sorted(range(len(policy.minmax)), key=lambda place: -policy.minmax[place].min.disk_size)
    return tuple(found.specs[place].name for place in order)


def _summed(nodes: Sequence[Node], policy: Policy) -> tuple[int, ...]:
    samples = sample_instances(policy)
    vectors = [allocation_vector(node, samples) for node in nodes]
    return tuple(sum(vector[place] for vector in vectors) for place in range(len(samples)))
