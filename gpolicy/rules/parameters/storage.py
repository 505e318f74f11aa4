"""GP1xx: where disks are, and how they are laid out: volume groups, stripes, pools, access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import ENABLED_HYPERVISORS, Context, number
from gpolicy.checking.in_force import in_force, places
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import ClusterPolicy, GroupPolicy
from gpolicy.rules.examples import CLUSTER, GROUP
from gpolicy.rules.parameters.values import is_access

_SOURCE: Final = "Resource model, Disk parameters"
VOLUME_GROUP: Final[Path] = ("volume_group_name",)
METAVG: Final[Path] = ("diskparams", "drbd", "metavg")
_STRIPES: Final[tuple[Path, ...]] = (
    ("diskparams", "plain", "stripes"),
    ("diskparams", "drbd", "data-stripes"),
    ("diskparams", "drbd", "meta-stripes"),
)


class VolumeGroupName(Rule):
    info = RuleInfo(
        code="GP110",
        name="volume-group-name",
        severity=Severity.ERROR,
        summary="A name that no LVM volume group can have.",
        rationale="The metadata volume group of drbd is not checked when it is set; disks cannot be created then.",
        source="Resource model, Disk parameters (metavg); lvm(8)",
        bad=f"{CLUSTER}diskparams:\n  drbd: {{metavg: xen/vg}}\n",
        good=f"{CLUSTER}diskparams:\n  drbd: {{metavg: xenvg}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(VOLUME_GROUP, METAVG):
            name = str(leaf.value)
            unset = not name and leaf.path == VOLUME_GROUP
            if not unset and not re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9_+.][A-Za-z0-9_+.-]*", name):
                message = f"{leaf.dotted}: LVM has no volume group called {name!r}"
                hint = "letters, digits and + _ . - only, not beginning with -"
                yield self.hit(declared, message, leaf.span, hint=hint)


class UserspaceWithoutKvm(Rule):
    info = RuleInfo(
        code="GP111",
        name="userspace-without-kvm",
        severity=Severity.WARNING,
        summary="Disks are to be reached from userspace, and KVM is not among the enabled hypervisors.",
        rationale="Only KVM can open a disk from userspace. The cluster command is refused when an instance of another"
        " hypervisor has such a disk; the group command is not, and the instance fails at its next start.",
        source="Ganeti 3.0, run",
        bad=f"{CLUSTER}enabled_hypervisors: [xen-pvm]\ndiskparams:\n  rbd: {{access: userspace}}\n",
        good=f"{CLUSTER}enabled_hypervisors: [kvm]\ndiskparams:\n  rbd: {{access: userspace}}\n",
    )
    finds_more_with_state = True
    unless_declared = (ENABLED_HYPERVISORS,)

    def check(self, context: Context) -> Iterator[Hit]:
        hypervisors = context.enabled_hypervisors()
        if hypervisors is None or "kvm" in hypervisors.values:
            return
        related = (Related(hypervisors.span, "enabled here"),) if hypervisors.span else ()
        for declared, leaf in context.explicit():
            if is_access(leaf.path) and leaf.value == "userspace":
                message = f"{leaf.dotted}: none of {', '.join(hypervisors.values)} can use a disk from userspace"
                yield self.hit(declared, message, leaf.span, hint="write kernelspace", related=related)


class UserspaceOfOthers(Rule):
    info = RuleInfo(
        code="GP126",
        name="userspace-of-other-hypervisor",
        severity=Severity.ERROR,
        summary="Disks are to be reached from userspace, and an instance that is not of KVM has such a disk.",
        rationale="The cluster command is refused then. The group command is taken, and the instance fails at its next"
        " start.",
        source="Ganeti 3.0, run",
        bad=f"{GROUP}diskparams:\n  rbd: {{access: userspace}}\n",
        good=f"{GROUP}diskparams:\n  rbd: {{access: kernelspace}}\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit():
            if not is_access(leaf.path) or leaf.value != "userspace" or context.state is None:
                continue
            names = [
                instance.name
                for instance in context.state.instances.values()
                if instance.hypervisor not in (None, "kvm")
                and any(disk.template == leaf.path[1] for disk in instance.disks)
                and (
                    isinstance(declared, ClusterPolicy)
                    or context.members.group_of.get(instance.primary_node) == declared.name
                )
            ]
            if names:
                shown = f"{names[0]} and {len(names) - 1} more are" if len(names) > 1 else f"{names[0]} is"
                message = f"{leaf.dotted}: {shown} not of KVM, which alone can use a disk from userspace"
                yield self.hit(declared, message, leaf.span, hint="write kernelspace")


class OtherVolumeGroup(Rule):
    info = RuleInfo(
        code="GP127",
        name="metavg-not-counted",
        severity=Severity.INFO,
        summary="drbd's metadata is in another volume group than the cluster's, which no capacity is counted for.",
        rationale="Nodes report the free space of volume_group_name alone. hail and hspace (and gpolicy's own capacity)"
        " do not see how full the other group is, nor does anything check that every node has it.",
        source=f"{_SOURCE} (metavg); Ganeti's issue 865",
        bad=f"{CLUSTER}volume_group_name: xenvg\ndiskparams:\n  drbd: {{metavg: ssdvg}}\n",
        good=f"{CLUSTER}volume_group_name: xenvg\ndiskparams:\n  drbd: {{metavg: xenvg}}\n",
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        cluster = context.policy.cluster
        for declared in context.cluster_and_groups:
            meta = in_force(context, declared, METAVG)
            group = in_force(context, cluster or declared, VOLUME_GROUP)
            is_own = any(context.own(declared, path) for path in (METAVG, VOLUME_GROUP))
            if is_own and meta and group and meta.value and group.value and meta.value != group.value:
                place, related, note = places(context, declared, meta, group)
                message = f"metadata goes to {meta.value}, capacity is counted of {group.value}{note}"
                yield self.hit(declared, message, place, related=related)


class StripesBeyondVolumes(Rule):
    info = RuleInfo(
        code="GP128",
        name="stripes-beyond-volumes",
        severity=Severity.WARNING,
        summary="More stripes than the nodes have physical volumes.",
        rationale="Each stripe lies on a volume of its own. Ganeti silently makes fewer stripes when it creates a disk,"
        " and replacing it on a node with other volumes may fail.",
        source=f"{_SOURCE} (stripes); Ganeti's issue 530",
        bad=f"{GROUP}hardware: {{pv_count: 2, pv_size: 1T}}\ndiskparams:\n  plain: {{stripes: 4}}\n",
        good=f"{GROUP}hardware: {{pv_count: 4, pv_size: 1T}}\ndiskparams:\n  plain: {{stripes: 4}}\n",
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            promised = group.hardware.volume_count if group.hardware else None
            volumes = promised if promised is not None else _fewest_volumes(context, group)
            for path in _STRIPES if volumes is not None and not context.exclusive(group) else ():
                leaf = context.effective(group, path)
                if leaf is not None and volumes is not None and number(leaf) > volumes:
                    place = "promised" if promised is not None else "there now"
                    message = f"{leaf.dotted} is {leaf.value}, but group {group.name} has {volumes} volumes ({place})"
                    span = group.hardware.span if group.hardware else None
                    related = (Related(span, "promised here"),) if span and promised is not None else ()
                    yield self.hit(group, message, leaf.span, hint=f"write at most {volumes}", related=related)


def _fewest_volumes(context: Context, group: GroupPolicy) -> int | None:
    """Return the fewest volumes of a node that is to be in the group; None where they were not read."""
    counts = [len(node.physical_volumes) for node in context.members.nodes_in(group) if node.physical_volumes]
    return min(counts) if counts else None


class StripesIgnored(Rule):
    info = RuleInfo(
        code="GP129",
        name="stripes-ignored",
        severity=Severity.INFO,
        summary="Stripes are set where exclusive storage is on.",
        rationale="Under exclusive storage a disk takes whole physical volumes and is striped over all of them,"
        " whatever the parameter says.",
        source="Partitioned Ganeti, Disk",
        bad=f"{GROUP}ndparams: {{exclusive_storage: true}}\nipolicy: {{disk-templates: [plain], vcpu-ratio: 1}}\n"
        "diskparams:\n  plain: {stripes: 2}\n",
        good=f"{GROUP}ndparams: {{exclusive_storage: true}}\nipolicy: {{disk-templates: [plain], vcpu-ratio: 1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            exclusive = context.exclusive(declared)
            leaf = context.own(declared, _STRIPES[0])
            if exclusive is not None and leaf is not None and number(leaf) > 1:
                message = "stripes is not used: under exclusive storage a disk is striped over its volumes"
                related = (Related(exclusive.span, "exclusive storage is on here"),)
                yield self.hit(declared, message, leaf.span, hint="leave it out", related=related)


class MetadataStripes(Rule):
    info = RuleInfo(
        code="GP130",
        name="meta-stripes",
        severity=Severity.INFO,
        summary="drbd's metadata volumes are to be striped.",
        rationale="They are 128 MiB small: stripes spread each over several disks, whose failures then hit all of them,"
        " and make nothing faster.",
        source=f"{_SOURCE} (meta-stripes)",
        bad=f"{CLUSTER}diskparams:\n  drbd: {{meta-stripes: 4}}\n",
        good=f"{CLUSTER}diskparams:\n  drbd: {{data-stripes: 4, meta-stripes: 1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_STRIPES[2]):
            if number(leaf) > 1:
                message = f"{leaf.value} stripes for metadata of 128 MiB: more disks to fail, and nothing gained"
                yield self.hit(declared, message, leaf.span, hint="write 1")


_NAMES: Final[dict[Path, tuple[str, str]]] = {
    ("diskparams", "rbd", "pool"): (r"[^\s/@]+", "the name of a RADOS pool"),
    ("diskparams", "gluster", "host"): (r"[A-Za-z0-9.:_-]+", "a host name or an address, without port or scheme"),
    ("diskparams", "gluster", "volume"): (r"[A-Za-z0-9_-]+", "the name of a Gluster volume"),
}


class StorageName(Rule):
    info = RuleInfo(
        code="GP131",
        name="storage-name",
        severity=Severity.WARNING,
        summary="A pool, server or volume of shared storage has a name that it cannot have.",
        rationale="Ganeti stores any text and reads it at each opening of a disk: with a wrong one existing disks"
        " cannot be opened either, from that moment on.",
        source=f"{_SOURCE}; rbd(8), gluster(8); Ganeti 3.0 does not check it",
        bad=f"{CLUSTER}diskparams:\n  gluster: {{host: 'gluster://storage:24007'}}\n",
        good=f"{CLUSTER}diskparams:\n  gluster: {{host: storage.example.org, port: 24007}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_NAMES):
            pattern, what = _NAMES[leaf.path]
            if not re.fullmatch(pattern, str(leaf.value)):
                message = f"{leaf.dotted} cannot be {str(leaf.value)!r}"
                yield self.hit(declared, message, leaf.span, hint=f"write {what}")
