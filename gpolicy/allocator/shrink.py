"""Making a wished-for instance one unit smaller in the resource that an allocation failed for."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.allocator.kinds import FailReason
from gpolicy.allocator.model import Disk, Instance

MEMORY_UNIT = 64
"""MiB by which memory shrinks, and the least that must be left."""
DISK_UNIT = 256
"""MiB by which each disk shrinks, and the least that must be left of each."""


def shrink(instance: Instance, reason: FailReason) -> Instance | None:
    """Return `instance` one unit smaller in what `reason` names, None if that is not possible."""
    if reason is FailReason.MEM:
        memory = instance.memory - MEMORY_UNIT
        return replace(instance, memory=memory) if memory >= MEMORY_UNIT else None
    if reason is FailReason.DISK:
        if any(disk.size - DISK_UNIT < DISK_UNIT for disk in instance.disks):
            return None
        disks = tuple(Disk(disk.size - DISK_UNIT, disk.spindles) for disk in instance.disks)
        return replace(instance, disks=disks, disk=instance.disk - DISK_UNIT * len(disks))
    if reason is FailReason.CPU:
        return replace(instance, vcpus=instance.vcpus - 1) if instance.vcpus > 1 else None
    if reason is FailReason.SPINDLES:
        if len(instance.disks) != 1 or instance.disks[0].spindles is None or instance.disks[0].spindles <= 1:
            return None
        return replace(instance, disks=(Disk(instance.disks[0].size, instance.disks[0].spindles - 1),))
    return None
