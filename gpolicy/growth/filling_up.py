"""When no instance of a size fits any more, at the growth that the snapshots of a cluster show.

The room of a size is what may be added until hail refuses the size: instances of the average size of those that are
there, one after the other, where hail places them. (What fits times the size would be more: small instances take the
room of a large one on each node long before all nodes are full.) The room is used up at the growth of the resource for
which hail refuses the size then (`day_range`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf
from typing import Final

from gpolicy.allocator.cluster_data import Instance, Spec
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.errors import GpolicyError
from gpolicy.growth.day_range import LEAST_WEEKS, Point, day_range
from gpolicy.growth.history import Amounts, History, amounts_of
from gpolicy.printable import count, named

_RESOURCES: Final = {
    **dict.fromkeys((Cause.MEMORY, Cause.RESERVE, Cause.REDUNDANCY, Cause.NODE_FAILURES, Cause.BROKEN), "memory"),
    **dict.fromkeys((Cause.VCPU_RATIO, Cause.CPUS_AFTER_FAILURE), "cpus"),
    Cause.OVERSUBSCRIPTION: "memory",
    Cause.DISK: "disk",
    Cause.SPINDLES: "spindles",
    Cause.SPINDLE_RATIO: "spindle_use",
}
"""What is used up where a size is refused. What is refused for another cause does not depend on growth."""
_MOST_ADDED: Final = 5_000
_LONGEST: Final = 5 * 365  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeForecast:
    """When no more instances of a size (its name, or standard) fit in a group, and what will refuse them then.

    Instances use `per_week` more of the `resource` each week, and may use `room` more until then. Days count from when
    the state was read: nine of ten fillings lie between `low` and `high`; None: not within the horizon. `points` are
    the use of the resource so far, by days.
    """

    group: str
    spec: str
    bound_by: str
    resource: str
    room: int
    per_week: float
    low: float | None
    middle: float | None
    high: float | None
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthReport:
    """When the groups of a cluster are full, by `snapshots` of `span` days `until` the state was read.

    A forecast reaches `horizon` days: ten times the span, at most five years.
    """

    snapshots: int
    span: float
    until: str
    horizon: float
    sizes: tuple[SizeForecast, ...]
    notes: tuple[str, ...]

    @property
    def first(self) -> tuple[SizeForecast, ...]:
        """Of each group the size that is full first, of those that fit now; the earliest group comes first."""
        found: dict[str, SizeForecast] = {}
        for item in sorted(self.sizes, key=lambda item: (item.middle or inf, item.low or inf)):
            if item.room:
                found.setdefault(item.group, item)
        return tuple(found.values())


def forecast_sizes(
    report: CapacityReport, clusters: Mapping[str, CountedCluster], history: History, at: str
) -> GrowthReport:
    """Return when the sizes that `report` counts on `clusters` are full, at the growth of their groups until `at`."""
    horizon, sizes, few = min(10 * history.span, _LONGEST), list[SizeForecast](), list[str]()
    for item in report.groups:
        name = item.group or ""
        counted = replace(clusters[name], template=item.template)
        if name not in history.used or not counted.data.instances:
            continue
        if day_range(history.used[name]["memory"], 0) is None:
            few.append(name)
            continue
        with suppress(GpolicyError):  # what takes minutes to count has no forecast
            sizes += _forecast_group(item, counted, history.used[name], horizon)
    there = f"{count(history.snapshots, 'snapshot')} of {count(int(history.span), 'day')} are too few"
    least = f"{LEAST_WEEKS + 1} are needed, each a week after the one before"
    too_few = (f"no forecast of {named('group', few)}: {there}; {least}",) if few else ()
    return GrowthReport(
        snapshots=history.snapshots,
        span=round(history.span, 1),
        until=at,
        horizon=round(horizon, 1),
        sizes=tuple(sizes),
        notes=(*too_few, *history.notes),
    )


def _forecast_group(
    item: GroupCapacity, counted: CountedCluster, used: Mapping[str, Sequence[Point]], horizon: float
) -> Iterator[SizeForecast]:
    find_room = _room_finder(counted)
    rows = [(one.name, one.fit, counted.largest(one.pair)) for one in item.specs]
    rows.append(("standard", item.standard, counted.instance(item.std, item.std.spindle_use)))
    for spec, fit, instance in rows:
        cause, room = find_room(instance) if fit.fits else (fit.binding.cause, Amounts())
        resource = _RESOURCES.get(cause, "")
        if resource and (found := day_range(used[resource], room[resource])):
            yield SizeForecast(
                group=item.group or "",
                spec=spec,
                bound_by=cause.key,
                resource=resource,
                room=room[resource],
                per_week=round(7 * found.growth, 1),
                low=_within(horizon, found.low),
                middle=_within(horizon, found.middle),
                high=_within(horizon, found.high),
                points=tuple(used[resource]),
            )


def _within(horizon: float, days: float) -> float | None:
    return round(days, 1) if days <= horizon else None


def _room_finder(counted: CountedCluster) -> Callable[[Instance], tuple[Cause, Amounts]]:
    """Return what finds the cause that refuses an instance in the end, and what may be used more until then."""
    there, states = counted.data.instances, {0: counted.initial}
    total = sum(map(amounts_of, there), Amounts())
    mean = Amounts({name: ceil(amount / len(there)) for name, amount in total.items()})
    memory, cpus, disk, spindles = (max(1, mean[name]) for name in ("memory", "cpus", "disk", "spindles"))
    made = counted.instance(Spec(memory, cpus, disk, 1, 1, spindles), max(1, mean["spindle_use"]))
    average = replace(made, ignores_policy=True)
    most = len(counted.place(counted.initial, average, _MOST_ADDED).placed)

    def after(number: int) -> AllocationState:
        """Return the group with `number` more instances. States that were reached are kept."""
        nearest = max(known for known in states if known <= number)
        return states.setdefault(number, counted.place(states[nearest], average, number - nearest))

    def find_room(instance: Instance) -> tuple[Cause, Amounts]:
        placed = partial(counted.place, instance=instance, limit=1)
        number = bisect_left(range(most), True, key=lambda number: len(placed(after(number)).placed) == number)
        final, own = counted.place(after(number), instance), amounts_of(instance)
        rest = len(final.placed) - number  # of a small one some may fit where the average does not
        room = Amounts({name: number * mean[name] + rest * own[name] for name in own})
        return counted.find_binding(final, instance).cause, room

    return find_room
