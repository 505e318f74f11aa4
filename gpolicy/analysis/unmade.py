"""Why Ganeti does not make an instance's disks on a node where htools places them (exclusive storage).

Ganeti checks it when the instance is created (cmdlib/instance_create.py: DTS_EXCL_STORAGE); htools does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.binding import Cause
from gpolicy.cluster.state import LiveInstance
from gpolicy.ganeti.volume_arithmetic import SpindleFault, VolumeSize, spindle_refusal

_CAUSES: Final = {
    SpindleFault.TOO_FEW: Cause.TOO_FEW_SPINDLES,
    SpindleFault.SHARED: Cause.SHARED_STORAGE,
}


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
