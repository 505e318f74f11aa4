"""What a change does to capacity: per group and size what fits before and after, and what binds.

Both states are counted with `gpolicy.analysis.capacity`, so every number is one that `gpolicy capacity` shows. What is
the same before and after is counted once.

What the fields mean, with their units, `scripts/reference/output_texts.toml` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log2

from gpolicy.allocator.cluster_data import InstancePolicy, Node, SpecPair
from gpolicy.allocator.engines import TooLongError
from gpolicy.allocator.requests import allocation_vector, biggest_first, sample_instances
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import GroupCapacity, count_in_time
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.cluster.terms import PairNames
from gpolicy.impact.comparison import CountedSides, LoadedSides, measure_sides
from gpolicy.progress import Tell


@dataclass(frozen=True, slots=True)
class FitChange:
    """One row: what fitted and what will fit.

    `name` is "was 2" for the place of a pair that is gone. An instance of the old size may be forbidden afterwards:
    bound by ipolicy.minmax. `templates` are the one now and the one then where they differ. `other_pairs` says of the
    tiered run that it goes through other pairs than before.
    """

    name: str
    before: Fit | None
    after: Fit | None
    old_size_after: Fit | None = None
    other_pairs: bool = False
    templates: tuple[str, ...] = ()

    @property
    def resized(self) -> bool:
        """Whether the sides count instances of different sizes or templates, so that their numbers do not compare."""
        if self.before is None or self.after is None:
            return False
        return self.other_pairs or bool(self.templates) or self.before.spec != self.after.spec

    @property
    def worst_after(self) -> Fit | None:
        """What fits afterwards of the size that is counted before; None where that is not known."""
        return self.old_size_after if self.old_size_after is not None or self.resized else self.after

    @property
    def is_loss(self) -> bool:
        """Whether fewer instances of one and the same size fit than before."""
        then = self.worst_after
        return self.before is not None and then is not None and then.fits < self.before.fits

    @property
    def is_abolished(self) -> bool:
        """Whether the policy no longer allows the old size, or its template."""
        return self.old_size_after is not None and self.old_size_after.binding.cause in (Cause.BOUNDS, Cause.TEMPLATE)

    @property
    def delta(self) -> int | None:
        """Instances won (or lost, below 0); None where one side is missing."""
        return None if self.before is None or self.after is None else self.after.fits - self.before.fits

    @property
    def percent(self) -> float | None:
        """The change in % of what fitted before; None where nothing fitted, or one side is missing."""
        delta = self.delta
        return None if delta is None or self.before is None or not self.before.fits else 100 * delta / self.before.fits


@dataclass(frozen=True, slots=True)
class AllocationVectors:
    """How many instances of each size at its smallest the group's nodes take, each size alone, biggest disk first.

    Summed over the online nodes (design document "dedicated allocation", "Dedicated Allocation Metric").
    """

    names: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    new_names: tuple[str, ...]
    new_after: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """The lost-allocations vector; below 0 where more fit than before."""
        return tuple(old - new for old, new in zip(self.before, self.after, strict=True))


@dataclass(frozen=True, slots=True)
class GroupCapacityChange:
    """The capacity of one group, or of the whole cluster."""

    group: str | None
    before: GroupCapacity | None
    after: GroupCapacity | None
    rows: tuple[FitChange, ...]
    tiered: FitChange
    standard: FitChange
    renamed_from: str | None = None
    vectors: AllocationVectors | None = None

    @property
    def figures(self) -> tuple[FitChange, ...]:
        """All of them: each size, tiered, standard."""
        return (*self.rows, self.tiered, self.standard)

    @property
    def most_before(self) -> int:
        """The greatest number of instances that fit now, of any size."""
        return max((row.before.fits for row in self.figures if row.before), default=0)

    @property
    def emptied(self) -> str:
        """Why a group that takes instances today would take none; empty where it takes some or is removed."""
        if self.before is None or self.after is None or not self.before.most_fits or self.after.most_fits:
            return ""
        if any(row.old_size_after and row.old_size_after.fits for row in (*self.rows, self.standard)):
            return ""
        return self.after.refusal_words or ("it would be unallocable" if self.after.nodes else "it would have no nodes")


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """Capacity of each group and of the whole cluster, before and after."""

    groups: tuple[GroupCapacityChange, ...]
    cluster: GroupCapacityChange | None
    notes: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)


PairMatch = tuple[int | None, int | None]
"""Places (from 0) in the old and in the new policy; None where the pair is new, or gone."""


def matched_pairs(old: Sequence[SpecPair], new: Sequence[SpecPair]) -> list[PairMatch]:
    """Return the pairs of both policies: in the order of the new one, then those that are gone.

    Equal pairs belong together. Of the others, equally many on both sides belong together in their order (they were
    resized); otherwise those whose greatest sizes are nearest.
    """
    match: dict[int, int] = {}
    left = list(range(len(old)))
    for place, pair in enumerate(new):
        same = [number for number in left if old[number] == pair]
        if same:
            match[place] = min(same, key=lambda number: abs(number - place))
            left.remove(match[place])
    added = [place for place in range(len(new)) if place not in match]
    if len(added) == len(left):
        match.update(zip(added, left, strict=True))
        left = []
    else:
        while added and left:
            choices = [(_distance(old[number], new[place]), place, number) for place in added for number in left]
            _, place, number = min(choices)
            match[place] = number
            added.remove(place)
            left.remove(number)
    return [*((match.get(place), place) for place in range(len(new))), *((number, None) for number in left)]


def _distance(left: SpecPair, right: SpecPair) -> float:
    """Return how many doublings lie between the greatest sizes: memory, CPUs and disk added up."""
    values = ((getattr(left.max, name), getattr(right.max, name)) for name in ("memory", "cpus", "disk_size"))
    return sum(abs(log2(max(1, a)) - log2(max(1, b))) for a, b in values)


def capacity_change(loaded: LoadedSides, tell: Tell) -> CapacityChange:
    """Count what fits on the cluster as it is and as it will be.

    A group that lacks what has to be known (for example the spindles of nodes that get exclusive storage) is told in
    `unavailable`, and with it the whole cluster.
    """
    slow = {item.match.name: why for item in loaded.groups if (why := _too_slow(item))}
    compared = [item for item in loaded.groups if item.match.name not in slow]
    compared += [loaded.whole] if loaded.whole and not slow else []

    changes: list[GroupCapacityChange] = []
    for item, (before, after) in zip(compared, measure_sides(compared, partial(count_in_time, tell)), strict=True):
        try:
            changes.append(_group_change(item, _counted(before), _counted(after), loaded.sides.names))
        except TooLongError as error:
            slow[item.match.name] = error.message
    whole = changes.pop() if changes and changes[-1].group is None else None  # the last, if it was counted
    unavailable = {**loaded.unavailable, **slow}
    if unavailable:
        whole = None
        unavailable[""] = next(iter(unavailable.values()))
    return CapacityChange(tuple(changes), whole, tuple(dict.fromkeys(loaded.notes)), unavailable)


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
    match = sides.match
    before = before and replace(before, group=match.before)
    after = after and after.called(match.after, names)
    pairs = matched_pairs(_pairs(before), _pairs(after))
    templates, counted = _templates(before, after), sides.after
    if templates and before and counted:
        counted = replace(counted, template=before.template)
    rows = [_pair_row(before, after, place, counted, templates) for place in pairs]
    tiered = FitChange(
        "tiered",
        before.tiered_fit if before else None,
        after.tiered_fit if after else None,
        other_pairs=_pairs(before) != _pairs(after),
        templates=templates,
    )
    was, will = (side.standard if side else None for side in (before, after))
    old_standard = None
    if was and was.spec and will and counted is not None and (was.spec != will.spec or templates):
        old_standard = counted.standard(was.spec, was.spec.spindle_use)
    if before is not None:
        before = before.renamed({old: row.name for (old, _), row in zip(pairs, rows, strict=True) if old is not None})
    return GroupCapacityChange(
        group=match.name or None,
        before=before,
        after=after,
        rows=tuple(rows),
        tiered=tiered,
        standard=FitChange("standard", was, will, old_standard, templates=templates),
        renamed_from=match.renamed_from,
        vectors=_vectors(before, after, sides),
    )


def _templates(before: GroupCapacity | None, after: GroupCapacity | None) -> tuple[str, ...]:
    """Return the disk templates that are counted before and after; nothing where they are the same."""
    if before is None or after is None or before.template is after.template:
        return ()
    return tuple(side.template.value if side.template else "no template" for side in (before, after))


def _pair_row(
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


def _vectors(
    before: GroupCapacity | None, after: GroupCapacity | None, sides: CountedSides
) -> AllocationVectors | None:
    """Return the allocation vectors of a group where every node has exclusive storage, before and after."""
    if before is None or after is None or before.group is None or sides.before is None or sides.after is None:
        return None
    old, new = sides.before.policy, sides.after.policy
    nodes = [*sides.before.data.nodes, *sides.after.data.nodes]
    if not sides.before.data.nodes or not sides.after.data.nodes or not all(node.exclusive for node in nodes):
        return None
    if any(max(p.min.memory, p.min.disk_size, p.min.cpus) <= 0 for p in (*old.minmax, *new.minmax)):
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


def _summed(nodes: Sequence[Node], policy: InstancePolicy) -> tuple[int, ...]:
    samples = sample_instances(policy)
    vectors = [allocation_vector(node, samples) for node in nodes]
    return tuple(sum(vector[place] for vector in vectors) for place in range(len(samples)))
