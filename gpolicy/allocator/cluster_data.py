"""The input of the allocator: policies, groups, nodes and instances as plain frozen values.

Sizes are MiB as int unless said otherwise. Totals are floats since htools reads them as doubles.
Elements refer to each other by index, which is their place in the input.
"""

from __future__ import annotations

from operator import attrgetter

from gpolicy.allocator.enumerations import NO_NODE, AllocPolicy, DiskTemplate, InstanceStatus
from gpolicy.light_dataclasses import dataclass, replace


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
    min_disk_ratio: float = 0.0
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


@dataclass(frozen=True, slots=True)
class ClusterData:
    """A whole cluster as read, before the merge (`gpolicy.allocator.merge`).

    Nodes, groups and instances are in ascending index order. `hypervisor` is the cluster's default one, None if the
    source does not show it. `n1_by_unallocated`: nodes are judged for N+1 as Ganeti 3.1.0 and later do
    (`releases.n1_by_unallocated`).
    """

    groups: tuple[Group, ...]
    nodes: tuple[NodeData, ...]
    instances: tuple[Instance, ...]
    tags: tuple[str, ...] = ()
    policy: InstancePolicy = DEFAULT_POLICY
    hypervisor: str | None = None
    n1_by_unallocated: bool = False
