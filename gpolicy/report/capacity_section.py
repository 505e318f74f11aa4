"""Capacity before and after as one table: group and spec, now, then, the difference, and what binds."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Cause, Stranded
from gpolicy.analysis.capacity import GroupCapacity
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.size_words import pair_title
from gpolicy.impact.capacity_change import CapacityChange, FitChange, GroupCapacityChange
from gpolicy.report.answer import NOTHING, Cell, Name, Number, Section, Table, Weight, percent, rough_size, signed, size

TITLE: Final = "Capacity"
HEADINGS: Final = ("group", "size", "at its largest", *map(Number, ("today", "after", "Δ", "%")), "bound by")
WHOLE_CLUSTER: Final = "(cluster)"
_MOST_BRIEF: Final = 6


def capacity_section(change: CapacityChange) -> Section:
    """Return the effect of the changes on capacity; unchanged groups are one sentence of the notes."""
    items = [*change.groups, *([change.cluster] if change.cluster else [])]
    moved = changed_groups(change)
    found = [(group_cell(item.group), spec, row) for item in moved for spec, row in comparisons(item)]
    telling, quiet = ([row for row in found if _tells(row[2]) is told] for told in (True, False))
    lost = Weight.WORSE if any(row.is_loss for item in moved for row in item.figures) else Weight.CHANGED
    tables = (
        _fits_table("Instances that fit beside those that are there", telling, lost),
        _fits_table("No change in what fits", quiet, Weight.SAME),
        _left_over(items),
        _vectors(items),
    )
    return Section(
        "capacity",
        TITLE,
        tables,
        (*_say_unchanged(items, moved), *_whole_unknown(change), *change.notes),
        weight=next(table.weight for table in tables if table) if found else Weight.SAME,
        summary=_summary(change, moved),
        never_cut=bool(telling),
        worse=_worst(moved),
    )


def headline(change: CapacityChange) -> tuple[str, str]:
    """Return the standard instances that fit now and then, and the same in words with the tiered ones.

    If the standard size changes, both numbers are of today's size; the words tell how many fit of the new one. Where
    the policy abolishes today's size, the number is that of the new one.
    """
    item = change.cluster or (change.groups[0] if len(change.groups) == 1 else None)
    if item is None:
        return "?", f"counted by group only; {_summary(change, changed_groups(change))}"
    row = item.standard
    now, then = _fits(row.before), _fits(row.worst_after)
    old, new = (_counted(row, side) for side in (0, 1))
    share = f" ({percent(row.percent)})" if row.delta and row.before and not row.resized else ""
    value = now if now == then else f"{now} → {then}"
    if row.is_abolished and row.after:
        value = _fits(row.after)
        words = f"of the new standard size ({new}); {now} of today's ({old}), not allowed then"
    elif row.resized and row.before and row.after:
        words = f"of today's standard size ({old}); {_fits(row.after)} of the new one ({new})"
    else:
        words = f"standard instances{share}"
    where = "" if change.cluster is None else "on the cluster "
    return value, f"{words}; tiered {where}{_numbers(item.tiered)}"


def headline_falls(change: CapacityChange) -> bool:
    """Return whether the headline, or without one any count, falls, of a size that is still allowed."""
    rows = [row for item in changed_groups(change) for row in item.figures]
    rows = [change.cluster.standard] if change.cluster else rows
    return any(row.is_loss and not row.is_abolished for row in rows)


def _fits_table(title: str, found: Sequence[tuple[str, str, FitChange]], weight: Weight) -> Table:
    """Return rows of group, spec and comparison as a table, with bars of the memory of what fits."""
    rows = [(group, spec, *_figures(row)) for group, spec, row in found]
    bars = bars_of([(row.before, row.after) for _, _, row in found])
    brief, aside = 0 if weight is Weight.SAME else _MOST_BRIEF, ("%",)
    return Table(title, "rows", HEADINGS, rows, weight=weight, bars=bars, grouped=1, brief=brief, aside=aside)


def bars_of(sides: Sequence[tuple[Fit | None, Fit | None]]) -> tuple[tuple[float | None, ...], ...]:
    """Return bars for what fits now and then, by memory; the longest is the most memory."""
    most = max((fit.memory for side in sides for fit in side if fit), default=0) or 1
    return tuple(tuple(None if fit is None else fit.memory / most for fit in side) for side in sides)


OLD_SIZE: Final = "· old size"
OTHER_SIZES: Final = "other sizes"


def group_cell(group: str | None) -> str:
    """Return the name of a group, or our own word for the whole cluster (None)."""
    return WHOLE_CLUSTER if group is None else Name(group)


def pair_cell(name: str) -> str:
    """Return the name of a size, or our own words for one without a name."""
    title = pair_title(name)
    return Name(name) if title == name else title


def _tells(change: FitChange) -> bool:
    """Return whether a row says anything: a new size, or another number than before of one that fits, now or then."""
    fits = any(side and side.fits for side in (change.before, change.after))
    return change.before is None or (fits and _differs(change))


def comparisons(item: GroupCapacityChange) -> Iterator[tuple[str, FitChange]]:
    """Yield for each row of a group the name of the spec and the two sides."""
    for change in item.figures:
        yield (pair_cell(change.name) if change in item.rows else change.name), change
        if change.old_size_after is not None and change.before is not None:
            old = f"· still {change.templates[0]}" if change.templates else OLD_SIZE
            yield old, FitChange(change.name, change.before, change.old_size_after)


def changed_groups(change: CapacityChange) -> list[GroupCapacityChange]:
    """Return the groups in which something changes and something fits or is new, and the cluster as the last one."""
    items = [*change.groups, *([change.cluster] if change.cluster else [])]
    moved = [item for item in items if any(_differs(row) for row in item.figures)]
    return [item for item in moved if not _empty(item) or any(_is_new_in(row, item) for row in item.rows)]


def _is_new_in(row: FitChange, item: GroupCapacityChange) -> bool:
    """Return whether a row is a new spec of a group that was there before, and that takes instances."""
    closed = row.after is not None and row.after.binding.cause in (Cause.CLOSED, Cause.NO_NODES)
    return item.before is not None and row.before is None and not closed


def _empty(item: GroupCapacityChange) -> bool:
    return not any(fit.fits for row in item.figures for fit in (row.before, row.after) if fit is not None)


def spec_words(spec: Spec | None) -> str:
    """Return the size of an instance of `spec`."""
    return NOTHING if spec is None else size_words(spec.memory, spec.cpus, spec.disk_size * max(1, spec.disk_count))


def _counted(row: FitChange, side: int) -> str:
    """Return what is counted now (side 0) or then (1): the size, and the template where it is another one."""
    fit = (row.before, row.after)[side]
    size = [spec_words(fit.spec)] if fit and fit.spec else [OTHER_SIZES] * row.other_pairs
    return ", ".join([*size, *row.templates[side : side + 1]])


def size_words(memory: int, cpus: int, disk: int) -> str:
    """Return the size of an instance: memory, virtual CPUs, disk."""
    return f"{size(memory)} · {cpus} CPU · {size(disk)}"


def _figures(change: FitChange) -> tuple[str, ...]:
    now, then = change.before, change.after
    spec = spec_words(then.spec) if then else spec_words(now.spec if now else None)
    if now and then and change.resized:
        was = change.templates[0] if change.templates and now.spec == then.spec else _counted(change, 0)
        spec = f"{_counted(change, 1)} (was {was})" if now.spec or change.templates else OTHER_SIZES
    delta, share = signed(change.delta), percent(change.percent)
    if now is None or then is None:
        delta = "new" if now is None else "gone"
    elif change.resized:
        delta = share = NOTHING  # numbers of different sizes do not compare
    return (spec, _fits(now), _fits(then), delta, share, _bound_by(now, then))


def _fits(fit: Fit | None) -> str:
    return NOTHING if fit is None else f"{fit.fits:,}"


def _bound_by(now: Fit | None, then: Fit | None) -> str:
    if then is None:
        return NOTHING if now is None else f"(was {now.binding.cause.key})"
    key = then.binding.cause.key
    changed = now is not None and now.binding.cause is not then.binding.cause
    return f"{key} (was {now.binding.cause.key})" if changed and now else key


def _differs(change: FitChange) -> bool:
    now, then = change.before, change.after
    return now is None or then is None or bool(change.templates) or (now.fits, now.spec) != (then.fits, then.spec)


def _say_unchanged(items: Sequence[GroupCapacityChange], moved: Sequence[GroupCapacityChange]) -> Iterator[str]:
    same = [item for item in items if item not in moved]
    empty = [f"{group_cell(item.group)} ({_why_empty(item)})" for item in same if _empty(item)]
    if empty:
        yield f"no size fits at its largest, neither today nor after: {', '.join(empty)}"
    rest = [f"{group_cell(item.group)} (standard {_fits(item.standard.after)})" for item in same if not _empty(item)]
    if rest and moved:
        yield f"unchanged: {', '.join(rest)}"


def _why_empty(item: GroupCapacityChange) -> str:
    """Return what keeps out the largest size, after the plan if the group is there then."""
    row = item.rows[0] if item.rows else item.standard
    fit = row.after or row.before
    return _why(fit.binding.cause) if fit else "not counted"


def _whole_unknown(change: CapacityChange) -> Iterator[str]:
    if "" in change.unavailable:
        others = len(change.unavailable) > 1
        why = ", since not all of its groups are known" if others else f": {change.unavailable['']}"
        yield f"the whole cluster is not counted{why}"


def _summary(change: CapacityChange, moved: Sequence[GroupCapacityChange]) -> str:
    if not moved:
        return "no change in the other groups" if change.unavailable else "nothing changes in what fits"
    parts = []
    if change.cluster is not None:
        whole = (change.cluster.standard, change.cluster.tiered)
        parts += [f"{row.name} instances on the cluster {_numbers(row)}" for row in whole if row.before and row.after]
    fewer = [
        (item, row) for item in moved if item.group for row in item.figures if row.resized and (row.delta or 0) < 0
    ]
    if fewer and not _losses(moved):
        item, row = fewer[0]
        parts.append(f"{pair_title(row.name)} in group {item.group}: {_numbers(row)}")
    return "; ".join(parts) or ("fewer instances fit" if _losses(moved) else "sizes or groups come or go")


def _losses(moved: Sequence[GroupCapacityChange]) -> list[tuple[GroupCapacityChange, FitChange]]:
    """Return the rows of groups in which fewer of one size fit, the greatest loss first; else those of the cluster."""
    found = [(item, row) for item in moved for row in item.figures if row.is_loss]
    of_groups = [(item, row) for item, row in found if item.group is not None]
    return sorted(of_groups or found, key=lambda loss: _share_left(loss[1]))


def _share_left(row: FitChange) -> tuple[float, int]:
    """Return which part of the instances of the old size still fits, and how many fit now (negative)."""
    now, then = row.before, row.worst_after
    return (then.fits / now.fits, -now.fits) if now and then and now.fits else (1.0, 0)


def _worst(moved: Sequence[GroupCapacityChange]) -> str:
    """Return which row loses most, how much, and what keeps out the next instance; empty if none does."""
    lost = _losses(moved)
    if not lost:
        return ""
    (item, row), more = lost[0], f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    then = row.worst_after
    of_old_size = row.before is not None and then is row.old_size_after
    old = f" of {_counted(row, 0)}" if of_old_size else ""
    where = f"group {item.group}" if item.group else "the cluster"
    why = f" ({_why(then.binding.cause)})" if then else ""
    return f"{pair_title(row.name)} in {where} {_fits(row.before)} → {_fits(then)}{old}{why}{more}"


def _why(cause: Cause) -> str:
    """Return what binds: in words where it is no resource, and may be a mistake."""
    return cause.sentence if cause in _NO_RESOURCES else f"bound by {cause.key}"


_NO_RESOURCES: Final = (Cause.BOUNDS, Cause.TEMPLATE, Cause.CLOSED, Cause.NO_NODES, Cause.NO_TEMPLATE)


def _numbers(row: FitChange) -> str:
    """Return the numbers now and then, with the difference if they count instances of one size."""
    now, then = row.before, row.after
    if now is None or then is None:
        return f"{_fits(now)} → {_fits(then)}"
    if row.resized:
        if not (now.spec and then.spec and row.old_size_after):
            if row.templates:
                found = f"{_fits(now)} of {_counted(row, 0)} today, {_fits(then)} of {_counted(row, 1)} after"
            else:
                found = f"{_fits(now)} today, {_fits(then)} after, of {OTHER_SIZES}"
            return f"{found} (no comparison)"
        old = f"{_fits(now)} → {_fits(row.old_size_after)} of {_counted(row, 0)}"
        return f"{old}, and {_fits(then)} of {_counted(row, 1)}"
    if not row.delta:
        return f"{_fits(then)} as before"
    share = f", {percent(row.percent)}" if row.percent is not None else ""
    return f"{_fits(now)} → {_fits(then)} ({signed(row.delta)}{share})"


def _left_over(items: Sequence[GroupCapacityChange]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        sides = [side.stranded if side else None for side in (item.before, item.after)]
        if sides[0] != sides[1]:
            named = zip(("today", "after"), sides, strict=True)
            rows += [(group_cell(item.group), word, *room_cells(side)) for word, side in named if side is not None]
    title = "Stranded: what is left of the free resources when nothing more fits"
    return Table(title, "rows", ("group", "when", *ROOM_HEADINGS), rows, grouped=1)


ROOM_HEADINGS: Final = tuple(map(Number, ("memory", "disk", "virtual CPUs", "spindle use", "physical volumes")))


def room_cells(stranded: Stranded) -> tuple[str, ...]:
    """Return what is left and what was free: memory, disk, virtual CPUs, spindle use, physical volumes."""
    left, free = stranded.left, stranded.free
    counts = ((left.cpus, free.cpus), (left.spindle_use, free.spindle_use), (left.spindles, free.spindles))
    if not (free.memory or free.disk or free.cpus):  # no nodes
        return (NOTHING,) * len(ROOM_HEADINGS)
    return (
        f"{rough_size(left.memory)} of {rough_size(free.memory)}",
        f"{rough_size(left.disk)} of {rough_size(free.disk)}",
        *(NOTHING if some is None or most is None else f"{some:,} of {most:,}" for some, most in counts),
    )


def _least_size(side: GroupCapacity | None, name: str) -> str:
    """Return the minimum of a size in words; empty if there is no such pair."""
    return next((spec_words(spec.pair.min) for spec in side.specs if spec.name == name), "") if side else ""


def _vectors(items: Sequence[GroupCapacityChange]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        vectors = item.vectors
        if vectors is None or item.group is None:
            continue
        for name, now, then, lost in zip(vectors.names, vectors.before, vectors.after, vectors.lost, strict=True):
            least = f"{_least_size(item.before, name)}, today"
            rows.append((Name(item.group), pair_cell(name), least, f"{now:,}", f"{then:,}", f"{lost:,}"))
        rows += [
            (Name(item.group), pair_cell(name), _least_size(item.after, name), NOTHING, f"{then:,}", NOTHING)
            for name, then in zip(vectors.new_names, vectors.new_after, strict=True)
            if _least_size(item.before, name) != _least_size(item.after, name)
        ]
    changed = any(
        item.vectors and (any(item.vectors.lost) or item.vectors.names != item.vectors.new_names) for item in items
    )
    where = "allocations on nodes with exclusive storage"
    title = f"No lost {where}: as many of each size, at its smallest, fit as before"
    if changed:
        title = f"Lost {where}: how many of each size fit at its smallest, each size alone"
    headings = ("group", "size", "at its smallest", *map(Number, ("today", "after", "lost")))
    return Table(title, "sizes", headings, rows, grouped=1, weight=Weight.CHANGED if changed else Weight.SAME)
