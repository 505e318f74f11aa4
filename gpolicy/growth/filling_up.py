"""When no instance of a size fits any more, at the growth that the snapshots of a cluster show.

The room of a size is what may be added until hail refuses the size: instances of the average size of those that are
there, one after the other, where hail places them. (What fits times the size would be more: small instances take the
room of a large one on each node long before all nodes are full.) The room is used up at the growth of the resource for
which hail refuses the size then (`day_range`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf
from typing import Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import LoadedState
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class GrowthReport:
    """When the groups of a cluster are full, at the growth of `span` days `until` the state was read.

    A forecast reaches `horizon` days: ten times the span, at most five years. The `sizes` that are full first come
    first.
    """

    span: float
    until: str
    horizon: float
    sizes: tuple[SizeForecast, ...]
    notes: tuple[str, ...]


def forecast(report: CapacityReport, loaded: LoadedState, history: History, at: str) -> GrowthReport:
    """Return when the sizes that `report` counts in a state, `loaded`, are full, at the growth until `at`."""
    span, sizes, few = -min(history.use), list[SizeForecast](), list[str]()
    horizon, notes = min(10 * span, _LONGEST), list[str]()
    for item in report.groups:
        name = item.group or ""
        counted = replace(loaded.groups[name], template=item.template)
        if counted.data.instances and (points := history.points(name, "memory")):
            few += [name] if day_range(points, 0) is None else []
            try:
                for spec, cause, room in _rooms(item, counted):
                    resource = _RESOURCES.get(cause, "")
                    points = history.points(name, resource) if resource else ()
                    if found := day_range(points, room[resource]):
                        growth, *ends = found
                        days = [round(each, 1) if each <= horizon else None for each in ends]
                        about = (name, spec, cause.key, resource, room[resource], round(7 * growth, 1))
                        sizes.append(SizeForecast(*about, days[0], days[1], days[2], points))
            except GpolicyError as error:
                notes.append(f"No forecast of group {name}: {error.message}")
    there = f"{count(len(history.use), 'snapshot')} of {count(int(span), 'day')}: {LEAST_WEEKS + 1} are needed"
    too_few = [f"No forecast of {named('group', few)} from {there}, each a week after the one before"] if few else []
    sizes.sort(key=lambda item: (item.middle or inf, item.low or inf))
    return GrowthReport(round(span, 1), at, round(horizon, 1), tuple(sizes), (*too_few, *notes, *history.notes))


def _rooms(item: GroupCapacity, counted: CountedCluster) -> Iterator[tuple[str, Cause, Amounts]]:
    """Yield what refuses each size of a group in the end, and what instances may use more until then."""
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

    rows = [(one.name, one.fit, counted.largest(one.pair)) for one in item.specs]
    rows.append(("standard", item.standard, counted.instance(item.std, item.std.spindle_use)))
    for spec, fit, instance in rows:
        if not fit.fits:
            yield spec, fit.binding.cause, Amounts()
            continue
        place = partial(counted.place, instance=instance, limit=1)
        number = bisect_left(range(most), True, key=lambda number: len(place(after(number)).placed) == number)
        final, own = counted.place(after(number), instance), amounts_of(instance)
        rest = len(final.placed) - number  # of a small one some may fit where the average does not
        room = Amounts({name: number * mean[name] + rest * own[name] for name in own})
        yield spec, counted.find_binding(final, instance).cause, room
