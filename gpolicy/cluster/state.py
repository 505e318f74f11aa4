"""The observed cluster, as every source returns it.

Own values are what is set on the object itself; a group's or node's effective values follow from
`gpolicy.ganeti.parameters.fill`. What a source cannot show is listed in `unreadable`, never guessed.

`position` is the index of the object in the source's list, from 0; None if that order has no meaning. Ganeti's
allocator decides between equal candidates by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpolicy.cluster.terms import GroupTerms
from gpolicy.ganeti.parameters import fill, parameters_of
from gpolicy.ganeti.releases import AMBIGUOUS, most_exact
from gpolicy.ganeti.vocabulary import Level, Path, Value, Values

_NO_TERMS: Final = GroupTerms()
NOT_VERIFIED: Final = "the server's TLS certificate was not verified"
"""The note of a state that anybody may have answered with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identifies one version of an object; to be compared before a change.

    Ganeti raises `serial_no` and `mtime` on every write, even if nothing changes. None if the source does not show
    them.
    """

    uuid: str | None = None
    serial_no: int | None = None
    mtime: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObject:
    """The cluster itself. `own` holds all values that the source can read: the cluster inherits nothing."""

    own: Values
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A node group. `effective` is filled from the cluster, or as the source shows it if own values are unreadable.

    `networks` holds the UUIDs of connected networks; only text files show them.
    """

    name: str
    own: Values
    tags: frozenset[str] = frozenset()
    identity: Identity = Identity()
    effective: Values
    networks: tuple[str, ...] = ()
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The measurements of a node: MiB, logical CPUs, physical volumes. None if the source has no number."""

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
    """A physical volume of a node, of any volume group (MiB). `free` is the part that no logical volume uses.

    `allocatable` is false if LVM must not use the volume.
    """

    name: str
    size: int
    free: int
    used: int
    allocatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node and the name of its group. `physical_volumes` is None if they were not read (they are read on request)."""

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

    @property
    def is_measured(self) -> bool:
        """Whether Ganeti measures it; it measures drained nodes, too."""
        return self.vm_capable and not self.offline

    @property
    def is_usable(self) -> bool:
        """Whether it may get instances."""
        return self.is_measured and not self.drained

    @property
    def why_unusable(self) -> str:
        """Why it may get no instances; empty if it may."""
        return "offline" if self.offline else "drained" if self.drained else "" if self.vm_capable else "not vm_capable"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDisk:
    """One disk of an instance: MiB; `spindles` is None if no number is recorded."""

    size: int
    template: str
    spindles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveInstance:
    """An instance with its filled backend parameters.

    `disk_template` is the template of all its disks, `diskless` without any, `mixed` when they differ.
    `running` is None if the source does not know the run-time state. `oper_ram` (MiB) is the memory that it has now,
    which ballooning may change from `maxmem`; None if it does not run or the source does not tell. A `forthcoming`
    instance is only planned. `summed_disk` comes from sources that show one disk for all, as htools counts them: with
    the metadata of DRBD.
    """

    name: str
    primary_node: str
    secondary_nodes: tuple[str, ...] = ()
    disk_template: str
    disks: tuple[LiveDisk, ...] = ()
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
    summed_disk: LiveDisk | None = None
    position: int | None = field(default=None, compare=False)

    @property
    def disk_spindles(self) -> int | None:
        """The spindles of all its disks; None if one of them has no number recorded."""
        counts = [disk.spindles for disk in self.disks if disk.spindles is not None]
        return sum(counts) if len(counts) == len(self.disks) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Values that a source cannot show: those at a level whose path begins with a prefix."""

    level: Level
    """Level of the objects."""
    prefix: Path = ()
    """First keys of the values; empty for all own values."""

    def covers(self, level: Level, path: Path) -> bool:
        """Return whether the value at `path` of objects at `level` cannot be read."""
        return self.level is level and path[: len(self.prefix)] == self.prefix


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The file that a state was read from."""

    file: str
    """The file, as it was named on the command line."""
    taken_at: str | None = None
    """YYYY-MM-DDThh:mm:ssZ, in UTC; None where the snapshot does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """One consistent read of a cluster. Groups, nodes and instances are by name.

    `name` is empty where the source does not name the cluster: nothing may be compared with it then.
    `source` is the address of the cluster; for a `snapshot`, the one from which it was taken. `notes` tell people what
    the source did not show and how that was handled. `terms` are what a policy says of groups, `declared` its values of
    `terms.COUNTED` by object (`cluster`, `group/NAME`, `node/NAME`), and `declared_release` the release of Ganeti that
    it, or the environment, says: no part of what was observed. `supposed`
    says in words what was not observed, but is asked about (`gpolicy.what_if`).
    """

    source: str
    name: str
    software_version: str | None
    declared_release: str | None = None
    cluster: ClusterObject
    groups: dict[str, LiveGroup]
    nodes: dict[str, LiveNode]
    instances: dict[str, LiveInstance]
    unreadable: tuple[Unreadable, ...] = ()
    notes: tuple[str, ...] = field(default=())
    snapshot: Snapshot | None = field(default=None, compare=False)
    terms: Mapping[str, GroupTerms] = field(default_factory=dict)
    declared: Mapping[str, Values] = field(default_factory=dict)
    supposed: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What reports call the cluster: its name, or the source of the state where that has none."""
        return self.name or self.source

    @property
    def release(self) -> str:
        """The release of Ganeti by which is counted."""
        return most_exact(self.software_version, self.declared_release)

    @property
    def says_release(self) -> bool:
        """Whether the source says how its release judges nodes for N+1, or somebody declared which it is."""
        return self.declared_release is not None or self.software_version not in (None, AMBIGUOUS)

    @property
    def address(self) -> str:
        """The address of this state: of the snapshot, if it came from one."""
        return f"snapshot:{self.snapshot.file}" if self.snapshot else self.source

    @property
    def read_from(self) -> str:
        """The source of the state, in words."""
        return describe_source(self.source, self.snapshot)

    def readable(self, level: Level, path: Path) -> bool:
        """Return whether the source shows the own value at `path` of objects at `level`."""
        return not any(gap.covers(level, path) for gap in self.unreadable)

    def terms_of(self, group: str) -> GroupTerms:
        """Return the terms of a group."""
        return self.terms.get(group, _NO_TERMS)

    def nodes_of(self, group: str) -> list[LiveNode]:
        """Return the nodes that are in `group`."""
        return [node for node in self.nodes.values() if node.group == group]

    def in_force(self, node: LiveNode, path: Path) -> Value:
        """Return one effective node parameter, None if it is not set; faster than `effective_of_node`."""
        if path in node.own:
            return node.own[path]
        group = self.groups.get(node.group)
        return (group.effective if group else self.cluster.own).get(path)

    def has_exclusive_storage(self, node: LiveNode) -> bool:
        """Return whether exclusive storage is in force on `node`."""
        return self.in_force(node, ("ndparams", "exclusive_storage")) is True

    def is_exclusive(self, group: str) -> bool:
        """Return whether `group` has nodes, all with exclusive storage."""
        nodes = self.nodes_of(group)
        return bool(nodes) and all(map(self.has_exclusive_storage, nodes))

    def on_exclusive_storage(self, instance: LiveInstance) -> bool:
        """Return whether one of the nodes of `instance` has exclusive storage."""
        names = (instance.primary_node, *instance.secondary_nodes)
        return any(self.has_exclusive_storage(self.nodes[name]) for name in names)

    def effective_of_node(self, node: LiveNode) -> Values:
        """Return the node's effective values, filled from its group."""
        group = self.groups.get(node.group)
        return fill(node.own, group.effective if group else self.cluster.own, Level.NODE)


def describe_source(source: str, snapshot: Snapshot | None) -> str:
    """Return the source of a state in words; for a snapshot also where and when it was taken."""
    if snapshot is None:
        return source
    when = f", at {snapshot.taken_at}" if snapshot.taken_at else ""
    return f"snapshot:{snapshot.file} (taken from {source}{when})"


_STATES: Final = tuple(Unreadable(level=level, prefix=(key,)) for level in Level for key in ("hv_state", "disk_state"))

HIDDEN_OWN: Final = Unreadable(level=Level.NODE)

HIDDEN_BY_RAPI: Final = (*_STATES, Unreadable(level=Level.CLUSTER, prefix=("modify_etc_hosts",)))
"""Values that the remote API never shows."""


def hidden_in_text(*, cluster_policy: bool) -> tuple[Unreadable, ...]:
    """Return what a text file of htools does not show; `cluster_policy`: it has a line for the cluster's ipolicy.

    It shows effective policies of groups, but of their own values only alloc_policy.
    """
    shown = {Level.CLUSTER: {"ipolicy"} if cluster_policy else set(), Level.GROUP: {"alloc_policy"}}
    hidden = tuple(
        Unreadable(level=level, prefix=(family,))
        for level in (Level.CLUSTER, Level.GROUP)
        for family in dict.fromkeys(parameter.family for parameter in parameters_of(level))
        if family not in shown[level]
    )
    return (*hidden, HIDDEN_OWN)
