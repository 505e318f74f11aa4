"""Exclusive storage as tables: nodes, physical volumes, unsuitable disks, and all meanings of spindles."""

from __future__ import annotations

from typing import Final

from gpolicy.cluster.volume_pools import VolumesFrom
from gpolicy.impact import exclusive_storage_change
from gpolicy.printable import count
from gpolicy.report.answer import NOTHING, Cell, Name, Number, Section, Table, Weight, from_to, section_of_tables, size

TITLE: Final = "Exclusive storage"


def exclusive_storage_section(change: exclusive_storage_change.ExclusiveStorageChange) -> Section:
    """Return exclusive storage after the changes, and its effect on instances."""
    turning = bool(change.turned_on or change.turned_off)
    unseen = Table(
        "Ganeti 3.0 and 3.1 cannot report disk and spindles of these nodes: htools loses them",
        "nodes",
        ("node",),
        [(Name(node),) for node in change.not_reported],
        weight=Weight.CHANGED if turning else Weight.SAME,
    )
    tables = (
        *(_turned(change), _disks(change.instances), _volumes(change.groups, turning=turning)),
        *(_volume_groups(change.groups), _partly_used(change.groups), _spindles(change.instances), unseen),
    )
    notes = [
        f"group {group.group}: {count(len(group.not_measured), 'node')} without a measurement of physical volumes"
        for group in change.groups
        if group.not_measured
    ]
    notes += [f"group {group.group}: {said}" for group in change.groups if (said := group.terms.what_if)]
    return section_of_tables("exclusive_storage", TITLE, tables, tuple(notes), summary=_summary(change))


def _turned(change: exclusive_storage_change.ExclusiveStorageChange) -> Table:
    rows = [(Name(node), "on") for node in change.turned_on] + [(Name(node), "off") for node in change.turned_off]
    return Table("Nodes whose flag changes", "nodes", ("node", "exclusive_storage"), rows)


def _disks(instances: tuple[exclusive_storage_change.InstanceEffect, ...]) -> Table:
    rows = [_disk(item, disk) for item in instances for disk in item.disks]
    rows += [
        (Name(item.instance), Name(item.primary_node), NOTHING, NOTHING, "no disks; verify reports it as unsuitable")
        for item in instances
        if item.unsuitable and not item.disks
    ]
    new = any(
        item.turn is not exclusive_storage_change.Turn.STAYS for item in instances if item.disks or item.unsuitable
    )
    headings = ("instance", "node", Number("disk"), Number("size"), "what")
    return Table("Disks in trouble", "disks", headings, rows, weight=Weight.WORSE if new else Weight.CHANGED)


def _disk(
    item: exclusive_storage_change.InstanceEffect, disk: exclusive_storage_change.DiskFinding
) -> tuple[Cell, ...]:
    numbers = ""
    if disk.needed is not None:
        have = "none" if disk.spindles is None else str(disk.spindles)
        numbers = f" (needs {disk.needed}, has {have})"
    what = f"{disk.template}: {disk.trouble.sentence}{numbers}"
    return (Name(item.instance), Name(item.primary_node), str(disk.disk), size(disk.size), what)


def _volumes(groups: tuple[exclusive_storage_change.GroupVolumes, ...], *, turning: bool) -> Table:
    weight = Weight.CHANGED if turning or any(group.differ for group in groups) else Weight.SAME
    sizes = map(Number, ("smallest", "largest", "usable"))
    headings = ("group", "known from", *sizes, "on each node", Number("lost"), "verdict")
    return Table("Physical volumes", "groups", headings, list(map(_group, groups)), weight=weight)


def _group(group: exclusive_storage_change.GroupVolumes) -> tuple[Cell, ...]:
    sizes = map(_known_size, (group.smallest, group.largest, group.usable))
    each = from_to([number for _, number in group.counts])
    known = {VolumesFrom.MEASURED: "measured", VolumesFrom.PROMISED: "hardware of the policy"}
    verdict = {None: NOTHING, True: "too different for Ganeti", False: "alike"}[group.differ]
    if group.differ_on:
        verdict += f" (alone on {', '.join(group.differ_on[:3])}{' and others' if len(group.differ_on) > 3 else ''})"
    lost = _known_size(group.unusable_free)
    return (Name(group.group), known.get(group.known_from, "nothing"), *sizes, each, lost, verdict)


def _volume_groups(groups: tuple[exclusive_storage_change.GroupVolumes, ...]) -> Table:
    """Return the volumes by volume group, where the policy says that not all are in the cluster's own."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        if len(group.volume_groups) < 2 and not group.excluded:
            continue
        rows += [(Name(group.group), *_volume_group(item)) for item in group.volume_groups]
        if group.excluded:
            each = from_to([number for _, number in group.excluded])
            rows.append((Name(group.group), "in none: excluded", each, *[NOTHING] * 4))
    return Table(
        "Volumes by volume group: each is accounted separately, capacity counts the cluster's own",
        "volume groups",
        ("group", "volume group", "on each node", "empty", Number("smallest"), Number("largest"), "free on each node"),
        rows,
        weight=Weight.SAME,
    )


def _volume_group(item: exclusive_storage_change.VolumeGroup) -> tuple[Cell, ...]:
    return (
        Name(item.name) if item.name else "the cluster's own",
        from_to([node.count for node in item.nodes]),
        from_to([node.empty for node in item.nodes]),
        *map(_known_size, (item.smallest, item.largest)),
        from_to([node.free for node in item.nodes], size),
    )


def _known_size(mebibytes: int | None) -> str:
    return NOTHING if mebibytes is None else size(mebibytes)


def _partly_used(groups: tuple[exclusive_storage_change.GroupVolumes, ...]) -> Table:
    volumes = [volume for group in groups for volume in group.partly_used]
    rows = [(Name(one.node), Name(one.volume), size(one.size), size(one.free)) for one in volumes]
    headings = ("node", "volume", Number("size"), Number("free"))
    return Table("Partly used volumes: their free space is lost", "volumes", headings, rows)


def _spindles(instances: tuple[exclusive_storage_change.InstanceEffect, ...]) -> Table:
    numbers = map(Number, ("spindle_use", "of its disks")), map(Number, ("compared", "spindle_count", "volumes"))
    headings = ("instance", *numbers[0], "policy allows", *numbers[1])
    rows = [(Name(item.instance), *_numbers(item.after)) for item in instances]
    return Table("The meanings of spindles, after the changes", "instances", headings, rows, weight=Weight.SAME)


def _numbers(item: exclusive_storage_change.SpindleNumbers) -> tuple[str, ...]:
    allowed = ", ".join(map(from_to, item.spec_spindle_use))
    values = (item.disk_spindles, allowed or None, item.compared, item.spindle_count, item.physical_volumes)
    return (str(item.spindle_use), *(NOTHING if value is None else str(value) for value in values))


def _summary(change: exclusive_storage_change.ExclusiveStorageChange) -> str:
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
