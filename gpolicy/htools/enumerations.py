"""Reading the closed lists of names, with htools' error texts."""

from __future__ import annotations

from gpolicy.allocator.kinds import AllocPolicy, DiskTemplate, InstanceStatus
from gpolicy.errors import InputError


def disk_template(text: str) -> DiskTemplate:
    """Return the disk template named `text`."""
    try:
        return DiskTemplate(text)
    except ValueError:
        raise InputError(f'Invalid string value for type DiskTemplate: "{text}"') from None


def alloc_policy(text: str) -> AllocPolicy:
    """Return the allocation policy named `text`."""
    try:
        return AllocPolicy(text)
    except ValueError:
        raise InputError(f'Invalid string value for type AllocPolicy: "{text}"') from None


def instance_status(text: str) -> InstanceStatus:
    """Return the instance state named `text`."""
    try:
        return InstanceStatus(text)
    except ValueError:
        raise InputError(f'Invalid string value for type InstanceStatus: "{text}"') from None
