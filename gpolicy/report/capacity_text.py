"""Capacity for a terminal: one table first, then what its words mean, then the score if it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, Size, spec_values
from gpolicy.analysis.extended_capacity import ExtendedCapacity
from gpolicy.analysis.stranded import Stranded
from gpolicy.cluster.state import read_from
from gpolicy.ganeti.units import exact_size, rough_size
from gpolicy.printable import BOLD, DIM, PLAIN, as_text, printable

_HEADINGS: Final = ("group", "template", "spec", "instance", "fits", "bound by", "htools")
_RIGHT: Final = frozenset({"fits", "value", "weight", "product"})
_MOST_SIZES: Final = 6


def capacity_text(report: CapacityReport, *, score: bool = False, colour: bool = False) -> str:
    """Return the report as text; `score` adds the components of each score."""
    return as_text(line.rstrip() for line in _Writer(colour=colour).lines(report, score=score))


class _Writer:
    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def lines(self, report: CapacityReport, *, score: bool) -> Iterator[str]:
        items = [*report.groups, *([report.cluster] if report.cluster else [])]
        yield self.paint(BOLD, f"What fits on cluster {report.cluster_name} beside what runs there")
        if report.snapshot:
            yield self.paint(DIM, f"read from {read_from(report.source, report.snapshot)}")
        yield ""
        yield from self.table(_HEADINGS, [row for item in items for row in _rows(item)])
        yield ""
        for item in items:
            if item.tiered:
                yield f"tiered on {_name(item)}: {_sizes(item.tiered)}"
        for item in report.groups:  # the whole cluster with one template says nothing about groups of another
            if item.stranded is not None and item.nodes:
                yield from self.stranded(item, item.stranded)
        limited = [(item, item.extended) for item in items if item.extended is not None]
        if limited:
            yield ""
            yield from self.extended(limited)
        yield from self.legend(items)
        for note in report.notes:
            yield self.paint(DIM, f"note: {note}")
        if score:
            for item in items:
                yield from self.score(item)

    def legend(self, items: Sequence[GroupCapacity]) -> Iterator[str]:
        causes = dict.fromkeys(binding.cause for item in items for binding in bindings_of(item))
        for cause in causes:
            yield self.paint(DIM, f"{cause.key}: {cause.sentence}")

    def stranded(self, item: GroupCapacity, stranded: Stranded) -> Iterator[str]:
        free, left = stranded.free, stranded.left
        parts = [
            f"{rough_size(left.memory)} of {rough_size(free.memory)} memory",
            f"{rough_size(left.disk)} of {rough_size(free.disk)} disk",
            f"{left.cpus} of {free.cpus} virtual CPUs",
        ]
        if free.spindles is not None and left.spindles is not None:
            parts.append(f"{left.spindles} of {free.spindles} spindles")
        yield self.paint(DIM, f"free on {_name(item)} and of no use to any size: {', '.join(parts)}")

    def extended(self, items: Sequence[tuple[GroupCapacity, ExtendedCapacity]]) -> Iterator[str]:
        options = items[0][1].options
        parts = []
        if options.max_node_failures is not None:
            parts.append(f"{options.max_node_failures} nodes of a group may fail at once")
        if options.oversubscription is not None:
            parts.append(f"memory may be over-subscribed {options.oversubscription:g} times")
        yield self.paint(BOLD, f"What fits if {' and '.join(parts)}")
        rows = []
        for item, extended in items:
            for number, fit in enumerate((*extended.specs, extended.standard)):
                name = f"pair {fit.name}" if number < len(extended.specs) else fit.name
                memory = exact_size(fit.minimum_memory)
                if fit.maximum_memory != fit.minimum_memory:
                    memory += f" to {exact_size(fit.maximum_memory)}"
                group = item.group or "" if number == 0 else ""
                rows.append((group, name, memory, str(fit.fits), fit.binding.cause.key, fit.binding.reason or "-"))
        yield from self.table(("group", "spec", "memory", "fits", "bound by", "htools"), rows)

    def score(self, item: GroupCapacity) -> Iterator[str]:
        yield ""
        yield self.paint(BOLD, f"Score of {_name(item)}: {item.score.shown} (smaller is better balanced)")
        if not item.score.components:
            yield "no node is online"
            return
        rows = [(component.name, *component.shown) for component in item.score.components]
        yield from self.table(("component", "value", "weight", "product"), rows)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        shown = [[printable(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(len(row[place]) for row in shown) for place in range(len(headings))]
        for number, row in enumerate(shown):
            cells = [
                cell.rjust(width) if heading in _RIGHT else cell.ljust(width)
                for cell, width, heading in zip(row, widths, headings, strict=True)
            ]
            line = "  ".join(cells).rstrip()
            yield line if number else self.paint(BOLD, line)

    def paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self.colour else text


def _rows(item: GroupCapacity) -> Iterator[tuple[str, ...]]:
    name = "(cluster)" if item.group is None else item.group
    template = item.template.value if item.template else "-"
    rows = [(f"pair {spec.name}", _size(spec_values(spec.pair.max)), spec.fits, spec.binding) for spec in item.specs]
    total = sum(size.count for size in item.tiered)
    rows.append(("tiered", "pairs in turn, shrunk to fit", total, item.tiered_binding))
    standard = item.standard
    rows.append(("standard", _size(spec_values(item.std)), standard.fits, standard.binding))
    for number, (spec, size, fits, binding) in enumerate(rows):
        first = (name, template) if number == 0 else ("", "")
        yield (*first, spec, size, str(fits), binding.cause.key, binding.reason or "-")


def bindings_of(item: GroupCapacity) -> list[Binding]:
    """Return what binds each figure of the group, in every table."""
    extended = item.extended
    limited = [] if extended is None else [fit.binding for fit in (*extended.specs, extended.standard)]
    return [*(spec.binding for spec in item.specs), item.tiered_binding, item.standard.binding, *limited]


def _name(item: GroupCapacity) -> str:
    return "the whole cluster" if item.group is None else f"group {item.group}"


def _size(spec: dict[str, int]) -> str:
    return _words(spec["memory-size"], spec["cpu-count"], spec["disk-size"])


def _words(memory: int, cpus: int, disk: int, shown: Callable[[int], str] = exact_size) -> str:
    return f"{shown(memory)} memory, {cpus} CPU{'s' if cpus != 1 else ''}, {shown(disk)} disk"


def _sizes(sizes: tuple[Size, ...]) -> str:
    shown = [f"{size.count} x {_words(size.memory, size.cpus, size.disk, rough_size)}" for size in sizes[:_MOST_SIZES]]
    return "; ".join(shown) + (f"; and {len(sizes) - _MOST_SIZES} more sizes" if len(sizes) > _MOST_SIZES else "")
