"""How many nodes it takes, as an answer: the nodes, what is missing with one fewer, and what fits then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.analysis.binding import Binding
from gpolicy.printable import count
from gpolicy.report.answer import Answer, Figure, Name, Section, Table, supposing
from gpolicy.report.capacity_section import size_words
from gpolicy.what_if.filling import FullReport
from gpolicy.what_if.sizing import SizeReport

_RIGHT: Final = frozenset({"cost", "nodes", "together", "wanted", "still fit then", "now", "more"})


def size_answer(report: SizeReport) -> Answer:
    """Return the cheapest numbers of nodes that are enough."""
    used = [f"{number} like {kind.like}" for kind, number in zip(report.kinds, report.nodes, strict=True) if number]
    wanted = " and ".join(f"{item.count:,} {item.title}" for item in report.wanted)
    nodes = sum(report.nodes)
    needs = f"needs {count(nodes, 'more node')} ({', '.join(used)})" if nodes else "needs no more nodes"
    priced = any(kind.cost != 1 for kind in report.kinds)
    rows = tuple(
        (Name(kind.like), f"{kind.cost:,g}", str(number), f"{kind.cost * number:,g}")
        for kind, number in zip(report.kinds, report.nodes, strict=True)
    )
    sizes = tuple(
        (Name(item.title), _words(item.instance), item.instance.template.value, f"{item.count:,}", f"{more:,}")
        for item, more in zip(report.wanted, report.more, strict=True)
    )
    missing = report.shortage
    short = (
        f"with {count(sum(missing.nodes), 'more node')}, {missing.fits:,} of {_wanted_of(report, missing.title):,}"
        f" {missing.title} would fit; {_limit(missing.binding)}"
        if missing
        else ""
    )
    return Answer(
        verb="size",
        title="How many nodes it takes on cluster",
        name=report.cluster_name,
        verdict=f"{supposing(report.what_if)}Group {report.group} {needs} for {wanted}",
        basis=_basis(report),
        figures=(
            Figure("more nodes", f"{nodes:,}", about="nodes"),
            *((Figure("cost", f"{report.cost:,g}", about="nodes"),) if priced else ()),
            Figure("trials", f"{report.trials:,}"),
        ),
        sections=(
            Section(
                key="nodes",
                title="Nodes to buy",
                parts=(
                    Table(
                        title="Nodes to buy",
                        of="kinds",
                        headings=("like", "cost", "nodes", "together"),
                        rows=rows,
                        right=_RIGHT,
                    ),
                ),
                notes=(short,) if short else (),
                never_cut=True,
            ),
            Section(
                key="instances",
                title="Instances",
                parts=(
                    Table(
                        title="Instances",
                        of="sizes",
                        headings=("spec", "size", "template", "wanted", "still fit then"),
                        rows=sizes,
                        right=_RIGHT,
                    ),
                ),
            ),
        ),
        notes=(
            *(() if report.exhaustive else ("the time ended before all cheaper choices were tried (--seconds)",)),
            *_whole_memory(report),
        ),
        terms=(
            ("spec", "a pair of sizes: its minimum is wanted, or with :max its maximum"),
            ("still fit then", "how many more of this size alone fit beside all the wanted ones"),
        ),
        source=report.source,
        snapshot=report.snapshot,
    )


def _basis(report: SizeReport | FullReport) -> tuple[str, ...]:
    return (*report.what_if, report.basis.sentence, *(item.sentence for item in report.limits))


def _whole_memory(report: SizeReport | FullReport) -> Iterator[str]:
    if any(item.limits.oversubscription is not None for item in report.limits):
        yield "oversubscription does not count here: each instance gets all of its memory"


def _wanted_of(report: SizeReport, title: str) -> int:
    return next(item.count for item in report.wanted if item.title == title)


def _limit(binding: Binding) -> str:
    return f"the limit is {binding.cause.key}: {binding.cause.sentence}"


def _words(instance: Instance) -> str:
    return size_words(instance.memory, instance.vcpus, sum(disk.size for disk in instance.disks))


def full_answer(report: FullReport) -> Answer:
    """Return how many more fit at today's mix."""
    more, now = sum(part.more for part in report.parts), sum(part.now for part in report.parts)
    takes = f"takes {count(more, 'more instance')} like its {now:,}"
    rows = tuple(
        (_words(part.instance), part.instance.template.value, f"{part.now:,}", f"{part.more:,}")
        for part in report.parts
    )
    notes = [_limit(report.binding) if report.binding else f"counting stopped at {more:,}: more may fit"]
    if report.left_out:
        notes.append(f"left out: {count(report.left_out, 'instance')} whose size or template the policy does not allow")
    return Answer(
        verb="size",
        title="How many more fit at today's mix on cluster",
        name=report.cluster_name,
        verdict=f"{supposing(report.what_if)}Group {report.group} {takes}",
        basis=_basis(report),
        figures=(Figure("more instances", f"{more:,}", about="mix"), Figure("instances now", f"{now:,}")),
        sections=(
            Section(
                key="mix",
                title="Today's mix of sizes",
                parts=(
                    Table(
                        title="Today's mix of sizes",
                        of="sizes",
                        headings=("size", "template", "now", "more"),
                        rows=rows,
                        right=_RIGHT,
                    ),
                ),
                notes=tuple(notes),
                never_cut=True,
            ),
        ),
        notes=tuple(_whole_memory(report)),
        source=report.source,
        snapshot=report.snapshot,
    )
