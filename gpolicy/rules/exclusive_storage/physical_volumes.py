"""Exclusive storage: sizes and number of physical volumes (GP401 and others), and their groups (GP420 and others)."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, When, error, hit, information, warning
from gpolicy.cluster.state import LiveNode
from gpolicy.cluster.terms import MARGIN, RESERVED, VOLUME_GROUP, VolumeTerms
from gpolicy.cluster.volume_pools import VolumePool, matches
from gpolicy.findings import Located, Related, Span
from gpolicy.guessing import is_one_slip
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, is_glob
from gpolicy.printable import count, some
from gpolicy.resolve.desired import volume_terms
from gpolicy.rules.node_limits import METAVG, own_pool, terms_in
from gpolicy.rules.shared import exclusive_groups, grouped, in_force, of_cluster

_PARTITION: Final = re.compile(r"(/dev/(?:[shv]|xv)d[a-z]+|/dev/[^/]*[0-9](?=p))p?[0-9]+")
_USUAL_DISK: Final = re.compile("([shv]|xv)d[a-z]*|nvme|mapper|disk|[dm][dm]|[a-z]*bd")


@error("GP401", explains=7)
def pv_sizes_differ(context: Context) -> Iterator[Hit]:
    for group, exclusive, hardware in exclusive_groups(context):
        sizes = sorted(hardware.pv_sizes, key=lambda size: size.value)
        terms = terms_in(context, group)
        if sizes and terms.sizes_differ(sizes[0].value, sizes[-1].value):
            small, large = (amount("disk-size", size.value) for size in (sizes[0], sizes[-1]))
            message = f"physical volumes of {small} and {large} are too different for exclusive storage"
            hint = f"the largest may exceed the smallest by about {200 * terms.margin:g} %: split the group"
            odd, other = sizes[-1], Related(sizes[0].span, "the smallest")
            if [size.value for size in sizes].count(sizes[0].value) * 2 < len(sizes):
                odd, other = sizes[0], Related(sizes[-1].span, "the largest")
                hint = f"is {large} meant? Else {hint}"
            yield hit(group, message, odd.span, hint, (Related(exclusive.span, "exclusive storage is on"), other))


@warning("GP413")
def pv_count_mismatch(context: Context) -> Iterator[Hit]:
    for group, hardware in ((group, group.hardware) for group in context.groups if group.hardware):
        count = hardware.pv_count
        if count and len(hardware.pv_sizes) not in (0, 1, count.value):
            message = f"pv_size lists {len(hardware.pv_sizes)} sizes, pv_count is {count.value}"
            yield hit(group, message, count.span, "list one size for each volume, or a single size for all")


@warning("GP418", When.STATE)
def observed_pv_sizes_differ(context: Context) -> Iterator[Hit]:
    plain = (item for item in context.observed.instances.values() if item.disk_template == "plain")
    disks = Counter(item.primary_node for item in plain for _ in item.disks)
    for group in context.groups:
        leaf = context.exclusive(group)
        if leaf is None:
            continue
        pools = {node.name: own_pool(context, group, node) for node in context.members.hosts_in(group)}
        volumes = [(volume.size, node, volume.name) for node, pool in pools.items() for volume in pool.allocatable]
        if volumes and terms_in(context, group).sizes_differ(min(volumes)[0], max(volumes)[0]):
            ends = (min(volumes), max(volumes))
            parts = [f"{name} of {node} has {amount('disk-size', size)}" for size, node, name in ends]
            message = f"physical volumes in {group.title} differ too much: {', '.join(parts)}"
            hint = "move nodes with other volumes to their own group, or exclude volumes (physical_volumes.exclude)"
            yield hit(group, message, leaf.span, hint)
        for node, pool in pools.items():
            message, hint = _shared(pool, node, disks[node])
            if message:
                yield hit(group, message, leaf.span, hint, missing=f"volumes of {group.name} for one disk each")


def _shared(pool: VolumePool, node: str, disks: int) -> tuple[str, str]:
    """Return what is shared on a node with so many plain disks, a drive or a volume, and the way out."""
    names = [volume.name for volume in pool.allocatable]
    drives = grouped((part[1] if (part := _PARTITION.fullmatch(name)) else name, name) for name in names)
    several = next((names for names in drives.values() if len(names) > 1), None)
    if several:
        return f"{some(sorted(several))} of {node} are parts of one drive", "exclude all but one of each drive"
    used = sum(volume.used > 0 for volume in pool.volumes)
    if disks > used > 0:
        return f"{disks} disks on {node} share {count(used, 'physical volume')}", "move the disks to other nodes"
    return "", ""


def _nodes_to_judge(context: Context, declared: ClusterPolicy | GroupPolicy) -> list[LiveNode]:
    """Return the observed nodes for which something holds that an object declares; those of all groups for the cluster.

    Nodes without instances have no volumes that matter.
    """
    if isinstance(declared, GroupPolicy):
        return context.members.hosts_in(declared)
    return [node for node in context.observed.nodes.values() if node.vm_capable]


def _volume_names(nodes: list[LiveNode]) -> set[str]:
    return {volume.name for node in nodes for volume in node.physical_volumes or ()}


def _patterns(declared: ClusterPolicy | GroupPolicy) -> Iterator[tuple[str, str, Span]]:
    """Yield the names and globs of volumes that an object declares: the key, the pattern, the place."""
    terms = volume_terms(None, declared)
    assigned = (pattern for patterns in terms.volume_groups.values() for pattern in patterns)
    for key, patterns in (("exclude", terms.exclude), ("volume_groups", assigned)):
        yield from ((key, pattern, declared.physical_volumes[key].span) for pattern in patterns)


@warning("GP420", when=When.STATE)
def volume_pattern_unmatched(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        nodes = _nodes_to_judge(context, declared)
        if not nodes or any(node.physical_volumes is None for node in nodes):
            continue
        names = _volume_names(nodes)
        for _, pattern, place in _patterns(declared):
            if not any(matches(name, [pattern]) for name in names):
                message = f"{pattern} matches no physical volume of {declared.title}"
                hint = f"there are {', '.join(sorted(names)[:4])}{' and others' if len(names) > 4 else ''}"
                yield hit(declared, message, place, hint)


@error("GP421", When.MORE_WITH_STATE)
def volume_in_two_places(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        own = _first(declared, "volume_groups", "exclude")
        if own is None:
            continue
        terms = terms_in(context, declared)
        written = dict.fromkeys(pattern for patterns in terms.volume_groups.values() for pattern in patterns)
        found = [said for name in written if (said := _two_places(terms, name))]
        observed = sorted(_volume_names(_nodes_to_judge(context, declared)))
        found = found or [said for name in observed if (said := _two_places(terms, name, named=False))][:1]
        yield from (hit(declared, message, own.span, "write it once") for message in found)


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


@information("GP422", When.MORE_WITH_STATE)
def assigned_volume_group_unused(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        assigned = declared.physical_volumes.get("volume_groups")
        if assigned is None:
            continue
        used = context.once(_used_groups)
        for name in assigned.value if used else ():
            if name not in used:
                message = f"volumes are assigned to {name}, but the cluster uses {' and '.join(sorted(used))}"
                yield hit(declared, message, assigned.span, "correct the name, or write the volumes under `exclude`")


def _used_groups(context: Context) -> set[str]:
    """Return the volume groups that something uses; none if the cluster's own or a metavg is not known."""
    values = [in_force(context, declared, METAVG) for declared in context.cluster_and_groups]
    values.append(of_cluster(context, VOLUME_GROUP))
    found = {str(item.value) for item in values if item is not None}
    if None in values:
        return set()
    paths = {path for declared in context.policy.objects for path in context.leaves(declared)}
    groups, nodes = context.observed.groups.values(), context.observed.nodes.values()
    paths.update(context.observed.cluster.own, *(item.own for item in groups), *(item.own for item in nodes))
    found |= {str(group.effective[METAVG]) for group in groups if METAVG in group.effective}
    return found | {path[2] for path in paths if path[0] == "disk_state" and len(path) > 2}


@information("GP423")
def volume_shares_not_ganetis(context: Context) -> Iterator[Hit]:
    for declared in [item for item in context.cluster_and_groups if item.physical_volumes]:
        own_terms = volume_terms(None, declared)
        usual = {"margin": MARGIN, "reserve": RESERVED}
        other = [key for key, share in usual.items() if getattr(own_terms, key) != share]
        said, own = terms_in(context, declared).what_if, _first(declared, *other)
        if said is not None and own is not None and own_terms.what_if is not None:
            yield hit(declared, f"disks are {said}", own.span, "leave it out to count as Ganeti does")


@warning("GP424")
def volume_pattern_unlikely(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        for key, pattern, place in _patterns(declared):
            if not pattern.startswith(("/dev/", "/dev*", "/*", "*", "?", "[")):
                message = f"{pattern} matches no volume: their names start with /dev/"
                right, missing = pattern.removeprefix("/").removeprefix("dev/"), f"whole names at {place}"
                yield hit(declared, message, place, f"write /dev/{right}", missing=missing)
            elif near := _disk_meant(pattern):
                message = f"{pattern} matches no volume: Linux has no disks of such names"
                yield hit(declared, message, place, f"Did you mean `{near}`?")
            elif key == "exclude" and matches("/dev/a-name-that-no-volume-has", [pattern]):
                message = f"{pattern} excludes every volume"
                yield hit(declared, message, place, "name the volumes that do not count: /dev/sda*")


def _disk_meant(pattern: str) -> str:
    """Return the pattern with the name of a disk that one is a slip away from; nothing where it may be right."""
    stem = re.match("/dev/([a-z]+)", pattern)
    near = [name for name in ("sda", "vda", "xvda", "nvme", "mapper", "disk") if stem and is_one_slip(stem[1], name)]
    return f"/dev/{near[0]}{pattern[stem.end() :]}" if stem and near and not _USUAL_DISK.fullmatch(stem[1]) else ""
