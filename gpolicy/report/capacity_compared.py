"""Several policies side by side: how many instances fit on one cluster under each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gpolicy.analysis.allocator_input import not_known
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity
from gpolicy.json_values import head
from gpolicy.report.answer import NOTHING, Answer, Cell, Figure, Name, Number, Section, Table, number, supposing
from gpolicy.report.capacity_answer import told_of
from gpolicy.report.capacity_json import capacity_data
from gpolicy.report.capacity_section import WHOLE_CLUSTER, pair_cell, spec_words

FORMAT_VERSION: Final = "2.0"
_NEXT: Final = "What keeps out the next one"
_Row = tuple[str | None, str]
"""A group (None: the whole cluster), and a spec, `tiered` or `standard`."""


def compared_answer(reports: Mapping[str, CapacityReport]) -> Answer:
    """Return what fits under each policy, by its name."""
    several = len({item.template for report in reports.values() for item in report.groups}) > 1
    found = {policy: _figures(report, several=several) for policy, report in reports.items()}
    together = dict.fromkeys(row for figures in found.values() for row in figures)
    groups = sorted(dict.fromkeys(group for group, _ in together), key=lambda group: group is None)
    rows = [row for group in groups for row in together if row[0] == group]
    first = next(iter(reports.values()))
    whole = {policy: sum(item.standard.fits for item in told_of(report)) for policy, report in reports.items()}
    shown = ", ".join(f"{fits:,} under {policy}" for policy, fits in whole.items())
    where = f"group {first.groups[0].group} takes"
    if len(first.groups) > 1 or first.cluster:
        whole_of_all = all(told_of(report) == [report.cluster] for report in reports.values())
        where = "the whole cluster takes" if whole_of_all else "the groups, each counted alone, take"
    return Answer(
        verb="capacity",
        title="What fits under each policy on cluster",
        name=first.cluster_name or first.source,
        verdict=f"{supposing(first.what_if)}Of standard instances {where} {shown}",
        unknown=not_known({group: why for report in reports.values() for group, why in report.reasons.items()}),
        basis=(*first.what_if, *_of_policies({policy: _basis(report) for policy, report in reports.items()})),
        figures=tuple(Figure(policy, f"{fits:,}", about="capacity") for policy, fits in whole.items()),
        sections=(
            Section(
                "capacity",
                "What fits",
                [_table("Instances that fit beside those that are there", found, rows, fits=True)],
                never_cut=True,
            ),
            Section("binding", _NEXT, [_table(_NEXT, found, rows, fits=False)]),
        ),
        notes=tuple(_of_policies({policy: _notes(report) for policy, report in reports.items()})),
        source=first.source,
        snapshot=first.snapshot,
    )


def _basis(report: CapacityReport) -> Iterator[str]:
    yield report.basis.sentence
    yield from (item.sentence for item in report.limits)


def _notes(report: CapacityReport) -> Iterator[str]:
    yield from report.notes


def _of_policies(sentences: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the sentences, those that are not of all policies with the name of theirs."""
    policies: dict[str, list[str]] = {}
    for policy, said in sentences.items():
        for sentence in said:
            policies.setdefault(sentence, []).append(policy)
    for sentence, names in policies.items():
        yield sentence if len(names) == len(sentences) else f"{', '.join(names)}: {sentence}"


_Figures = dict[_Row, tuple[int, Binding, str]]


def _figures(report: CapacityReport, *, several: bool) -> _Figures:
    return {
        (item.group, name): figure
        for item in (*report.groups, *([report.cluster] if report.cluster else []))
        for name, figure in _of_group(item, several=several).items()
    }


def _of_group(item: GroupCapacity, *, several: bool) -> dict[str, tuple[int, Binding, str]]:
    """Return for each row what fits, what binds, and the counted size; with the template if `several` are counted."""
    of = f", {item.template.value}" if several and item.template else ""
    figures = {one.name: (one.fits, one.binding, f"{spec_words(one.pair.largest)}{of}") for one in item.specs}
    figures["tiered"] = (item.tiered_fit.fits, item.tiered_binding, f"pairs in turn, shrunk to fit{of}")
    figures["standard"] = (item.standard.fits, item.standard.binding, f"{spec_words(item.standard.spec)}{of}")
    return figures


def _table(title: str, found: Mapping[str, _Figures], rows: list[_Row], *, fits: bool) -> Table:
    made: list[tuple[Cell, ...]] = []
    for row in rows:
        sizes = list(dict.fromkeys(figures[row][2] for figures in found.values() if row in figures))
        cells = [NOTHING] * len(found)
        for place, figures in enumerate(found.values()):
            if row in figures:
                fit, binding, size = figures[row]
                text = number(fit) if fits else binding.cause.key
                cells[place] = f"{text} of {size}" if fits and len(sizes) > 1 else text
        counted = (sizes[0] if len(sizes) == 1 else NOTHING,) if fits else ()
        spec = row[1] if row[1] in ("tiered", "standard") else pair_cell(row[1])
        made.append((WHOLE_CLUSTER if row[0] is None else Name(row[0]), spec, *counted, *cells))
    policies = map(Number, found) if fits else found
    return Table(title, "rows", ("group", "spec", *(("counted size",) if fits else ()), *policies), made, grouped=1)


def compared_data(reports: Mapping[str, CapacityReport]) -> dict[str, Any]:
    """Return the same as JSON's own types (`schemas/output/capacity-compared.json`)."""
    return {
        **head(FORMAT_VERSION, next(iter(reports.values()))),
        "policies": [{"policy": policy, "capacity": capacity_data(report)} for policy, report in reports.items()],
    }
