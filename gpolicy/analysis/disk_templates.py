"""The disk template that is counted and placed where none is named, and the disks that Ganeti does not make.

Ganeti checks exclusive storage when an instance is created (cmdlib/instance_create.py: DTS_EXCL_STORAGE); htools does
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.binding import Cause
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.errors import UsageError
from gpolicy.ganeti.volume_arithmetic import SpindleFault, VolumeSize, spindle_refusal
from gpolicy.guessing import did_you_mean_one_of


def enabled_templates(state: ClusterState) -> tuple[DiskTemplate, ...] | None:
    """Return the enabled templates, Ganeti's default first; None if the source does not name them."""
    names = state.cluster.own.get(("enabled_disk_templates",))
    if not isinstance(names, list):
        return None
    return tuple(DiskTemplate(name) for name in names if name in {template.value for template in DiskTemplate})


def wanted_template(name: str, enabled: tuple[DiskTemplate, ...] | None) -> DiskTemplate:
    """Return the template of this name. Raise UsageError if there is none, or it is not enabled."""
    known = {template.value: template for template in DiskTemplate}
    if name not in known:
        hint = did_you_mean_one_of(name, "disk templates", known)
        raise UsageError(f"there is no disk template {name!r}", hint=hint)
    if enabled is not None and known[name] not in enabled:
        names = ", ".join(template.value for template in enabled)
        raise UsageError(f"disk template {name} is not enabled on the cluster", hint=f"enabled are {names}")
    return known[name]


def first_allowed(
    enabled: tuple[DiskTemplate, ...] | None, policy: InstancePolicy, *, exclusive: bool
) -> DiskTemplate | None:
    """Return the first of `allowed_templates`, which hspace counts with; None if there is none."""
    return next(iter(allowed_templates(enabled, policy, exclusive=exclusive)), None)


def allowed_templates(
    enabled: tuple[DiskTemplate, ...] | None, policy: InstancePolicy, *, exclusive: bool
) -> list[DiskTemplate]:
    """Return the enabled templates of the policy's list, in its order.

    With `exclusive` storage they are those that Ganeti makes there, if it makes any.
    """
    allowed = [template for template in policy.templates if enabled is None or template in enabled]
    made = [template for template in allowed if is_made_exclusive(template)] if exclusive else []
    return made or allowed


_CAUSES: Final = {SpindleFault.TOO_FEW: Cause.TOO_FEW_SPINDLES, SpindleFault.SHARED: Cause.SHARED_STORAGE}


@dataclass(frozen=True, slots=True)
class Unmade:
    """The refusal: its cause, and a sentence about this instance."""

    cause: Cause
    sentence: str


def is_made_exclusive(template: DiskTemplate) -> bool:
    """Return whether Ganeti makes instances of this template on nodes with exclusive storage."""
    return template is DiskTemplate.PLAIN


def unmade(
    instance: Instance | LiveInstance, *, exclusive: bool, volume: VolumeSize | None, spindles_count: bool = True
) -> Unmade | None:
    """Return why Ganeti refuses the disks of `instance` on a node, None if it makes them.

    `volume` is how the physical volumes of the node count, None where it is not known. Without `spindles_count` the
    spindles of the disks mean nothing.
    """
    template = DiskTemplate(instance.disk_template) if isinstance(instance, LiveInstance) else instance.template
    if exclusive and not is_made_exclusive(template):
        name = template.value
        return Unmade(Cause.ONLY_PLAIN, f"Ganeti makes no {name} instance on nodes with exclusive storage, only plain")
    for disk in instance.disks if spindles_count else ():
        refusal = spindle_refusal(disk.size, disk.spindles, exclusive=exclusive, volume=volume)
        if refusal is not None and refusal.fault in _CAUSES:
            return Unmade(_CAUSES[refusal.fault], str(refusal))
    return None
