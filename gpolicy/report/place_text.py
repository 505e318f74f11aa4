"""Placement for a terminal: the answer first, the other possibilities best first, the refused by reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.analysis.placing import Candidate, GroupTrial, Placed, PlaceReport
from gpolicy.cluster.state import read_from
from gpolicy.ganeti.units import exact_size, rough_size
from gpolicy.printable import BOLD, BOLD_GREEN, BOLD_RED, DIM, PLAIN, as_text, printable

_MOST_POSSIBLE: Final = 10
_HARD_TO_READ: Final = 10_000  # MiB: from here on a number of them says little to people
_MOST_REFUSED: Final = 3
_RIGHT: Final = frozenset({"score", "disk left"})


def place_text(report: PlaceReport, *, every: bool = False, colour: bool = False) -> str:
    """Return the report as text; `every` lists every candidate instead of the first few of each kind."""
    return as_text(line.rstrip() for line in _Writer(every=every, colour=colour).lines(report))


class _Writer:
    def __init__(self, *, every: bool, colour: bool) -> None:
        self.every, self.colour = every, colour

    def lines(self, report: PlaceReport) -> Iterator[str]:
        what = f"{report.instance.name} ({placed_words(report.instance)})"
        if report.ok:
            where = self.paint(BOLD_GREEN, " / ".join(report.nodes))
            yield f"{what} goes to {where} in group {report.group or ''}"
        else:
            yield f"{what} {self.paint(BOLD_RED, 'goes nowhere')}: {report.reason or ''}"
        yield self.paint(DIM, f"hail: {report.info}")
        if report.snapshot:
            yield self.paint(DIM, f"read from {read_from(report.source, report.snapshot)}")
        possible = [item for item in report.candidates if item.ok]
        if possible:
            yield ""
            yield from self.possible(possible, report)
        refused: dict[str, list[Candidate]] = {}
        for item in report.candidates:
            if not item.ok:
                refused.setdefault(item.reason or "", []).append(item)
        for items in sorted(refused.values(), key=len, reverse=True):
            yield ""
            yield from self.refused(items)
        untried = [group for group in report.groups if not group.tried]
        if untried or report.notes:
            yield ""
        for group in untried:
            yield self.paint(DIM, untried_words(group))
        for note in report.notes:
            yield self.paint(DIM, f"note: {note}")

    def possible(self, items: Sequence[Candidate], report: PlaceReport) -> Iterator[str]:
        dedicated = report.metric == "lost-allocations"
        sizes = f" ({', '.join(report.sizes)})" if report.sizes else ""
        headings = ("nodes", "group", f"lost allocations{sizes}" if dedicated else "score", "disk left")
        shown = items if self.every else items[:_MOST_POSSIBLE]
        rows = [(_nodes(item), item.group, _metric(item), _left(item.disk_left)) for item in shown]
        yield self.paint(BOLD, f"possible, best first ({len(items)}); the smaller the better")
        table = [[printable(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(len(row[place]) for row in table) for place in range(len(headings))]
        for number, row in enumerate(table):
            cells = [
                cell.rjust(width) if heading in _RIGHT else cell.ljust(width)
                for cell, width, heading in zip(row, widths, headings, strict=True)
            ]
            line = "  " + "  ".join(cells).rstrip()
            yield line if number else self.paint(DIM, line)
        if len(items) > len(shown):
            yield self.paint(DIM, f"  and {len(items) - len(shown)} more")

    def refused(self, items: Sequence[Candidate]) -> Iterator[str]:
        first = items[0]
        htools = sorted({item.htools_reason for item in items if item.htools_reason})
        names = f" [{', '.join(htools)}]" if htools else ""
        yield f"{self.paint(BOLD, f'refused: {first.reason} ({len(items)})')} {first.explanation}{names}"
        details: dict[str, list[Candidate]] = {}
        for item in items:
            details.setdefault(_detail(item), []).append(item)
        groups = list(details.items())
        shown = groups if self.every else groups[:_MOST_REFUSED]
        for detail, members in shown:
            listed = members if self.every else members[:_MOST_REFUSED]
            more = f" and {len(members) - len(listed)} more" if len(members) > len(listed) else ""
            text = ", ".join(_nodes(item) for item in listed) + more
            yield f"  {text}" + (f": {detail}" if detail and detail != first.explanation else "")
        if len(groups) > len(shown):
            left = sum(len(members) for _, members in groups[len(shown) :])
            yield self.paint(DIM, f"  and {left} more")

    def paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self.colour else text


def _nodes(item: Candidate) -> str:
    return " / ".join(item.nodes)


def _detail(item: Candidate) -> str:
    """Return the detail of a refusal, without the node's name where the line begins with it anyway."""
    text = item.detail or ""
    return text.removeprefix(f"{item.nodes[0]}: ") if len(item.nodes) == 1 else text


def _metric(item: Candidate) -> str:
    if item.lost_allocations is not None:
        return ", ".join(map(str, item.lost_allocations))
    return item.shown_score


def untried_words(group: GroupTrial) -> str:
    """Return why a group was not tried; hail's message may name the group once more."""
    return f"group {group.group} was not tried: {group.message.removeprefix(f'Group {group.group}: ')}"


def placed_words(instance: Placed) -> str:
    """Return the size of an instance in words."""
    alike = itertools.groupby(_disk(disk.size, disk.spindles) for disk in instance.disks)
    disks = ", ".join(_times(len(list(group)), text) for text, group in alike) or "no disk"
    cpus = f"{instance.vcpus} CPU{'s' if instance.vcpus != 1 else ''}"
    return f"{_asked(instance.memory)} memory, {cpus}, {disks}, {instance.template.value}"


def _times(number: int, text: str) -> str:
    return text if number == 1 else f"{number} times {text}"


def _disk(size: int, spindles: int | None) -> str:
    if spindles is None:
        return f"{_asked(size)} disk"
    return f"{_asked(size)} disk on {spindles} spindle{'s' if spindles != 1 else ''}"


def _asked(size: int) -> str:
    """Return what is asked for exactly, and where that is hard to read about as much as well."""
    exact = exact_size(size)
    return f"{exact} ≈ {rough_size(size)}" if exact.endswith("M") and size >= _HARD_TO_READ else exact


def _left(size: int | None) -> str:
    return "-" if size is None else rough_size(size)
