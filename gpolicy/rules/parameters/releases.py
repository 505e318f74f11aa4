"""GP138 and GP139: values and defaults that another release of Ganeti takes for something else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import InForce, in_force, places, together
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.ganeti.parameters import default_in, kvm, parameters_of
from gpolicy.ganeti.releases import release_key, release_of
from gpolicy.printable import listed
from gpolicy.rules.examples import CLUSTER


class DefaultMoves(Rule):
    info = warning_rule("GP138", "default-moves")(
        summary="A parameter that the policy leaves out has another default in the release that is checked for.",
        rationale="A new cluster has the default of its own release. A cluster that is upgraded keeps what it has"
        " stored, except for words that the new release does not have. So two clusters of one policy differ. It shows"
        " with `--ganeti-version` and on a cluster of another release than `ganeti_version` says.",
        source="Ganeti's constants, releases 2.15 to 3.1",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        cluster, version = context.policy.cluster, context.version
        written = release_of(cluster.ganeti_version) if cluster else None
        if cluster is None or written is None or written == version:
            return
        enabled = context.enabled_hypervisors()
        for parameter in parameters_of(Level.CLUSTER):
            if parameter.new_default is None or context.cluster_leaf(parameter.path) is not None:
                continue
            if enabled is not None and parameter.family == "hvparams" and parameter.path[1] not in enabled.values:
                continue
            before, after = (json.dumps(default_in(parameter, release)) for release in (written, version))
            if before != after:
                name = ".".join(parameter.path)
                message = f"Ganeti {version} has another default of {name} than {written}: {after}, not {before}"
                has = in_force(context, cluster, parameter.path)
                note = f"; the cluster has {json.dumps(has.value)}" if has is not None else ""
                span = cluster.document.value_span(("kind",))
                yield self.hit(cluster, message + note, span, hint="declare the one that you want")


NO_DEVICE: Final = frozenset({"scsi", "sd", "mtd", "pflash"})
"""Types of disks that Ganeti takes and QEMU has no device for. Up to 3.0, Ganeti leaves them to QEMU."""

CD_ROMS: Final = frozenset({"ide", "paravirtual", "scsi-cd"})
"""Types of CD-ROM drives that Ganeti 3.1 makes."""

_IMAGES: Final = (kvm("cdrom_image_path"), kvm("cdrom2_image_path"))


class StartsNoInstance(Rule):
    info = warning_rule("GP139", "starts-no-instance-in-version")(
        summary="The cluster's Ganeti release takes a value of KVM, but starts no instance with it.",
        rationale="QEMU has no device for the types of disks scsi, sd and mtd; Ganeti 3.0 leaves it to QEMU to refuse"
        " them. Ganeti 3.1 describes disks and CD-ROMs to QEMU in another way. It also refuses to start an"
        " instance with a disk of type pflash, with a CD-ROM of another type than `ide`,"
        " `paravirtual` and `scsi-cd`, and with a disk in userspace whose address it cannot take apart. Instances that"
        " run are not touched: they fail at their next start, or migration.",
        source="Ganeti 3.1, how it starts instances; QEMU 10.0, run",
        bad=f'{CLUSTER}ganeti_version: "3.1"\nhvparams:\n  kvm: {{disk_type: scsi}}\n',
        good=f'{CLUSTER}ganeti_version: "3.1"\nhvparams:\n  kvm: {{disk_type: scsi-hd}}\n',
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        yield from self._disks(context)
        if release_key(context.version) < release_key("3.1"):
            return
        yield from self._images(context)
        yield from self._in_userspace(context)

    def _disks(self, context: Context) -> Iterator[Hit]:
        is_new = release_key(context.version) >= release_key("3.1")
        for declared, leaf in context.explicit_at(kvm("disk_type"), *([kvm("cdrom_disk_type")] if is_new else [])):
            if leaf.path[-1] == "disk_type" and leaf.value in NO_DEVICE - (set() if is_new else {"pflash"}):
                message = f"Ganeti {context.version} starts no instance with disk_type {leaf.value}:"
                message += " QEMU has no such device"
                yield self.hit(declared, message, leaf.span, hint="write scsi-hd or paravirtual")
            elif leaf.path[-1] == "cdrom_disk_type" and leaf.value not in CD_ROMS | {""}:
                message = f"Ganeti {context.version} starts no instance with a CD-ROM of type {leaf.value}"
                yield self.hit(declared, message, leaf.span, hint=f"write {listed(sorted(CD_ROMS), 'or')}")

    def _images(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_IMAGES):
            if re.match("ftps?://", str(leaf.value)):
                message = f"Ganeti {context.version} starts no instance with {leaf.path[-1]} from a server of FTP"
                yield self.hit(declared, message, leaf.span, hint="write a file, or an http or https URL")
        for image in _IMAGES:
            for declared, (path, disk) in together(context, image, kvm("disk_type")):
                own = in_force(context, declared, kvm("cdrom_disk_type"))
                if path.value and (own is None or own.value == "") and disk.value not in CD_ROMS:
                    place, related, note = places(context, declared, path, disk)
                    message = f"Ganeti {context.version} starts no instance with {path.path[-1]}: without a"
                    message += f" cdrom_disk_type the CD-ROM is of disk_type {disk.value}{note}"
                    yield self.hit(declared, message, place, hint="write cdrom_disk_type: ide", related=related)

    def _in_userspace(self, context: Context) -> Iterator[Hit]:
        for template, name, taken, wanted in _ADDRESSES:
            access: Path = ("diskparams", template, "access")
            for declared, (mode, value) in together(context, access, ("diskparams", template, name)):
                if mode.value == "userspace" and not taken.fullmatch(str(value.value)):
                    place, related, note = places(context, declared, value, mode)
                    message = f"Ganeti {context.version} starts no instance with disks of {template} in userspace"
                    message += f": {name} {_shown(value)} is not {wanted}{note}"
                    yield self.hit(declared, message, place, hint="write access: kernelspace", related=related)


_ADDRESSES: Final = (
    ("rbd", "pool", re.compile(r"\w+"), "only letters, digits and _"),
    ("rbd", "user-id", re.compile(r"[a-z0-9._-]*"), "only a-z, 0-9, -, . and _"),
    ("gluster", "host", re.compile(r"[^:]+"), "an IPv4 address or a name"),
)
"""By disk template: a parameter in the address of a disk, and the form of it that Ganeti 3.1 can read."""


def _shown(item: InForce) -> str:
    return json.dumps(item.value, ensure_ascii=False)
