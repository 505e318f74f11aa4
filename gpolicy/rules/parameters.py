"""GP1xx: single parameters of the cluster, groups and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.expressible import RESET, InexpressibleError, checked
from gpolicy.ganeti.parameter import Path, Type
from gpolicy.ganeti.parameters import PARAMETERS, VERSIONS, known_in, parameter_at, release_key
from gpolicy.policy.model import INHERIT, Leaf
from gpolicy.rules.context import Context, number, texts
from gpolicy.rules.rule import Hit, Rule

CLUSTER: Final = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
_SOURCE: Final = "Ganeti 3.0, gnt-cluster(8) and the checks of its modify command"


def dotted(leaf: Leaf) -> str:
    """Return a leaf's path as it is written in plans and reports."""
    return ".".join(leaf.path)


_ALWAYS_EXPRESSIBLE: Final = frozenset({Type.BOOL, Type.FLOAT, Type.CHOICE})  # once they conform to the schema


@cache
def _unknown_in(version: str) -> frozenset[Path]:
    """Return the paths of all parameters that a release does not have."""
    return frozenset(parameter.path for parameter in PARAMETERS if not known_in(parameter, version))


class ParameterNotInVersion(Rule):
    """A parameter that the declared release does not have."""

    info = RuleInfo(
        code="GP101",
        name="parameter-not-in-version",
        severity=Severity.ERROR,
        summary="A parameter that the cluster's Ganeti release does not know.",
        rationale="Ganeti refuses the whole command that carries it.",
        source="Ganeti's constants, releases 2.15 to 3.1",
        bad=f'{CLUSTER}ganeti_version: "3.1"\nhvparams:\n  xen-pvm: {{xen_cmd: xl}}\n',
        good=f'{CLUSTER}ganeti_version: "3.0"\nhvparams:\n  xen-pvm: {{xen_cmd: xl}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit():
            parameter = parameter_at(leaf.path)
            if parameter is None or parameter.path not in _unknown_in(context.version):
                continue
            gone = bool(parameter.until) and release_key(context.version) >= release_key(parameter.until)
            when = f"it is gone since {parameter.until}" if gone else f"it comes with {parameter.since}"
            message = f"Ganeti {context.version} has no {dotted(leaf)}: {when}"
            released = gone or any(known_in(parameter, version) for version in VERSIONS)
            hint = "leave it out, or correct ganeti_version" if released else "leave it out: no release has it"
            yield self.hit(declared, message, leaf.document.key_span(leaf.pointer), hint=hint)


class AccessInherit(Rule):
    """`access: inherit`, which Ganeti cannot do."""

    info = RuleInfo(
        code="GP103",
        name="access-inherit",
        severity=Severity.ERROR,
        summary="A group is to inherit the access mode of a disk template.",
        rationale="Ganeti refuses the word that would remove the own value: it checks for one of the two modes first."
        " Of all disk parameters this is the only one that cannot be reset.",
        source="Ganeti 3.0, run",
        bad=f"{GROUP}diskparams:\n  rbd: {{access: inherit}}\n",
        good=f"{GROUP}diskparams:\n  rbd: {{access: kernelspace, pool: inherit}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared in context.policy.objects:
            for leaf in context.leaves(declared).values():
                if leaf.value is INHERIT and _is_access(leaf.path):
                    hint = "write the cluster's value here, and change both together"
                    yield self.hit(declared, f"Ganeti cannot reset {dotted(leaf)}", leaf.span, hint=hint)


def _is_access(path: Path) -> bool:
    return path[0] == "diskparams" and path[-1] == "access"


_IMAGES: Final[tuple[Path, ...]] = (("install_image",), ("zeroing_image",))


class ImageLocation(Rule):
    """An image that is neither an absolute path nor a URL."""

    info = RuleInfo(
        code="GP104",
        name="image-location",
        severity=Severity.ERROR,
        summary="install_image or zeroing_image is neither an absolute path nor a URL.",
        rationale="Ganeti refuses it, the zeroing image even after half of the command is done. For the same reason an"
        " image cannot be emptied again.",
        source=_SOURCE,
        bad=f"{CLUSTER}install_image: images/base.img\n",
        good=f"{CLUSTER}install_image: https://images.example.org/base.img\nzeroing_image: /srv/zero.img\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*_IMAGES):
            if not re.match(r"/|(https?|ftps?)://", str(leaf.value)):
                message = f"{dotted(leaf)} is neither an absolute path nor an http or ftp URL"
                hint = "write the full path or URL" if leaf.value else "it cannot be emptied: leave it out"
                yield self.hit(declared, message, leaf.span, hint=hint)


class NotExpressible(Rule):
    """A value that Ganeti's commands cannot carry."""

    info = RuleInfo(
        code="GP102",
        name="not-expressible",
        severity=Severity.ERROR,
        summary="A value that Ganeti's commands cannot store as it is written.",
        rationale="The command would be refused, or would store something else: such a policy can never be reached.",
        source="Ganeti 3.0, its option parsers and opcodes",
        bad=f"{CLUSTER}mac_prefix: AA-00\n",
        good=f'{CLUSTER}mac_prefix: "aa:00:01"\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared in context.policy.objects:
            for leaf in context.leaves(declared).values():
                parameter = parameter_at(leaf.path)
                other = leaf.path in _IMAGES or (leaf.value is INHERIT and _is_access(leaf.path))
                if parameter is None or other or parameter.path in _unknown_in(context.version):
                    continue  # another rule's matter
                if leaf.value is not INHERIT and parameter.type in _ALWAYS_EXPRESSIBLE:
                    continue
                value = RESET if leaf.value is INHERIT else leaf.value
                try:
                    checked(leaf.path, value, declared.level, version=context.version)
                except InexpressibleError as error:
                    message = f"{dotted(leaf)}: {error.reason}"
                    yield self.hit(declared, message, leaf.span, hint=error.hint or "")


class CompressionWithoutGzip(Rule):
    """compression_tools that lack gzip."""

    info = RuleInfo(
        code="GP105",
        name="compression-without-gzip",
        severity=Severity.ERROR,
        summary="compression_tools does not name gzip.",
        rationale="gzip is what both ends of an instance move can rely on; Ganeti refuses a list without it.",
        source=_SOURCE,
        bad=f"{CLUSTER}compression_tools: [lzop]\n",
        good=f"{CLUSTER}compression_tools: [gzip, lzop]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(("compression_tools",)):
            if "gzip" not in texts(leaf):
                yield self.hit(declared, "compression_tools lacks gzip", leaf.span, hint="add gzip")


class PortRange(Rule):
    """A port outside 1 to 65535."""

    info = RuleInfo(
        code="GP106",
        name="port-range",
        severity=Severity.ERROR,
        summary="A TCP port outside 1 to 65535.",
        rationale="Ganeti checks only that it is a number; nodes with such an ssh_port cannot be reached.",
        source="Ganeti 3.0 does not check it",
        bad=f"{GROUP}ndparams: {{ssh_port: 70022}}\n",
        good=f"{GROUP}ndparams: {{ssh_port: 2222}}\n",
    )
    _PORTS: Final[tuple[Path, ...]] = (
        ("ndparams", "ssh_port"),
        ("diskparams", "gluster", "port"),
        ("hvparams", "kvm", "migration_port"),
        ("hvparams", "xen-pvm", "migration_port"),
        ("hvparams", "xen-hvm", "migration_port"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*self._PORTS):
            if not 1 <= number(leaf) <= 65535:
                message = f"{dotted(leaf)} is {leaf.value}, which is no TCP port"
                yield self.hit(declared, message, leaf.span, hint="write a port from 1 to 65535")


class CountBelowOne(Rule):
    """A count that makes no sense below one."""

    info = RuleInfo(
        code="GP107",
        name="count-below-one",
        severity=Severity.ERROR,
        summary="A number of spindles or stripes below 1.",
        rationale="Ganeti accepts zero and negative numbers. htools divides by the spindle count, and LVM makes no"
        " volume of zero stripes.",
        source="Resource model, Node parameters and Disk parameters; Ganeti 3.0 does not check it",
        bad=f"{GROUP}ndparams: {{spindle_count: 0}}\n",
        good=f"{GROUP}ndparams: {{spindle_count: 4}}\n",
    )
    _COUNTS: Final[tuple[Path, ...]] = (
        ("ndparams", "spindle_count"),
        ("diskparams", "plain", "stripes"),
        ("diskparams", "drbd", "data-stripes"),
        ("diskparams", "drbd", "meta-stripes"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*self._COUNTS):
            if number(leaf) < 1:
                message = f"{dotted(leaf)} is {leaf.value}: it must be at least 1"
                yield self.hit(declared, message, leaf.span, hint="write 1 or more")


class BackendMemory(Rule):
    """minmem above maxmem."""

    info = RuleInfo(
        code="GP108",
        name="backend-memory-reversed",
        severity=Severity.ERROR,
        summary="The default minmem of instances is above their default maxmem.",
        rationale="The cluster accepts it; every instance that takes both defaults is refused.",
        source="Ganeti 3.0, run: the cluster command does not check it, instance creation does",
        bad=f"{CLUSTER}beparams: {{minmem: 2G, maxmem: 1G}}\n",
        good=f"{CLUSTER}beparams: {{minmem: 1G, maxmem: 2G}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (low, high) in context.combined(("beparams", "minmem"), ("beparams", "maxmem")):
            if number(low) > number(high):
                message = f"minmem {low.value} MiB is above maxmem {high.value} MiB"
                place, related = context.own_first(declared, low, high)
                yield self.hit(declared, message, place.span, hint="swap the two", related=related)


class ReservedVolumePattern(Rule):
    """A pattern of reserved_lvs that is no regular expression."""

    info = RuleInfo(
        code="GP109",
        name="reserved-lvs-pattern",
        severity=Severity.ERROR,
        summary="An entry of reserved_lvs is no regular expression.",
        rationale="Ganeti stores it unchecked, and every later `gnt-cluster verify` breaks.",
        source=_SOURCE,
        bad=f'{CLUSTER}reserved_lvs: ["xenvg/swap["]\n',
        good=f'{CLUSTER}reserved_lvs: ["xenvg/swap[0-9]+"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(("reserved_lvs",)):
            for index, pattern in enumerate(texts(leaf)):
                try:
                    re.compile(pattern)
                except (re.error, OverflowError, RecursionError) as error:
                    message = f"{pattern!r} is no regular expression: {error}"
                    hint = "the whole name vg/lv is compared; escape special characters with a backslash"
                    yield self.hit(declared, message, leaf.at(index), hint=hint)


class VolumeGroupName(Rule):
    """A volume group that LVM could not name so."""

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

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        paths: tuple[Path, ...] = (("volume_group_name",), ("diskparams", "drbd", "metavg"))
        for declared, leaf in context.explicit_at(*paths):
            name = str(leaf.value)
            unset = not name and leaf.path == ("volume_group_name",)
            if not unset and not re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9_+.][A-Za-z0-9_+.-]*", name):
                message = f"{dotted(leaf)}: LVM has no volume group called {name!r}"
                hint = "letters, digits and + _ . - only, not beginning with -"
                yield self.hit(declared, message, leaf.span, hint=hint)


class UserspaceWithoutKvm(Rule):
    """Userspace access where no hypervisor can use it."""

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

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        hypervisors = context.enabled_hypervisors()
        if hypervisors is None or "kvm" in hypervisors.values:
            return
        related = (Related(hypervisors.span, "enabled here"),) if hypervisors.span else ()
        for declared, leaf in context.explicit():
            if _is_access(leaf.path) and leaf.value == "userspace":
                message = f"{dotted(leaf)}: none of {', '.join(hypervisors.values)} can use a disk from userspace"
                yield self.hit(declared, message, leaf.span, hint="write kernelspace", related=related)


class StateOfDisabledHypervisor(Rule):
    """hv_state of a hypervisor that is not enabled."""

    info = RuleInfo(
        code="GP112",
        name="hypervisor-not-enabled",
        severity=Severity.WARNING,
        summary="hv_state describes a hypervisor that is not enabled.",
        rationale="Ganeti accepts it; it is most likely the wrong hypervisor, and no capacity is counted with it.",
        source="Resource model, Hypervisor state",
        bad=f"{CLUSTER}enabled_hypervisors: [kvm]\nhv_state:\n  xen-pvm: {{mem_node: 4G}}\n",
        good=f"{CLUSTER}enabled_hypervisors: [kvm]\nhv_state:\n  kvm: {{mem_node: 4G}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        enabled = context.enabled_hypervisors()
        if enabled is None:
            return
        for declared in context.policy.objects:
            first = {leaf.path[1]: leaf for leaf in reversed(context.leaves(declared).values()) if _is_hv_state(leaf)}
            for hypervisor, leaf in first.items():
                if hypervisor not in enabled.values:
                    related = (Related(enabled.span, "enabled here"),) if enabled.span else ()
                    message = f"hv_state describes {hypervisor}, which {enabled.source} does not enable"
                    span = leaf.document.key_span(leaf.pointer[:2])
                    hint = f"enabled: {', '.join(enabled.values)}"
                    yield self.hit(declared, message, span, hint=hint, related=related)


def _is_hv_state(leaf: Leaf) -> bool:
    return leaf.path[0] == "hv_state" and leaf.value is not INHERIT


class StateWithoutEffect(Rule):
    """hv_state and disk_state do nothing in Ganeti."""

    info = RuleInfo(
        code="GP113",
        name="state-without-effect",
        severity=Severity.INFO,
        summary="hv_state or disk_state is declared: Ganeti stores it and reads it nowhere.",
        rationale="The resource model wanted these figures for capacity; no released Ganeti uses them. gpolicy's own"
        " capacity model does.",
        source="Resource model, Hypervisor state and Disk state; Ganeti 2.15 to 3.1",
        bad=f"{GROUP}hv_state:\n  kvm: {{mem_node: 4G}}\n",
        good=f"{GROUP}ndparams: {{spindle_count: 4}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared in context.policy.objects:
            own = context.leaves(declared).values()
            for family in ("hv_state", "disk_state"):
                leaf = next((leaf for leaf in own if leaf.path[0] == family), None)
                if leaf is not None:
                    span = leaf.document.key_span(leaf.pointer[:1])
                    message = f"{family} has no effect in Ganeti; only gpolicy's capacity model reads it"
                    yield self.hit(declared, message, span)


PARAMETER_RULES: Final = (
    ParameterNotInVersion(),
    NotExpressible(),
    AccessInherit(),
    ImageLocation(),
    CompressionWithoutGzip(),
    PortRange(),
    CountBelowOne(),
    BackendMemory(),
    ReservedVolumePattern(),
    VolumeGroupName(),
    UserspaceWithoutKvm(),
    StateOfDisabledHypervisor(),
    StateWithoutEffect(),
)
