"""Reading the closed lists of names, with htools' error texts."""

from __future__ import annotations

from gpolicy.allocator.enumerations import AllocPolicy, DiskTemplate, InstanceStatus
from gpolicy.errors import InputError

_DISK_TEMPLATES = {template.value: template for template in DiskTemplate}
_INSTANCE_STATES = {status.value: status for status in InstanceStatus}


def disk_template(text: str) -> DiskTemplate:
    """Return the disk template named `text`."""
    found = _DISK_TEMPLATES.get(text)
    if found is None:
        raise InputError(f'Invalid string value for type DiskTemplate: "{text}"')
    return found


def alloc_policy(text: str) -> AllocPolicy:
    """Return the allocation policy named `text`."""
    try:
        return AllocPolicy(text)
    except ValueError:
        raise InputError(f'Invalid string value for type AllocPolicy: "{text}"') from None


def instance_status(text: str) -> InstanceStatus:
    """Return the instance state named `text`."""
    found = _INSTANCE_STATES.get(text)
    if found is None:
        raise InputError(f'Invalid string value for type InstanceStatus: "{text}"')
    return found
