"""Suggested sizes as an answer and as JSON (`schemas/output/suggest.json`): what fits, what is stranded, and mixes."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.basis import NodeUse
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.json_values import COUNT, FROM_ONE, Document, Key, Many, Shape
from gpolicy.printable import count, listed
from gpolicy.report import answer
from gpolicy.report.capacity_json import LIMITS, SPEC, head
from gpolicy.report.pictures import GroupPicture, NodePicture
from gpolicy.suggest import suggestion
from gpolicy.suggest.tiling import Amounts

_NAMES_SHOWN: Final = 5
_TERMS: Final = (
    ("per node", "how many fill an empty node, of each kind of nodes"),
    ("today", "how many hail accepts beside what runs, under the policy of today"),
    ("after", "the same under the suggested policy"),
    ("empty", "how many fit as if nothing ran"),
)


def suggest_answer(report: suggestion.SuggestReport, written: Path | None = None) -> answer.Answer:
    """Return the sizes of each group, and its document if it was not `written` to a file."""
    passed = tuple(f"{name}: {why.removeprefix(f'group {name}: ')}" for name, why in report.passed_over.items())
    documents = tuple(
        answer.Listing(f"NodeGroup document of {item.group}", "yaml", item.document) for item in report.groups
    )
    return answer.Answer(
        verb="suggest",
        title="Sizes that tile the nodes of cluster",
        **answer.about(report),
        verdict=f"Sizes for {count(len(report.groups), 'group')}{f', written to {written}' if written else ''}",
        sections=(
            *itertools.chain.from_iterable(map(_sections, report.groups, itertools.count(1))),
            answer.Section("passed-over", "Skipped groups", notes=passed),
        ),
        listings=() if written else documents,
        figures=(
            answer.Figure("groups", f"{len(report.groups):,}"),
            answer.Figure("sizes", f"{sum(len(item.sizes) for item in report.groups):,}"),
            answer.Figure("skipped", f"{len(report.passed_over):,}", about="passed-over"),
        ),
        terms=_TERMS,
    )


def _sections(item: suggestion.Suggestion, place: int) -> Iterator[answer.Section]:
    kind = "exclusive storage" if item.exclusive else item.template.value
    nodes = count(sum(len(kind.nodes) for kind in item.kinds), "node")
    where = f"group {item.group}"
    title, notes = f"Group {item.group}", tuple(_notes(item))
    yield answer.Section(f"group-{place}", title, [_fitting(item)], notes, summary=f"{kind}, {nodes}", never_cut=True)
    title = f"Sizes for the instances of {where}"
    yield answer.Section(f"choices-{place}", title, [_choices(item)], _unused(item), never_cut=True)
    yield answer.Section(
        f"mixes-{place}", f"Mixes in {where}", [answer.Entries("mix", [_mix(item.mix)] if item.mix else [])]
    )
    title, tiled = f"Unused on a node of {where}", answer.Picture("nodes", partial(_tiled, item))
    yield answer.Section(
        f"stranded-{place}", title, [tiled, _stranded(item)], weight=answer.Weight.DETAIL, never_cut=True
    )


def _fitting(item: suggestion.Suggestion) -> answer.Table:
    rows: list[tuple[answer.Cell, ...]] = []
    for size in item.sizes:
        fits = [str(fit.fits) for fit in (size.now, size.then, size.empty)]
        words = _instance_words(size.pair.max, exclusive=item.exclusive)
        rows.append(
            (answer.Name(size.name), words, "/".join(map(str, size.a_node)), *fits, size.then.binding.cause.key)
        )
    for pair in item.today:
        figures = (answer.NOTHING, str(pair.now.fits), str(pair.then.fits), answer.NOTHING)
        words = _instance_words(pair.pair.max, exclusive=item.exclusive)
        rows.append((f"size {pair.place} of today", words, *figures, pair.then.binding.cause.key))
    numbers = map(answer.Number, ("per node", "today", "after", "empty"))
    return answer.Table("What fits", "sizes", ("size", "instance", *numbers, "bound by"), rows, brief=8)


def _stranded(item: suggestion.Suggestion) -> answer.Table:
    disk = ["volumes"] if item.exclusive else ["disk"] if item.measure.disk is not None else []
    headings = ("size", *map(answer.Number, ("fill it", "memory", "CPUs", *disk, "wasted")))
    alike: dict[tuple[tuple[answer.Cell, ...], ...], list[str]] = {}  # kinds of nodes with the same figures are one
    for kind, wastes in itertools.groupby(item.stranded, lambda waste: waste.kind):
        figures = tuple(_waste_row(waste, item, with_disk=bool(disk)) for waste in wastes)
        alike.setdefault(figures, []).extend(node.name for node in item.kinds[kind].nodes)
    several = len(alike) > 1
    rows = [(answer.names(nodes), *row) if several else row for figures, nodes in alike.items() for row in figures]
    if several:
        headings = ("nodes", *headings)
    title, most = "What one size that fills a node leaves", len(item.stranded)
    return answer.Table(title, "rows", headings, rows, grouped=1 if several else 0, most=most)


def _tiled(item: suggestion.Suggestion) -> list[GroupPicture]:
    """Return a row for each size that fills a node, by kind of nodes."""
    memory, rows = {size.name: size.size.memory for size in item.sizes}, dict[int, list[NodePicture]]()
    for waste in item.stranded:
        kind, used = item.kinds[waste.kind], waste.count * memory[waste.name]
        reserved, total = kind.room.memory - used - waste.left.memory, kind.nodes[0].total_memory
        parts = (total, total - kind.room.memory, used, reserved)
        use = NodeUse(waste.name, item.group, *parts, waste.count, tiled=True)
        rows.setdefault(waste.kind, []).append(NodePicture(waste.name, use, use))
    titles = {
        kind: answer.plain_text(answer.names(node.name for node in item.kinds[kind].nodes), _NAMES_SHOWN)
        for kind in rows
    }
    return [GroupPicture(name=titles[kind], nodes=tuple(nodes), rows="size") for kind, nodes in rows.items()]


def _waste_row(waste: suggestion.Waste, item: suggestion.Suggestion, *, with_disk: bool) -> tuple[answer.Cell, ...]:
    left = waste.left
    disk = (str(left.volumes) if item.exclusive else answer.rough_size(left.disk or 0),) if with_disk else ()
    figures = (str(waste.count), answer.rough_size(left.memory), str(left.cpus))
    return (answer.Name(waste.name), *figures, *disk, answer.share(waste.share))


def _choices(item: suggestion.Suggestion) -> answer.Table:
    resources = item.choices[0].unused if item.choices else {}
    rows = [
        (
            ", ".join(f"{name} {answer.rough_size(size.memory)}" for name, size in choice.sizes.items()),
            _counts_words(choice.weights),
            str(choice.outside),
            _counts_words(choice.placed),
            *(answer.share(choice.unused[name]) for name in resources),
            answer.share(choice.mean_unused),
        )
        for choice in item.choices
    ]
    shares = [answer.Number(f"unused {name}") for name in resources]
    headings = ("sizes", "instances now", answer.Number("in none"), "fill the group", *shares, answer.Number("unused"))
    return answer.Table("The best sets of sizes; the first is suggested", "sets", headings, rows, brief=3)


def _unused(item: suggestion.Suggestion) -> tuple[str, ...]:
    if not item.choices:
        return ()
    kept = () if item.exclusive else ("what N+1 keeps",)
    parts = listed(("what sizes have more than the instances", "what no size fills", *kept))
    return (
        f"each instance counts, as {item.template.value}, as the smallest size that holds it",
        f"in these proportions the sizes fill the empty group until none fits; unused is then {parts}",
    )


def _mix(mix: suggestion.Mix) -> answer.Entry:
    how = "N+1 kept" if mix.n1 else "without N+1"
    below = [
        f"with what still fits of it: {_counts_words(mix.best)}",
        f"what the full mixes leave: {_left_words(mix.left)}; a single size fits there: {_counts_words(mix.more)}",
    ]
    if mix.limit is not None and mix.binding is not None:
        cause = mix.binding.cause
        below.insert(0, f"the next one stops at {mix.limit}: {cause.key} ({cause.sentence})")
    return answer.Entry(
        f"The mix of {_counts_words(mix.weights)} fits {count(mix.mixes, 'time')} ({how}): {_counts_words(mix.placed)}",
        below=tuple(answer.Line(text) for text in below),
    )


def _notes(item: suggestion.Suggestion) -> Iterator[str]:
    if item.newly_forbidden:
        some = answer.plain_text(answer.names(item.newly_forbidden), _NAMES_SHOWN)
        yield f"{len(item.newly_forbidden)} of {count(item.instances, 'instance')} would violate the sizes: {some}"
    elif item.instances:
        yield f"none of {count(item.instances, 'instance')} in the group would newly violate the sizes"
    if item.std_in is None:
        yield "the cluster's std lies in none of the sizes: hspace would count no standard instance here"
    yield from item.notes


def _instance_words(spec: Spec, *, exclusive: bool) -> str:
    text = (
        f"{answer.rough_size(spec.memory)} memory, {count(spec.cpus, 'CPU')}, {answer.rough_size(spec.disk_size)} disk"
    )
    return f"{text} on {count(spec.spindle_use, 'volume')}" if exclusive else text


def _counts_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _left_words(left: Amounts) -> str:
    parts = [f"{answer.rough_size(left.memory)} memory", count(left.cpus, "virtual CPU")]
    if left.volumes is not None:
        parts.append(count(left.volumes, "volume"))
    elif left.disk is not None:
        parts.append(f"{answer.rough_size(left.disk)} disk")
    return ", ".join(parts)


_FIT: Final = Shape(Fit, "fit").with_keys(fits=COUNT, binding="binding.cause.key", explanation="binding.cause.sentence")
_MIN: Final = Key(SPEC, "pair.min")
_MAX: Final = Key(SPEC, "pair.max")
_NODE: Final = Shape(suggestion.NodeHardware).with_keys(
    "name room",
    memory_total=Key(COUNT, "total_memory"),
    memory_kept=Key(COUNT, "kept_memory"),
    cpus_total=Key(COUNT, "total_cpus"),
    cpus_kept=Key(COUNT, "kept_cpus"),
)
_SIZE_SHAPE: Final = Shape(suggestion.Size).with_keys(
    "name divisor min max", divisor=FROM_ONE, min=_MIN, max=_MAX, a_node=COUNT, now=_FIT, then=_FIT, empty=_FIT
)
MIX: Final = Shape(suggestion.Mix).with_keys(
    "weights n1 mixes placed limit binding explanation best more left",
    **dict.fromkeys(("weights", "mixes", "placed", "best", "more"), COUNT),
    binding=Key(str | None, lambda mix: mix.binding and mix.binding.cause.key),
    explanation=Key(str | None, lambda mix: mix.binding and mix.binding.cause.sentence),
)
_CHOICE: Final = Shape(suggestion.Choice).with_keys(
    "sizes weights outside placed unused mean_unused", weights=COUNT, outside=COUNT, placed=COUNT
)
_GROUP: Final = Shape(suggestion.Suggestion, "group").with_keys(
    "group template exclusive_storage bounds vcpu_ratio pv_size kinds measure sizes today stranded std instances"
    " newly_forbidden mixes choices document notes",
    exclusive_storage="exclusive",
    pv_size="volume",
    kinds=Shape(suggestion.NodeKind).with_keys("room nodes", nodes=_NODE),
    sizes=_SIZE_SHAPE,
    today=Shape(suggestion.OldPair).with_keys(
        name=Key(str, lambda pair: str(pair.place)), min=_MIN, max=_MAX, now=_FIT, then=_FIT
    ),
    stranded=Shape(suggestion.Waste).with_keys("kind size count left share", kind=COUNT, size="name", count=COUNT),
    std=Shape(suggestion.Suggestion).with_keys(inside="std_in", suggested=Key(SPEC, "std")),
    instances=COUNT,
    mixes=Key(Many(MIX), lambda item: [] if item.mix is None else [item.mix]),
    choices=_CHOICE,
)
SUGGEST_DOCUMENT: Final = Document(
    "gpolicy suggest --format json",
    head("2.0"),
    Shape(suggestion.SuggestReport).with_keys(
        "basis groups passed_over what_if unknown limits", groups=_GROUP, unknown="reasons", limits=LIMITS
    ),
)
