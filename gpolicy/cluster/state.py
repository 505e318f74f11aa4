"""The observed cluster: what every source is read into.

Own values are what is set on the object itself; a group's or node's effective values follow from
`gpolicy.ganeti.values.fill`. What a source cannot show is listed in `unreadable`, never guessed.

`position` is the place, from 0, at which the source lists the object, None where its order means nothing. Ganeti's
allocator decides between equal candidates by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpolicy.ganeti.parameter import Level, Path, Value, Values
from gpolicy.ganeti.values import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells one version of an object from another: compare before changing it.

    Ganeti raises `serial_no` and `mtime` on every write, also on one that changes nothing. None where the source
    does not show them.
    """

    uuid: str | None = None
    serial_no: int | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObject:
    """The cluster itself. `own` is complete for what the source can read: the cluster inherits from nothing."""

    own: Values
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node group. `effective` is filled from the cluster, or as the source shows it where own is unreadable.

    `networks` are UUIDs of connected networks, as far as the source names them (text files only, so far).
    """

    name: str
    own: Values
    effective: Values
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()
    networks: tuple[str, ...] = ()
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a node measured: MiB, logical CPUs, physical volumes. None where the source has no number."""

    memory_total: int | None = None
    memory_node: int | None = None
    memory_free: int | None = None
    disk_total: int | None = None
    disk_free: int | None = None
    cpu_total: int | None = None
    cpu_node: int | None = None
    spindles_total: int | None = None
    spindles_free: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalVolume:
    """A physical volume of a node, in whatever volume group: MiB. `free` is what no logical volume has a part of.

    `allocatable` is false for one that LVM is told not to put anything on.
    """

    name: str
    size: int
    free: int
    used: int
    allocatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node and the group it is in. `physical_volumes` is None where they were not read: it is dear, and asked for."""

    name: str
    group: str
    own: Values
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()
    offline: bool = False
    drained: bool = False
    master: bool = False
    master_candidate: bool | None = None
    master_capable: bool | None = None
    vm_capable: bool = True
    resources: Resources = Resources()
    physical_volumes: tuple[PhysicalVolume, ...] | None = None
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One disk of an instance: MiB; `spindles` is None where none are recorded."""

    size: int
    template: str
    spindles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance with its filled backend parameters.

    `disk_template` is the template of all its disks, `diskless` without any, `mixed` when they differ.
    `running` is None where the source does not know the run-time state. `oper_ram` (MiB) is the memory that it has
    now, None where it does not run or the source does not say; it differs from `maxmem` where memory was ballooned.
    `forthcoming` is one that is only planned. `summed_disk` is given by a source that shows one disk for all: as
    htools counts it, the metadata of DRBD included.
    """

    name: str
    primary_node: str
    secondary_nodes: tuple[str, ...] = ()
    disk_template: str
    disks: tuple[Disk, ...] = ()
    minmem: int
    maxmem: int
    vcpus: int
    spindle_use: int
    nic_count: int | None = None
    auto_balance: bool = True
    always_failover: bool | None = None
    admin_state: str = "up"
    status: str | None = None
    running: bool | None = None
    hypervisor: str | None = None
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()
    oper_ram: int | None = None
    forthcoming: bool = False
    summed_disk: Disk | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def disk_spindles(self) -> int | None:
        """The spindles of all its disks; None where one has no count recorded."""
        counts = [disk.spindles for disk in self.disks if disk.spindles is not None]
        return sum(counts) if len(counts) == len(self.disks) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Values that a source cannot show: those at `level` whose path begins with `prefix` (empty: all own values)."""

    level: Level
    prefix: Path = ()

    def covers(self, level: Level, path: Path) -> bool:
        """Return whether the value at `path` of an object at `level` is one that cannot be read."""
        return self.level is level and path[: len(self.prefix)] == self.prefix


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The file that a state was kept in. `taken_at` is YYYY-MM-DDThh:mm:ssZ (UTC), None where it does not say."""

    file: str
    taken_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """One consistent read of a cluster. Groups, nodes and instances are by name.

    `source` is the address that the cluster itself was read at; with a `snapshot`, when that was written.
    `notes` are for people: what the source did not say and what was done about it.
    """

    source: str
    name: str
    software_version: str | None
    cluster: ClusterObject
    groups: dict[str, Group]
    nodes: dict[str, Node]
    instances: dict[str, Instance]
    unreadable: tuple[Unreadable, ...] = ()
    notes: tuple[str, ...] = field(default=())
    snapshot: Snapshot | None = field(default=None, compare=False)

    @property
    def address(self) -> str:
        """The address that the state was read at now: of the snapshot, if it came from one."""
        return f"snapshot:{self.snapshot.file}" if self.snapshot else self.source

    @property
    def read_from(self) -> str:
        """Where the state was read from, in words."""
        return read_from(self.source, self.snapshot)

    def readable(self, level: Level, path: Path) -> bool:
        """Return whether the source shows the own value at `path` of objects at `level`."""
        return not any(gap.covers(level, path) for gap in self.unreadable)

    def nodes_of(self, group: str) -> list[Node]:
        """Return the nodes that are in `group`."""
        return [node for node in self.nodes.values() if node.group == group]

    def in_force(self, node: Node, path: Path) -> Value:
        """Return one effective node parameter; None where nothing is set. Quicker than all of them."""
        if path in node.own:
            return node.own[path]
        group = self.groups.get(node.group)
        return (group.effective if group else self.cluster.own).get(path)

    def has_exclusive_storage(self, node: Node) -> bool:
        """Return whether exclusive storage is in force on `node`."""
        return self.in_force(node, ("ndparams", "exclusive_storage")) is True

    def on_exclusive_storage(self, instance: Instance) -> bool:
        """Return whether one of the nodes of `instance` has exclusive storage."""
        names = (instance.primary_node, *instance.secondary_nodes)
        return any(self.has_exclusive_storage(self.nodes[name]) for name in names)

    def effective_of_node(self, node: Node) -> Values:
        """Return the node's effective values, filled from its group."""
        group = self.groups.get(node.group)
        return fill(node.own, group.effective if group else self.cluster.own, Level.NODE)


def read_from(source: str, snapshot: Snapshot | None) -> str:
    """Return in words where a state was read from: of a snapshot also where and when that was taken."""
    if snapshot is None:
        return source
    when = f", at {snapshot.taken_at}" if snapshot.taken_at else ""
    return f"snapshot:{snapshot.file} (taken from {source}{when})"
