"""Exclusive storage: physical volumes and their groups (GP401 and others), and what else there is to it (GP406, …)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, VCPU_RATIO, Context
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, When, error, hit, information, see, warning
from gpolicy.cluster.state import LiveNode
from gpolicy.cluster.terms import MARGIN, RESERVED, VOLUME_GROUP, VolumeTerms
from gpolicy.cluster.volume_pools import VolumePool, matches
from gpolicy.findings import Located, Related, Role, Span
from gpolicy.ganeti.vocabulary import Level
from gpolicy.guessing import is_one_slip
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, is_glob
from gpolicy.printable import count, named, some
from gpolicy.resolve.desired import volume_terms
from gpolicy.rules.node_limits import METAVG, own_pool, terms_in
from gpolicy.rules.shared import exclusive_groups, exclusive_hit, grouped, in_force, moved, of_cluster

_PARTITION: Final = re.compile(r"(/dev/(?:[shv]|xv)d[a-z]+|/dev/[^/]*[0-9](?=p))p?[0-9]+")
_USUAL_DISK: Final = re.compile("([shv]|xv)d[a-z]*|nvme|mapper|disk|[dm][dm]|[a-z]*bd")


def _nodes(context: Context, declared: ClusterPolicy | GroupPolicy) -> list[LiveNode]:
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
        nodes = _nodes(context, declared)
        if not nodes or any(node.physical_volumes is None for node in nodes):
            continue
        names = _volume_names(nodes)
        for _, pattern, place in _patterns(declared):
            if not any(matches(name, [pattern]) for name in names):
                message = f"{pattern} matches no physical volume of {declared.title}"
                hint = f"there are {', '.join(sorted(names)[:4])}{' and others' if len(names) > 4 else ''}"
                yield hit(declared, message, place, hint)


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


@error("GP421", When.MORE_WITH_STATE)
def volume_in_two_places(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        own = _first(declared, "volume_groups", "exclude")
        if own is None:
            continue
        terms = terms_in(context, declared)
        written = dict.fromkeys(pattern for patterns in terms.volume_groups.values() for pattern in patterns)
        found = [said for name in written if (said := _two_places(terms, name))]
        observed = sorted(_volume_names(_nodes(context, declared)))
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


@warning("GP407", explains=9, role=Role.ALSO_RELATED)
def template_not_exclusive(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
        others = [template for template in allowed.texts if template not in ("plain", "diskless")]
        if exclusive.value is True and others and "plain" in allowed.texts:  # without plain: GP408
            message = f"{declared.title} allows {', '.join(others)}: exclusive storage is for plain only"
            hint = "is exclusive storage meant here? If it is, allow only plain"
            place = allowed.at(allowed.texts.index(others[0]))
            own = [(group.name, context.own(group, DISK_TEMPLATES)) for group in context.groups]
            fit = [name for name, leaf in own if leaf is not None and leaf.texts == ("plain",)]
            if fit and declared is context.policy.cluster:
                hint = f"is it meant for {named('group', fit)} only, which allows only plain? Then write it there"
                yield hit(declared, message, exclusive.span, hint, see(place, f"{others[0]} is allowed"))
            else:
                yield exclusive_hit(context, declared, allowed, exclusive, message, hint, place)


@error("GP408", explains=8, role=Role.ALSO_RELATED)
def exclusive_without_plain(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
        if exclusive.value is True and "plain" not in allowed.texts:
            message = f"{declared.title} has exclusive storage, but does not allow plain"
            hint = "is exclusive storage meant here? If it is, allow only plain"
            yield exclusive_hit(context, declared, allowed, exclusive, message, hint, allowed.span)


@information("GP411", When.ASKED)
def exclusive_storage_reads(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
        if leaf.value is True and context.is_since("3.0"):
            message = f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage"
            hint = "patch ganeti-noded first; until then gpolicy counts on their physical volumes, if they"
            hint += " are read (gpolicy snapshot --physical-volumes) or promised (hardware)"
            yield hit(declared, message, leaf.span, hint)


@error("GP412", When.STATE)
def exclusive_storage_mixed(context: Context) -> Iterator[Hit]:
    if not context.observed.readable(Level.GROUP, EXCLUSIVE_STORAGE):
        return  # the source shows the values of groups at their nodes
    for group in context.groups:
        value = in_force(context, group, EXCLUSIVE_STORAGE)
        if value is None:
            continue
        nodes = context.members.nodes_in(group)
        odd = [node for node in nodes if node.own.get(EXCLUSIVE_STORAGE, value.value) != value.value]
        wanted = context.desired.groups.get(group.name)
        moving = {node.name for node in odd if wanted is None or node.group != wanted.current}
        here = [node.name for node in odd if node.name not in moving]
        hint = "remove the nodes' own value"
        if here and value.leaf is not None:
            message = f"{_some(here)} in {group.title}: exclusive_storage differs from the group's value"
            yield hit(group, message, value.leaf.span, hint)
        if moving:
            wants = context.desired.nodes.items()
            span = next(node.group.span for name, node in wants if name in moving and node.group)
            own, other = ("on", "off") if value.value is False else ("off", "on")
            message = f"{_some(moving)}: exclusive_storage is {own} there, of the node itself, and {other} in"
            message += f" {group.title}, which it moves into"
            yield hit(group, message, span, hint)


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


@warning("GP417", When.STATE)
def exclusive_storage_on_other_disks(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        leaf = context.exclusive(group)
        nodes = {node.name for node in context.members.hosts_in(group)}
        others = [
            (name, template, nodes.intersection((instance.primary_node, *instance.secondary_nodes)))
            for name, instance in sorted(context.observed.instances.items() if leaf else ())
            if nodes.intersection((instance.primary_node, *instance.secondary_nodes))
            for template in sorted({disk.template for disk in instance.disks} - {"plain"})[:1]
        ]
        if leaf and others:
            name, template, homes = others[0]
            more = f" and {count(len(others) - 1, 'more instance')} have" if len(others) > 1 else " has"
            message = f"{name}{more} other disks than plain ones ({template}) in {group.title}"
            hint = "convert their disks to plain, or move them to another group first"
            yield hit(group, message, leaf.span, hint, moved(context, sorted(homes)))


@information("GP406")
def dedicated_vcpu_ratio(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, ratio) in context.combined(EXCLUSIVE_STORAGE, VCPU_RATIO):
        if exclusive.value is True and ratio.number > 1:
            message = f"{declared.title} shares its CPUs: vcpu-ratio is {ratio.value:g}"
            hint = "write vcpu-ratio: 1 if each instance is to have CPUs of its own"
            yield exclusive_hit(context, declared, ratio, exclusive, message, hint, ratio.span)
