"""Capacity as Markdown: one table for everybody, and what else there is folded below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.cluster.state import read_from
from gpolicy.report.budget import COMMENT_BUDGET
from gpolicy.report.capacity_section import WHOLE_CLUSTER, room_cells, size_words
from gpolicy.report.capacity_text import bindings_of
from gpolicy.report.markdown import Block, Document, code, prose, table_head
from gpolicy.report.markdown_table import CLOSE, folded, table_items, table_rows
from gpolicy.report.plan_markdown import marker
from gpolicy.report.section import NOTHING, Cell, Name, Table, size

_RIGHT: Final = frozenset(
    {"fits", "of size", "memory", "disk", "virtual CPUs", "spindle use", "physical volumes", "score"}
)


def capacity_markdown(report: CapacityReport, *, budget: int = COMMENT_BUDGET) -> str:
    """Return the report as Markdown of at most `budget` bytes (at least `markdown.LEAST_BUDGET`)."""
    items = [*report.groups, *([report.cluster] if report.cluster else [])]
    table = _fits(items)
    title = f"### What fits on {code(report.cluster_name, 100)} beside what runs there"
    blocks = [
        Block(name="", importance=100, head=(marker(report.cluster_name, "capacity"), title)),
        Block(
            name="rows of the capacity table",
            importance=80,
            head=("", *table_head(table.headings, table.right)),
            items=tuple(table_rows(table)),
        ),
        _folded("tiered runs by size", 30, _tiered(items)),
        _folded("what is free and of no use to any size", 40, _stranded(items)),
        *(
            [_folded("under the limits that were asked for", 60, _extended(items))]
            if any(i.extended for i in items)
            else []
        ),
        _folded("cluster score", 20, _scores(items)),
        _words(items),
        Block(
            name="notes",
            importance=50,
            head=("",) if report.notes else (),
            items=tuple(f"- {prose(note)}" for note in report.notes),
        ),
    ]
    foot = f"<sub>read from {code(read_from(report.source, report.snapshot), 200)}</sub>"
    return Document([block for block in blocks if block.head or block.items], tail=("", foot)).text(budget)


def _folded(name: str, importance: int, table: Table) -> Block:
    items = tuple(table_items(table))
    head = folded(f"<b>{name[0].upper()}{name[1:]}</b>") if items else ()
    return Block(name=f"rows about {name}", importance=importance, head=head, items=items, tail=CLOSE)


def _name(item: GroupCapacity) -> Cell:
    return WHOLE_CLUSTER if item.group is None else Name(item.group)


def _fits(items: list[GroupCapacity]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        template = item.template.value if item.template else NOTHING
        figures: list[tuple[str, str, int, str]] = [
            (Name(spec.name), size_words(spec.pair.max), spec.fits, spec.binding.cause.key) for spec in item.specs
        ]
        tiered = sum(run.count for run in item.tiered)
        figures.append(("tiered", NOTHING, tiered, item.tiered_binding.cause.key))
        standard = item.standard
        figures.append(("standard", size_words(item.std), standard.fits, standard.binding.cause.key))
        for number, (spec, words, fits, cause) in enumerate(figures):
            first: tuple[Cell, ...] = ("", "") if number else (_name(item), template)
            rows.append((*first, spec, words, f"{fits:,}", cause))
    return Table(
        title="Instances that fit beside those that are there",
        of="rows",
        headings=("group", "template", "spec", "size", "fits", "bound by"),
        rows=tuple(rows),
        right=_RIGHT,
    )


def _tiered(items: list[GroupCapacity]) -> Table:
    rows = [
        (_name(item), f"{run.count:,}", f"{size(run.memory)} · {run.cpus} CPU · {size(run.disk)}")
        for item in items
        for run in item.tiered
    ]
    return Table(
        title="All pairs in turn, each shrunk to what still fits",
        of="runs",
        headings=("group", "fits", "size"),
        rows=tuple(rows),
        right=_RIGHT,
    )


def _stranded(items: list[GroupCapacity]) -> Table:
    return Table(
        title="Left when nothing more fits",
        of="groups",
        headings=("group", "memory", "disk", "virtual CPUs", "spindle use", "physical volumes"),
        rows=tuple((_name(item), *room_cells(item.stranded)) for item in items if item.stranded and item.nodes),
        right=_RIGHT,
    )


def _extended(items: list[GroupCapacity]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        fits = () if item.extended is None else (*item.extended.specs, item.extended.standard)
        for fit in fits:
            memory = {size(fit.minimum_memory): None, size(fit.maximum_memory): None}
            pair = item.extended is not None and fit is not item.extended.standard
            name = Name(fit.name) if pair else fit.name
            rows.append((_name(item), name, " to ".join(memory), f"{fit.fits:,}", fit.binding.cause.key))
    return Table(
        title="With node failures or over-subscription",
        of="rows",
        headings=("group", "spec", "memory", "fits", "bound by"),
        rows=tuple(rows),
        right=_RIGHT,
    )


def _scores(items: list[GroupCapacity]) -> Table:
    return Table(
        title="As htools computes it (smaller is better balanced)",
        of="groups",
        headings=("group", "score"),
        rows=tuple((_name(item), item.score.shown) for item in items),
        right=_RIGHT,
    )


def _words(items: list[GroupCapacity]) -> Block:
    """Return what the words of the last column mean."""
    lines = tuple(_sentences(items))
    head = (*folded("<b>What binds</b>"), "") if lines else ()
    return Block(name="explanations", importance=10, head=head, items=lines, tail=CLOSE)


def _sentences(items: list[GroupCapacity]) -> Iterator[str]:
    for cause in dict.fromkeys(binding.cause for item in items for binding in bindings_of(item)):
        yield f"- {code(cause.key)}: {prose(cause.sentence)}"
