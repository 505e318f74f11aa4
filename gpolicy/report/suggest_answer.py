"""Suggested sizes as an answer and as JSON (`schemas/output/suggest.json`): what fits, what is stranded, and mixes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.node_use import NodeUse
from gpolicy.json_shape import COUNT, FROM_ONE, Document, Key, Many, Shape
from gpolicy.printable import count, listed
from gpolicy.report.answer import (
    NOTHING,
    Answer,
    Cell,
    Entries,
    Entry,
    Figure,
    Line,
    Listing,
    Name,
    Number,
    Picture,
    Section,
    Table,
    Weight,
    about,
    names,
    plain_text,
    rough_size,
    share,
)
from gpolicy.report.capacity_json import LIMITS, SPEC, UNKNOWN, WHAT_IF, head
from gpolicy.report.pictures import GroupPicture, NodePicture
from gpolicy.suggest.suggestion import (
    Choice,
    Mix,
    NodeHardware,
    NodeKind,
    OldPair,
    Size,
    Suggestion,
    SuggestReport,
    Waste,
)
from gpolicy.suggest.tiling import Amounts

_NAMES_SHOWN: Final = 5
_TERMS: Final = (
    ("per node", "how many fill an empty node, of each kind of nodes"),
    ("today", "how many hail accepts beside what runs, under the policy of today"),
    ("after", "the same under the suggested policy"),
    ("empty", "how many fit as if nothing ran"),
)


def suggest_answer(report: SuggestReport, written: Path | None = None) -> Answer:
    """Return the sizes of each group, and its document if it was not `written` to a file."""
    passed = tuple(f"{name}: {why.removeprefix(f'group {name}: ')}" for name, why in report.passed_over.items())
    documents = tuple(Listing(f"NodeGroup document of {item.group}", "yaml", item.document) for item in report.groups)
    return Answer(
        verb="suggest",
        title="Sizes that tile the nodes of cluster",
        **about(report),
        verdict=f"Sizes for {count(len(report.groups), 'group')}{f', written to {written}' if written else ''}",
        sections=(
            *itertools.chain.from_iterable(map(_sections, report.groups, itertools.count(1))),
            Section("passed-over", "Skipped groups", notes=passed),
        ),
        listings=() if written else documents,
        figures=(
            Figure("groups", f"{len(report.groups):,}"),
            Figure("sizes", f"{sum(len(item.sizes) for item in report.groups):,}"),
            Figure("skipped", f"{len(report.passed_over):,}", about="passed-over"),
        ),
        terms=_TERMS,
    )


def _sections(item: Suggestion, place: int) -> Iterator[Section]:
    kind = "exclusive storage" if item.exclusive else item.template.value
    nodes = count(sum(len(kind.nodes) for kind in item.kinds), "node")
    where = f"group {item.group}"
    title, notes = f"Group {item.group}", tuple(_notes(item))
    yield Section(f"group-{place}", title, [_sizes(item)], notes, summary=f"{kind}, {nodes}", never_cut=True)
    title = f"Sizes for the instances of {where}"
    yield Section(f"choices-{place}", title, [_choices(item)], _unused(item), never_cut=True)
    yield Section(f"mixes-{place}", f"Mixes in {where}", [Entries("mix", [_mix(item.mix)] if item.mix else [])])
    title, tiled = f"Unused on a node of {where}", Picture("nodes", partial(_tiled, item))
    yield Section(f"stranded-{place}", title, [tiled, _stranded(item)], weight=Weight.DETAIL, never_cut=True)


def _sizes(item: Suggestion) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for size in item.sizes:
        fits = [str(fit.fits) for fit in (size.now, size.then, size.empty)]
        words = _instance_words(size.pair.max, exclusive=item.exclusive)
        rows.append((Name(size.name), words, "/".join(map(str, size.a_node)), *fits, size.then.binding.cause.key))
    for pair in item.today:
        figures = (NOTHING, str(pair.now.fits), str(pair.then.fits), NOTHING)
        words = _instance_words(pair.pair.max, exclusive=item.exclusive)
        rows.append((f"size {pair.place} of today", words, *figures, pair.then.binding.cause.key))
    numbers = map(Number, ("per node", "today", "after", "empty"))
    return Table("What fits", "sizes", ("size", "instance", *numbers, "bound by"), rows, brief=8)


def _stranded(item: Suggestion) -> Table:
    disk = ["volumes"] if item.exclusive else ["disk"] if item.measure.disk is not None else []
    headings = ("size", *map(Number, ("fill it", "memory", "CPUs", *disk, "wasted")))
    alike: dict[tuple[tuple[Cell, ...], ...], list[str]] = {}  # kinds of nodes with the same figures are one
    for kind, wastes in itertools.groupby(item.stranded, lambda waste: waste.kind):
        figures = tuple(_waste_row(waste, item, with_disk=bool(disk)) for waste in wastes)
        alike.setdefault(figures, []).extend(node.name for node in item.kinds[kind].nodes)
    several = len(alike) > 1
    rows = [(names(nodes), *row) if several else row for figures, nodes in alike.items() for row in figures]
    if several:
        headings = ("nodes", *headings)
    title, most = "What one size that fills a node leaves", len(item.stranded)
    return Table(title, "rows", headings, rows, grouped=1 if several else 0, most=most)


def _tiled(item: Suggestion) -> list[GroupPicture]:
    """Return a row for each size that fills a node, by kind of nodes."""
    memory, rows = {size.name: size.size.memory for size in item.sizes}, dict[int, list[NodePicture]]()
    for waste in item.stranded:
        kind, used = item.kinds[waste.kind], waste.count * memory[waste.name]
        reserved, total = kind.room.memory - used - waste.left.memory, kind.nodes[0].total_memory
        parts = (total, total - kind.room.memory, used, reserved)
        use = NodeUse(waste.name, item.group, *parts, waste.count, tiled=True)
        rows.setdefault(waste.kind, []).append(NodePicture(waste.name, use, use))
    titles = {kind: plain_text(names(node.name for node in item.kinds[kind].nodes), _NAMES_SHOWN) for kind in rows}
    return [GroupPicture(name=titles[kind], nodes=tuple(nodes), rows="size") for kind, nodes in rows.items()]


def _waste_row(waste: Waste, item: Suggestion, *, with_disk: bool) -> tuple[Cell, ...]:
    left = waste.left
    disk = (str(left.volumes) if item.exclusive else rough_size(left.disk or 0),) if with_disk else ()
    figures = (str(waste.count), rough_size(left.memory), str(left.cpus))
    return (Name(waste.name), *figures, *disk, share(waste.share))


def _choices(item: Suggestion) -> Table:
    resources = item.choices[0].unused if item.choices else {}
    rows = [
        (
            ", ".join(f"{name} {rough_size(size.memory)}" for name, size in choice.sizes.items()),
            _counts_words(choice.weights),
            str(choice.outside),
            _counts_words(choice.placed),
            *(share(choice.unused[name]) for name in resources),
            share(choice.mean_unused),
        )
        for choice in item.choices
    ]
    shares = [Number(f"unused {name}") for name in resources]
    headings = ("sizes", "instances now", Number("in none"), "fill the group", *shares, Number("unused"))
    return Table("The best sets of sizes; the first is suggested", "sets", headings, rows, brief=3)


def _unused(item: Suggestion) -> tuple[str, ...]:
    if not item.choices:
        return ()
    kept = () if item.exclusive else ("what N+1 keeps",)
    parts = listed(("what sizes have more than the instances", "what no size fills", *kept))
    return (
        f"each instance counts, as {item.template.value}, as the smallest size that holds it",
        f"in these proportions the sizes fill the empty group until none fits; unused is then {parts}",
    )


def _mix(mix: Mix) -> Entry:
    how = "N+1 kept" if mix.n1 else "without N+1"
    below = [
        f"with what still fits of it: {_counts_words(mix.best)}",
        f"what the full mixes leave: {_left_words(mix.left)}; a single size fits there: {_counts_words(mix.more)}",
    ]
    if mix.limit is not None and mix.binding is not None:
        cause = mix.binding.cause
        below.insert(0, f"the next one stops at {mix.limit}: {cause.key} ({cause.sentence})")
    return Entry(
        f"The mix of {_counts_words(mix.weights)} fits {count(mix.mixes, 'time')} ({how}): {_counts_words(mix.placed)}",
        below=tuple(Line(text) for text in below),
    )


def _notes(item: Suggestion) -> Iterator[str]:
    if item.newly_forbidden:
        some = plain_text(names(item.newly_forbidden), _NAMES_SHOWN)
        yield f"{len(item.newly_forbidden)} of {count(item.instances, 'instance')} would violate the sizes: {some}"
    elif item.instances:
        yield f"none of {count(item.instances, 'instance')} in the group would newly violate the sizes"
    if item.std_in is None:
        yield "the cluster's std lies in none of the sizes: hspace would count no standard instance here"
    yield from item.notes


def _instance_words(spec: Spec, *, exclusive: bool) -> str:
    text = f"{rough_size(spec.memory)} memory, {count(spec.cpus, 'CPU')}, {rough_size(spec.disk_size)} disk"
    return f"{text} on {count(spec.spindle_use, 'volume')}" if exclusive else text


def _counts_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _left_words(left: Amounts) -> str:
    parts = [f"{rough_size(left.memory)} memory", count(left.cpus, "virtual CPU")]
    if left.volumes is not None:
        parts.append(count(left.volumes, "volume"))
    elif left.disk is not None:
        parts.append(f"{rough_size(left.disk)} disk")
    return ", ".join(parts)


FORMAT_VERSION: Final = "2.0"

_BINDING_TEXT: Final = "The binding resource: why no more fit."
_WORDS_TEXT: Final = "The same in words."
_BY_SIZE: Final = Key("Numbers by the name of the size.", COUNT)
_NAME: Final = "Name of the size."
_FIT: Final = Shape(Fit, "fit", "How many fit, and what keeps out the next one.").with_keys(
    fits=Key("Instances that fit.", COUNT),
    binding=Key(_BINDING_TEXT, of="binding.cause.key"),
    explanation=Key(_WORDS_TEXT, of="binding.cause.sentence"),
)
_NOW: Final = Key("Beside the instances that are there, under today's policy.", _FIT)
_THEN: Final = Key("Beside the instances that are there, under the suggested policy.", _FIT)
_MIN: Final = Key("Lower bound.", SPEC, "pair.min")
_MAX: Final = Key("Upper bound.", SPEC, "pair.max")
_NODE: Final = Shape(NodeHardware).with_keys(
    name="Name of the node.",
    room="What instances may use of it if it is empty.",
    memory_total=Key("Memory of the node, MiB.", COUNT, "total_memory"),
    memory_kept=Key("Memory that the node keeps for itself, MiB.", COUNT, "kept_memory"),
    cpus_total=Key("CPUs of the node.", COUNT, "total_cpus"),
    cpus_kept=Key("CPUs that the node keeps for itself.", COUNT, "kept_cpus"),
)
_SIZE: Final = Shape(Size).with_keys(
    name=_NAME,
    divisor=Key("The size is this part of a node: 2 for half of it.", FROM_ONE),
    min=_MIN,
    max=_MAX,
    a_node=Key("How many fill an empty node, by kind.", COUNT),
    now=_NOW,
    then=_THEN,
    empty=Key("Without the instances that are there, under the suggested policy.", _FIT),
)
MIX: Final = Shape(Mix).with_keys(
    weights=_BY_SIZE,
    n1="Whether each placement keeps N+1 (hail does not test it on exclusive storage).",
    mixes=Key("How many whole mixes fit.", COUNT),
    placed=_BY_SIZE,
    limit="The size that there was no room for in the next mix.",
    binding=Key(_BINDING_TEXT, str | None, lambda mix: mix.binding and mix.binding.cause.key),
    explanation=Key(_WORDS_TEXT, str | None, lambda mix: mix.binding and mix.binding.cause.sentence),
    best=_BY_SIZE,
    more=_BY_SIZE,
    left="What is left then.",
)
_CHOICE: Final = Shape(Choice).with_keys(
    sizes="The sizes by name.",
    weights=Key("Instances by the smallest size that holds them.", COUNT),
    outside=Key("Instances that no size holds.", COUNT),
    placed=Key("What fills the empty group in these proportions until no size fits.", COUNT),
    unused="The share of the room of the group that no instance needs then, by resource.",
    mean_unused="The mean of these shares.",
)
_GROUP: Final = Shape(Suggestion, "group").with_keys(
    group="Name of the group.",
    template="Disk template of the instances.",
    exclusive_storage=Key("Whether storage is exclusive.", of="exclusive"),
    bounds="Whether the sizes are fixed or ranges.",
    vcpu_ratio="The suggested vcpu-ratio.",
    pv_size=Key("The smallest physical volume.", of="volume"),
    kinds=Key(
        "Nodes by their hardware.",
        Shape(NodeKind).with_keys(room="What instances may use of it.", nodes=Key("Nodes with this hardware.", _NODE)),
    ),
    measure="The node of which the sizes are parts.",
    sizes=Key("Biggest first. Counts are of instances at their largest.", _SIZE),
    today=Key(
        "The sizes of today's policy.",
        Shape(OldPair).with_keys(
            name=Key("Name of the size of today's policy.", str, lambda pair: str(pair.place)),
            min=_MIN,
            max=_MAX,
            now=_NOW,
            then=_THEN,
        ),
    ),
    stranded=Key(
        "What stays unused on a node of that kind that one size fills.",
        Shape(Waste).with_keys(
            kind=Key("Which hardware, by its number in `kinds`.", COUNT),
            size=Key(_NAME, of="name"),
            count=Key("Instances of this size on a node.", COUNT),
            left="What stays unused.",
            share="Greatest share of a resource of the node that stays unused, 0 to 1.",
        ),
    ),
    std=Key(
        "The size that the cluster's std lies in, and a std that lies in the smallest.",
        Shape(Suggestion).with_keys(
            inside=Key("Name of the size that it lies in; null if it lies in none.", of="std_in"),
            suggested=Key("A std that lies in the smallest size.", SPEC, "std"),
        ),
        lambda item: item,
    ),
    instances=Key("Instances that are there already.", COUNT),
    newly_forbidden="Instances that are legal today and would violate the sizes.",
    mixes=Key("How often the wanted mix fits.", Many(MIX), lambda item: [] if item.mix is None else [item.mix]),
    choices=Key("The best sets of sizes for existing instances, with --real-mix; the first is suggested.", _CHOICE),
    document="The NodeGroup document (YAML).",
    notes="Remarks on what was counted, for people.",
)
SUGGEST_DOCUMENT: Final = Document(
    "gpolicy suggest --format json",
    "Sizes that tile the nodes of a group, what they give, and the document that declares them. Memory and disk are"
    " MiB. Minor versions may add keys.",
    head(FORMAT_VERSION),
    Shape(SuggestReport, optional="basis what_if unknown limits").with_keys(
        basis="",
        groups=Key("A suggestion for each group.", _GROUP),
        passed_over="Why there is nothing for other groups, by name.",
        what_if=WHAT_IF,
        unknown=UNKNOWN,
        limits=replace(
            LIMITS,
            text="The limits that groups have beyond those that htools knows, under which sizes are chosen with"
            " --real-mix.",
        ),
    ),
)


def suggest_data(report: SuggestReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Memory and disk are MiB."""
    return SUGGEST_DOCUMENT.data(report, report)
