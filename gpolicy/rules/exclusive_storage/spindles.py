"""Exclusive storage: spindles, the volumes of disks (GP402 and others), and what else it wants (GP407 and others)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, MINMAX, Context, name_of, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.node_limits import promised_size
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import Related, error_rule, info_rule, warning_rule
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.units import SIZE_STEP_MIB
from gpolicy.ganeti.vocabulary import MAX_DISKS
from gpolicy.ganeti.volume_arithmetic import VolumeSize
from gpolicy.policy.model import GroupPolicy, Hardware
from gpolicy.printable import count
from gpolicy.rules.examples import DEDICATED, EXCLUSIVE, FULL, GROUP, HARDWARE, WHOLE_NODES, bounds
from gpolicy.rules.shapes import MoreWithState, StateRule
from gpolicy.rules.shared import exclusive_groups, exclusive_hit

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"
_SPINDLES: Final = "Partitioned Ganeti, Spindles as a resource"
_TOLERANCE_PERCENT: Final = 3  # margin and reserve together: as exact as volumes of one size are


def _specs(*pairs: str) -> str:
    return "ipolicy:\n  minmax:\n" + "".join(f"    - name: {pair}" for pair in pairs)


def _full(disk: str = "11T 11760G", spindles: str = "12 12") -> str:
    return "full\n      " + bounds("248G 250G", "30 30", disk, spindles)


_GOOD: Final = EXCLUSIVE + HARDWARE + _specs(_full(), "quarter\n      " + bounds("61G 62G", "7 7", "2T 2940G", "3 3"))


def _known_volumes(context: Context) -> Iterator[tuple[GroupPolicy, Pair, VolumeSize, Hardware]]:
    """Yield the pairs of exclusive groups whose smallest physical volume is known, with its size."""
    for group, _, hardware in exclusive_groups(context):
        volume = promised_size(context, group, hardware)
        if volume is not None:
            yield from ((group, pair, volume, hardware) for pair in comparable(context.pairs(group)))


def _volumes_here(hardware: Hardware) -> tuple[Related, ...]:
    return (Related(hardware.span, "the hardware is promised here"),)


def _is_on(context: Context, group: GroupPolicy) -> tuple[Related, ...]:
    exclusive = context.exclusive(group)
    return (Related(exclusive.span, "exclusive storage is on"),) if exclusive is not None else ()


class DiskNotWholeSpindles(Rule):
    info = warning_rule("GP402", "disk-size-not-whole-spindles")(
        summary="With exclusive storage, the maximum disk size of a spec is not a multiple of the spindle size.",
        rationale="A disk takes whole physical volumes, and Ganeti counts only floor(size / 1.03) of each: 1 % margin"
        " and 2 % reserve. So a disk as large as one volume takes two. Capacity is right only if the allowed sizes are"
        " multiples of the spindle size.",
        source=f"{_EXCLUSIVE}; Implementation order",
        bad=EXCLUSIVE + HARDWARE + _specs("some\n      " + bounds("61G 62G", "7 7", "2T 3T", "3 4")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, pair, volume, hardware in _known_volumes(context):
            size = pair.maximum["disk-size"]
            volumes = volume.needed(size)
            usable = volume.largest_disk(volumes)
            if volumes and (usable - size) * 100 > usable * _TOLERANCE_PERCENT:
                whole = "a whole physical volume" if volumes == 1 else f"{volumes} whole physical volumes"
                message = f"{pair.title}: a disk of {amount('disk-size', size)} occupies {whole} of"
                message += f" {amount('disk-size', volume.smallest)}"
                sizes = [_rounded_down(volume.largest_disk(count)) for count in (volumes - 1, volumes) if count]
                hint = f"write a maximum of {' or '.join(amount('disk-size', item) for item in sizes)}"
                span, related = pair.at("max", "disk-size"), (*_volumes_here(hardware), *_is_on(context, group))
                yield self.hit(group, message, span, hint=hint, related=related)


def _rounded_down(size: int) -> int:
    """Return a size that Ganeti takes as it is; a large one in whole GiB: easier to read, and within the tolerance."""
    return size - size % (1024 if size >= 100 * 1024 else SIZE_STEP_MIB)


class DiskSpansSpindles(Rule):
    info = info_rule("GP403", "disk-size-spans-spindles")(
        summary="With exclusive storage, the disk sizes of a spec need different numbers of spindles.",
        rationale="Instances of one spec then use nodes unevenly, and how many fit depends on their sizes.",
        source=_SPINDLES,
        bad=EXCLUSIVE + HARDWARE + _specs("half\n      " + bounds("61G 125G", "7 15", "2T 5880G", "3 6")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, pair, volume, hardware in _known_volumes(context):
            least, most = (volume.needed(bound["disk-size"]) for bound in (pair.minimum, pair.maximum))
            if least != most:
                message = f"{pair.title}: a disk takes {least} to {most} physical volumes, depending on its size"
                span, related = pair.at("min", "disk-size"), (*_volumes_here(hardware), *_is_on(context, group))
                yield self.hit(group, message, span, related=related)


class TooFewSpindles(Rule):
    info = error_rule("GP404", "too-few-spindles")(
        summary="The smallest disks of a spec need more spindles than its spindle-use allows.",
        rationale="With exclusive storage, Ganeti compares spindle-use with the spindles of the instance's disks, and"
        " refuses a disk with too few. No instance can satisfy both.",
        source=_SPINDLES,
        bad=EXCLUSIVE + HARDWARE + _specs(_full(spindles="11 11")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, pair, volume, hardware in _known_volumes(context):
            count, size = pair.minimum["disk-count"], pair.minimum["disk-size"]
            needed, allowed = count * volume.needed(size), pair.maximum["spindle-use"]
            if needed > allowed:
                each, need = amount("disk-size", volume.smallest), "needs" if count == 1 else "need"
                message = (
                    f"{pair.title}: {_disks(count, size)} {need} {needed} spindles of {each}, but at most {allowed} are"
                    " allowed"
                )
                hint = f"allow spindle-use {needed}, or smaller disks"
                span = pair.at("max", "spindle-use")
                yield self.hit(group, message, span, hint=hint, related=_volumes_here(hardware))


class DisksBeyondSpindles(Rule):
    info = warning_rule("GP425", "disks-beyond-spindles")(
        summary="With exclusive storage, a group's spec allows more disks than spindles.",
        rationale="Each disk takes at least one physical volume of its own, so no instance has more disks than its"
        " spindle-use or the node's volumes. Most likely disk-count and another number are exchanged. A bound of 16,"
        " Ganeti's own limit, means no limit.",
        source=_SPINDLES,
        bad=EXCLUSIVE + HARDWARE + _specs("disk-count: 13".join(_full().rsplit("disk-count: 1", 1))),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, exclusive, hardware in exclusive_groups(context):
            for pair in comparable(context.pairs(group)) if context.own(group, MINMAX) else ():
                disks, spindles = pair.maximum["disk-count"], pair.maximum["spindle-use"]
                most = min(spindles, hardware.volume_count or spindles)
                if pair.minimum["disk-count"] <= most < disks < MAX_DISKS:  # else GP404
                    message = f"{pair.title} allows {disks} disks, but each takes a spindle, and there are {most}"
                    related = (Related(exclusive.span, "exclusive storage is on"),)
                    place = pair.at("max", "disk-count")
                    yield self.hit(group, message, place, hint=f"write {most} or less", related=related)


def _disks(number: int, size: int) -> str:
    return f"{count(number, 'disk')} of {amount('disk-size', size)}"


class SpindlesBeyondNode(Rule):
    info = error_rule("GP405", "spindles-beyond-node")(
        summary="The smallest instance of a spec needs more spindles than a node of the group has.",
        rationale="No node of the group can hold such an instance.",
        source=_SPINDLES,
        bad=EXCLUSIVE + "hardware: {pv_count: 10, pv_size: 1T}\n" + _specs(_full(spindles="1 12")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, _, hardware in exclusive_groups(context):
            volumes = hardware.volume_count
            if volumes is None:
                continue
            volume = promised_size(context, group, hardware)
            for pair in comparable(context.pairs(group)):
                count, size = pair.minimum["disk-count"], pair.minimum["disk-size"]
                for_disks = count * volume.needed(size) if volume else 0
                needed = max(for_disks, pair.minimum["spindle-use"])
                if needed > volumes:
                    place = ("min", "disk-size" if for_disks == needed else "spindle-use")
                    message = f"{pair.title} needs {needed} spindles, a node has {volumes}"
                    hint = "make the spec smaller, or correct the hardware"
                    yield self.hit(group, message, pair.at(*place), hint=hint, related=_volumes_here(hardware))


class SpindleParameterIgnored(Rule):
    info = info_rule("GP409", "spindle-parameter-ignored")(
        summary="spindle-ratio or spindle_count is set, but exclusive storage is on.",
        rationale="With exclusive storage the ratio is 1, and the count is the real number of volumes: Ganeti ignores"
        " both parameters.",
        source=_SPINDLES,
        bad=f"{EXCLUSIVE}ipolicy: {{spindle-ratio: 32}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{vcpu-ratio: 1}}\n",
    )
    _IGNORED: Final[tuple[Path, ...]] = (("ipolicy", "spindle-ratio"), ("ndparams", "spindle_count"))

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            exclusive = context.exclusive(group)
            for path in self._IGNORED if exclusive else ():
                leaf = context.own(group, path)
                if leaf is not None and exclusive is not None:
                    related = (Related(exclusive.span, "exclusive storage is on"),)
                    message = f"{path[1]} is ignored in {name_of(group)}"
                    hint = "remove it, if exclusive storage is meant"
                    yield self.hit(group, message, leaf.span, hint=hint, related=related)


class SpindlesWithoutExclusiveStorage(MoreWithState):
    info = warning_rule("GP414", "spindles-without-exclusive-storage")(
        summary="A spec requires an exact number of spindles, but exclusive storage is not on.",
        rationale="Spindles are an instance's own physical volumes only with exclusive storage. Without it, disks"
        " share all volumes, and spindle-use is a number that an instance states (default 1).",
        source=_SPINDLES,
        bad=DEDICATED + HARDWARE + WHOLE_NODES + FULL,
        good=EXCLUSIVE + HARDWARE + WHOLE_NODES + FULL,
    )
    explains = Explains(order=10, also_related=True, may_be_meant=True)

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            hardware, value = group.hardware, in_force(context, group, EXCLUSIVE_STORAGE)
            objects = (group, context.policy.cluster)
            on = value.value is True if value else any(context.is_unknown(item, EXCLUSIVE_STORAGE) for item in objects)
            if on or hardware is None or hardware.volume_count is None or context.own(group, MINMAX) is None:
                continue
            for pair in comparable(context.pairs(group)):
                spindles = pair.minimum["spindle-use"]
                if 1 < spindles == pair.maximum["spindle-use"]:
                    said = "is off" if value is not None else "is not declared"
                    message = f"{pair.title} requires exactly {spindles} spindles, but exclusive storage {said}"
                    leaf = value.leaf if value is not None else None
                    place = pair.at("min", "spindle-use")
                    related = (Related(place, f"{pair.title} is here"),) if leaf is not None else ()
                    hint = "write ndparams: {exclusive_storage: true}, or allow a range of spindle-use"
                    span = leaf.span if leaf is not None else place
                    yield self.hit(group, message, span, hint=hint, related=related)
                    break  # one mistake, whatever the number of specs


class TemplateNotExclusive(Rule):
    info = warning_rule("GP407", "template-not-exclusive")(
        summary="Exclusive storage is on, but other disk templates than plain are allowed.",
        rationale="The design is for plain and drbd, but Ganeti implements it for plain only: creating another disk"
        " fails, and verify reports existing ones as errors.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain, drbd]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain]}}\n",
    )
    explains = Explains(order=9, also_related=True, may_be_meant=True)

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            others = [template for template in texts(allowed) if template not in ("plain", "diskless")]
            if exclusive.value is True and others and "plain" in texts(allowed):  # without plain: GP408
                message = f"{name_of(declared)} allows {', '.join(others)}: exclusive storage is for plain only"
                hint = "allow only plain here, or turn exclusive storage off"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveWithoutPlain(Rule):
    info = error_rule("GP408", "exclusive-without-plain")(
        summary="Exclusive storage is on, but plain is not allowed.",
        rationale="No instance with a disk can be created.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless, plain]}}\n",
    )
    explains = Explains(order=8, also_related=True, may_be_meant=True)

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            if exclusive.value is True and "plain" not in texts(allowed):
                message = f"{name_of(declared)} has exclusive storage, but does not allow plain"
                hint = "allow plain, or turn exclusive storage off"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveStorageReads(Rule):
    info = info_rule("GP411", "exclusive-storage-reads")(
        summary="Exclusive storage is turned on, and Ganeti 3.0 then reports no storage figures of the nodes.",
        rationale="Ganeti's node daemon compares a number with text and fails. Free and total disk and spindles are"
        " unknown, and hspace -L stops. The defect is in 3.0.2 and still in the newest source.",
        source="Ganeti 3.0.2, run on a cluster",
        bad=EXCLUSIVE,
        good="gpolicy: v1\nkind: NodeGroup\nname: shared\nndparams: {exclusive_storage: false}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
            if leaf.value is True and release_key(context.version) >= (3, 0):
                yield self.hit(
                    declared,
                    f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage",
                    leaf.span,
                    hint="patch ganeti-noded first; until then gpolicy counts on their physical volumes, if they"
                    " are read (gpolicy snapshot --physical-volumes) or promised (hardware)",
                )


class ExclusiveStorageMixed(StateRule):
    info = error_rule("GP412", "exclusive-storage-mixed")(
        summary="A node has another value of exclusive_storage than the group that it is in or moves to.",
        rationale="All nodes of a group must have the same value; otherwise the node decides whether a disk has its"
        " own volumes. Ganeti does not let you set it on a node, but an old configuration may have it, and Ganeti moves"
        " such a node into any group without a check.",
        source=_EXCLUSIVE,
        bad=EXCLUSIVE,
        good=EXCLUSIVE,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None or context.desired is None:
            return
        if not context.state.readable(Level.GROUP, EXCLUSIVE_STORAGE):
            return  # the source shows the values of groups at their nodes
        for group in context.groups:
            value = in_force(context, group, EXCLUSIVE_STORAGE)
            odd = [
                node
                for node in context.members.nodes_in(group)
                if value is not None and node.own.get(EXCLUSIVE_STORAGE, value.value) != value.value
            ]
            wanted = context.desired.groups.get(group.name)
            moving = {node.name for node in odd if wanted is None or node.group != wanted.current}
            here = [node.name for node in odd if node.name not in moving]
            hint = "remove the nodes' own value"
            if here and value is not None and value.leaf is not None:
                message = f"{_some(here)} in {name_of(group)}: exclusive_storage differs from the group's value"
                yield self.hit(group, message, value.leaf.span, hint=hint)
            if moving:
                span = next(
                    node.group.span for name, node in context.desired.nodes.items() if name in moving and node.group
                )
                own, other = ("on", "off") if value is not None and value.value is False else ("off", "on")
                message = f"{_some(moving)}: exclusive_storage is {own} there, of the node itself, and {other} in"
                message += f" {name_of(group)}, which it moves into"
                yield self.hit(group, message, span, hint=hint)


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


class ExclusiveStorageOnOtherDisks(StateRule):
    info = warning_rule("GP417", "exclusive-storage-on-other-disks")(
        summary="Exclusive storage is on for nodes whose instances have other disks than plain ones.",
        rationale="Ganeti turns exclusive storage on without a check, and converts nothing. `gnt-cluster verify`"
        " reports such disks as errors, and they cannot be grown or recreated.",
        source=f"{_EXCLUSIVE}; Ganeti 3.0, run",
        bad=f"{GROUP}ndparams: {{exclusive_storage: true}}\n",
        good=f"{GROUP}ndparams: {{exclusive_storage: false}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            leaf = context.exclusive(group)
            if leaf is None or context.state is None:
                continue
            nodes = {node.name for node in context.members.hosts_in(group)}
            others = [
                (name, template)
                for name, instance in sorted(context.state.instances.items())
                if nodes.intersection((instance.primary_node, *instance.secondary_nodes))
                for template in sorted({disk.template for disk in instance.disks} - {"plain"})[:1]
            ]
            if others:
                name, template = others[0]
                more = f" and {count(len(others) - 1, 'more instance')} have" if len(others) > 1 else " has"
                message = f"{name}{more} other disks than plain ones ({template}) in {name_of(group)}"
                hint = "convert their disks to plain, or move them to another group first"
                yield self.hit(group, message, leaf.span, hint=hint)
