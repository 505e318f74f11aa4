"""Capacity as an answer: one table for everybody, and below it all else; under several policies, these side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Final

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.analysis.allocator_input import not_known
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PairCapacity
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.hail import reports_disk
from gpolicy.analysis.shown_score import Score
from gpolicy.printable import Tone, count, named
from gpolicy.report import answer, capacity_section
from gpolicy.report.capacity_section import bars_of, group_cell, pair_cell, room_cells, size_words, spec_words
from gpolicy.report.pictures import memory_section

_MOST_TOLD: Final = 3


def capacity_answer(
    report: CapacityReport, *, components: bool = False, before: CapacityReport | None = None
) -> answer.Answer:
    """Return the capacity by group and spec, and why the next instance does not fit; `components` adds the scores.

    `before` is the capacity without what is supposed.
    """
    items = [*report.groups, *([report.cluster] if report.cluster else [])]
    old = {item.group: item for item in (*before.groups, before.cluster) if item} if before else {}
    details = [_metadata(report), _tiered(items), _stranded(items), _scores(items)]
    limits = tuple(item.sentence for item in report.policy_limits)
    told = told_of(report)
    return answer.Answer(
        verb="capacity",
        title="What fits on cluster",
        **answer.about(report) | {"unknown": (*report.not_known, *_unchecked(report))},
        title_end="beside what runs there",
        tone=Tone.CAREFUL if any(item.refusal for item in items) else Tone.PLAIN,
        verdict=" ".join(_sentences(report, old)),
        figures=(
            answer.Figure("standard instances", f"{sum(item.standard.fits for item in told):,}", about="capacity"),
            answer.Figure("in a tiered run", f"{sum(item.tiered_fit.fits for item in told):,}", about="capacity"),
            answer.Figure("groups", f"{len(report.groups):,}"),
            answer.Figure("nodes", f"{sum(item.nodes for item in told):,}"),
            answer.Figure("instances now", f"{sum(item.instances for item in told):,}"),
        ),
        sections=(
            answer.Section("capacity", "What fits", [_fits_table(items, old)], limits, never_cut=True),
            memory_section(report),
            answer.Section("details", "Details", details),
            *(map(_components, items, range(len(items))) if components else ()),
        ),
        notes=(*report.notes, *(f"without what is supposed: {text}" for text in (before.not_known if before else ()))),
    )


def _unchecked(report: CapacityReport) -> Iterator[str]:
    if report.unchecked:
        yield f"spindles not checked in {named('group', report.unchecked)}"
    if report.without_disk:
        where = named("group", report.without_disk)
        yield f"hail refuses such instances in {where} today: Ganeti tells it of no disk (--template counts another)"


def told_of(report: CapacityReport) -> list[GroupCapacity]:
    """Return what a verdict is about: the whole cluster, or groups, of which the one that takes most comes first.

    Where a group cannot absorb the loss of a node, hail refuses all requests that name no group: the whole cluster
    takes nothing, though other groups may take some.
    """
    whole = report.cluster
    if whole is not None and (whole.most_fits or not any(item.most_fits for item in report.groups)):
        return [whole]
    filled = [item for item in report.groups if item.nodes and not item.is_closed] or report.groups
    return sorted(filled, key=lambda item: -item.most_fits)


def _sentences(report: CapacityReport, old: _Old) -> Iterator[str]:
    """Yield the verdict: the groups that take nothing first, then what fits."""
    empty, told = [item for item in report.groups if item.refusal is not None], told_of(report)
    said = []
    for item in empty[:_MOST_TOLD]:
        was, now = old.get(item.group), ""
        if was and was.most_fits:
            now = f" (today {was.standard.fits:,} standard, {was.tiered_fit.fits:,} tiered)"
        said.append(f"{_where(item)} takes no new {_refused(item)}{now}: {item.refusal_words}")
    said += [f"{count(len(empty) - _MOST_TOLD, 'more group')} take none either"] if len(empty) > _MOST_TOLD else []
    refused = report.cluster.refusal if report.cluster and told != [report.cluster] else None
    if report.cluster and refused and refused.cause is Cause.BROKEN:  # else it is of the template that is counted
        told_above = refused.detail in {item.refusal.detail for item in empty[:_MOST_TOLD] if item.refusal}
        why = ", too" if told_above else f": {report.cluster.refusal_words}"
        said.append(f"requests that name no group are refused{why}")
    filled = [item for item in told if item.refusal is None]
    templates = {item.template for item in (*report.groups, *told)}
    named = len(templates) > 1 or DiskTemplate.DISKLESS in templates
    taken = [_taken(item, old.get(item.group), named=named) for item in filled[:_MOST_TOLD]]
    alone = max(report.groups, key=lambda item: item.tiered_fit.fits, default=None)
    if alone and filled == [report.cluster] and alone.tiered_fit.fits > filled[0].tiered_fit.fits:
        taken = [f"{taken[0]} ({_where(alone)} alone {alone.tiered_fit.fits:,})"]  # see `explain (cluster)`
    taken += [f"and {count(len(filled) - _MOST_TOLD, 'more group')}"] if len(filled) > _MOST_TOLD else []
    said += ["; ".join(taken)] if taken else []
    said[:1] = [f"{answer.supposing(report.what_if)}{text}" for text in said[:1]]
    return (f"{text[0].upper()}{text[1:]}{'.' if place < len(said) else ''}" for place, text in enumerate(said, 1))


def _refused(item: GroupCapacity) -> str:
    """Return what a group takes none of: instances of the counted template, unless it refuses others as well."""
    of_all = item.refusal is not None and item.refusal.cause in (Cause.BROKEN, Cause.ALLOCATOR)
    of_all = of_all and reports_disk(item.template)
    return "instance" if of_all or item.template is None else f"{item.template.value} instance"


def _taken(item: GroupCapacity, was: GroupCapacity | None, *, named: bool) -> str:
    """Return what fits; with the name of its template where it could be another, or has no disks."""
    now = [f" (today {fits:,})" for fits in (was.standard.fits, was.tiered_fit.fits)] if was else ["", ""]
    of = f" of {item.template.value}" if named and item.template else ""
    standard = f"{item.standard.fits:,} standard instances{of}{now[0]}"
    if item.standard.binding.cause is Cause.BOUNDS and not (was and was.standard.fits):
        standard = "no standard instances (no size allows them)"
    takes_least = item.least.fits and item.most_fits == item.least.fits
    least = f", and {item.least.fits:,} of the smallest size" if takes_least else ""
    return f"{_where(item)} takes {standard}, or {item.tiered_fit.fits:,} in a tiered run{now[1]}{least}"


def _where(item: GroupCapacity) -> str:
    return "the whole cluster" if item.group is None else f"group {item.group}"


_Old = Mapping[str | None, GroupCapacity]
"""Groups (None: the whole cluster) without what is supposed; empty where nothing is."""


def _figures(item: GroupCapacity) -> list[tuple[str, str, Fit, int]]:
    """Return name, size in words, what fits, and hspace's number; one for all sizes where none fits."""
    found, standard = item.figures, item.standard
    takes_none = not any(fit.fits or others for _, fit, others in found)
    if takes_none and len({(fit.binding.cause, fit.binding.reason) for _, fit, _ in found}) == 1:
        return [("every size", answer.NOTHING, standard, 0)]
    names = [*(pair_cell(one.name) for one in item.specs), "tiered", "standard"]
    return [
        (name, spec_words(fit.spec) if fit.spec else "shrunk to fit", fit, hspace)
        for name, (_, fit, hspace) in zip(names, found, strict=True)
    ]


def _fits_table(items: Sequence[GroupCapacity], old: _Old) -> answer.Table:
    differs = any(fit.fits != hspace for item in items for _, fit, hspace in item.figures)
    movable = any(one.at_most is not None and one.at_most > one.fits for item in items for one in item.specs)
    there = (True, True, True, bool(old), True, movable, differs, True, True)
    rows: list[tuple[answer.Cell, ...]] = []
    sides: list[tuple[Fit | None, Fit | None]] = []
    for item in items:
        first = (group_cell(item.group), item.template.value if item.template else answer.NOTHING)
        was = {size: fit for size, _, fit, _ in _figures(old[item.group])} if item.group in old else {}
        after_moves = {pair_cell(one.name): _with_moves(one) for one in item.specs}
        for size, words, fit, hspace in _figures(item):
            before, binding = was.get(size), fit.binding
            sides.append((before, fit))
            bound_by = f"{binding.cause.key} ({binding.reason})" if binding.reason else binding.cause.key
            now = before.fits if before else 0 if was else None
            row = (
                *first,
                size,
                answer.digits(now),
                answer.digits(fit.fits),
                after_moves.get(size, answer.NOTHING),
                answer.digits(hspace),
                words,
                bound_by,
            )
            rows.append(tuple(compress(row, there)))
    numbers = map(answer.Number, ("today", "supposed" if old else "fits", "with moves", "hspace"))
    headings = tuple(compress(("group", "template", "size", *numbers, "at its largest", "bound by"), there))
    title = "Instances that fit beside those that are there"
    return answer.Table(title, "rows", headings, rows, grouped=2, bars=bars_of(sides), brief=20)


def _with_moves(size: PairCapacity) -> str:
    """Return how many instances fit after moves: as many as were found, to as many as no moves exceed."""
    most = answer.digits(size.at_most)
    return most if size.after_moves == size.at_most else f"{answer.digits(size.after_moves)} to {most}"


def _tiered(items: Sequence[GroupCapacity]) -> answer.Table:
    title = "Tiered runs by size: all sizes in turn, each shrunk to what still fits"
    rows = [
        (group_cell(item.group), answer.digits(run.count), size_words(run.memory, run.cpus, run.disk))
        for item in items
        for run in item.tiered
    ]
    headings = ("group", answer.Number("fits"), "size")
    return answer.Table(title, "sizes", headings, rows, weight=answer.Weight.DETAIL, grouped=1)


def _stranded(items: Sequence[GroupCapacity]) -> answer.Table:
    rows = [(group_cell(item.group), *room_cells(item.stranded)) for item in items if item.stranded and item.nodes]
    headings = ("group", *capacity_section.ROOM_HEADINGS)
    return answer.Table("Free resources that no size can use", "groups", headings, rows, weight=answer.Weight.DETAIL)


def _metadata(report: CapacityReport) -> answer.Table:
    rows: list[tuple[answer.Cell, ...]] = []
    for room in report.metadata:
        each = answer.from_to([node.free for node in room.nodes], answer.size)
        known = dict.fromkeys("measured" if node.measured else "declared" for node in room.nodes)
        sources = " and ".join([*known, *(["nothing"] if room.unknown else [])])
        rows.append((answer.Name(room.group), answer.Name(room.volume_group), each, answer.digits(room.disks), sources))
    return answer.Table(
        "DRBD disks whose metadata still fits where metavg is another volume group: no count above looks at it",
        "groups",
        ("group", "volume group", answer.Number("free on each node"), answer.Number("fits"), "known from"),
        rows,
    )


def _scores(items: Sequence[GroupCapacity]) -> answer.Table:
    title = "Cluster score as htools computes it (smaller is better balanced)"
    rows = [(group_cell(item.group), item.score.shown, item.score.shown_minimum) for item in items]
    headings = ("group", *map(answer.Number, ("score", "minimum")))
    return answer.Table(title, "groups", headings, rows, weight=answer.Weight.DETAIL)


def _components(item: GroupCapacity, place: int) -> answer.Section:
    rows = [(component.name, *component.shown) for component in item.score.components]
    headings = ("component", *map(answer.Number, ("value", "weight", "product", "could fall by")))
    return answer.Section(
        f"score-{place}",
        f"Score of {_where(item)}",
        [answer.Table("Components", "components", headings, rows, weight=answer.Weight.DETAIL, most=len(rows))],
        _falls(item.score) if rows else ("no node is online",),
        summary=f"{item.score.shown} (smaller is better balanced)",
        never_cut=True,
    )


def _falls(score: Score) -> tuple[str, ...]:
    """Return the theoretical minimum of a score, and the components by which it could fall most."""
    above = sorted((item for item in score.components if item.excess > 0), key=lambda item: -item.excess)
    by = ", ".join(f"{item.name} ({item.shown[3]})" for item in above[:3])
    more = f" and {len(above) - 3} more" if len(above) > 3 else ""
    falls = f"the score could fall at most by {by}{more}" if above else "the score cannot fall"
    return (f"theoretical minimum: {score.shown_minimum}, as hbal takes it; {falls}",)


_NEXT: Final = "What keeps out the next one"
_GroupAndSize = tuple[str | None, str]
"""A group (None: the whole cluster), and a size, `tiered` or `standard`."""


def compared_answer(reports: Mapping[str, CapacityReport]) -> answer.Answer:
    """Return what fits under each policy, by its name."""
    several = len({item.template for report in reports.values() for item in report.groups}) > 1
    found = {policy: _figures_of(report, several=several) for policy, report in reports.items()}
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
    basis = {
        policy: (report.basis.sentence, *(item.sentence for item in report.limits))
        for policy, report in reports.items()
    }
    return answer.Answer(
        verb="capacity",
        title="What fits under each policy on cluster",
        name=first.cluster_name or first.source,
        verdict=f"{answer.supposing(first.what_if)}Of standard instances {where} {shown}",
        unknown=not_known({group: why for report in reports.values() for group, why in report.reasons.items()}),
        basis=(*first.what_if, *_of_policies(basis)),
        figures=tuple(answer.Figure(policy, f"{fits:,}", about="capacity") for policy, fits in whole.items()),
        sections=(
            answer.Section(
                "capacity",
                "What fits",
                [_table("Instances that fit beside those that are there", found, rows, fits=True)],
                never_cut=True,
            ),
            answer.Section("binding", _NEXT, [_table(_NEXT, found, rows, fits=False)]),
        ),
        notes=tuple(_of_policies({policy: report.notes for policy, report in reports.items()})),
        source=first.source,
        snapshot=first.snapshot,
    )


def _of_policies(sentences: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the sentences, those that are not of all policies with the name of theirs."""
    policies: dict[str, list[str]] = {}
    for policy, said in sentences.items():
        for sentence in said:
            policies.setdefault(sentence, []).append(policy)
    for sentence, names in policies.items():
        yield sentence if len(names) == len(sentences) else f"{', '.join(names)}: {sentence}"


_FiguresOf = dict[_GroupAndSize, tuple[Fit, str]]


def _figures_of(report: CapacityReport, *, several: bool) -> _FiguresOf:
    """Return for each row what fits, and the counted size; with the template if `several` are counted."""
    found: _FiguresOf = {}
    for item in (*report.groups, *([report.cluster] if report.cluster else [])):
        of = f", {item.template.value}" if several and item.template else ""
        for name, fit, _ in item.figures:
            words = spec_words(fit.spec) if fit.spec else "all sizes in turn, shrunk to fit"
            found[item.group, name] = fit, f"{words}{of}"
    return found


def _table(title: str, found: Mapping[str, _FiguresOf], rows: list[_GroupAndSize], *, fits: bool) -> answer.Table:
    made: list[tuple[answer.Cell, ...]] = []
    for row in rows:
        sizes = list(dict.fromkeys(figures[row][1] for figures in found.values() if row in figures))
        cells = [answer.NOTHING] * len(found)
        for place, figures in enumerate(found.values()):
            if row in figures:
                fit, words = figures[row]
                text = answer.digits(fit.fits) if fits else fit.binding.cause.key
                cells[place] = f"{text} of {words}" if fits and len(sizes) > 1 else text
        counted = (sizes[0] if len(sizes) == 1 else answer.NOTHING,) if fits else ()
        size = row[1] if row[1] in ("tiered", "standard") else pair_cell(row[1])
        made.append((group_cell(row[0]), size, *counted, *cells))
    policies = map(answer.Number, found) if fits else found
    headings = ("group", "size", *(("at its largest",) if fits else ()), *policies)
    return answer.Table(title, "rows", headings, made, grouped=1)
