"""Suggested sizes as an answer: per group what fits, what is stranded, mixes, and the document to copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gpolicy.cluster.state import read_from
from gpolicy.report.answer import Answer, Listing
from gpolicy.report.section import NOTHING, Cell, Name, Section, Table, Weight, count, filled
from gpolicy.report.suggest_text import causes, counts_words, human, instance_words, left_words, legend_words

if TYPE_CHECKING:
    from gpolicy.suggest.suggestion import Mix, Suggestion, SuggestReport

_RIGHT: Final = frozenset(
    {"a node", "now", "then", "by hail", "empty", "fill it", "memory", "CPUs", "volumes", "disk", "wasted", "fits"}
)


def suggest_answer(report: SuggestReport) -> Answer:
    """Return the sizes of each group, and its document."""
    groups = count(len(report.groups), "group")
    passed = Section(
        key="passed-over",
        title="Passed over",
        weight=Weight.SAME,
        summary="",
        notes=tuple(f"{name}: {why}" for name, why in report.passed_over.items()),
    )
    return Answer(
        verb="suggest",
        title="Sizes that tile the nodes of",
        name=report.cluster_name,
        verdict=f"sizes for {groups}, with the document that declares them",
        good=None,
        sections=(*(_section(item, place) for place, item in enumerate(report.groups, start=1)), passed),
        listings=tuple(
            Listing(title=f"NodeGroup document of {item.group}", language="yaml", text=item.document)
            for item in report.groups
        ),
        source=read_from(report.source, report.snapshot),
    )


def _section(item: Suggestion, place: int) -> Section:
    kind = "exclusive storage" if item.exclusive else item.template.value
    return Section(
        key=f"group-{place}",
        title=f"Group {item.group}",
        weight=Weight.CHANGED,
        summary=f"{kind}, {count(sum(len(kind.nodes) for kind in item.kinds), 'node')}",
        tables=filled(_sizes(item), _mixes(item.mixes), _stranded(item), _words(item)),
        notes=tuple(_notes(item)),
    )


def _sizes(item: Suggestion) -> Table:
    hail = ["by hail"] if item.exclusive else []
    rows: list[tuple[Cell, ...]] = []
    for size in item.sizes:
        placeable = [str(size.placeable.fits) if size.placeable else NOTHING] * len(hail)
        words = instance_words(size.pair.max, exclusive=item.exclusive)
        figures = (str(size.now.fits), str(size.then.fits), *placeable, str(size.empty.fits))
        rows.append((Name(size.name), words, "/".join(map(str, size.a_node)), *figures, size.then.binding.cause.key))
    for pair in item.today:
        words = instance_words(pair.pair.max, exclusive=item.exclusive)
        figures = (str(pair.now.fits), str(pair.then.fits), *([NOTHING] * len(hail)), NOTHING)
        rows.append((f"today's pair {pair.place}", words, NOTHING, *figures, pair.then.binding.cause.key))
    return Table(
        title="What fits",
        of="sizes",
        headings=("size", "instance", "a node", "now", "then", *hail, "empty", "bound by"),
        rows=tuple(rows),
        right=_RIGHT,
    )


def _stranded(item: Suggestion) -> Table:
    disk = ["volumes"] if item.exclusive else ["disk"] if item.measure.disk is not None else []
    rows: list[tuple[Cell, ...]] = []
    for left in item.stranded:
        nodes = tuple(Name(node.name) for node in item.kinds[left.kind].nodes)
        last = str(left.left.volumes) if item.exclusive else human(left.left.disk or 0)
        figures = (str(left.count), human(left.left.memory), str(left.left.cpus), *([last] * len(disk)))
        rows.append((nodes, Name(left.name), *figures, f"{left.share:.1%}"))
    return Table(
        title="What a node strands that is filled with one size",
        of="rows",
        headings=("nodes", "size", "fill it", "memory", "CPUs", *disk, "wasted"),
        rows=tuple(rows),
        right=_RIGHT,
        weight=Weight.SAME,
    )


def _mixes(mixes: tuple[Mix, ...]) -> Table:
    return Table(
        title="How often a mix fits",
        of="mixes",
        headings=(
            "mix",
            "fits",
            "that is",
            "the next one stops at",
            "with what still fits of it",
            "left beside the full mixes",
        ),
        rows=tuple(
            (
                counts_words(mix.weights) + ("" if mix.n1 else " (without N+1)"),
                str(mix.mixes),
                counts_words(mix.placed),
                NOTHING if mix.limit is None or mix.binding is None else f"{mix.limit}: {mix.binding.cause.key}",
                counts_words(mix.best),
                left_words(mix.left),
            )
            for mix in mixes
        ),
        right=_RIGHT,
    )


def _notes(item: Suggestion) -> Iterator[str]:
    if item.newly_forbidden:
        some = ", ".join(item.newly_forbidden[:5]) + (" …" if len(item.newly_forbidden) > 5 else "")
        yield f"{len(item.newly_forbidden)} of {item.instances} instances would violate the sizes: {some}"
    elif item.instances:
        yield f"no instance of the {item.instances} in the group would newly violate the sizes"
    if item.std_in is None:
        yield "the cluster's std lies in none of the sizes: hspace would count no standard instance here"
    yield from item.notes


def _words(item: Suggestion) -> Table:
    columns = (word.partition(": ") for word in legend_words(item))
    return Table(
        title="What the words mean",
        of="words",
        headings=("word", "meaning"),
        rows=(
            *((word, meaning) for word, _, meaning in columns),
            *((cause.key, cause.sentence) for cause in causes(item)),
        ),
        weight=Weight.SAME,
    )
