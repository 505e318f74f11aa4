"""GP401, GP413 and GP418: the physical volumes of nodes: as many, and as large within Ganeti's margin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, name_of
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.volumes import own_pool, terms_in
from gpolicy.findings import Related, error_rule, warning_rule
from gpolicy.rules.examples import GROUP
from gpolicy.rules.exclusive_storage.examples import EXCLUSIVE
from gpolicy.rules.exclusive_storage.spindles import exclusive_groups

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"


class VolumeSizesDiffer(Rule):
    info = error_rule("GP401", "pv-sizes-differ")(
        summary="The physical volumes of a group with exclusive storage differ by more than Ganeti's margin.",
        rationale="A spindle is a physical volume, and all volumes of a group must have one size within a margin of 1"
        " %. They differ too much if smallest * 1.01 is below largest * 0.99; `gnt-cluster verify` then reports an"
        " error.",
        source=_EXCLUSIVE,
        bad=f"{EXCLUSIVE}hardware: {{pv_size: [1000G, 1021G]}}\n",
        good=f"{EXCLUSIVE}hardware: {{pv_size: [1000G, 1020G]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, exclusive, hardware in exclusive_groups(context):
            sizes = sorted(hardware.pv_sizes, key=lambda size: size.value)
            terms = terms_in(context, group)
            if sizes and terms.sizes_differ(sizes[0].value, sizes[-1].value):
                small, large = (amount("disk-size", size.value) for size in (sizes[0], sizes[-1]))
                message = f"physical volumes of {small} and {large} are too different for exclusive storage"
                hint = f"the largest may exceed the smallest by about {200 * terms.margin:g} %: split the group"
                related = (Related(exclusive.span, "exclusive storage is on"), Related(sizes[0].span, "the smallest"))
                yield self.hit(group, message, sizes[-1].span, hint=hint, related=related)


class VolumeCount(Rule):
    info = warning_rule("GP413", "pv-count-mismatch")(
        summary="A group's hardware lists more or fewer sizes of physical volumes than it has volumes.",
        rationale="A list has the size of each volume; a single size holds for all. If pv_size and pv_count disagree,"
        " one of them is wrong, and so is every number computed from them.",
        bad=f"{EXCLUSIVE}hardware: {{pv_count: 1, pv_size: [1000G, 1010G]}}\n",
        good=f"{EXCLUSIVE}hardware: {{pv_count: 2, pv_size: [1000G, 1010G]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            hardware = group.hardware
            count = hardware.pv_count.value if hardware and hardware.pv_count else 0
            if hardware and hardware.pv_count and len(hardware.pv_sizes) not in (0, 1, count):
                message = f"pv_size lists {len(hardware.pv_sizes)} sizes, pv_count is {count}"
                hint = "list one size for each volume, or a single size for all"
                yield self.hit(group, message, hardware.pv_count.span, hint=hint)


class ObservedVolumesDiffer(Rule):
    info = warning_rule("GP418", "observed-pv-sizes-differ")(
        summary="The nodes of a group with exclusive storage have physical volumes of too different sizes.",
        rationale="All volumes of the group must have one size within a margin of 1 %. Otherwise `gnt-cluster verify`"
        " reports an error, and the smallest size counts for all.",
        source=_EXCLUSIVE,
        bad=f"{GROUP}ndparams: {{exclusive_storage: true}}\n",
        good=f"{GROUP}ndparams: {{exclusive_storage: false}}\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            leaf = context.exclusive(group)
            volumes = [
                (volume.size, node.name, volume.name)
                for node in (context.members.hosts_in(group) if leaf else ())
                for volume in own_pool(context, group, node).allocatable
            ]
            if leaf is not None and volumes and terms_in(context, group).sizes_differ(min(volumes)[0], max(volumes)[0]):
                parts = [
                    f"{name} of {node} has {amount('disk-size', size)}"
                    for size, node, name in (min(volumes), max(volumes))
                ]
                message = f"physical volumes in {name_of(group)} differ too much: {', '.join(parts)}"
                hint = "move nodes with other volumes to their own group, or exclude volumes (physical_volumes.exclude)"
                yield self.hit(group, message, leaf.span, hint=hint)
