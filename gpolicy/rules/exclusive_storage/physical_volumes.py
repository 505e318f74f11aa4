"""GP4xx: exclusive storage, where each disk of an instance has whole physical volumes of its own.

The arithmetic of disk sizes and spindles is in `gpolicy.rules.exclusive_storage.spindles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, MINMAX, Context, name_of, number, texts
from gpolicy.checking.pairs import amount, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import release_key
from gpolicy.ganeti.volume_arithmetic import sizes_differ
from gpolicy.policy import edits
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, Leaf
from gpolicy.rules.exclusive_storage.spindles import exclusive_groups
from gpolicy.rules.specs.overlap import bounds

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"
_SPINDLES: Final = "Partitioned Ganeti, Spindles as a resource"
_DEDICATED: Final = "Allocation for Partitioned Ganeti, Dedicated Allocation Metric"

_GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: dedicated\nndparams: {exclusive_storage: true}\n"


_COMPUTING: Final = "    - name: computing\n      " + bounds("100G 120G", "16 16", "100G 200G")
_STORAGE: Final = "    - name: storage\n      " + bounds("10G 20G", "4 4", "1T 2T")


class VolumeSizesDiffer(Rule):
    """Physical volumes of too different sizes."""

    info = RuleInfo(
        code="GP401",
        name="pv-sizes-differ",
        severity=Severity.ERROR,
        summary="The physical volumes of a group with exclusive storage differ by more than the margin.",
        rationale="A spindle is a physical volume, and all in a group must have one size within 1 % around it: bad when"
        " smallest * 1.01 is below largest * 0.99. `gnt-cluster verify` reports it as an error.",
        source=_EXCLUSIVE,
        bad=f"{_GROUP}hardware: {{pv_size: [1000G, 1021G]}}\n",
        good=f"{_GROUP}hardware: {{pv_size: [1000G, 1020G]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group, exclusive, hardware in exclusive_groups(context):
            sizes = sorted(hardware.pv_sizes, key=lambda size: size.value)
            if sizes and sizes_differ(sizes[0].value, sizes[-1].value):
                small, large = (amount("disk-size", size.value) for size in (sizes[0], sizes[-1]))
                message = f"physical volumes of {small} and {large} are too different for exclusive storage"
                hint = "at most about 2 % may lie between the smallest and the largest: split the group"
                related = (Related(exclusive.span, "exclusive storage is on"), Related(sizes[0].span, "the smallest"))
                yield self.hit(group, message, sizes[-1].span, hint=hint, related=related)


class DedicatedCpuRatio(Rule):
    """Shared CPUs where hardware is to be dedicated."""

    info = RuleInfo(
        code="GP406",
        name="dedicated-vcpu-ratio",
        severity=Severity.WARNING,
        summary="vcpu-ratio is above 1 although exclusive storage is on.",
        rationale="A partitioned node gives each instance hardware of its own; with more virtual than physical CPUs"
        " the instances share them after all.",
        source="Partitioned Ganeti, Dedicated CPUs",
        bad=f"{_GROUP}ipolicy: {{vcpu-ratio: 4}}\n",
        good=f"{_GROUP}ipolicy: {{vcpu-ratio: 1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (exclusive, ratio) in context.combined(EXCLUSIVE_STORAGE, ("ipolicy", "vcpu-ratio")):
            if exclusive.value is True and number(ratio) > 1:
                message = f"{name_of(declared)} shares its CPUs: vcpu-ratio is {ratio.value:g}"
                hint = "write vcpu-ratio: 1"
                yield _in_exclusive(self, context, declared, ratio, exclusive, message, hint)


class TemplateNotExclusive(Rule):
    """Templates that exclusive storage does not have."""

    info = RuleInfo(
        code="GP407",
        name="template-not-exclusive",
        severity=Severity.WARNING,
        summary="Disk templates other than plain are allowed where exclusive storage is on.",
        rationale="The design aims at plain and drbd, but Ganeti has it for plain only: creating another disk fails,"
        " and verify reports existing ones as errors.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{_GROUP}ipolicy: {{disk-templates: [plain, drbd]}}\n",
        good=f"{_GROUP}ipolicy: {{disk-templates: [plain]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            others = [template for template in texts(allowed) if template not in ("plain", "diskless")]
            if exclusive.value is True and others:
                message = f"{name_of(declared)} allows {', '.join(others)}: exclusive storage is for plain only"
                hint = "allow only plain (and diskless) here"
                yield _in_exclusive(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveWithoutPlain(Rule):
    """Exclusive storage, and plain is not allowed."""

    info = RuleInfo(
        code="GP408",
        name="exclusive-without-plain",
        severity=Severity.ERROR,
        summary="Exclusive storage is on, and plain is not among the allowed disk templates.",
        rationale="No instance with a disk can be created there.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{_GROUP}ipolicy: {{disk-templates: [diskless]}}\n",
        good=f"{_GROUP}ipolicy: {{disk-templates: [diskless, plain]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            if exclusive.value is True and "plain" not in texts(allowed):
                message = f"{name_of(declared)} has exclusive storage, but does not allow plain"
                hint = "allow plain"
                yield _in_exclusive(self, context, declared, allowed, exclusive, message, hint)


class SpindleParameterIgnored(Rule):
    """spindle-ratio and spindle_count mean nothing."""

    info = RuleInfo(
        code="GP409",
        name="spindle-parameter-ignored",
        severity=Severity.INFO,
        summary="spindle-ratio or spindle_count is set where exclusive storage is on.",
        rationale="Exclusive assignment of physical volumes implies a ratio of 1, and the count is the real number of"
        " volumes: both parameters are ignored.",
        source=_SPINDLES,
        bad=f"{_GROUP}ipolicy: {{spindle-ratio: 32}}\n",
        good=f"{_GROUP}ipolicy: {{vcpu-ratio: 1}}\n",
        fix="Takes the parameter out.",
    )
    _IGNORED: Final[tuple[Path, ...]] = (("ipolicy", "spindle-ratio"), ("ndparams", "spindle_count"))

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.groups:
            exclusive = context.exclusive(group)
            for path in self._IGNORED if exclusive else ():
                leaf = context.own(group, path)
                if leaf is not None and exclusive is not None:
                    related = (Related(exclusive.span, "exclusive storage is on"),)
                    message = f"{path[1]} is ignored in {name_of(group)}"
                    removal = edits.remove_entry(leaf.document, leaf.pointer, climb=True)
                    fix = edits.fix(f"take {path[1]} out", removal) if not leaf.overridden else None
                    yield self.hit(group, message, leaf.span, related=related, fix=fix)


class DedicatedOrder(Rule):
    """The list's order is not the order of the dedicated metric."""

    info = RuleInfo(
        code="GP410",
        name="dedicated-order",
        severity=Severity.WARNING,
        summary="Where exclusive storage is on, specs are not in descending order of their least disk size.",
        rationale="hail's dedicated metric sorts specs by the lower bound of disk-size, biggest first; hspace takes"
        " them as they are listed. When the two orders differ, placement protects another size than capacity counts;"
        " with equal lower bounds the metric's order is not defined.",
        source=_DEDICATED,
        bad=f"{_GROUP}ipolicy:\n  minmax:\n{_COMPUTING}{_STORAGE}",
        good=f"{_GROUP}ipolicy:\n  minmax:\n{_STORAGE}{_COMPUTING}",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (exclusive, _) in context.combined(EXCLUSIVE_STORAGE, MINMAX):
            if exclusive.value is not True:
                continue
            pairs = comparable(context.pairs(declared))
            for first, second in pairwise(pairs):
                low, high = second.minimum["disk-size"], first.minimum["disk-size"]
                if low < high:
                    continue
                how = "the same min disk-size as" if low == high else "a greater min disk-size than"
                message = f"{second.title} has {how} {first.title} before it"
                hint = "list the specs by descending min disk-size, and let no two be equal"
                related = (Related(first.at("min", "disk-size"), f"{first.title} is here"),)
                yield self.hit(declared, message, second.at("min", "disk-size"), hint=hint, related=related)


class ExclusiveStorageReads(Rule):
    """What Ganeti itself gets wrong once the flag is on."""

    info = RuleInfo(
        code="GP411",
        name="exclusive-storage-reads",
        severity=Severity.INFO,
        summary="Exclusive storage is turned on: Ganeti 3.0 then reports no storage figures of the nodes.",
        rationale="Its node daemon compares a number with text and fails: free and total disk and spindles come back"
        " unknown, and hspace -L stops. The defect is in 3.0.2 and still in the newest source.",
        source="Ganeti 3.0.2, run on a cluster",
        bad=_GROUP,
        good="gpolicy: v1\nkind: NodeGroup\nname: shared\nndparams: {exclusive_storage: false}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
            if leaf.value is True and release_key(context.version) >= (3, 0):
                message = f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage"
                yield self.hit(declared, message, leaf.span, hint="have the fix in Ganeti's node daemon before")


class ExclusiveStorageMixed(Rule):
    """Nodes of one group that differ in exclusive storage."""

    info = RuleInfo(
        code="GP412",
        name="exclusive-storage-mixed",
        severity=Severity.ERROR,
        summary="A node on the cluster has a value of exclusive_storage that is not its group's.",
        rationale="The flag must be the same in a whole group: whether a disk has its volumes to itself would depend on"
        " the node it lands on. Ganeti does not let it be set on a node; an old configuration may still have it.",
        source=_EXCLUSIVE,
        bad=_GROUP,
        good=_GROUP,
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.groups:
            leaf = context.effective(group, EXCLUSIVE_STORAGE)
            if leaf is None or context.state is None:
                continue
            odd = [
                node.name
                for node in context.state.nodes_of(group.renamed_from.value if group.renamed_from else group.name)
                if node.own.get(EXCLUSIVE_STORAGE, leaf.value) != leaf.value
            ]
            if odd:
                message = (
                    f"{', '.join(sorted(odd)[:5])} in {name_of(group)}: exclusive_storage is not the group's value"
                )
                yield self.hit(group, message, leaf.span, hint="remove the nodes' own value")


class VolumeCount(Rule):
    """Another number of sizes of physical volumes than of volumes."""

    info = RuleInfo(
        code="GP413",
        name="pv-count-mismatch",
        severity=Severity.WARNING,
        summary="The hardware of a group lists sizes of physical volumes, but not as many as it has volumes.",
        rationale="A list names the size of each volume (a single size is that of all). One of the two is wrong, and so"
        " is every number that is computed from them.",
        source="gpolicy",
        bad=f"{_GROUP}hardware: {{pv_count: 1, pv_size: [1000G, 1010G]}}\n",
        good=f"{_GROUP}hardware: {{pv_count: 2, pv_size: [1000G, 1010G]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.groups:
            hardware = group.hardware
            count = hardware.pv_count.value if hardware and hardware.pv_count else 0
            if hardware and hardware.pv_count and len(hardware.pv_sizes) not in (0, 1, count):
                message = f"pv_size lists {len(hardware.pv_sizes)} sizes, pv_count is {count}"
                hint = "name the size of each volume, or one size for all"
                yield self.hit(group, message, hardware.pv_count.span, hint=hint)


def _in_exclusive(
    rule: Rule,
    context: Context,
    declared: ClusterPolicy | GroupPolicy,
    leaf: Leaf,
    exclusive: Leaf,
    message: str,
    hint: str,
) -> Hit:
    """Return a hit at what the object says itself, with the other half of the contradiction as related place."""
    if context.own(declared, leaf.path) is not None:
        related = (Related(exclusive.span, "exclusive storage is on"),)
        return rule.hit(declared, message, leaf.span, hint=hint, related=related)
    related = (Related(leaf.span, "inherited from the cluster"),)
    return rule.hit(declared, message, exclusive.span, hint=hint, related=related)


EXCLUSIVE_STORAGE_RULES: Final = (
    VolumeSizesDiffer(),
    DedicatedCpuRatio(),
    TemplateNotExclusive(),
    ExclusiveWithoutPlain(),
    SpindleParameterIgnored(),
    DedicatedOrder(),
    ExclusiveStorageReads(),
    ExclusiveStorageMixed(),
    VolumeCount(),
)
