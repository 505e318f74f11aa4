"""GP401, GP413, GP418 and GP420 to GP424: the physical volumes of nodes, and the volume groups that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from gpolicy.checking.context import Context, name_of
from gpolicy.checking.in_force import in_force
from gpolicy.checking.node_limits import METAVG, VOLUME_GROUP, own_pool, terms_in
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.cluster.volume_pools import matches
from gpolicy.findings import Related, error_rule, info_rule, warning_rule
from gpolicy.ganeti.volume_arithmetic import MARGIN, RESERVED
from gpolicy.policy.misspelt import is_one_slip
from gpolicy.policy.model import ClusterPolicy, GroupPolicy
from gpolicy.resolve.desired import is_glob
from gpolicy.resolve.terms import volume_terms
from gpolicy.rules.examples import CLUSTER, EXCLUSIVE, GROUP
from gpolicy.rules.shapes import MoreWithState, StateRule
from gpolicy.rules.shared import exclusive_groups

if TYPE_CHECKING:
    from gpolicy.cluster.state import LiveNode
    from gpolicy.cluster.terms import VolumeTerms
    from gpolicy.policy.source_file import Located

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"
_SPINDLES: Final = "Partitioned Ganeti, Spindles as a resource"
_USUAL_DISK: Final = re.compile("([shv]|xv)d[a-z]*|nvme|mapper|disk|[dm][dm]|[a-z]*bd")


def _terms(context: Context, declared: ClusterPolicy | GroupPolicy) -> VolumeTerms:
    return volume_terms(context.policy.cluster, declared if isinstance(declared, GroupPolicy) else None)


def _nodes(context: Context, declared: ClusterPolicy | GroupPolicy) -> list[LiveNode]:
    """Return the observed nodes for which something holds that an object declares; those of all groups for the cluster.

    Nodes without instances have no volumes that matter.
    """
    if isinstance(declared, GroupPolicy):
        return context.members.hosts_in(declared)
    return [node for node in context.state.nodes.values() if node.vm_capable] if context.state else []


def _volume_names(nodes: list[LiveNode]) -> set[str]:
    return {volume.name for node in nodes for volume in node.physical_volumes or ()}


class PatternMatchesNothing(StateRule):
    info = warning_rule("GP420", "volume-pattern-unmatched")(
        summary="A name or glob of physical_volumes matches no volume of the cluster.",
        rationale="Volumes that should be excluded, or be in another volume group, then count as the cluster's own: all"
        " numbers of disk and spindles are wrong. Ganeti names volumes by their device (/dev/sda3).",
        bad=f"{GROUP}physical_volumes: {{exclude: [/dev/nvme0n1p3]}}\n",
        good=f"{GROUP}physical_volumes: {{exclude: [/dev/sda]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            nodes = _nodes(context, declared)
            if not nodes or any(node.physical_volumes is None for node in nodes):
                continue
            names = _volume_names(nodes)
            terms = volume_terms(None, declared)
            patterns = [("exclude", pattern) for pattern in terms.exclude]
            patterns += [("volume_groups", pattern) for of in terms.volume_groups.values() for pattern in of]
            for key, pattern in patterns:
                if not any(matches(name, [pattern]) for name in names):
                    message = f"{pattern} matches no physical volume of {name_of(declared)}"
                    hint = f"there are {', '.join(sorted(names)[:4])}{' and others' if len(names) > 4 else ''}"
                    yield self.hit(declared, message, declared.physical_volumes[key].span, hint=hint)


class VolumePatternUnlikely(Rule):
    info = warning_rule("GP424", "volume-pattern-unlikely")(
        summary="A name or glob of physical_volumes can match no volume, or excludes all of them.",
        rationale="The names of volumes start with /dev/, and a glob must match the whole name. If all volumes are"
        " excluded, capacity counts no disk.",
        source="Ganeti names volumes as LVM does; pvs(8)",
        bad=f"{GROUP}physical_volumes: {{exclude: ['sda*']}}\n",
        good=f"{GROUP}physical_volumes: {{exclude: ['/dev/sda*']}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            terms = volume_terms(None, declared)
            patterns = [("exclude", pattern) for pattern in terms.exclude]
            patterns += [("volume_groups", pattern) for of in terms.volume_groups.values() for pattern in of]
            for key, pattern in patterns:
                place = declared.physical_volumes[key].span
                if not pattern.startswith(("/dev/", "/dev*", "/*", "*", "?", "[")):
                    message = f"{pattern} matches no volume: their names start with /dev/"
                    hint = f"write /dev/{pattern.removeprefix('/').removeprefix('dev/')}"
                    yield self.hit(declared, message, place, hint=hint)
                elif near := _disk_meant(pattern):
                    message = f"{pattern} matches no volume: Linux has no disks of such names"
                    yield self.hit(declared, message, place, hint=f"Did you mean `{near}`?")
                elif key == "exclude" and matches("/dev/a-name-that-no-volume-has", [pattern]):
                    message = f"{pattern} excludes every volume"
                    yield self.hit(declared, message, place, hint="name the volumes that do not count: /dev/sda*")


def _disk_meant(pattern: str) -> str:
    """Return the pattern with the name of a disk that one is a slip away from; nothing where it may be right."""
    stem = re.match("/dev/([a-z]+)", pattern)
    near = [name for name in ("sda", "vda", "xvda", "nvme", "mapper", "disk") if stem and is_one_slip(stem[1], name)]
    return f"/dev/{near[0]}{pattern[stem.end() :]}" if stem and near and not _USUAL_DISK.fullmatch(stem[1]) else ""


class VolumeInTwoPlaces(MoreWithState):
    info = error_rule("GP421", "volume-in-two-places")(
        summary="A physical volume is excluded and assigned to a volume group, or assigned to two.",
        rationale="A volume is in one volume group. gpolicy counts an excluded volume in none, and of two groups in the"
        " first, which may not be what is meant. A glob may cover more than what is excluded by name.",
        source=_SPINDLES,
        bad=f"{CLUSTER}physical_volumes: {{exclude: ['/dev/sda*'], volume_groups: {{ssdvg: [/dev/sda3]}}}}\n",
        good=f"{CLUSTER}physical_volumes: {{exclude: [/dev/sda3], volume_groups: {{ssdvg: ['/dev/sda*']}}}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            own = _first(declared, "volume_groups", "exclude")
            if own is None:
                continue
            terms = _terms(context, declared)
            written = dict.fromkeys(pattern for patterns in terms.volume_groups.values() for pattern in patterns)
            found = [said for name in written if (said := _two_places(terms, name))]
            observed = sorted(_volume_names(_nodes(context, declared)))
            found = found or [said for name in observed if (said := _two_places(terms, name, named=False))][:1]
            for message in found:
                yield self.hit(declared, message, own.span, hint="write it once")


def _first(declared: ClusterPolicy | GroupPolicy, *keys: str) -> Located[Any] | None:
    """Return the first of these keys that an object declares itself."""
    return next((declared.physical_volumes[key] for key in keys if key in declared.physical_volumes), None)


def _two_places(terms: VolumeTerms, name: str, *, named: bool = True) -> str | None:
    """Return in words where a volume or glob is twice, None if it is not; excluded counts if it is assigned by name."""

    def is_in(patterns: tuple[str, ...]) -> bool:
        return name in patterns or (not is_glob(name) and matches(name, patterns))

    groups = [group for group, patterns in terms.volume_groups.items() if is_in(patterns)]
    if is_in(terms.exclude):
        return f"{name} is excluded, but also assigned to {groups[0]}" if named else None
    return f"{name} is assigned to {groups[0]} and to {groups[1]}" if len(groups) > 1 else None


class AssignedGroupUnused(MoreWithState):
    info = info_rule("GP422", "assigned-volume-group-unused")(
        summary="Physical volumes are assigned to a volume group that nothing declared uses.",
        rationale="The group is neither the cluster's own nor drbd's metavg, and disk_state does not name it. So its"
        " volumes hold only disks for which somebody names the group by hand. If the name is mistyped, the volumes are"
        " missing in all numbers of the group that is meant.",
        source=_SPINDLES,
        bad=f"{CLUSTER}volume_group_name: xenvg\ndiskparams:\n  drbd: {{metavg: xenvg}}\n"
        "physical_volumes: {volume_groups: {xenvgg: ['/dev/sd*']}}\n",
        good=f"{CLUSTER}volume_group_name: xenvg\ndiskparams:\n  drbd: {{metavg: ssdvg}}\n"
        "physical_volumes: {volume_groups: {ssdvg: ['/dev/nvme*']}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        used: set[str] | None = None
        for declared in context.cluster_and_groups:
            assigned = declared.physical_volumes.get("volume_groups")
            if assigned is None:
                continue
            used = _used_groups(context) if used is None else used
            for name in assigned.value if used else ():
                if name not in used:
                    message = f"volumes are assigned to {name}, but the cluster uses {' and '.join(sorted(used))}"
                    hint = "correct the name, or write the volumes under `exclude`"
                    yield self.hit(declared, message, assigned.span, hint=hint)


def _used_groups(context: Context) -> set[str]:
    """Return the volume groups that something uses; none if the cluster's own or a metavg is not known."""
    objects = context.cluster_and_groups
    values = [in_force(context, declared, METAVG) for declared in objects]
    values.append(in_force(context, context.policy.cluster or objects[0], VOLUME_GROUP))
    found = {str(item.value) for item in values if item is not None}
    if None in values:
        return set()
    paths = {path for declared in context.policy.objects for path in context.leaves(declared)}
    if context.state is not None:
        groups, nodes = context.state.groups.values(), context.state.nodes.values()
        paths.update(context.state.cluster.own, *(item.own for item in groups), *(item.own for item in nodes))
        found |= {str(group.effective[METAVG]) for group in groups if METAVG in group.effective}
    return found | {path[2] for path in paths if path[0] == "disk_state" and len(path) > 2}


class SharesOfGaneti(Rule):
    info = info_rule("GP423", "volume-shares-not-ganetis")(
        summary="physical_volumes sets another margin or reserve than Ganeti's.",
        rationale="The design document wants both as parameters, but Ganeti 3 has 1 % and 2 % fixed (PART_MARGIN,"
        " PART_RESERVED). Numbers counted with other shares say what would be if Ganeti were changed.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{CLUSTER}physical_volumes: {{reserve: 5%}}\n",
        good=f"{CLUSTER}physical_volumes: {{margin: 1%, reserve: 2%}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            own_terms = volume_terms(None, declared)
            other = [
                key for key, usual in (("margin", MARGIN), ("reserve", RESERVED)) if getattr(own_terms, key) != usual
            ]
            said, own = _terms(context, declared).what_if, _first(declared, *other)
            if said is not None and own is not None and own_terms.what_if is not None:
                yield self.hit(declared, f"disks are {said}", own.span, hint="leave it out to count as Ganeti does")


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


class ObservedVolumesDiffer(StateRule):
    info = warning_rule("GP418", "observed-pv-sizes-differ")(
        summary="The nodes of a group with exclusive storage have physical volumes of too different sizes.",
        rationale="All volumes of the group must have one size within a margin of 1 %. Otherwise `gnt-cluster verify`"
        " reports an error, and the smallest size counts for all.",
        source=_EXCLUSIVE,
        bad=f"{GROUP}ndparams: {{exclusive_storage: true}}\n",
        good=f"{GROUP}ndparams: {{exclusive_storage: false}}\n",
    )

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
