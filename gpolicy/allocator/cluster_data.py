"""The values that Ganeti's allocator works on: its lists of names, policies, groups, instances and nodes.

Enumerations are in Ganeti's own order. Sizes are MiB as int unless said otherwise; totals are floats since htools reads
them as doubles. Elements refer to each other by index, which is their place in the input.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from operator import attrgetter

from gpolicy.allocator.ghc_numbers import divide, truncate
from gpolicy.light_dataclasses import dataclass, field, replace

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


@dataclass(frozen=True, slots=True)
class Spec:
    """One instance specification (memory and disk size in MiB)."""

    memory: int
    cpus: int
    disk_size: int
    disk_count: int
    nic_count: int
    spindle_use: int


@dataclass(frozen=True, slots=True)
class SpecPair:
    """One box of allowed instances: bounds are inclusive."""

    min: Spec
    max: Spec

    @property
    def largest(self) -> Spec:
        """The greatest size, with as few disks as are allowed, but some."""
        return replace(self.max, disk_count=min(max(1, self.min.disk_count), self.max.disk_count))


@dataclass(frozen=True, slots=True)
class InstancePolicy:
    """An instance policy with every value filled in."""

    minmax: tuple[SpecPair, ...]
    std: Spec
    templates: tuple[DiskTemplate, ...]
    vcpu_ratio: float
    spindle_ratio: float


DEFAULT_POLICY = InstancePolicy(
    minmax=(SpecPair(min=Spec(128, 1, 1024, 1, 1, 1), max=Spec(32768, 8, 1048576, 16, 8, 12)),),
    std=Spec(128, 1, 1024, 1, 1, 1),
    templates=tuple(DiskTemplate),
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)
"""Ganeti's built-in policy, the default."""


@dataclass(frozen=True, slots=True)
class Group:
    """A node group. `networks` are the uuids of connected networks."""

    index: int
    name: str
    uuid: str
    alloc_policy: AllocPolicy = AllocPolicy.PREFERRED
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    policy: InstancePolicy = DEFAULT_POLICY


@dataclass(frozen=True, slots=True)
class NodeData:
    """A node as a cluster reports it, with what the merge finds out of it: the properties that no placement changes.

    `offline` is true for every node that must not be used, drained ones included. `free_memory` and
    `free_disk` are the measured values (MiB). `free_spindles` counts only under exclusive storage.

    The fields from `alias` on are filled in by the merge. `unaccounted_memory` is total less node, running instances
    and free memory (negative if more is free than expected). `vcpu_ratio` is the effective one (an option may override
    the policy's); negative: no limit. `high_cpus` and `high_spindles` are the limits from the ratios, `low_disk` is the
    disk space to keep free.
    """

    index: int
    name: str
    group: int
    total_memory: float = 0.0
    node_memory: int = 0
    free_memory: int = 0
    total_disk: float = 0.0
    free_disk: int = 0
    total_cpus: float = 0.0
    node_cpus: int = 1
    offline: bool = False
    master: bool = False
    spindles: int = 1
    free_spindles: int = 0
    exclusive: bool = False
    tags: tuple[str, ...] = ()
    cpu_speed: float = 1.0
    alias: str = ""
    policy: InstancePolicy = DEFAULT_POLICY
    unaccounted_memory: int = 0
    location_tags: frozenset[str] = frozenset()
    migration_tags: frozenset[str] = frozenset()
    receivable_tags: frozenset[str] = frozenset()
    vcpu_ratio: float = 0.0
    high_cpus: int = 0
    high_spindles: float = 0.0
    min_disk_ratio: float = 0.0  # only the dump of hail -v -v -v shows it
    low_disk: int = 0

    def freed(self, instance: Instance, sign: int = 1) -> NodeData:
        """Return the node with what an instance there takes of it free (`sign` 1), or taken (-1)."""
        memory = instance.memory if instance.uses_memory and instance.primary == self.index else 0
        made = instance.template.local and not instance.forthcoming
        spindles = (instance.total_spindles or 0) if made and self.exclusive else 0
        return replace(
            self,
            free_memory=self.free_memory + sign * memory,
            free_disk=self.free_disk + sign * (instance.disk if made else 0),
            free_spindles=self.free_spindles + sign * spindles,
        )

    def disk_ratio(self, spindles: int, disk: int) -> float:
        """The free share of disk: of spindles under exclusive storage, else of space."""
        if self.exclusive:
            return 1.0 if self.spindles == 0 else spindles / self.spindles
        return 1.0 if self.total_disk == 0 else disk / self.total_disk


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk; `spindles` is None if unknown."""

    size: int
    spindles: int | None = None


Load = tuple[float, float, float, float]
"""Utilisation of cpu, memory, disk and network."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance, existing or wanted.

    `disk` is the space charged on each of its nodes. `networks` are the uuids of those of its interfaces, None for an
    unmanaged one. `exclusion_tags`, `desired_tags` and `location_score` are filled in by the merge from cluster tags
    and node tags. Under over-subscription `memory` is what it is guaranteed and `maximum_memory` what it may burst to
    (None: no more).
    """

    index: int
    name: str
    memory: int
    disk: int
    disks: tuple[Disk, ...]
    vcpus: int
    status: InstanceStatus
    template: DiskTemplate
    primary: int = NO_NODE
    secondary: int = NO_NODE
    auto_balance: bool = True
    spindle_use: int = 1
    tags: tuple[str, ...] = ()
    forthcoming: bool = False
    networks: tuple[str | None, ...] = ()
    load: Load = (1.0, 1.0, 1.0, 1.0)
    exclusion_tags: tuple[str, ...] = ()
    desired_tags: frozenset[str] = frozenset()
    location_score: int = 0
    ignores_policy: bool = False
    maximum_memory: int | None = None

    def at(self, index: int, name: str, primary: int, secondary: int, location_score: int) -> Instance:
        """Return the instance with another number, name and nodes (as `dataclasses.replace`, but faster)."""
        values = (index, name, *_before(self), primary, secondary, *_between(self), location_score, *_after(self))
        return Instance(*values)

    @classmethod
    def wanted(cls, spec: Spec, template: DiskTemplate, spindle_use: int) -> Instance:
        """Return the instance of the size `spec` that hspace places: one disk, running."""
        return cls(
            index=-1,
            name="new",
            memory=spec.memory,
            disk=spec.disk_size,
            disks=(Disk(spec.disk_size, spec.spindle_use),),
            vcpus=spec.cpus,
            status=InstanceStatus.RUNNING,
            template=template,
            spindle_use=spindle_use,
        )

    @property
    def online(self) -> bool:
        """Whether Ganeti may start it (anything but `ADMIN_offline`)."""
        return self.status is not InstanceStatus.STATUS_OFFLINE

    @property
    def burst(self) -> int:
        """The greatest memory that it may take (MiB)."""
        return self.memory if self.maximum_memory is None else self.maximum_memory

    @property
    def uses_memory(self) -> bool:
        """Whether it occupies memory on its primary node now."""
        return not self.forthcoming and self.status.running

    @property
    def needs_secondary_memory(self) -> bool:
        """Whether its secondary node must reserve memory for it."""
        return self.auto_balance and self.online

    @property
    def total_spindles(self) -> int | None:
        """The spindles of all disks, None if one is unknown."""
        total = 0
        for disk in self.disks:
            if disk.spindles is None:
                return None
            total += disk.spindles
        return total


_before, _between, _after = (
    attrgetter(*Instance.__match_args__[begin:end]) for begin, end in ((2, 8), (10, 18), (19, None))
)
"""The fields of an instance before its nodes, between them and its location score, and after that."""

NO_LOAD: Load = (0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Node:
    """One node: its facts, and its resources without and with (`forth_*`) forthcoming instances, as in htools.

    It is a value: the functions in `node_changes` return a changed copy.
    `primaries` and `secondaries` hold instance indices, newest first. `peers` maps primary nodes to the memory that
    this node reserves for their failure, the entry written last at the end; `reserved_memory` is the maximum.
    `ratio_*` are the shares in the cluster score.
    """

    facts: NodeData
    instance_memory: int
    free_disk: int
    free_spindles: int
    used_cpus: int
    peers: dict[int, int]
    exclusion_tags: dict[str, int]
    location_exclusions: dict[tuple[str, str], int]
    ratio_disk: float
    forth_free_memory: int
    forth_free_disk: int
    forth_free_spindles: int
    forth_used_cpus: int
    instance_spindles: float = 0.0
    primaries: tuple[int, ...] = ()
    secondaries: tuple[int, ...] = ()
    reserved_memory: int = 0
    fails_n1: bool = False
    load: Load = NO_LOAD
    location_score: int = 0
    ratio_memory: float = 0.0
    ratio_reserved: float = 0.0
    ratio_cpu: float = 0.0
    forth_instance_spindles: float = 0.0
    forth_load: Load = NO_LOAD
    forth_ratio_memory: float = 0.0
    forth_ratio_disk: float = 0.0
    forth_ratio_cpu: float = 0.0
    score_values: tuple[float, ...] | None = field(default=None, compare=False, repr=False)

    def copy(self) -> Node:
        """Return a shallow copy. Its mappings are shared: replace a mapping instead of changing it."""
        return Node(*_fields(self))

    def with_facts(self, facts: NodeData) -> Node:
        """Return a copy with other facts."""
        new = self.copy()
        new.facts = facts
        return new

    @property
    def index(self) -> int:
        """The place in the input."""
        return self.facts.index

    @property
    def unallocated_memory(self) -> int:
        """The expected free memory (total less node and instances), less unaccounted memory."""
        facts = self.facts
        expected = truncate(facts.total_memory) - facts.node_memory - self.instance_memory
        return expected - max(0, facts.unaccounted_memory)

    @property
    def available_memory(self) -> int:
        """Unallocated memory less the reservation for another node's failure."""
        return max(0, self.unallocated_memory - self.reserved_memory)

    @property
    def available_disk(self) -> int:
        """Free disk above the limit of `--min-disk`."""
        return max(0, self.free_disk - self.facts.low_disk)

    @property
    def available_cpus(self) -> int:
        """Virtual CPUs that the ratio still allows."""
        return max(0, self.facts.high_cpus - self.used_cpus)

    @property
    def exceeds_vcpu_ratio(self) -> bool:
        """Whether hbal calls it policy-violating by its virtual CPUs; without CPUs, any virtual one is too many."""
        return self.ratio_cpu > self.facts.vcpu_ratio

    @property
    def exceeds_spindle_ratio(self) -> bool:
        """Whether hbal calls it policy-violating by the spindles in use."""
        return self.instance_spindles > self.facts.high_spindles

    def memory_ratio(self, memory: int) -> float:
        """`memory` as a share of the node's total."""
        return divide(memory, self.facts.total_memory)


_fields = attrgetter(*(name for name in Node.__match_args__ if name != "score_values"))
