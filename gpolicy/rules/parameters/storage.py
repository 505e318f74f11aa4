"""GP1xx: where disks are, and how they are laid out: volume groups, stripes, pools, access."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.checking.context import ENABLED_HYPERVISORS, Context
from gpolicy.checking.rule import Hit, When, error, hit, information, see, warning
from gpolicy.findings import Related, Severity, Span
from gpolicy.ganeti.vocabulary import Path
from gpolicy.guessing import name_meant, rarer_slips
from gpolicy.policy.model import ClusterPolicy, Declared, Leaf
from gpolicy.printable import count, listed
from gpolicy.resolve.desired import volume_terms
from gpolicy.rules.node_limits import METAVG, VOLUME_GROUP, own_pool, pools_in
from gpolicy.rules.shared import STRIPES, conflict, in_force, is_access, misformed, of_cluster

_VOLUME_GROUP: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_+.][A-Za-z0-9_+.-]*")
_BUILT_IN: Final = "xenvg"
_LOOK_ALIKE: Final = str.maketrans("oil", "011")
_RESERVED: Final[Path] = ("reserved_lvs",)


@dataclass(frozen=True, slots=True)
class _Use:
    """A place that names a volume group, beside the cluster's own name of one."""

    declared: Declared
    leaf: Leaf
    name: str
    span: Span


@error("GP110")
def volume_group_name(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(VOLUME_GROUP, METAVG):
        name = str(leaf.value)
        unset = not name and leaf.path == VOLUME_GROUP
        if not unset and not _VOLUME_GROUP.fullmatch(name):
            message = f"{leaf.dotted}: LVM has no volume group called {name!r}"
            yield hit(declared, message, leaf.span, "write letters, digits and + _ . -, but no - at the start")


@warning("GP137", When.MORE_WITH_STATE)
def volume_group_look_alike(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(METAVG):
        if re.fullmatch("[A-Za-z]|[0-9.]+[KMGT]?", str(leaf.value)):
            message = f"{leaf.dotted}: hardly any volume group is called {leaf.value}"
            yield hit(declared, message, leaf.span, "write the name that `vgs` shows")
    leaves = [
        item
        for path, found in context.declared_at.items()
        for item in found
        if path in (METAVG, _RESERVED) or path[0] == "disk_state"
    ]
    own = of_cluster(context, VOLUME_GROUP) if leaves else None
    wanted = str(own.value) if own is not None else ""
    if own is None or not _VOLUME_GROUP.fullmatch(wanted):
        return  # GP110
    others: dict[str, list[_Use]] = {}
    for declared, leaf in leaves:
        for name, span in _volume_groups_of(leaf):
            others.setdefault(name, []).append(_Use(declared, leaf, name, span))
    uses = [use for named in others.values() for use in named]
    if own.leaf is not None and (forgotten := _forgotten(own.leaf, uses)):
        yield forgotten
        return
    yield from _among_others(context, uses, wanted)
    assigned = {name for item in context.cluster_and_groups for name in volume_terms(None, item).volume_groups}
    for name, named in others.items():
        yield from _unlike(name, named, wanted, is_assigned=name in assigned) if name != wanted else ()


def _forgotten(own: Leaf, uses: list[_Use]) -> Hit | None:
    """Return the cluster's own volume group if all else agrees on another one."""
    names, families = {use.name for use in uses}, {use.leaf.path[0] for use in uses}
    if len(names) != 1 or len(families) < 2 or str(own.value) in names:
        return None
    (name,) = names
    message = f"{own.dotted} is {own.value}, but all that names a volume group names {name}"
    related = tuple(Related(use.span, f"{use.leaf.path[-1]} is here") for use in uses)
    return hit("cluster", message, own.span, f"Did you mean `{name}`?", related)


def _unlike(name: str, named: list[_Use], wanted: str, *, is_assigned: bool) -> Iterator[Hit]:
    """Yield what is wrong with places that name another volume group than the cluster's."""
    first, is_slip = named[0], name_meant(name, [wanted]) is not None
    if {use.leaf.path[0] for use in named} == {"disk_state"} and not is_assigned:
        message = f"{first.leaf.dotted} describes the volume group {name}, which nothing else names"
        hint = f"Did you mean `{wanted}`?" if is_slip else f"the cluster's is {wanted}"
        yield hit(first.declared, message, first.span, hint)
    elif name == _BUILT_IN and all(use.leaf.path == METAVG for use in named):
        message = f"{first.leaf.dotted} names {name}, Ganeti's built-in volume group, but the cluster's is {wanted}"
        hint = f"write {wanted}, or accept this if the nodes have a volume group {name} as well"
        yield hit(first.declared, message, first.span, hint)
    elif is_slip or _looks_as(name) == _looks_as(wanted):
        for use in named:
            message = f"{use.leaf.dotted} names the volume group {name}, but the cluster's is {wanted}"
            yield hit(use.declared, message, use.span, f"Did you mean `{wanted}`?")


def _among_others(context: Context, uses: list[_Use], wanted: str) -> Iterator[Hit]:
    """Yield names, beside the cluster's own, that are almost another one which is written more often."""
    written = [(use.name, use.declared.label, use.span) for use in uses]
    for declared in context.cluster_and_groups:
        if place := declared.physical_volumes.get("volume_groups"):
            written += [(name, declared.label, place.span) for name in place.value]
    meant = rarer_slips(Counter(name for name, _, _ in written if name != wanted))
    for name, label, span in written:
        if near := meant.get(name):
            message = f"a volume group is called {name} here, but {near} elsewhere"
            yield hit(label, message, span, f"Did you mean `{near}`?")


def _volume_groups_of(leaf: Leaf) -> Iterator[tuple[str, Span]]:
    """Yield the volume groups that a leaf names, beside the cluster's own, with their places."""
    if leaf.path == METAVG:
        yield str(leaf.value), leaf.span
    elif leaf.path == _RESERVED:
        yield from ((text.partition("/")[0], leaf.at(index)) for index, text in enumerate(leaf.texts))
    else:  # of disk_state
        yield leaf.path[2], leaf.document.key_span(leaf.pointer[:3])


def _looks_as(name: str) -> str:
    """Return what a name has in common with those that people take for it, with or without `vg`: data and vgdata."""
    plain = name.lower().translate(_LOOK_ALIKE)
    return re.sub(r"^vg[-_.]?|[-_.]?vg$", "", plain) or plain


@warning("GP111", When.MORE_WITH_STATE, unless_declared=(ENABLED_HYPERVISORS,))
def userspace_without_kvm(context: Context) -> Iterator[Hit]:
    hypervisors = of_cluster(context, ENABLED_HYPERVISORS)
    others = [name for name in hypervisors.texts if name != "kvm"] if hypervisors else []
    if hypervisors is None or not others:
        return
    related = see(hypervisors.span, "enabled here")
    for declared, leaf in context.explicit():
        is_for_all = "kvm" not in hypervisors.texts or isinstance(declared, ClusterPolicy)
        if is_for_all and is_access(leaf.path) and leaf.value == "userspace":
            message = f"{leaf.dotted}: {listed(others, 'or')} cannot access a disk from userspace, only kvm can"
            yield hit(declared, message, leaf.span, "write kernelspace", related)


@error("GP126", When.STATE)
def userspace_of_other_hypervisor(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit():
        if not is_access(leaf.path) or leaf.value != "userspace":
            continue
        names = [
            instance.name
            for instance in context.observed.instances.values()
            if instance.hypervisor not in (None, "kvm")
            and any(disk.template == leaf.path[1] for disk in instance.disks)
            and (
                isinstance(declared, ClusterPolicy)
                or context.members.group_of.get(instance.primary_node) == declared.name
            )
        ]
        if names:
            shown = f"{names[0]} and {len(names) - 1} more are" if len(names) > 1 else f"{names[0]} is"
            message = f"{leaf.dotted}: {shown} not of KVM, and only KVM can access a disk from userspace"
            yield hit(declared, message, leaf.span, "write kernelspace")


@information("GP127", When.MORE_WITH_STATE)
def metavg_not_counted(context: Context) -> Iterator[Hit]:
    group = of_cluster(context, VOLUME_GROUP)
    for declared in context.cluster_and_groups:
        meta = in_force(context, declared, METAVG)
        is_own = any(context.own(declared, path) for path in (METAVG, VOLUME_GROUP))
        if is_own and meta and group and meta.value and group.value and meta.value != group.value:
            message = f"metadata goes to {meta.value}, but capacity counts {group.value} only"
            found = conflict(context, declared, message, "", meta, group)
            owner = context.observed.groups.get(declared.name, context.observed.cluster)
            now = owner.own.get(METAVG, meta.value)
            known = (
                pools_in(context, each, node) for each in context.groups for node in context.members.hosts_in(each)
            )
            if now != meta.value and not any(pools and str(meta.value) in pools.others for pools in known):
                finding = replace(found.finding, hint=f"is {now} meant, as it is now?")
                found = metavg_not_counted.named(replace(found, finding=finding), Severity.WARNING)
            yield found


@warning("GP128", When.MORE_WITH_STATE)
def stripes_beyond_volumes(context: Context) -> Iterator[Hit]:
    for group in context.groups if context.declares(*STRIPES) else ():
        promised, counts = group.hardware.volume_count if group.hardware else None, list[int]()
        if promised is None:  # those that were read
            counts = [own_pool(context, group, node).count for node in context.members.nodes_in(group)]
        volumes = promised if promised is not None else min(filter(None, counts), default=float("inf"))
        leaves = () if context.exclusive(group) else (context.effective(group, path) for path in STRIPES)
        for leaf in leaves:
            if leaf is not None and leaf.number > volumes:
                has = f"{count(int(volumes), 'volume')} ({'there now' if promised is None else 'promised'})"
                message = f"{leaf.dotted} is {leaf.value}, but group {group.name} has {has}"
                promise = group.hardware if promised is not None else None
                related = (Related(promise.span, "promised here"),) if promise else ()
                yield hit(group, message, leaf.span, f"write at most {volumes}", related)


@information("GP129")
def stripes_ignored(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        leaf = context.own(declared, STRIPES[0])
        exclusive = context.exclusive(declared) if leaf is not None else None
        if exclusive is not None and leaf is not None and leaf.number > 1:
            message = "stripes has no effect: with exclusive storage a disk is striped over all its volumes"
            yield hit(declared, message, leaf.span, "leave it out", see(exclusive.span, "exclusive storage is on here"))


@warning("GP130")
def meta_stripes(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(STRIPES[2]):
        if leaf.number > 1:
            message = f"{leaf.value} stripes for metadata of 128 MiB: more disks to fail, and nothing gained"
            yield hit(declared, message, leaf.span, "write 1")


@warning("GP131")
def storage_name(context: Context) -> Iterator[Hit]:
    return misformed(context, "GP131")
