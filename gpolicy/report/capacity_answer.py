"""Capacity as an answer: one table for everybody, and below it sizes, leftovers, limits and scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.analysis.shown_score import Score
from gpolicy.cluster.terms import Limits
from gpolicy.report.answer import (
    NOTHING,
    Answer,
    Bar,
    Cell,
    Figure,
    Name,
    Section,
    Table,
    Weight,
    from_to,
    size,
    supposing,
    with_rows,
)
from gpolicy.report.capacity_section import ROOM_HEADINGS, WHOLE_CLUSTER, pair_cell, room_cells, size_words, spec_words

_RIGHT: Final = frozenset({"fits", "score", "minimum", "value", "weight", "product", "could fall by", *ROOM_HEADINGS})


def capacity_answer(report: CapacityReport, *, components: bool = False) -> Answer:
    """Return the capacity by group and spec, and why the next instance does not fit; `components` adds the scores."""
    items = [*report.groups, *([report.cluster] if report.cluster else [])]
    tables = with_rows(*_extended(items), _metadata(report), _tiered(items), _stranded(items), _scores(items))
    whole = items[-1]
    tiered = sum(run.count for run in whole.tiered)
    taken = f"{whole.standard.fits:,} standard instances, or {tiered:,} in a tiered run"
    verdict = f"{supposing(report.what_if)}{_place(whole)} takes {taken}"
    return Answer(
        verb="capacity",
        title="What fits on cluster",
        name=report.cluster_name,
        title_end="beside what runs there",
        basis=(*report.what_if, report.basis.sentence, *(item.sentence for item in report.limits)),
        verdict=f"{verdict[0].upper()}{verdict[1:]}",
        figures=(
            Figure("standard instances", f"{whole.standard.fits:,}", about="capacity"),
            Figure("in a tiered run", f"{tiered:,}", about="capacity"),
            Figure("groups", f"{len(report.groups):,}"),
            Figure("nodes", f"{whole.nodes:,}"),
            Figure("instances now", f"{whole.instances:,}"),
        ),
        sections=(
            Section(key="capacity", title="What fits", parts=(_fits(items),), never_cut=True),
            Section(key="details", title="Details", parts=tables),
            *(map(_components, items, range(len(items))) if components else ()),
        ),
        notes=(
            *not_counted(items),
            *(f"{_place(item)}: {text}" for item in items for text in item.differences),
            *report.notes,
        ),
        source=report.source,
        snapshot=report.snapshot,
    )


def _name(item: GroupCapacity) -> Cell:
    return WHOLE_CLUSTER if item.group is None else Name(item.group)


def _place(item: GroupCapacity) -> str:
    return "the whole cluster" if item.group is None else f"group {item.group}"


def _fits(items: Sequence[GroupCapacity]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    counts: list[int] = []
    for item in items:
        figures: list[tuple[str, str, int, Binding]] = []
        figures += [(pair_cell(one.name), spec_words(one.pair.max), one.fits, one.binding) for one in item.specs]
        tiered = sum(run.count for run in item.tiered)
        figures.append(("tiered", "pairs in turn, shrunk to fit", tiered, item.tiered_binding))
        standard = item.standard
        figures.append(("standard", spec_words(standard.spec), standard.fits, standard.binding))
        first = (_name(item), item.template.value if item.template else NOTHING)
        counts += [fits for _, _, fits, _ in figures]
        for spec, words, fits, binding in figures:
            rows.append((*first, spec, f"{fits:,}", words, binding.cause.key, binding.reason or NOTHING))
    return Table(
        title="Instances that fit beside those that are there",
        of="rows",
        headings=("group", "template", "spec", "fits", "size", "bound by", "htools"),
        rows=tuple(rows),
        right=_RIGHT,
        grouped=2,
        bars=tuple(Bar(None, fits / max(*counts, 1)) for fits in counts),
    )


def _tiered(items: Sequence[GroupCapacity]) -> Table:
    return Table(
        title="Tiered runs by size: all pairs in turn, each shrunk to what still fits",
        of="sizes",
        headings=("group", "fits", "size"),
        rows=tuple(
            (_name(item), f"{run.count:,}", size_words(run.memory, run.cpus, run.disk))
            for item in items
            for run in item.tiered
        ),
        right=_RIGHT,
        weight=Weight.DETAIL,
        grouped=1,
    )


def _stranded(items: Sequence[GroupCapacity]) -> Table:
    return Table(
        title="Free resources that no size can use",
        of="groups",
        headings=("group", *ROOM_HEADINGS),
        rows=tuple((_name(item), *room_cells(item.stranded)) for item in items if item.stranded and item.nodes),
        right=_RIGHT,
        weight=Weight.DETAIL,
    )


def _extended(items: Sequence[GroupCapacity]) -> Iterator[Table]:
    """Yield the capacity under limits, one table for all groups with the same ones."""
    by_limits: dict[Limits, list[tuple[Cell, ...]]] = {}
    for item in items:
        if item.extended is None:
            continue
        rows = by_limits.setdefault(item.extended.limits, [])
        for fit in item.extended.fits:
            name = fit.name if fit is item.extended.standard else pair_cell(fit.name)
            memory = from_to(size(fit.minimum_memory), size(fit.maximum_memory))
            bound = (fit.binding.cause.key, fit.binding.reason or NOTHING)
            rows.append((_name(item), name, memory, f"{fit.fits:,}", *bound))
    for limits, rows in by_limits.items():
        yield Table(
            title=f"What fits if {' and '.join(limits.words.values())}",
            of="rows",
            headings=("group", "spec", "memory", "fits", "bound by", "htools"),
            rows=tuple(rows),
            right=_RIGHT - {"memory"},
            most=len(rows),
        )


def not_counted(items: Iterable[GroupCapacity]) -> Iterator[str]:
    """Yield a note on each group whose capacity under its limits is not counted."""
    for item in items:
        if item.extended is not None and item.extended.unavailable is not None:
            yield f"{_place(item)}: what fits under its limits is not counted: {item.extended.unavailable}"


def _metadata(report: CapacityReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for room in report.metadata:
        free = sorted(node.free for node in room.nodes)
        known = dict.fromkeys("measured" if node.measured else "declared" for node in room.nodes)
        rows.append(
            (
                Name(room.group),
                Name(room.volume_group),
                from_to(size(free[0]), size(free[-1])) if free else NOTHING,
                NOTHING if room.disks is None else f"{room.disks:,}",
                " and ".join([*known, *(["nothing"] if room.unknown else [])]),
            )
        )
    return Table(
        title="DRBD disks whose metadata still fits where metavg is another volume group: no count above looks at it",
        of="groups",
        headings=("group", "volume group", "free on each node", "fits", "known from"),
        rows=tuple(rows),
        right=_RIGHT | {"free on each node"},
    )


def _scores(items: Sequence[GroupCapacity]) -> Table:
    return Table(
        title="Cluster score as htools computes it (smaller is better balanced)",
        of="groups",
        headings=("group", "score", "minimum"),
        rows=tuple((_name(item), item.score.shown, item.score.shown_minimum) for item in items),
        right=_RIGHT,
        weight=Weight.DETAIL,
    )


def _components(item: GroupCapacity, number: int) -> Section:
    rows = tuple((component.name, *component.shown) for component in item.score.components)
    table = Table(
        title="Components",
        of="components",
        headings=("component", "value", "weight", "product", "could fall by"),
        rows=rows,
        right=_RIGHT,
        most=len(rows),
    )
    return Section(
        key=f"score-{number}",
        title=f"Score of {_place(item)}",
        summary=f"{item.score.shown} (smaller is better balanced)",
        parts=with_rows(table),
        notes=_falls(item.score) if rows else ("no node is online",),
        never_cut=True,
    )


def _falls(score: Score) -> tuple[str, ...]:
    """Return the theoretical minimum of a score, and the components by which it could fall most."""
    above = sorted((item for item in score.components if item.excess > 0), key=lambda item: -item.excess)
    by = ", ".join(f"{item.name} ({item.shown[3]})" for item in above[:3])
    more = f" and {len(above) - 3} more" if len(above) > 3 else ""
    falls = f"the score could fall at most by {by}{more}" if above else "the score cannot fall"
    return (f"theoretical minimum: {score.shown_minimum}, as hbal takes it; {falls}",)
