"""When no instance of a size fits any more, at the growth that the snapshots of a cluster show.

The room of a size is what may be added until hail refuses the size: instances of the average size of those that are
there, one after the other, where hail places them. (What fits times the size would be more: small instances take the
room of a large one on each node long before all nodes are full.) The room is used up at the growth of the resource for
which hail refuses the size then (`day_range`).

That growth is of use, which adds up, unlike what fits: added nodes change what fits, and what fits is no linear count.
An instance counts in the group that its primary node has today, so a group that is renamed, or gets nodes with their
instances, does not grow. An instance that moves to another group is growth of that one.
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import timegm
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil, inf, sqrt
from pathlib import Path
from statistics import NormalDist
from time import strptime
from typing import Final, NamedTuple

from gpolicy.allocator.cluster_data import Instance, Spec
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.basis import settle_readable
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import LoadedState
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.errors import GpolicyError
from gpolicy.fleet.choosing import snapshots_of
from gpolicy.printable import count, named
from gpolicy.progress import Tell
from gpolicy.provenance import FORM

Point = tuple[float, float]
"""A day, and what is used then."""
LEAST_WEEKS: Final = 5
"""With fewer increments, of a week or more each, nothing is said: their variance says too little."""
_WEEK: Final = 6.5  # days: timers are late now and then
_Z: Final = NormalDist().inv_cdf(0.95)


def day_range(points: Sequence[Point], room: float) -> tuple[float, float, float, float] | None:
    """Return the growth a day, and the earliest, the likely and the latest day on which `room` more is used.

    That is more than at the last of `points`, from which on days count; they are infinite where it never is. None where
    the points, the oldest first, are too few.

    Use grows by steps: an instance, a batch of them, now and then a removal. So what a week adds is taken as a draw
    from a distribution: the weeks of the past give its mean and variance, and the weeks to come are more draws. A
    forecast of `days` has the variance of these days and that of the measured growth itself: `variance * days * (1 +
    days / span)`. The range ends where the room is as far off as a draw of Student's t distribution is in one of twenty
    cases at each side, so nine of ten fillings lie in it. Whole weeks hide the rhythm of a week. A batch widens the
    range, since nothing tells whether it will come again. Source: Fieller, "Some problems in interval estimation"
    (1954).
    """
    kept = list(points[-1:])
    for point in reversed(points):
        kept += [point] if kept[-1][0] - point[0] >= _WEEK else []
    steps = [(day - before, used - less) for (day, used), (before, less) in pairwise(kept)]
    if len(steps) < LEAST_WEEKS:
        return None
    span, freedom = kept[0][0] - kept[-1][0], len(steps) - 1
    growth = (kept[0][1] - kept[-1][1]) / span
    variance = sum((step - growth * days) ** 2 / days for days, step in steps) / freedom
    # Student's t, Abramowitz and Stegun 26.7.5
    quantile = _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
    spread, middle = quantile**2 * variance, room / growth if growth > 0 else inf
    if room <= 0 or spread == 0:
        same = 0.0 if room <= 0 else middle
        return growth, same, same, same
    # (room - growth * days) ** 2 = spread * days * (1 + days / span)
    square, linear = growth**2 - spread / span, 2 * room * growth + spread
    root = linear + sqrt(max(0.0, linear**2 - 4 * square * room**2))
    has_end = growth > 0 and square > 0  # the slowest growth that the past allows is still growth
    return growth, 2 * room**2 / root if root > 0 else inf, middle, root / (2 * square) if has_end else inf


_OLDEST: Final = 182  # days back
_NAMED: Final = "%Y%m%dT%H%M%SZ"
Usage = Counter[str]
"""What is used, or has room: memory and disk (MiB), cpus, spindles (physical volumes), spindle_use."""


class History(NamedTuple):
    """What groups used, by the day (0: now, those before are negative), and `notes` on the snapshots left out."""

    use: Mapping[float, Mapping[str, Usage]]
    notes: tuple[str, ...]

    def points(self, group: str, resource: str) -> tuple[Point, ...]:
        """Return the use of a resource by a group, the oldest first."""
        return tuple((day, self.use[day][group][resource]) for day in sorted(self.use) if group in self.use[day])


def read_history(directory: Path, state: ClusterState, homes: Mapping[str, str], at: str, tell: Tell) -> History:
    """Return what groups used in the snapshots of a directory, and in `state`, which was read at `at`.

    `homes` are the groups of nodes. One snapshot a week is read, of half a year: more files take no more time. What
    cannot be read, or is of another cluster or later, is left out with a note.
    """
    now, use = _days(at, FORM), {0.0: _used_by_group(state, homes)}
    left_out, chosen = Counter[str](), dict[int, Path]()
    for path in snapshots_of(directory, ""):
        age = now - _days(path.stem, _NAMED)
        left_out["later than the state"] += age < 0
        if 0 <= age <= _OLDEST:
            chosen[round(age) // 7] = path  # the newest one of the week
    for number, path in enumerate(chosen.values(), 1):
        tell(f"snapshot {number} of {len(chosen)}")
        try:
            old = read_snapshot(path)
            uuids = {state.cluster.identity.uuid, old.cluster.identity.uuid} - {None}
            left_out["of another cluster"] += (is_other := len(uuids) > 1)
            if not is_other:
                use.setdefault(_days(path.stem, _NAMED) - now, _used_by_group(old, homes))
        except GpolicyError:
            left_out["unreadable"] += 1
    said = ", ".join(f"{number} {why}" for why, number in left_out.items() if number)
    none = "" if chosen else f"{directory} has no snapshots of `gpolicy snapshot --all --save DIR` until then"
    said = f"{count(left_out.total(), 'snapshot')} of {directory} left out: {said}" if said else none
    return History(use, (said,) if said else ())


def _days(text: str, form: str) -> float:
    """Return a time as days since 1970; the end of times for a name that is none."""
    try:
        return timegm(strptime(text, form)) / 86_400
    except ValueError:
        return float(10**7)


def _used_by_group(state: ClusterState, homes: Mapping[str, str]) -> dict[str, Usage]:
    """Return what the instances of each group use; groups with instances that htools cannot read are left out."""
    data = settle_readable(state).data
    groups = {node.index: homes.get(node.name, data.groups[node.group].name) for node in data.nodes}
    nothing = dict.fromkeys(("memory", "disk", "cpus", "spindles", "spindle_use"), 0)
    found = {group: Usage(nothing) for group in groups.values()}
    for instance in data.instances:
        found[groups[instance.primary]].update(amounts_of(instance))
    return found


def amounts_of(instance: Instance) -> Usage:
    """Return what an instance uses as the allocator counts it, its disk on each of its nodes."""
    memory, cpus = instance.memory * instance.uses_memory, instance.vcpus * instance.online
    spindles, use = instance.total_spindles or 0, instance.spindle_use
    return Usage(memory=memory, disk=instance.disk, cpus=cpus, spindles=spindles, spindle_use=use)


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
_MOST_DAYS: Final = 5 * 365  # days


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
    horizon, notes = min(10 * span, _MOST_DAYS), list[str]()
    for item in report.groups:
        name = item.group or ""
        counted = replace(loaded.groups[name], template=item.template)
        if counted.data.instances and (points := history.points(name, "memory")):
            few += [name] if day_range(points, 0) is None else []
            try:
                for size, cause, room in _rooms(item, counted):
                    resource = _RESOURCES.get(cause, "")
                    points = history.points(name, resource) if resource else ()
                    if found := day_range(points, room[resource]):
                        growth, *ends = found
                        days = [round(each, 1) if each <= horizon else None for each in ends]
                        about = (name, size, cause.key, resource, room[resource], round(7 * growth, 1))
                        sizes.append(SizeForecast(*about, days[0], days[1], days[2], points))
            except GpolicyError as error:
                notes.append(f"No forecast of group {name}: {error.message}")
    there = f"{count(len(history.use), 'snapshot')} of {count(int(span), 'day')}: {LEAST_WEEKS + 1} are needed"
    too_few = [f"No forecast of {named('group', few)} from {there}, each a week after the one before"] if few else []
    sizes.sort(key=lambda item: (item.middle or inf, item.low or inf))
    return GrowthReport(round(span, 1), at, round(horizon, 1), tuple(sizes), (*too_few, *notes, *history.notes))


def _rooms(item: GroupCapacity, counted: CountedCluster) -> Iterator[tuple[str, Cause, Usage]]:
    """Yield what refuses each size of a group in the end, and what instances may use more until then."""
    there, states = counted.data.instances, {0: counted.initial}
    total = sum(map(amounts_of, there), Usage())
    mean = Usage({name: ceil(amount / len(there)) for name, amount in total.items()})
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
    for size, fit, instance in rows:
        if not fit.fits:
            yield size, fit.binding.cause, Usage()
            continue
        place = partial(counted.place, instance=instance, limit=1)
        number = bisect_left(range(most), True, key=lambda number: len(place(after(number)).placed) == number)
        final, own = counted.place(after(number), instance), amounts_of(instance)
        rest = len(final.placed) - number  # of a small one some may fit where the average does not
        room = Usage({name: number * mean[name] + rest * own[name] for name in own})
        yield size, counted.find_binding(final, instance).cause, room
