"""A plan's impact as sections of tables: all of its parts, and the tables of those that only a plan shows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from gpolicy.analysis.allocator_input import not_known
from gpolicy.analysis.health import ExclusionUnsatisfiable, Unmovable
from gpolicy.analysis.resource_models import NodeModel, ResourceModel
from gpolicy.cluster.volume_pools import VolumesFrom
from gpolicy.data import read_data
from gpolicy.impact import exclusive_storage_change as storage
from gpolicy.impact.impact import MOST_NODES, Impact, LocationChange, RemedyChange, ResourceModelChange
from gpolicy.printable import count, listed
from gpolicy.report import answer, capacity_section, redundancy_section, violations_section
from gpolicy.report.answer import NOTHING, Cell, Name, Number, Section, Table, Weight, digits, size
from gpolicy.report.remedy_answer import duration

_LOCATION: Final = "Location and migration"
_RESOURCE_MODEL: Final = "Resource model"
_EXCLUSIVE_STORAGE: Final = "Exclusive storage"
_REMEDY: Final = "Remedy"
_MOST_TARGETS: Final = 5
_NEXT: Final = (
    "the moves come after the plan, and cure nothing that stops it; to list them: gpolicy plan --save PLAN.json, then"
    " gpolicy remedy PLAN.json --state SRC"
)


def location_section(change: LocationChange) -> Section:
    """Return the effect of the changes on the location of instances and their possible targets."""
    tables: list[Table] = []
    words = []
    for field, said in read_data("location.toml").items():
        facts, title, of, headings = getattr(change, field), said["title"], said["rows"], said["headings"]
        changed = [(when, *_fact(fact)) for when in ("new", "gone") for fact in getattr(facts, when)]
        weight = Weight.WORSE if facts.new else Weight.CHANGED
        tables.append(Table(title, of, ("", *headings), changed, weight=weight))
        still = [tuple(_fact(fact)) for fact in facts.still]
        tables.append(Table(f"{title}, as before", of, headings, still, weight=Weight.SAME))
        counts = [(len(facts.new), "new"), (len(facts.gone), "gone"), (len(facts.still), "as before")]
        told = [f"{number:,} {word}" for number, word in counts if number]
        words += [f"{said['summary']}: {', '.join(told)}"] if told else []
    summary = "; ".join(words) or "no conflict"
    return answer.section_of_tables("location", _LOCATION, tables, summary=summary)


def _fact(fact: Any) -> Iterator[Cell]:
    """Yield the cells of a fact: its names in their order, except where words say it better."""
    match fact:
        case ExclusionUnsatisfiable():
            yield from (Name(fact.tag), Name(fact.group), answer.names(fact.instances), _places_text(fact))
        case Unmovable():
            yield from (Name(fact.instance), Name(fact.primary_node), _targets_text(fact))
        case _:
            for value in (getattr(fact, item.name) for item in fields(fact)):
                yield Name(value) if isinstance(value, str) else answer.names(value)


def _places_text(fact: ExclusionUnsatisfiable) -> str:
    kinds = ("node", "nodes") if fact.domain_kind is None else (fact.domain_kind, f"values of {fact.domain_kind}")
    return f"{count(len(fact.places), *kinds)}: {', '.join(fact.places)}" if fact.places else f"no {kinds[0]}"


def _targets_text(fact: Unmovable) -> str:
    words = [f"{node} lacks {', '.join(tags)}" for node, tags in fact.targets[:_MOST_TARGETS]]
    if len(fact.targets) > _MOST_TARGETS:
        words.append(f"and {len(fact.targets) - _MOST_TARGETS} more")
    return "; ".join(words) or "none"


def resource_model_section(change: ResourceModelChange) -> Section:
    """Return the differences of both models of free resources after the changes."""
    weight = Weight.SAME if change.before == change.after else Weight.CHANGED
    then = change.after
    before = {group.group: group for group in change.before.groups}
    rows = []
    for group in then.groups:
        now = before[group.group].configured_fits if group.group in before else None
        figures = map(digits, (group.measured_fits, now, group.configured_fits))
        rows.append((Name(group.group), *figures, group.configured_binding.cause.key))
    headings = ("group", *map(Number, ("measured", "declared today", "declared after")), "bound by")
    title = "Standard instances that fit, by measured and by declared values"
    fits = Table(title, "groups", headings, rows, weight=weight)
    tables = (fits, _declared(then, weight), _free_by_both(then, weight), _over_subscribed(then))
    return answer.section_of_tables("resource_model", _RESOURCE_MODEL, tables, then.notes, summary=_models(change))


def _declared(model: ResourceModel, weight: Weight) -> Table:
    """Return the differences, with one row for all nodes with the same difference."""
    alike: dict[tuple[Cell, ...], list[str]] = {}
    for node in model.nodes:
        for item in node.declared:
            if item.differs:
                reported = NOTHING if item.reported is None else item.amount(item.reported)
                shown = (item.name, item.amount(item.declared), item.level, reported)
                alike.setdefault(shown, []).append(node.node)
    headings = ("value", Number("declared"), "by", Number("reported"), "nodes")
    rows = [(*shown, answer.names(nodes)) for shown, nodes in alike.items()]
    return Table("Declared values that differ from what nodes report", "values", headings, rows, weight=weight)


def _free_by_both(model: ResourceModel, weight: Weight) -> Table:
    rows = []
    for node in model.nodes:
        sides = node.measured, node.configured
        figures = [side and (side.free_memory, side.free_disk) for side in sides]
        if figures[0] is not None and figures[0] != figures[1]:
            rows.append((Name(node.node), *(answer.rough_size(x) for pair in zip(*figures, strict=True) for x in pair)))
    kinds = ("memory, measured", "memory, declared", "disk, measured", "disk, declared")
    return Table("Free memory and disk, by both models", "nodes", ("node", *map(Number, kinds)), rows, weight=weight)


def _over_subscribed(model: ResourceModel) -> Table:
    title = "Nodes whose instances may together want more memory (maxmem) than there is"
    rows = []
    for node in _over(model):
        sizes = map(size, (node.minimum_memory, node.maximum_memory, node.available_memory))
        rows.append((Name(node.node), *sizes, f"{node.oversubscription:.2f}"))
    headings = ("node", *map(Number, ("minmem", "maxmem", "memory", "ratio")))
    return Table(title, "nodes", headings, rows, weight=Weight.SAME)


def _over(model: ResourceModel) -> list[NodeModel]:
    return [node for node in model.nodes if node.oversubscription is not None and node.oversubscription > 1]


def _models(change: ResourceModelChange) -> str:
    then = change.after
    stated = any(node.declared for node in then.nodes)
    parts = [] if stated else ["nothing is declared"]
    odd = [node for node in then.nodes if any(item.differs for item in node.declared)]
    if odd:
        parts.append(f"{count(len(odd), 'node')} with declared values that differ from reported ones")
    parts += [
        f"by declaration {group.configured_fits:,} standard instances fit in {group.group},"
        f" by measurement {group.measured_fits:,}"
        for group in then.groups
        if group.measured_fits is not None and group.configured_fits != group.measured_fits
    ]
    over = _over(then)
    if over:
        parts.append(f"{count(len(over), 'node')} over-subscribed in memory")
    compared = any(item.reported is not None for node in then.nodes for item in node.declared)
    agreed = "declared values agree with what nodes report" if compared else "nodes report nothing to compare with"
    return "; ".join(parts) or agreed


def exclusive_storage_section(change: storage.ExclusiveStorageChange) -> Section:
    """Return exclusive storage after the changes, and its effect on instances."""
    turning = bool(change.turned_on or change.turned_off)
    unseen = Table(
        "Ganeti 3.0 and 3.1 cannot report disk and spindles of these nodes: htools loses them",
        "nodes",
        ("node",),
        [(Name(node),) for node in change.not_reported],
        weight=Weight.CHANGED if turning else Weight.SAME,
    )
    turned = [(Name(node), "on") for node in change.turned_on] + [(Name(node), "off") for node in change.turned_off]
    tables = (
        Table("Nodes whose flag changes", "nodes", ("node", "exclusive_storage"), turned),
        *(_disks(change.instances), _volumes(change.groups, turning=turning)),
        *(_volume_groups(change.groups), _partly_used(change.groups), _spindles(change.instances), unseen),
    )
    notes = [
        f"group {group.group}: {count(len(group.not_measured), 'node')} without a measurement of physical volumes"
        for group in change.groups
        if group.not_measured
    ]
    notes += [f"group {group.group}: {said}" for group in change.groups if (said := group.terms.what_if)]
    return answer.section_of_tables(
        "exclusive_storage", _EXCLUSIVE_STORAGE, tables, tuple(notes), summary=_storage(change)
    )


def _disks(instances: tuple[storage.InstanceEffect, ...]) -> Table:
    rows = [_disk(item, disk) for item in instances for disk in item.disks]
    rows += [
        (Name(item.instance), Name(item.primary_node), NOTHING, NOTHING, "no disks; verify reports it as unsuitable")
        for item in instances
        if item.unsuitable and not item.disks
    ]
    new = any(item.turn is not storage.Turn.STAYS for item in instances if item.disks or item.unsuitable)
    headings = ("instance", "node", Number("disk"), Number("size"), "what")
    return Table("Disks in trouble", "disks", headings, rows, weight=Weight.WORSE if new else Weight.CHANGED)


def _disk(item: storage.InstanceEffect, disk: storage.DiskFinding) -> tuple[Cell, ...]:
    numbers = ""
    if disk.needed is not None:
        have = "none" if disk.spindles is None else str(disk.spindles)
        numbers = f" (needs {disk.needed}, has {have})"
    what = f"{disk.template}: {disk.trouble.sentence}{numbers}"
    return (Name(item.instance), Name(item.primary_node), str(disk.disk), size(disk.size), what)


def _volumes(groups: tuple[storage.GroupVolumes, ...], *, turning: bool) -> Table:
    weight = Weight.CHANGED if turning or any(group.differ for group in groups) else Weight.SAME
    sizes = map(Number, ("smallest", "largest", "usable"))
    headings = ("group", "known from", *sizes, "on each node", Number("lost"), "verdict")
    return Table("Physical volumes", "groups", headings, list(map(_volumes_row, groups)), weight=weight)


def _volumes_row(group: storage.GroupVolumes) -> tuple[Cell, ...]:
    sizes = map(_known_exact_size, (group.smallest, group.largest, group.usable))
    each = answer.from_to([number for _, number in group.counts])
    known = {VolumesFrom.MEASURED: "measured", VolumesFrom.PROMISED: "hardware of the policy"}
    verdict = {None: NOTHING, True: "too different for Ganeti", False: "alike"}[group.differ]
    if group.differ_on:
        verdict += f" (alone on {', '.join(group.differ_on[:3])}{' and others' if len(group.differ_on) > 3 else ''})"
    lost = _known_exact_size(group.unusable_free)
    return (Name(group.group), known.get(group.known_from, "nothing"), *sizes, each, lost, verdict)


def _volume_groups(groups: tuple[storage.GroupVolumes, ...]) -> Table:
    """Return the volumes by volume group, where the policy says that not all are in the cluster's own."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        if len(group.volume_groups) < 2 and not group.excluded:
            continue
        rows += [(Name(group.group), *_volume_group(item)) for item in group.volume_groups]
        if group.excluded:
            each = answer.from_to([number for _, number in group.excluded])
            rows.append((Name(group.group), "in none: excluded", each, *[NOTHING] * 4))
    return Table(
        "Volumes by volume group: each is accounted separately, capacity counts the cluster's own",
        "volume groups",
        ("group", "volume group", "on each node", "empty", Number("smallest"), Number("largest"), "free on each node"),
        rows,
        weight=Weight.SAME,
    )


def _volume_group(item: storage.VolumeGroup) -> tuple[Cell, ...]:
    return (
        Name(item.name) if item.name else "the cluster's own",
        answer.from_to([node.count for node in item.nodes]),
        answer.from_to([node.empty for node in item.nodes]),
        *map(_known_exact_size, (item.smallest, item.largest)),
        answer.from_to([node.free for node in item.nodes], size),
    )


def _known_exact_size(mebibytes: int | None) -> str:
    return NOTHING if mebibytes is None else size(mebibytes)


def _partly_used(groups: tuple[storage.GroupVolumes, ...]) -> Table:
    volumes = [volume for group in groups for volume in group.partly_used]
    rows = [(Name(one.node), Name(one.volume), size(one.size), size(one.free)) for one in volumes]
    headings = ("node", "volume", Number("size"), Number("free"))
    return Table("Partly used volumes: their free space is lost", "volumes", headings, rows)


def _spindles(instances: tuple[storage.InstanceEffect, ...]) -> Table:
    numbers = map(Number, ("spindle_use", "of its disks")), map(Number, ("compared", "spindle_count", "volumes"))
    headings = ("instance", *numbers[0], "policy allows", *numbers[1])
    rows = [(Name(item.instance), *_numbers(item.after)) for item in instances]
    return Table("The meanings of spindles, after the changes", "instances", headings, rows, weight=Weight.SAME)


def _numbers(item: storage.SpindleNumbers) -> tuple[str, ...]:
    allowed = ", ".join(map(answer.from_to, item.spec_spindle_use))
    values = (item.disk_spindles, allowed or None, item.compared, item.spindle_count, item.physical_volumes)
    return (str(item.spindle_use), *(NOTHING if value is None else str(value) for value in values))


def _storage(change: storage.ExclusiveStorageChange) -> str:
    parts = []
    for nodes, word in ((change.turned_on, "get"), (change.turned_off, "lose")):
        if nodes:
            parts.append(f"{count(len(nodes), 'node')} {word if len(nodes) > 1 else word + 's'} it")
    troubled = [item for item in change.instances if item.disks]
    if troubled:
        parts.append(f"{count(len(troubled), 'instance')} with disks in trouble")
    differ = [group.group for group in change.groups if group.differ]
    if differ:
        parts.append(f"physical volumes too different in {', '.join(differ)}")
    blind = sum(len(group.not_measured) for group in change.groups)
    parts += [f"physical volumes of {count(blind, 'node')} not measured"] if blind else []
    return "; ".join(parts) or ("as before, and nothing is wrong with it" if change.groups else "no node has it")


def remedy_section(change: RemedyChange) -> Section:
    """Return the figures of the remedy of a plan; nothing where the plan does nothing wrong to places of instances."""
    if not change.new:
        return Section("remedy", _REMEDY, weight=Weight.SAME)
    columns = 4 if change.searched else 3
    table = Table(
        "Today, after, and after the moves" if change.searched else "Today and after",
        "kinds",
        ("fault", Number("today"), Number("after"), Number("after the remedy"))[:columns],
        [(item.kind.words, *map(digits, (item.before, item.after, item.remedied)))[:columns] for item in change.kinds],
    )
    ended = change.searched and not change.exhaustive
    notes = (_NEXT, "the search of a plan is short: more moves may cure more" if ended else "")
    return Section("remedy", _REMEDY, [table], notes, summary=remedy_figures(change), never_cut=True)


def remedy_figures(change: RemedyChange) -> str:
    """Return what the moves cure, in a few words."""
    if not change.searched:
        return f"{count(change.new, 'new fault')}; a plan looks for no moves in more than {MOST_NODES:,} nodes"
    if not change.cured:
        none = "no move cures any" if change.exhaustive else "the search of a plan found no moves"
        return f"{count(change.new, 'new fault')}; {none}"
    old = f", and {count(change.cured_old, 'fault')} of today" if change.cured_old else ""
    time = f" (about {duration(change.seconds)})" if change.copied else ""
    verb = "cures" if change.moves == 1 else "cure"
    cured = f"{change.cured:,} of {count(change.new, 'new fault')}"
    return f"{count(change.moves, 'move')}, {size(change.copied)} to copy{time}, {verb} {cured}{old}"


_PARTS: Final[Mapping[str, tuple[str, Callable[[Any], Section]]]] = {
    "capacity": (capacity_section.TITLE, capacity_section.capacity_section),
    "violations": (violations_section.TITLE, violations_section.violations_section),
    "redundancy": (redundancy_section.TITLE, redundancy_section.redundancy_section),
    "location": (_LOCATION, location_section),
    "remedy": (_REMEDY, remedy_section),
    "exclusive_storage": (_EXCLUSIVE_STORAGE, exclusive_storage_section),
    "resource_model": (_RESOURCE_MODEL, resource_model_section),
}
"""Title and section of each part. Capacity comes first: readers look for it."""
_OF_GROUPS: Final = ("capacity", "redundancy", "remedy", "resource_model")
"""The parts that leave out groups that are not known."""


def impact_section(known: Impact) -> Section:
    """Return the impact: a section for each part, and why some are unknown."""
    gaps = [answer.Entry(f"{title}: not known: {reason}") for title, reason in unknown_parts(known)]
    return Section("impact", "What it costs", [answer.Entries("part", gaps)], sections=tuple(impact_sections(known)))


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Yield the sections of the known parts. What could not be looked at comes first in each."""
    measured = [known for known in (impact.capacity, impact.redundancy) if known is not None]
    reasons = {group: reason for known in measured for group, reason in known.unavailable.items() if group}
    for part, (_, section_of) in _PARTS.items():
        known = getattr(impact, part)
        if known is not None:
            section = section_of(known)
            unknown = (*(not_known(reasons) if part in _OF_GROUPS else ()), *section.unknown)
            if unknown:
                summary = "; ".join(filter(None, (*unknown, section.summary)))
                weight = max(section.weight, Weight.CHANGED)
                section = replace(section, unknown=unknown, summary=summary, weight=weight)
            yield section


def unknown_in(impact: Impact | None, sections: Iterable[Section]) -> tuple[str, ...]:
    """Return what was not looked at, in sentences; `sections` are those of the impact."""
    if impact is None:
        return ("what the changes do was not looked at",)
    by_reason: dict[str, list[str]] = {}
    for title, reason in unknown_parts(impact):
        by_reason.setdefault(reason, []).append(title.lower())
    of_parts = [f"not known: {listed(titles)} ({reason})" for reason, titles in by_reason.items()]
    return (*dict.fromkeys(text for section in sections for text in section.unknown), *of_parts)


def unknown_parts(impact: Impact) -> Iterator[tuple[str, str]]:
    """Yield title and reason of each unknown part."""
    for part, (title, _) in _PARTS.items():
        if getattr(impact, part) is None:
            yield title, impact.unavailable.get(part, "not computed")
