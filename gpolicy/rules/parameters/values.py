"""GP1xx: single parameters of the cluster, groups and nodes, by release; ports and user IDs of others; stripes."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, cast

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Same, When, error, hit, information, see, warning
from gpolicy.findings import NO_PLAN, REFUSED, Fix, Related, Span
from gpolicy.ganeti import parameters, vocabulary
from gpolicy.ganeti.expressible import RESET, InexpressibleError, checked
from gpolicy.ganeti.releases import release_of
from gpolicy.ganeti.vocabulary import GANETI_PORTS, INSTANCE_PORTS, Level, Path, Type, is_access, usual_ports
from gpolicy.guessing import is_typing_slip
from gpolicy.policy import edits
from gpolicy.policy.model import INHERIT, GroupPolicy, Leaf
from gpolicy.printable import count, listed
from gpolicy.rules import shared
from gpolicy.rules.node_limits import own_pool

_ALWAYS_EXPRESSIBLE: Final = frozenset({Type.BOOL, Type.FLOAT, Type.CHOICE})  # once they conform to the schema
NO_DEVICE: Final = frozenset({"scsi", "sd", "mtd", "pflash"})
"""Types of disks that Ganeti takes and QEMU has no device for. Up to 3.0, Ganeti leaves them to QEMU."""
CD_ROMS: Final = frozenset({"ide", "paravirtual", "scsi-cd"})
"""Types of CD-ROM drives that Ganeti 3.1 makes."""
_IMAGES: Final = (parameters.kvm("cdrom_image_path"), parameters.kvm("cdrom2_image_path"))
_ADDRESSES: Final = (
    ("rbd", "pool", re.compile(r"\w+"), "only letters, digits and _"),
    ("rbd", "user-id", re.compile(r"[a-z0-9._-]*"), "only a-z, 0-9, -, . and _"),
    ("gluster", "host", re.compile(r"[^:]+"), "an IPv4 address or a name"),
)
"""By disk template: a parameter in the address of a disk, and the form of it that Ganeti 3.1 can read."""
_COUNTS: Final[tuple[Path, ...]] = (vocabulary.SPINDLE_COUNT, *shared.STRIPES, ("beparams", "vcpus"))
_SSH: Final[Path] = ("ndparams", "ssh_port")
_GLUSTER: Final[Path] = ("diskparams", "gluster", "port")
_MIGRATION: Final = tuple(("hvparams", hypervisor, "migration_port") for hypervisor in ("kvm", "xen-hvm", "xen-pvm"))
_USUAL_SSH: Final = 22
_UIDS: Final[Path] = ("uid_pool",)
_NOBODY: Final = 65534
_TWO_IDS: Final = 8  # digits: two IDs without the dash between them


@cache
def _unknown_in(version: str) -> frozenset[Path]:
    """Return the paths of all parameters that a release does not have."""
    unknown = (parameter for parameter in parameters.PARAMETERS if not parameters.known_in(parameter, version))
    return frozenset(parameter.path for parameter in unknown)


@error("GP101", stays=REFUSED)
def parameter_not_in_version(context: Context) -> Iterator[Hit]:
    yield from _words_of_release(context)
    unknown = _unknown_in(context.version)
    for declared, leaf in context.explicit() if unknown else ():
        parameter = parameters.parameter_at(leaf.path)
        if parameter is None or parameter.path not in unknown:
            continue
        gone = bool(parameter.until) and context.is_since(parameter.until)
        when = f"it was removed in {parameter.until}" if gone else f"it comes with {parameter.since}"
        message = f"Ganeti {context.version} has no {leaf.dotted}: {when}"
        place, name = leaf.document.key_span(leaf.pointer), f"{leaf.path[0]} {leaf.path[-1]} of Ganeti"
        yield hit(declared, message, place, "leave it out, or correct ganeti_version", missing=name)


def _words_of_release(context: Context) -> Iterator[Hit]:
    for table, has_it in ((parameters.WORDS_SINCE, True), (parameters.WORDS_UNTIL, False)):
        for (path, word), release in table.items():
            for declared, leaf in context.explicit_at(path):
                if leaf.value != word or context.is_since(release) is has_it:
                    continue
                when = f"it comes with {release}" if has_it else f"it was removed in {release}"
                message = f"Ganeti {context.version} knows no value {word!r} of {leaf.dotted}: {when}"
                hint = f"write {shared.default_of(context, path)}, which is the default, or correct ganeti_version"
                yield hit(declared, message, leaf.span, hint)


@error("GP103", stays=REFUSED)
def access_inherit(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        for leaf in context.leaves(declared).values():
            if leaf.value is INHERIT and is_access(leaf.path):
                hint = "write the cluster's value here, and change both together"
                yield hit(declared, f"Ganeti cannot reset {leaf.dotted}", leaf.span, hint)


@error("GP102", stays=NO_PLAN)
def not_expressible(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        for leaf in context.leaves(declared).values():
            parameter = parameters.parameter_at(leaf.path)
            other = leaf.path in shared.IMAGES or (leaf.value is INHERIT and is_access(leaf.path))
            if parameter is None or other or parameter.path in _unknown_in(context.version):
                continue  # another rule's matter
            if leaf.value is not INHERIT and parameter.type in _ALWAYS_EXPRESSIBLE:
                continue
            value = RESET if leaf.value is INHERIT else leaf.value
            try:
                checked(leaf.path, value, declared.level, version=context.version)
            except InexpressibleError as error:
                fix = _lower_case(context, leaf) if leaf.path == ("mac_prefix",) else None
                meant = fix.edits[0].text.strip("\"'") if fix else ""
                hint = f"Did you mean `{meant}`?" if meant else error.hint or ""
                yield hit(declared, f"{leaf.dotted}: {error.reason}", leaf.span, hint, fix=fix)


def _lower_case(context: Context, leaf: Leaf) -> Fix | None:
    """Return the fix of a prefix of MAC addresses that is only written otherwise than Ganeti stores it."""
    written = str(leaf.value)
    meant = written.lower().replace("-", ":")
    is_prefix = re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}", meant)
    return edits.replace_word(context.policy.files, leaf.span, written, meant) if is_prefix else None


@error("GP106")
def port_range(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_SSH, _GLUSTER):
        if not 1 <= leaf.number <= 65535:
            message = f"{leaf.dotted} is {leaf.value}, which is not a TCP port"
            default = shared.default_of(context, leaf.path)
            hint = f"write the port that is meant, from 1 to 65535; the default is {default}"
            yield hit(declared, message, leaf.span, hint)


@error("GP107")
def count_below_one(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_COUNTS):
        if leaf.number < 1:
            of_node = "write the number of disks of a node: 0 does not mean unlimited"
            hint = of_node if leaf.path == vocabulary.SPINDLE_COUNT else "write 1 or more"
            yield hit(declared, f"{leaf.dotted} is {leaf.value}: it must be at least 1", leaf.span, hint)


@information("GP116", better=((Same.PLACE, ("GP406",)),))
def override_repeats_cluster(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        for path, leaf in context.leaves(group).items():
            inherits = path[0] in parameters.INHERITED_FAMILIES and not is_access(path)
            above = context.cluster_leaf(path) if inherits else None
            if above is not None and above.value == leaf.value:
                message = f"{leaf.dotted} equals the cluster's value, but will not follow it"
                related = see(above.span, "the cluster's value")
                yield hit(group, message, leaf.span, "write inherit to follow it, or the value that is meant", related)


@warning("GP138", When.WHOLE)
def default_moves(context: Context) -> Iterator[Hit]:
    cluster, version = context.policy.cluster, context.version
    written = release_of(cluster.ganeti_version) if cluster else None
    if cluster is None or written is None or written == version:
        return
    enabled = shared.of_cluster(context, vocabulary.ENABLED_HYPERVISORS)
    for parameter in parameters.parameters_of(Level.CLUSTER):
        if parameter.new_default is None or context.cluster_leaf(parameter.path) is not None:
            continue
        if enabled is not None and parameter.family == "hvparams" and parameter.path[1] not in enabled.texts:
            continue
        before, after = (json.dumps(parameters.default_in(parameter, release)) for release in (written, version))
        if before != after:
            name = ".".join(parameter.path)
            message = f"Ganeti {version} has another default of {name} than {written}: {after}, not {before}"
            has = shared.in_force(context, cluster, parameter.path)
            note = f"; the cluster has {json.dumps(has.value)}" if has is not None else ""
            span = cluster.document.value_span(("ganeti_version",))
            yield hit(cluster, message + note, span, "declare the one that you want")


@warning("GP139", When.MORE_WITH_STATE)
def starts_no_instance_in_version(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(parameters.kvm("machine_version")):
        if kind := re.match("(?:pc-)?q35|microvm", str(leaf.value)):
            message = f"Ganeti starts no instance with a machine of type {kind[0]}, which has no bus pci.0"
            yield hit(declared, message, leaf.span, "write a type such as pc-i440fx-7.2")
    is_new = context.is_since("3.1")
    for declared, leaf in context.explicit_at(parameters.kvm("disk_type")):
        if leaf.value in NO_DEVICE - (set() if is_new else {"pflash"}):
            message = f"Ganeti {context.version} starts no instance with disk_type {leaf.value}:"
            message += " QEMU has no such device"
            yield hit(declared, message, leaf.span, "write scsi-hd or paravirtual")
    if is_new:
        yield from _cd_roms(context)
        yield from _in_userspace(context)


def _cd_roms(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(parameters.kvm("cdrom_disk_type")):
        if leaf.value not in CD_ROMS | {""}:
            message = f"Ganeti {context.version} starts no instance with a CD-ROM of type {leaf.value}"
            yield hit(declared, message, leaf.span, f"write {listed(sorted(CD_ROMS), 'or')}")
    for declared, leaf in context.explicit_at(*_IMAGES):
        if re.match("ftps?://", str(leaf.value)):
            message = f"Ganeti {context.version} starts no instance with {leaf.path[-1]} from a server of FTP"
            yield hit(declared, message, leaf.span, "write a file, or an http or https URL")
    for image in _IMAGES:
        for declared, (path, disk) in shared.together(context, image, parameters.kvm("disk_type")):
            own = shared.in_force(context, declared, parameters.kvm("cdrom_disk_type"))
            if path.value and (own is None or own.value == "") and disk.value not in CD_ROMS:
                message = f"Ganeti {context.version} starts no instance with {path.path[-1]}: without a"
                message += f" cdrom_disk_type the CD-ROM is of disk_type {disk.value}"
                yield shared.conflict(context, declared, message, "write cdrom_disk_type: ide", path, disk)


def _in_userspace(context: Context) -> Iterator[Hit]:
    for template, name, taken, wanted in _ADDRESSES:
        access: Path = ("diskparams", template, "access")
        for declared, (mode, value) in shared.together(context, access, ("diskparams", template, name)):
            if mode.value == "userspace" and not taken.fullmatch(str(value.value)):
                message = f"Ganeti {context.version} starts no instance with disks of {template} in userspace"
                message += f": {name} {json.dumps(value.value, ensure_ascii=False)} is not {wanted}"
                yield shared.conflict(context, declared, message, "write access: kernelspace", value, mode)


@warning("GP117", When.MORE_WITH_STATE)
def port_taken(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_SSH, _GLUSTER, *_MIGRATION):
        port = leaf.number
        ssh = shared.in_force(context, declared, _SSH) if leaf.path != _SSH else None
        users = (
            ("DRBD disks and consoles of instances", INSTANCE_PORTS[0] <= port <= INSTANCE_PORTS[1]),
            (usual_ports().get(int(port), ""), (leaf.path, port) not in {(_GLUSTER, 24007), (_GLUSTER, 24008)}),
            ("services of the system, as all below 1024", leaf.path != _SSH and 0 < port < 1024 and port != _USUAL_SSH),
            ("services of the system that are older than ssh", leaf.path == _SSH and 0 < port < _USUAL_SSH),
            ("ssh", leaf.path != _SSH and port == (ssh.number if ssh is not None else _USUAL_SSH)),
        )
        user = next((user for user, is_so in users if user and is_so), GANETI_PORTS.get(int(port), ""))
        usual = str(shared.default_of(context, leaf.path)) if leaf.path != _SSH else ""
        if user:
            message = f"{leaf.dotted} is {leaf.value}, a port of {user}"
            yield hit(declared, message, leaf.span, "write a port that nothing else on the nodes uses")
        elif usual and is_typing_slip(str(leaf.value), usual):
            message = f"{leaf.dotted} is {leaf.value}, which is almost the usual port"
            yield hit(declared, message, leaf.span, f"Did you mean `{usual}`?")


@warning("GP118")
def uid_pool_of_others(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_UIDS):
        ranges = sorted((int(low), int(high)) for low, high in cast(list[Any], leaf.value))
        before = -1
        for low, high in ranges:
            digits, half = str(low), len(str(low)) // 2
            is_glued = low == high and len(digits) >= _TWO_IDS and digits[:half] < digits[half:] and not len(digits) % 2
            reasons = (
                (f"has the single ID {low}: a range is written {digits[:half]}-{digits[half:]}", is_glued),
                ("has 0, which is root", low == 0),
                (f"has {low}, an ID of the system", low < 1000),
                (f"has {low}, an ID that systems give to people", low < 2000),
                (f"has {_NOBODY}, which is nobody", low <= _NOBODY <= high),
                (f"has {low} twice", low <= before),
            )
            reason = next((reason for reason, is_so in reasons if is_so), "")
            before = max(before, high)
            if reason:
                hint = "write IDs that nobody else has, such as 20000-20099"
                yield hit(declared, f"uid_pool {reason}", leaf.span, hint)


@warning("GP119", When.MORE_WITH_STATE | When.WHOLE)
def uid_pool_too_small(context: Context) -> Iterator[Hit]:
    cluster, model = context.policy.cluster, shared.of_cluster(context, parameters.kvm("security_model"))
    if cluster is None or model is None or model.value != "pool":
        return
    leaf = context.cluster_leaf(_UIDS)
    ranges = leaf.value if leaf is not None else context.observed.cluster.own.get(_UIDS, [])
    own = [item for item in (leaf, model.leaf) if item is not None]
    if not own or not isinstance(ranges, list) or not all(isinstance(item, list) for item in ranges):
        return
    present = sum(int(str(high)) - int(str(low)) + 1 for low, high in cast(list[Any], ranges))
    needed, memory = _instances_of_a_node(context)
    if present < needed:
        place, related, _ = shared.places(context, cluster, model)
        has = count(present, "user ID") if present else "no user IDs"
        is_said = leaf is not None or context.state is not None
        where = "uid_pool has" if is_said else "the policy declares no uid_pool, which has"
        message = f"security_model pool needs a user ID for each instance of a node, {needed} or more,"
        message += f" but {where} {has}"
        hint = "write uid_pool: [20000-20099], or as many IDs as a node has instances"
        yield hit(cluster, message, own[0].span if place is None else place, hint, (*related, *see(memory, "by this")))


def _instances_of_a_node(context: Context) -> tuple[int, Span | None]:
    """Return how many instances a node runs or can hold at least: what the cluster has, or what surely fits.

    With it goes the place of the memory that they fit into.
    """
    found = list[tuple[int, Span | None]]([(4, None)])  # on any node but one of a laboratory
    running = (item.primary_node for item in context.observed.instances.values() if item.admin_state == "up")
    found += [(number, None) for number in Counter(running).values()]
    for group in context.groups:
        sizes = [pair.maximum["memory-size"] for pair in context.pairs(group)]
        if group.hardware is not None and group.hardware.memory is not None and sizes and max(sizes) > 0:
            memory = group.hardware.memory
            found.append((memory.value // max(sizes), memory.span))
    return max(found, key=lambda item: item[0])


@warning("GP128", When.MORE_WITH_STATE)
def stripes_beyond_volumes(context: Context) -> Iterator[Hit]:
    fewest: dict[Span, float] = {}
    found: list[tuple[GroupPolicy, str, Leaf, tuple[Related, ...]]] = []
    for group in context.groups if context.declares(*shared.STRIPES) else ():
        promised, counts = group.hardware.volume_count if group.hardware else None, list[int]()
        if promised is None:  # those that were read
            counts = [own_pool(context, group, node).count for node in context.members.nodes_in(group)]
        volumes = promised if promised is not None else min(filter(None, counts), default=float("inf"))
        leaves = () if context.exclusive(group) else (context.effective(group, path) for path in shared.STRIPES)
        for leaf in leaves:
            if leaf is not None and leaf.number > volumes:
                has = f"{count(int(volumes), 'volume')} ({'there now' if promised is None else 'promised'})"
                message = f"{leaf.dotted} is {leaf.value}, but group {group.name} has {has}"
                promise = group.hardware if promised is not None else None
                related = see(promise.span if promise else None, "promised here")
                fewest[leaf.span] = min(volumes, fewest.get(leaf.span, volumes))
                found.append((group, message, leaf, related))
    for group, message, leaf, related in found:
        hint = f"write at most {int(fewest[leaf.span])}"
        yield hit(group, message, leaf.span, hint, related, missing=f"volumes for the stripes at {leaf.span}")


@information("GP129")
def stripes_ignored(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        leaf, exclusive = context.own(declared, shared.STRIPES[0]), context.exclusive(declared)
        if exclusive is not None and leaf is not None and leaf.number > 1:
            message = "stripes has no effect: with exclusive storage a disk is striped over all its volumes"
            yield hit(declared, message, leaf.span, "leave it out", see(exclusive.span, "exclusive storage is on here"))


@warning("GP130")
def meta_stripes(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(shared.STRIPES[2]):
        if leaf.number > 1:
            message = f"{leaf.value} stripes for metadata of 128 MiB: more disks to fail, and nothing gained"
            yield hit(declared, message, leaf.span, "write 1")
