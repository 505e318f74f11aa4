"""Capacity before and after as one table: group and spec, now, then, the difference, and what binds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.stranded import Stranded
from gpolicy.impact.fit_change import CapacityChange, FitChange, GroupCapacityChange
from gpolicy.report.answer import (
    NOTHING,
    Bar,
    Cell,
    Name,
    Section,
    Table,
    Weight,
    percent,
    rough_size,
    signed,
    size,
    with_rows,
)

TITLE: Final = "Capacity"
HEADINGS: Final = ("group", "spec", "size", "now", "then", "Δ", "%", "bound by")
RIGHT: Final = frozenset({"now", "then", "Δ", "%", "lost"})
WHOLE_CLUSTER: Final = "(cluster)"


def capacity_section(change: CapacityChange) -> Section:
    """Return the effect of the changes on capacity; unchanged groups are one sentence of the notes."""
    items = [*change.groups, *([change.cluster] if change.cluster else [])]
    moved = changed_groups(change)
    table = Table(
        title="Instances that fit beside those that are there",
        of="rows",
        headings=HEADINGS,
        rows=tuple(row for item in moved for row in rows(item)),
        right=RIGHT,
        weight=Weight.WORSE if any(_lost(row) for item in moved for row in figures(item)) else Weight.CHANGED,
        bars=tuple(bar for item in moved for bar in _bars(item)),
        legend=_legend(moved),
    )
    tables = with_rows(table, _limited(change.groups), _left_over(items), _vectors(items))
    return Section(
        key="capacity",
        title=TITLE,
        weight=table.weight if table.rows else Weight.SAME,
        summary=_summary(change, moved),
        parts=tables,
        notes=(*_same(items, moved), *_not_counted(change), *change.notes),
        never_cut=True,
    )


OLD_SIZE: Final = "· old size"
_ROW_WORDS: Final = {
    "tiered": "all sizes in turn, each shrunk to what still fits",
    "standard": "the cluster's std",
    OLD_SIZE: "the size of now under the policy of then",
}
"""The names of rows without a spec pair."""


def figures(item: GroupCapacityChange) -> tuple[FitChange, ...]:
    """Return all figures of a group: its pairs, tiered, standard."""
    return (*item.rows, item.tiered, item.standard)


def rows(item: GroupCapacityChange) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of a group, the group's name in the first one."""
    name: Cell = WHOLE_CLUSTER if item.group is None else Name(item.group)
    for spec, change in comparisons(item):
        yield (name, spec, *_figures(change))
        name = ""


def comparisons(item: GroupCapacityChange) -> Iterator[tuple[str, FitChange]]:
    """Yield for each row of a group the name of the spec and the two sides."""
    for change in figures(item):
        yield (Name(change.name) if change in item.rows else change.name), change
        if change.old_size_after is not None and change.before is not None:
            yield OLD_SIZE, FitChange(change.name, change.before, change.old_size_after)


def _bars(item: GroupCapacityChange) -> Iterator[Bar]:
    """Yield a bar for each row of a group; lengths are shares of the largest figure of the group."""
    sides = [[side.fits if side else None for side in (row.before, row.after)] for _, row in comparisons(item)]
    most = max((number for side in sides for number in side if number is not None), default=0) or 1
    for side in sides:
        now, then = (None if number is None else number / most for number in side)
        yield Bar(now, then)


def _limited(items: Sequence[GroupCapacityChange]) -> Table:
    moved = [item for item in items if any(map(_differs, item.limited))]
    return Table(
        title="The same under the limits of the group",
        of="rows",
        headings=HEADINGS,
        rows=tuple((Name(item.group or ""), Name(row.name), *_figures(row)) for item in moved for row in item.limited),
        right=RIGHT,
        weight=Weight.WORSE if any(_lost(row) for item in moved for row in item.limited) else Weight.CHANGED,
    )


def _legend(items: Sequence[GroupCapacityChange]) -> str:
    named = {name for item in items for name, _ in comparisons(item) if not isinstance(name, Name)}
    return "; ".join(f"{name.strip('· ')}: {words}" for name, words in _ROW_WORDS.items() if name in named)


def changed_groups(change: CapacityChange) -> list[GroupCapacityChange]:
    """Return the groups in which something fits and something changes, and the cluster as the last one."""
    items = [*change.groups, *([change.cluster] if change.cluster else [])]
    return [item for item in items if any(_differs(row) for row in figures(item)) and not _empty(item)]


def _empty(item: GroupCapacityChange) -> bool:
    """Return whether nothing fits, now or then."""
    return not any(fit.fits for row in figures(item) for fit in (row.before, row.after) if fit is not None)


def spec_words(spec: Spec | None) -> str:
    """Return the size of an instance of `spec`."""
    return NOTHING if spec is None else size_words(spec.memory, spec.cpus, spec.disk_size)


def size_words(memory: int, cpus: int, disk: int) -> str:
    """Return the size of an instance: memory, virtual CPUs, disk."""
    return f"{size(memory)} · {cpus} CPU · {size(disk)}"


def _figures(change: FitChange) -> tuple[str, ...]:
    now, then = change.before, change.after
    spec = spec_words(then.spec) if then else spec_words(now.spec if now else None)
    if now and then and now.spec != then.spec:
        spec = f"{spec} (was {spec_words(now.spec)})"
    delta = signed(change.delta)
    if now is None or then is None:
        delta = "new" if now is None else "gone"
    return (spec, _fits(now), _fits(then), delta, percent(change.percent), _bound_by(now, then))


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
    return now is None or then is None or (now.fits, now.spec) != (then.fits, then.spec)


def _lost(change: FitChange) -> bool:
    """Return whether fewer fit than before; for a removed size, whether any fitted and fewer would now."""
    old = change.old_size_after
    if change.before is not None and old is not None:
        return old.fits < change.before.fits or (change.delta or 0) < 0
    return (change.delta or 0) < 0


def _same(items: Sequence[GroupCapacityChange], moved: Sequence[GroupCapacityChange]) -> Iterator[str]:
    same = [item for item in items if item not in moved]
    empty = [_named(item) for item in same if _empty(item)]
    if empty:
        yield f"nothing fits, now or then: {', '.join(empty)}"
    rest = [f"{_named(item)} (standard {_fits(item.standard.after)})" for item in same if not _empty(item)]
    if rest and moved:
        yield f"unchanged: {', '.join(rest)}"


def _named(item: GroupCapacityChange) -> str:
    return WHOLE_CLUSTER if item.group is None else item.group


def _not_counted(change: CapacityChange) -> Iterator[str]:
    for item in change.groups:
        if item.not_limited is not None:
            yield f"group {item.group}: what fits under its limits is not counted: {item.not_limited}"
    for group, reason in change.unavailable.items():
        yield f"{f'group {group}' if group else 'the whole cluster'} is not counted: {reason}"


def _summary(change: CapacityChange, moved: Sequence[GroupCapacityChange]) -> str:
    if not moved:
        return "nothing changes in what fits"
    parts = []
    if change.cluster is not None:
        whole = (change.cluster.standard, change.cluster.tiered)
        parts += [f"{row.name} instances on the cluster {_words(row)}" for row in whole if row.before and row.after]
    losses = [
        (row.percent or 0.0, item, row)
        for item in moved
        if item.group
        for row in (*item.rows, item.tiered, item.standard)
        if row.delta is not None and row.delta < 0
    ]
    if losses:
        _, item, row = min(losses, key=lambda loss: (loss[0], -(loss[2].before.fits if loss[2].before else 0)))
        parts.append(f"hit hardest is {row.name} in group {item.group}: {_words(row)}{_for_want(row)}")
    return "; ".join(parts) or "sizes or groups come or go"


def _words(row: FitChange) -> str:
    if row.before is None or row.after is None:
        return f"{_fits(row.before)} → {_fits(row.after)}"
    other = ", of another size" if row.before.spec != row.after.spec else ""
    if not row.delta:
        return f"{_fits(row.after)} as before{other}"
    share = f", {percent(row.percent)}" if row.percent is not None else ""
    return f"{_fits(row.before)} → {_fits(row.after)} ({signed(row.delta)}{share}{other})"


def _for_want(row: FitChange) -> str:
    """Name the groups where the policy itself, not lack of room, allows no instance: perhaps a mistake."""
    if row.after is None or row.after.fits or row.after.binding.cause not in (Cause.BOUNDS, Cause.TEMPLATE):
        return ""
    return f", since {row.after.binding.cause.sentence}"


def _left_over(items: Sequence[GroupCapacityChange]) -> Table:
    """Return the stranded resources, where they change."""
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        sides = [side.stranded if side else None for side in (item.before, item.after)]
        if sides[0] != sides[1]:
            name: Cell = WHOLE_CLUSTER if item.group is None else Name(item.group)
            for word, side in zip(("now", "then"), sides, strict=True):
                if side is not None:
                    rows.append((name, word, *room_cells(side)))
                    name = ""
    return Table(
        title="Stranded: what is left of the free resources when nothing more fits",
        of="rows",
        headings=("group", "when", *ROOM_HEADINGS),
        rows=tuple(rows),
        right=frozenset(ROOM_HEADINGS),
    )


ROOM_HEADINGS: Final = ("memory", "disk", "virtual CPUs", "spindle use", "physical volumes")


def room_cells(stranded: Stranded) -> tuple[str, ...]:
    """Return what is left and what was free: memory, disk, virtual CPUs, spindle use, physical volumes."""
    left, free = stranded.left, stranded.free
    counts = ((left.cpus, free.cpus), (left.spindle_use, free.spindle_use), (left.spindles, free.spindles))
    return (
        f"{rough_size(left.memory)} of {rough_size(free.memory)}",
        f"{rough_size(left.disk)} of {rough_size(free.disk)}",
        *(NOTHING if some is None or most is None else f"{some:,} of {most:,}" for some, most in counts),
    )


def _vectors(items: Sequence[GroupCapacityChange]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        vectors = item.vectors
        if vectors is None or item.group is None:
            continue
        for name, now, then, lost in zip(vectors.names, vectors.before, vectors.after, vectors.lost, strict=True):
            rows.append((Name(item.group), Name(name), "as now", f"{now:,}", f"{then:,}", f"{lost:,}"))
        rows += [
            (Name(item.group), Name(name), "as then", NOTHING, f"{then:,}", NOTHING)
            for name, then in zip(vectors.new_names, vectors.new_after, strict=True)
        ]
    changed = any(
        item.vectors and (any(item.vectors.lost) or item.vectors.names != item.vectors.new_names) for item in items
    )
    return Table(
        title="Lost allocations on dedicated nodes: instances of each least size, one size at a time",
        of="sizes",
        headings=("group", "spec", "policy", "now", "then", "lost"),
        rows=tuple(rows),
        right=RIGHT,
        weight=Weight.CHANGED if changed else Weight.SAME,
    )
