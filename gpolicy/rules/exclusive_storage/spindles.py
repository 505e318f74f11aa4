"""Exclusive storage: spindles (GP402 and others), and nodes given whole or in parts (GP410 and others)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Hit, Same, When, error, hit, information, see, warning
from gpolicy.cluster.terms import VolumeSize
from gpolicy.findings import Located, Related, Role, Span
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE, MAX_DISKS, MINMAX, SPINDLE_COUNT, SPINDLE_RATIO, Path
from gpolicy.policy.model import GroupPolicy, Hardware, Leaf
from gpolicy.printable import count as in_words
from gpolicy.rules import node_limits
from gpolicy.rules.shared import exclusive_groups, in_force

_IGNORED: Final[tuple[Path, ...]] = (SPINDLE_RATIO, SPINDLE_COUNT)
_TOTALS: Final = {"memory-size": "mem_total", "cpu-count": "cpu_total", "disk-size": "disk_total"}


def _known_volumes(context: Context) -> Iterator[tuple[GroupPolicy, Pair, VolumeSize, Hardware]]:
    """Yield the pairs of exclusive groups whose smallest physical volume is known, with its size."""
    for group, _, hardware in exclusive_groups(context):
        volume = node_limits.promised_size(context, group, hardware)
        if volume is not None:
            yield from ((group, pair, volume, hardware) for pair in comparable(context.pairs(group)))


def _volumes_here(hardware: Hardware, exclusive: Leaf | None = None) -> tuple[Related, ...]:
    is_on = see(exclusive.span, "exclusive storage is on") if exclusive is not None else ()
    promised = hardware.smallest_volume or hardware
    return (Related(promised.span, "the volumes are promised here"), *is_on)


@warning("GP402", role=Role.JUDGES)
def disk_size_not_whole_spindles(context: Context) -> Iterator[Hit]:
    for group, pair, volume, hardware in _known_volumes(context):
        size, volumes = pair.maximum["disk-size"], volume.needed(pair.maximum["disk-size"])
        if volumes and not node_limits.is_whole(volume, size):
            whole = "a whole physical volume" if volumes == 1 else f"{volumes} whole physical volumes"
            message = f"{pair.title}: a disk of {amount('disk-size', size)} occupies {whole} of"
            message += f" {amount('disk-size', volume.smallest)}"
            disks, spindles = max(pair.maximum["disk-count"], 1), pair.maximum["spindle-use"]
            most = volume.largest_disk(max(spindles // disks, 1))
            sizes = [volume.largest_disk(count) for count in (volumes - 1, volumes) if count]
            sizes = [size for size in sizes if pair.minimum["disk-size"] <= size <= most] or [min(most, *sizes)]
            sizes = [node_limits.writable("disk-size", size) for size in sizes]
            hint = f"write a maximum of {' or '.join(amount('disk-size', item) for item in sizes)}"
            part = replace(volume, smallest=volume.smallest // (hardware.volume_count or 1))
            if part.usable and part.needed(size) == spindles > 1 and node_limits.is_whole(part, size):
                hint = f"is pv_size, which is of each volume, {amount('disk-size', part.smallest)}? Else {hint}"
            related = _volumes_here(hardware, context.exclusive(group))
            yield hit(group, message, pair.at("max", "disk-size"), hint, related)


@information("GP403")
def disk_size_spans_spindles(context: Context) -> Iterator[Hit]:
    for group, pair, volume, hardware in _known_volumes(context):
        least, most = (volume.needed(bound["disk-size"]) for bound in (pair.minimum, pair.maximum))
        if least != most:
            message = f"{pair.title}: a disk takes {least} to {most} physical volumes, depending on its size"
            related = _volumes_here(hardware, context.exclusive(group))
            yield hit(group, message, pair.at("min", "disk-size"), related=related)


@error("GP404", explains=10, role=Role.JUDGES)
def too_few_spindles(context: Context) -> Iterator[Hit]:
    for group, pair, volume, hardware in _known_volumes(context):
        count, size = pair.minimum["disk-count"], pair.minimum["disk-size"]
        needed, allowed = count * volume.needed(size), pair.maximum["spindle-use"]
        if needed > allowed:
            each, need = amount("disk-size", volume.smallest), "needs" if count == 1 else "need"
            disks = f"{in_words(count, 'disk')} of {amount('disk-size', size)}"
            message = f"{pair.title}: {disks} {need} {needed} spindles of {each}, but at most {allowed} are allowed"
            most = volume.largest_disk(allowed // max(count, 1))
            cures = [f"a disk-size of {amount('disk-size', most - most % 1024)}"] if most >= 1024 else []
            cures += [f"disk-count {allowed * count // needed}"] if count > 1 and allowed * count >= needed else []
            both = " in min and max" if pair.minimum["spindle-use"] == allowed else ""
            cures += [f"spindle-use {needed}{both}"] if needed <= (hardware.volume_count or needed) else []
            hint = f"{'disk-size is of each disk: ' if count > 1 else ''}allow {', or allow '.join(cures) or 'less'}"
            yield hit(group, message, pair.at("max", "spindle-use"), hint, _volumes_here(hardware))


@warning("GP425")
def disks_beyond_spindles(context: Context) -> Iterator[Hit]:
    for group, exclusive, hardware in exclusive_groups(context):
        for pair in comparable(context.pairs(group)) if context.own(group, MINMAX) else ():
            disks, spindles = pair.maximum["disk-count"], pair.maximum["spindle-use"]
            most = min(spindles, hardware.volume_count or spindles)
            if pair.minimum["disk-count"] <= most < disks < MAX_DISKS:  # else GP404
                message = f"{pair.title} allows {disks} disks, but each takes a spindle, and there are {most}"
                related = see(exclusive.span, "exclusive storage is on")
                yield hit(group, message, pair.at("max", "disk-count"), f"write {most} or less", related)


@error("GP405", role=Role.JUDGES)
def spindles_beyond_node(context: Context) -> Iterator[Hit]:
    for group, _, hardware in exclusive_groups(context):
        volumes = hardware.volume_count
        if volumes is None:
            continue
        volume = node_limits.promised_size(context, group, hardware)
        for pair in comparable(context.pairs(group)):
            count, size = pair.minimum["disk-count"], pair.minimum["disk-size"]
            for_disks = count * volume.needed(size) if volume else 0
            needed = max(for_disks, pair.minimum["spindle-use"])
            if needed > volumes:
                place = ("min", "disk-size" if for_disks == needed else "spindle-use")
                message = f"{pair.title} needs {needed} spindles, a node has {volumes}"
                hint = "make the size smaller, or correct the hardware"
                yield hit(group, message, pair.at(*place), hint, _volumes_here(hardware))


@information("GP409")
def spindle_parameter_ignored(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        exclusive = context.exclusive(group)
        for leaf in (context.own(group, path) for path in _IGNORED):
            if leaf is not None and exclusive is not None:
                related = see(exclusive.span, "exclusive storage is on")
                message = f"{leaf.path[1]} is ignored in {group.title}"
                hint = "remove it, if exclusive storage is meant: the volumes are the spindles (hardware.pv_count)"
                yield hit(group, message, leaf.span, hint, related)


@warning("GP414", When.MORE_WITH_STATE, explains=10, role=Role.ALSO_RELATED)
def spindles_without_exclusive_storage(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        hardware, value = group.hardware, in_force(context, group, EXCLUSIVE_STORAGE)
        on = value.value is True if value is not None else not context.whole
        if on or hardware is None or hardware.volume_count is None:
            continue
        if context.own(group, MINMAX) is None and (value is None or any(map(context.exclusive, context.groups))):
            continue  # they may be the sizes of another group
        pairs = comparable(context.pairs(group))
        exact = [pair for pair in pairs if 1 < pair.minimum["spindle-use"] == pair.maximum["spindle-use"]]
        places = [Related(pair.at("min", "spindle-use"), f"{pair.title} is here") for pair in exact]
        if exact:  # one mistake, whatever the number of sizes
            leaf, said = (value.leaf, "is off") if value is not None else (None, "is not declared")
            what = f"exactly {exact[0].minimum['spindle-use']} spindles"
            message = f"{exact[0].title} requires {what}, but exclusive storage {said}"
            hint = "write ndparams: {exclusive_storage: true}, or allow a range of spindle-use"
            place = places.pop(0).span if leaf is None else leaf.span
            yield hit(group, message, place, hint, tuple(places), missing=f"exclusive storage of {group.label}")


@warning("GP415", When.MORE_WITH_STATE, role=Role.JUDGES)
def nothing_left_for_node(context: Context) -> Iterator[Hit]:
    for group, _, hardware in exclusive_groups(context):
        for share in node_limits.shares(context, group, hardware):
            name = share.parameter
            for pair in comparable(context.pairs(group)):
                wanted = pair.maximum[name]
                if share.usable < wanted <= share.whole:  # more than that is GP212
                    message = f"{pair.title}: {name} {amount(name, wanted)} of {amount(name, share.whole)}"
                    message += f" leaves nothing {_for_whom(share, wanted)}"
                    most = amount(name, node_limits.writable(name, share.usable))
                    hint = f"lower {'min and max' if pair.minimum[name] > share.usable else 'the maximum'}"
                    hint += f" to {most} or less"
                    if not share.kept and name == "memory-size":
                        hint = "lower the maximum; say in hv_state what the node keeps (mem_node)"
                    yield hit(group, message, pair.at("max", name), hint, share.places)


def _for_whom(share: node_limits.NodeLimit, wanted: int) -> str:
    if share.parameter == "disk-size":
        return "free: the allocator requires some free disk"
    if not share.kept:
        return "for the node; hv_state keeps nothing for it"
    keeps = f"the node keeps {amount(share.parameter, share.kept)}"
    return f"free: {keeps}, and the allocator requires some more" if wanted == share.most else f"for the node; {keeps}"


@warning("GP416", When.MORE_WITH_STATE, explains=100, role=Role.JUDGES)
def share_fits_less_often(context: Context) -> Iterator[Hit]:
    for group, _, hardware in exclusive_groups(context):
        given = list(node_limits.shares(context, group, hardware))
        if hardware.volume_count is not None:
            given.append(node_limits.NodeLimit("spindle-use", hardware.volume_count, 0, hardware.span))
        for pair in comparable(context.pairs(group)):
            times = node_limits.SHARES.get((pair.name or "").lower(), 1)
            for share in given if times > 1 else ():
                name, left = share.parameter, int(share.most)
                bound = next((end for end in ("min", "max") if pair.bound(end)[name] * times > share.usable), "min")
                size = pair.bound(bound)[name]
                if size * times > share.usable >= size:
                    more, fits = "all" if size * times == left else "more than", share.usable // size
                    message = f"{pair.title}: {times} times {name} {amount(name, size)} are {more} a node gives"
                    message += f" ({amount(name, left)}), which is enough for {fits}"
                    message += ", since some must stay free" if more == "all" else ""
                    most = amount(name, node_limits.writable(name, share.usable // times))
                    hint = f"one of {times} equal parts is at most {most}"
                    missing = f"a share for size {pair.word} at {pair.span}"
                    yield hit(group, message, pair.at(bound, name), hint, share.places, missing=missing)


@warning("GP419", When.MORE_WITH_STATE, explains=6, role=Role.ALSO_RELATED)
def node_keeps_everything(context: Context) -> Iterator[Hit]:
    reported: set[Span] = set()
    for group in [item for item in context.groups if context.alike[item.name] is item]:
        for limit in _promised_limits(context, group, group.hardware) if group.hardware else ():
            name, left, kept = limit.parameter, limit.most, limit.figures
            enough = left > 0 if name == "disk-size" else left * 2 >= limit.whole  # other volumes may be for much else
            if not kept or enough or kept[0].span in reported:
                continue
            reported.add(kept[0].span)
            verb = "keeps" if len(kept) == 1 else "keep"
            message = f"{' and '.join(leaf.path[-1] for leaf in kept)} {verb} {amount(name, limit.kept)} of the"
            message += f" {amount(name, limit.whole)} that nodes of {group.name} have:"
            message += f" {'less than half' if left > 0 else 'nothing'} is left"
            total = _TOTALS[name]
            is_total = len(kept) == 1 and 0.9 * limit.whole <= limit.kept <= limit.whole
            is_free = context.effective(group, (*kept[0].path[:-1], total)) is None
            hint = f"is {total} meant? Else " if is_total and is_free else ""
            hint += f"correct the {'number' if name == 'cpu-count' else 'unit'}, or the hardware"
            yield hit(group, message, kept[0].span, hint, limit.places[:1])


def _promised_limits(context: Context, group: GroupPolicy, hardware: Hardware) -> Iterator[node_limits.NodeLimit]:
    """Yield what nodes of a group have by its promise, less what they keep."""
    disk = node_limits.total_disk(hardware)
    if hardware.memory:
        yield node_limits.memory_limit(context, group, hardware.memory)
    if hardware.cpus:
        kept = node_limits.kept_by_node(context, group, "cpu_node")
        yield node_limits.promised_limit("cpu-count", hardware.cpus, kept)
    if disk is not None and not context.exclusive(group):
        promised = Located(disk, hardware.pv_sizes[0].span)
        yield node_limits.promised_limit("disk-size", promised, node_limits.kept_disk(context, group))


@warning("GP410", better=((Same.LABEL, ("GP202",)),))
def dedicated_order(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, _) in context.combined(EXCLUSIVE_STORAGE, MINMAX):
        if exclusive.value is not True:
            continue
        slips = {item.finding.span for item in context.found_with(Role.OUT_OF_ORDER)}
        hint = "hail protects the size with the greatest min disk-size, hspace counts the first: let them be the same"
        for first, second in pairwise(comparable(context.pairs(declared))):
            low, high = second.minimum["disk-size"], first.minimum["disk-size"]
            if low < high or second.same_as(first):  # GP204
                continue
            how = "the same min disk-size as" if low == high else "a greater min disk-size than"
            message = f"{second.title} has {how} {first.title} before it"
            place, other = second.at("min", "disk-size"), first.at("min", "disk-size")
            place = other if other in slips else place
            yield hit(declared, message, place, hint, see(other, f"{first.title} is here"))
