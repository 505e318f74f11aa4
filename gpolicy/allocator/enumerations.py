"""The enumerations of Ganeti's allocator, in its own order.

The order decides how disk templates are printed, which allocation policies are preferred and how failure
reasons are sorted (htools, `DiskTemplate`, `AllocPolicy`, `FailMode`).
"""

from __future__ import annotations

from enum import Enum, IntEnum

NO_NODE = -1
"""The index for "no node", such as the secondary of an instance without one."""


class DiskTemplate(Enum):
    """How an instance stores its disks."""

    DISKLESS = "diskless"
    FILE = "file"
    SHARED_FILE = "sharedfile"
    PLAIN = "plain"
    BLOCK = "blockdev"
    DRBD = "drbd"
    RBD = "rbd"
    EXT = "ext"
    GLUSTER = "gluster"

    __hash__ = object.__hash__  # Enum's own hash is slow, and lookups are many

    @property
    def local(self) -> bool:
        """Whether its disks are in the node's own storage (`file` counts as external)."""
        return self in _LOCAL

    @property
    def movable_foreign(self) -> bool:
        """Whether the N+1 test moves such an instance instead of placing a copy of it."""
        return self in _MOVABLE_FOREIGN

    @property
    def externally_mirrored(self) -> bool:
        """Whether it can fail over to any node of its group (hail's mirror type `external`)."""
        return self in _EXTERNALLY_MIRRORED

    @property
    def balanced(self) -> bool:
        """Whether hbal moves such an instance (htools, Instance: `movable`)."""
        return self in _BALANCED


_LOCAL = frozenset({DiskTemplate.PLAIN, DiskTemplate.DRBD})
_MOVABLE_FOREIGN = frozenset(
    {DiskTemplate.DISKLESS, DiskTemplate.SHARED_FILE, DiskTemplate.RBD, DiskTemplate.EXT, DiskTemplate.GLUSTER}
)
_EXTERNALLY_MIRRORED = _MOVABLE_FOREIGN | {DiskTemplate.BLOCK}
_BALANCED = _EXTERNALLY_MIRRORED - {DiskTemplate.DISKLESS} | {DiskTemplate.DRBD}


class AllocPolicy(Enum):
    """Whether a group takes new instances, from the most to the least preferred policy."""

    PREFERRED = "preferred"
    LAST_RESORT = "last_resort"
    UNALLOCABLE = "unallocable"

    @property
    def rank(self) -> int:
        """The place in the order of preference; 0 is the best."""
        return list(AllocPolicy).index(self)


class InstanceStatus(Enum):
    """The state of an instance in Ganeti's words."""

    STATUS_DOWN = "ADMIN_down"
    STATUS_OFFLINE = "ADMIN_offline"
    ERROR_DOWN = "ERROR_down"
    ERROR_UP = "ERROR_up"
    NODE_DOWN = "ERROR_nodedown"
    NODE_OFFLINE = "ERROR_nodeoffline"
    RUNNING = "running"
    USER_DOWN = "USER_down"
    WRONG_NODE = "ERROR_wrongnode"

    __hash__ = object.__hash__  # as for templates

    @property
    def running(self) -> bool:
        """Whether an instance in this state occupies memory on its primary node."""
        return self in _RUNNING


_RUNNING = frozenset(InstanceStatus) - {
    *(InstanceStatus.STATUS_DOWN, InstanceStatus.STATUS_OFFLINE, InstanceStatus.ERROR_DOWN, InstanceStatus.USER_DOWN)
}


BY_ADMIN_STATE = {
    "up": InstanceStatus.RUNNING,
    "down": InstanceStatus.STATUS_DOWN,
    "offline": InstanceStatus.STATUS_OFFLINE,
}
"""What an instance counts as by its admin_state alone."""


class FailReason(IntEnum):
    """Why a placement is not possible; the number is the index in lists of counts."""

    MEM = 0
    DISK = 1
    CPU = 2
    N1 = 3
    TAGS = 4
    MIG = 5
    DISK_COUNT = 6
    SPINDLES = 7
    INTERNAL = 8

    @property
    def title(self) -> str:
        """The name as htools prints it, for example `FailMem`."""
        return _REASON_TITLES[self]


_REASON_TITLES = (
    *("FailMem", "FailDisk", "FailCPU", "FailN1", "FailTags", "FailMig", "FailDiskCount", "FailSpindles"),
    "FailInternal",
)
