"""Groups and policies as the Haskell original shows its records, which one error text contains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.allocator.kinds import AllocPolicy, DiskTemplate
from gpolicy.allocator.numerals import shown_float
from gpolicy.htools.haskell_text import shown_string, shown_strings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpolicy.allocator.model import Group, Policy, Spec

_POLICIES = {
    AllocPolicy.PREFERRED: "AllocPreferred",
    AllocPolicy.LAST_RESORT: "AllocLastResort",
    AllocPolicy.UNALLOCABLE: "AllocUnallocable",
}
_TEMPLATES = {
    DiskTemplate.DISKLESS: "DTDiskless",
    DiskTemplate.FILE: "DTFile",
    DiskTemplate.SHARED_FILE: "DTSharedFile",
    DiskTemplate.PLAIN: "DTPlain",
    DiskTemplate.BLOCK: "DTBlock",
    DiskTemplate.DRBD: "DTDrbd8",
    DiskTemplate.RBD: "DTRbd",
    DiskTemplate.EXT: "DTExt",
    DiskTemplate.GLUSTER: "DTGluster",
}


def shown_groups(groups: Sequence[Group]) -> str:
    """Return a list of groups as Haskell shows it."""
    return f"[{','.join(_group(group) for group in groups)}]"


def _group(group: Group) -> str:
    return (
        f"Group {{name = {shown_string(group.name)}, uuid = {shown_string(group.uuid)}, idx = {group.index},"
        f" allocPolicy = {_POLICIES[group.alloc_policy]}, networks = {shown_strings(group.networks)},"
        f" iPolicy = {_policy(group.policy)}, allTags = {shown_strings(group.tags)}}}"
    )


def _policy(policy: Policy) -> str:
    pairs = ",".join(
        f"MinMaxISpecs {{minMaxISpecsMinSpec = {_spec(pair.min)}, minMaxISpecsMaxSpec = {_spec(pair.max)}}}"
        for pair in policy.minmax
    )
    templates = ",".join(_TEMPLATES[template] for template in policy.templates)
    return (
        f"IPolicy {{iPolicyMinMaxISpecs = [{pairs}], iPolicyStdSpec = {_spec(policy.std)},"
        f" iPolicyDiskTemplates = [{templates}], iPolicyVcpuRatio = {_double(policy.vcpu_ratio)},"
        f" iPolicySpindleRatio = {_double(policy.spindle_ratio)}}}"
    )


def _spec(spec: Spec) -> str:
    values = {
        "MemorySize": spec.memory,
        "CpuCount": spec.cpus,
        "DiskSize": spec.disk_size,
        "DiskCount": spec.disk_count,
        "NicCount": spec.nic_count,
        "SpindleUse": spec.spindle_use,
    }
    return f"ISpec {{{', '.join(f'iSpec{name} = {_int(value)}' for name, value in values.items())}}}"


def _int(value: int) -> str:
    return str(value)


def _double(value: float) -> str:
    return shown_float(value)
