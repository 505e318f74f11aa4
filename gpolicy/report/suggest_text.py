"""Suggested sizes for a terminal: one table first, then what is stranded, then the mix and what else to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gpolicy.cluster.state import read_from
from gpolicy.printable import BOLD, DIM, PLAIN, as_text, printable

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Spec
    from gpolicy.analysis.binding import Binding, Cause
    from gpolicy.suggest.suggestion import Mix, NodeKind, Suggestion, SuggestReport
    from gpolicy.suggest.tiling import Resources

_LEFT: Final = frozenset({"size", "instance", "bound by", "nodes"})
_NAMES_SHOWN: Final = 5


def suggest_text(report: SuggestReport, *, colour: bool = False) -> str:
    """Return the report as text, without the documents."""
    return as_text(line.rstrip() for line in _Writer(colour=colour).lines(report))


class _Writer:
    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def lines(self, report: SuggestReport) -> Iterator[str]:
        for place, item in enumerate(report.groups):
            if place:
                yield ""
            yield from self.group(item, report.cluster_name)
        for name, why in report.passed_over.items():
            yield self.paint(DIM, f"passed over: {name}: {why}")
        if report.snapshot:
            yield self.paint(DIM, f"read from {read_from(report.source, report.snapshot)}")

    def group(self, item: Suggestion, cluster: str) -> Iterator[str]:
        kind = "exclusive storage" if item.exclusive else item.template.value
        yield self.paint(BOLD, f"Sizes for group {item.group} of cluster {cluster} ({kind})")
        yield ""
        headings = ["size", "instance", "a node", "now", "then", *(["by hail"] if item.exclusive else [])]
        headings += ["empty", "bound by"]
        yield from self.table(headings, [*_sizes(item), *_today(item)])
        yield from self.legend(item)
        yield ""
        yield from self.stranded(item)
        for mix in item.mixes:
            yield ""
            yield from self.mix(mix)
        yield ""
        if item.newly_forbidden:
            names = _some(item.newly_forbidden)
            yield f"{len(item.newly_forbidden)} of {item.instances} instances would violate the sizes: {names}"
        elif item.instances:
            yield f"No instance of the {item.instances} in the group would newly violate the sizes."
        if item.std_in is None:
            yield "The cluster's std lies in none of the sizes: hspace would count no standard instance here."
        for note in item.notes:
            yield self.paint(DIM, f"note: {note}")

    def legend(self, item: Suggestion) -> Iterator[str]:
        for word in legend_words(item):
            yield self.paint(DIM, word)
        for cause in causes(item):
            yield self.paint(DIM, f"{cause.key}: {cause.sentence}")

    def stranded(self, item: Suggestion) -> Iterator[str]:
        yield self.paint(BOLD, "What a node strands that is filled with one size")
        yield ""
        headings = ["nodes", "size", "fill it", "memory", "CPUs"]
        with_disk = item.measure.disk is not None
        headings += ["volumes"] if item.exclusive else ["disk"] if with_disk else []
        rows = []
        for left in item.stranded:
            row = [
                _nodes(item.kinds[left.kind]),
                left.name,
                str(left.count),
                human(left.left.memory),
                str(left.left.cpus),
            ]
            if item.exclusive:
                row.append(str(left.left.volumes))
            elif with_disk:
                row.append(human(left.left.disk or 0))
            rows.append([*row, f"{left.share:.1%}"])
        yield from self.table([*headings, "wasted"], rows)

    def mix(self, mix: Mix) -> Iterator[str]:
        asked = ", ".join(f"{count} {name}" for name, count in mix.weights.items())
        how = "N+1 kept" if mix.n1 else "as hail places on dedicated nodes, without N+1"
        often = f"{mix.mixes} time{'s' * (mix.mixes != 1)}"
        yield self.paint(BOLD, f"The mix of {asked} fits {often} ({how}): {counts_words(mix.placed)}")
        if mix.limit is not None and mix.binding is not None:
            yield f"the next one stops at {mix.limit}: {mix.binding.cause.key} ({mix.binding.cause.sentence})"
        yield f"with what still fits of it: {counts_words(mix.best)}"
        yield f"left over beside the full mixes: {left_words(mix.left)}; of one size alone {counts_words(mix.more)}"

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        shown = [[printable(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(len(row[place]) for row in shown) for place in range(len(headings))]
        for number, row in enumerate(shown):
            cells = [
                cell.ljust(width) if heading in _LEFT else cell.rjust(width)
                for cell, width, heading in zip(row, widths, headings, strict=True)
            ]
            line = "  ".join(cells).rstrip()
            yield line if number else self.paint(BOLD, line)

    def paint(self, paint: str, text: str) -> str:
        return f"{paint}{text}{PLAIN}" if self.colour else text


def legend_words(item: Suggestion) -> list[str]:
    """Return what the columns of the table of sizes mean."""
    words = [
        "a node: how many fill an empty node" + " of each kind" * (len(item.kinds) > 1),
        "now, then: how many fit beside what runs, under today's policy and under this one (as hspace counts: N+1)",
    ]
    if item.exclusive:
        words.append("by hail: the same without N+1, which hail does not keep on nodes with exclusive storage")
    words.append("empty: as if nothing ran")
    return words


def _sizes(item: Suggestion) -> Iterator[list[str]]:
    for size in item.sizes:
        row = [size.name, instance_words(size.pair.max, exclusive=item.exclusive), "/".join(map(str, size.a_node))]
        row += [str(size.now.fits), str(size.then.fits)]
        if size.placeable is not None:
            row.append(str(size.placeable.fits))
        yield [*row, str(size.empty.fits), size.then.binding.cause.key]


def _today(item: Suggestion) -> Iterator[list[str]]:
    for pair in item.today:
        row = [f"today's pair {pair.place}", instance_words(pair.pair.max, exclusive=item.exclusive), "-"]
        row += [str(pair.now.fits), str(pair.then.fits), *(["-"] if item.exclusive else [])]
        yield [*row, "-", pair.then.binding.cause.key]


def causes(item: Suggestion) -> list[Cause]:
    """Return what binds in the table of sizes."""
    bindings: list[Binding] = [size.then.binding for size in item.sizes] + [pair.then.binding for pair in item.today]
    return list(dict.fromkeys(binding.cause for binding in bindings))


def instance_words(spec: Spec, *, exclusive: bool) -> str:
    """Return an instance of that size in words."""
    text = f"{human(spec.memory)} memory, {spec.cpus} CPU{'s' * (spec.cpus != 1)}, {human(spec.disk_size)} disk"
    return f"{text} on {spec.spindle_use}" if exclusive else text


def _nodes(kind: NodeKind) -> str:
    first = kind.nodes[0].name
    return first if len(kind.nodes) == 1 else f"{first} and {len(kind.nodes) - 1} more"


def counts_words(counts: Mapping[str, int]) -> str:
    """Return how many there are of each size."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def left_words(left: Resources) -> str:
    """Return resources in words."""
    parts = [f"{human(left.memory)} memory", f"{left.cpus} virtual CPUs"]
    if left.volumes is not None:
        parts.append(f"{left.volumes} volumes")
    elif left.disk is not None:
        parts.append(f"{human(left.disk)} disk")
    return ", ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def human(size: int) -> str:
    """Return a size for people, to a tenth of its unit: 61.5G, 516M."""
    for unit, factor in (("T", 1024 * 1024), ("G", 1024)):
        if size >= 4 * factor or size == factor:
            return f"{size / factor:.1f}".removesuffix(".0") + unit
    return f"{size}M"
