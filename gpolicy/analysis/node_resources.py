"""What a node has by declaration (hv_state and disk_state), and by its physical volumes under exclusive storage.

Ganeti stores both declarations at cluster, group and node and inherits neither; here a node's value is its own, else
its group's, else the cluster's. Of several hypervisors only the cluster's first one counts (design document "Resource
model"), and of the volume groups the cluster's own. A value counts also where it is Ganeti's default. But a total of 0
is none, and Ganeti fills the cluster's records with defaults: unless the policy itself declares them, a record of
nothing but defaults declares nothing, and neither does a cpu_total of 1.

Sizes of physical volumes are measured, else promised by the policy, else not known. Ganeti 3.0 and 3.1 report neither
for such nodes (`gpolicy explain exclusive-storage-reads`). Sizes are MiB; sources: design document "partitioned
Ganeti", "Exclusive use of disks", and `LogicalVolume._GetRawFreePvInfo` of Ganeti.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.merge import Cluster
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.terms import VOLUME_GROUP, VolumeSize
from gpolicy.cluster.volume_pools import VolumesFrom, own_group, pools_of, separate_metavg
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.vocabulary import DISK_STATE, DRBD_METADATA, ENABLED_HYPERVISORS, HV_STATE, Level, Path, Values

_CPUS = ("cpu_total", "cpu_node")
_TOTALS = frozenset({"mem_total", "cpu_total", "disk_total"})


@dataclass(frozen=True, slots=True)
class DeclaredNumber:
    """One declared number and the reported one, in MiB or CPUs."""

    name: str
    declared: int
    level: str
    reported: int | None

    @property
    def differs(self) -> bool:
        """Whether the node reports another number."""
        return self.reported is not None and self.reported != self.declared

    def amount(self, number: int | None) -> str:
        """Return the declared or reported number as people write it: 2 CPUs as 2, memory and disk with their unit."""
        if number is None:
            return "not known"
        return f"{number:,}" if self.name in _CPUS else exact_size(number)


DeclaredNumbers = dict[str, tuple[int, Level]]
"""The declared numbers of a node (MiB or cores), by Ganeti's names: mem_total, …, disk_overhead; with their levels."""


def known_states(state: ClusterState) -> bool:
    """Return whether the source shows hv_state and disk_state at all."""
    return all(state.readable(level, (family,)) for level in Level for family in ("hv_state", "disk_state"))


def prefixes(state: ClusterState) -> tuple[Path | None, Path | None]:
    """Return the paths of the values that count: of the first hypervisor, and of the cluster's volume group.

    Where the source does not show which these are, the policy says it, or declares something of only one.
    """
    said = only_named(path for values in state.declared.values() for path in values) | state.declared.get("cluster", {})
    hypervisors, volume_group = (
        state.cluster.own.get(path, None if state.readable(Level.CLUSTER, path) else said.get(path))
        for path in (ENABLED_HYPERVISORS, VOLUME_GROUP)
    )
    first = str(hypervisors[0]) if isinstance(hypervisors, list) and hypervisors else None
    return (
        ("hv_state", first) if first else None,
        ("disk_state", "plain", volume_group) if isinstance(volume_group, str) and volume_group else None,
    )


def only_named(paths: Iterable[Path]) -> Values:
    """Return the cluster's hypervisor and volume group, where `paths` of hv_state and disk_state name just one."""
    known = set(paths)
    hypervisors = {path[1] for path in known if path[0] == "hv_state"}
    groups = {path[2] for path in known if path[0] == "disk_state" and len(path) > 2}
    values: Values = {}
    if len(hypervisors) == 1:
        values[ENABLED_HYPERVISORS] = [*hypervisors]
    if len(groups) == 1:
        values[VOLUME_GROUP] = groups.pop()
    return values


def declared(state: ClusterState, node: LiveNode) -> DeclaredNumbers:
    """Return the declared numbers of `node`, with their levels."""
    found: DeclaredNumbers = {}
    for prefix, table in zip(prefixes(state), (HV_STATE, DISK_STATE), strict=True):
        if prefix is not None:
            found |= _declared_at(state, node, prefix, table)
    return found


def _declared_at(
    state: ClusterState, node: LiveNode, prefix: Path, table: Mapping[str, tuple[int, str]]
) -> DeclaredNumbers:
    return _first_of((node.own, state.groups[node.group].own, _of_cluster(state, prefix, table)), prefix, table)


def declared_by_policy(state: ClusterState, node: LiveNode) -> dict[str, int]:
    """Return the numbers that the policy of this run declares for `node`, whether they are in force yet or not."""
    own = [state.declared.get(label, {}) for label in (f"node/{node.name}", f"group/{node.group}", "cluster")]
    found: DeclaredNumbers = {}
    for prefix, table in zip(prefixes(state), (HV_STATE, DISK_STATE), strict=True):
        if prefix is not None:
            found |= _first_of(own, prefix, table)
    return {name: value for name, (value, _) in found.items()}


def _first_of(own: Sequence[Values], prefix: Path, table: Iterable[str]) -> DeclaredNumbers:
    """Return the numbers of the `table` from the values of a node, its group and the cluster."""
    levels = tuple(zip((Level.NODE, Level.GROUP, Level.CLUSTER), own, strict=True))
    found: DeclaredNumbers = {}
    for name in table:
        for level, values in levels:
            value = values.get((*prefix, name))
            if isinstance(value, int) and not isinstance(value, bool) and (value != 0 or name not in _TOTALS):
                found[name] = value, level
                break
    return found


def _of_cluster(state: ClusterState, prefix: Path, table: Mapping[str, tuple[int, str]]) -> Values:
    """Return the values of the cluster that somebody has declared, without Ganeti's own defaults."""
    record = {name: state.cluster.own.get((*prefix, name)) for name in table}
    meant = any(value not in (None, table[name][0]) for name, value in record.items())
    found: Values = {}
    by_policies = state.declared.get("cluster", {})
    for name, value in record.items():
        path = (*prefix, name)
        filled_in = name == "cpu_total" and value == 1
        by_policy = path in by_policies and by_policies[path] == value
        if by_policy or (meant and not filled_in):
            found[path] = value
    return found


def declared_numbers(state: ClusterState, node: LiveNode) -> dict[str, int]:
    """Return the declared numbers of `node`."""
    return {name: value for name, (value, _) in declared(state, node).items()}


def compared(state: ClusterState, node: LiveNode, shown: Mapping[str, int]) -> tuple[DeclaredNumber, ...]:
    """Return the declared numbers of `node` beside those that it reports (`shown`, by Ganeti's names)."""
    found = declared(state, node).items()
    return tuple(DeclaredNumber(name, value, level.value, shown.get(name)) for name, (value, level) in found)


def declaration_notes(state: ClusterState) -> list[str]:
    """Return notes on declarations: what the source hides, and what does not count."""
    hidden = f"{state.address} does not show hv_state and disk_state: only what a policy declares counts"
    return [*([] if known_states(state) else [hidden]), *uncounted(state)]


def uncounted(state: ClusterState) -> list[str]:
    """Return notes on declarations that do not count: other hypervisors, other volume groups."""
    counted = set(prefixes(state))
    own = [state.cluster.own, *(group.own for group in state.groups.values()), *(n.own for n in state.nodes.values())]
    paths = {path for values in own for path in values if path[0] in ("hv_state", "disk_state")}
    others = {path[:2] if path[0] == "hv_state" else path[:3] for path in paths} - counted
    metadata = {("disk_state", "plain", separate_metavg(state, group)) for group in state.groups.values()}
    return [
        f"{'.'.join(path)} counts only as room for the metadata of DRBD disks (metavg), beside capacity"
        if path in metadata
        else f"{'.'.join(path)} is ignored: capacity counts only the cluster's first hypervisor and its own volume"
        " group"
        for path in sorted(others)
    ]


def reported(node: Node, cluster: Cluster) -> dict[str, int]:
    """Return the figures that `node` of a loaded cluster reports, or that follow, by Ganeti's names (MiB, CPUs).

    `mem_hv` is total memory less node, running instances and free memory; `disk_overhead` is total disk less instances
    and free disk, as htools computes them. `mem_node` is htools' value: 4096 MiB under KVM.
    """
    facts = node.facts
    there = (cluster.instances[index] for index in (*node.primaries, *node.secondaries))
    used = sum(instance.disk for instance in there if instance.template.local)
    disk = truncate(facts.total_disk)
    return {
        "mem_total": truncate(facts.total_memory),
        "mem_node": facts.node_memory,
        "mem_hv": max(0, facts.unaccounted_memory),
        "cpu_total": truncate(facts.total_cpus),
        "cpu_node": facts.node_cpus,
        "disk_total": disk,
        "disk_overhead": max(0, disk - node.free_disk - used),
    }


_LOCAL = {"plain": 0, "drbd": DRBD_METADATA}
"""The templates of disks in a volume group, and what each disk takes beside its size."""


def smallest_volume(state: ClusterState, node: LiveNode) -> VolumeSize | None:
    """Return the size of the smallest physical volume of a node, which Ganeti computes with; None: not known."""
    pools = pools_of(state, node)
    return promised_volume(state, node.group) if pools is None else pools.own.volume_size


def promised_volume(state: ClusterState, group: str) -> VolumeSize | None:
    """Return the size of the smallest physical volume that the policy promises for a group; None: not known."""
    terms = state.terms_of(group)
    return terms.volumes.volume_size(min(terms.promise.volumes)) if terms.promise.volumes else None


def smallest_volumes(state: ClusterState) -> dict[str, VolumeSize]:
    """Return the size of the smallest physical volume of each node where it is known, by name."""
    found = {name: smallest_volume(state, node) for name, node in state.nodes.items()}
    return {name: size for name, size in found.items() if size is not None}


def groups_of_unknown_volumes(state: ClusterState, group: str | None = None) -> list[str]:
    """Return the groups (or `group` alone) with exclusive storage where the size of volumes is not known."""
    volumes = smallest_volumes(state)
    groups = dict.fromkeys(
        node.group
        for node in state.nodes.values()
        if node.name not in volumes
        and node.physical_volumes is None
        and not node.offline
        and group in (None, node.group)
        and state.has_exclusive_storage(node)
    )
    return list(groups)


def what_if_shares(state: ClusterState, group: str | None = None) -> list[str]:
    """Return a note on each group (or on `group`) with exclusive storage whose margin or reserve is not Ganeti's."""
    groups = dict.fromkeys(node.group for node in state.nodes.values() if state.has_exclusive_storage(node))
    said = {name: state.terms_of(name).volumes.what_if for name in groups if group in (None, name)}
    return [f"group {name}: {text}" for name, text in said.items() if text]


@dataclass(frozen=True, slots=True)
class VolumeResources:
    """What a node has under exclusive storage: figures by their names in `Resources`, measured or promised.

    Only whole and empty volumes are free. `disk_total` is what disks can use, without margin and reserve: all of it is
    free on an empty node.
    """

    figures: Mapping[str, int]
    known_from: VolumesFrom


def volume_resources(state: ClusterState, node: LiveNode) -> VolumeResources | None:
    """Return disk and spindles of `node`, which has exclusive storage; None if nothing is known of its volumes.

    Measured volumes go before those that the policy promises. Of promised ones, all that the disks of the node's
    instances take are in use: the recorded spindles of a disk, else as many as its size needs. Which of them are only
    partly used is not known there. None also if disks without recorded spindles are on volumes too small to count.
    """
    if not state.has_exclusive_storage(node):
        return None
    if (pools := pools_of(state, node)) is not None:
        pool = pools.own
        return _resources(pool.count, len(pool.empty), pool.usable, VolumesFrom.MEASURED)
    volume = promised_volume(state, node.group)
    taken = None if volume is None else _taken(state, node, volume)
    if volume is None or taken is None:
        return None
    number = len(state.terms_of(node.group).promise.volumes or ())
    return _resources(number, max(0, number - taken), volume.usable, VolumesFrom.PROMISED)


def volume_notes(state: ClusterState, worked_out: Mapping[str, VolumeResources]) -> Iterator[str]:
    """Yield notes on figures of nodes (by name) that come from `volume_resources`."""
    name = own_group(state)
    group = f"volume group {name}" if name else "the cluster's volume group"
    sources = {
        VolumesFrom.MEASURED: f"physical volumes; those that the policy neither excludes nor assigns count as {group}",
        VolumesFrom.PROMISED: "the hardware that the policy promises, less what disks take",
    }
    for origin, what in sources.items():
        names = sorted(name for name, figures in worked_out.items() if figures.known_from is origin)
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"disk and spindles of {names[0]}{more} are worked out from {what}"


def _resources(count: int, free: int, usable: int, known_from: VolumesFrom) -> VolumeResources:
    disk = {"disk_total": count * usable, "disk_free": free * usable}
    return VolumeResources(disk | {"spindles_total": count, "spindles_free": free}, known_from)


def _taken(state: ClusterState, node: LiveNode, volume: VolumeSize) -> int | None:
    """Return how many volumes the disks on `node` take; None if volumes are too small to count."""
    disks = list(_disks_on(state, node))
    if volume.usable < 1 and any(spindles is None for _, spindles in disks):
        return None
    return sum(volume.needed(size) if spindles is None else spindles for size, spindles in disks)


def _disks_on(state: ClusterState, node: LiveNode) -> Iterator[tuple[int, int | None]]:
    """Give the size and the recorded spindles of each disk in the node's volume group."""
    for instance in state.instances.values():
        if instance.forthcoming or node.name not in (instance.primary_node, *instance.secondary_nodes):
            continue
        summed = instance.summed_disk
        if summed is not None and summed.template in _LOCAL:
            yield summed.size, summed.spindles
        for disk in instance.disks if summed is None else ():
            if disk.template in _LOCAL:
                yield disk.size + _LOCAL[disk.template], disk.spindles


# Room for the metadata of DRBD disks where it is in another volume group than the cluster's own (`metavg`).
#
# htools charges the 128 MiB of metadata of each disk to the one disk pool that nodes report, wherever it is; so it
# cannot see that the other group is full (Ganeti's issue 865). The room is a limit of its own, beside capacity. It is
# known from the volumes that a policy assigns to the group, or from disk_state of the group. Sources: design document
# "Resource model" (drbd/metavg; disk_state is "indexed per storage type and name"); Ganeti's `GenerateDRBD8Branch`.


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is free for metadata on a node."""

    node: str
    free: int
    disks: int
    measured: bool


@dataclass(frozen=True, slots=True)
class MetadataRoom:
    """Room for the metadata of new DRBD disks of a group."""

    group: str
    volume_group: str
    nodes: tuple[NodeRoom, ...]
    unknown: tuple[str, ...] = ()

    @property
    def disks(self) -> int | None:
        """The most DRBD disks whose metadata fits, each on two nodes; None if a node is not known."""
        counts = [node.disks for node in self.nodes]
        return None if self.unknown or not counts else min(sum(counts) // 2, sum(counts) - max(counts))


def metadata_rooms(state: ClusterState, group: str | None = None) -> tuple[MetadataRoom, ...]:
    """Return the room of each group (or of `group`) whose DRBD disks have their metadata in another volume group."""
    found = []
    for name in sorted(state.groups):
        volume_group = separate_metavg(state, state.groups[name])
        if volume_group is None or group not in (None, name):
            continue
        nodes = sorted((node for node in state.nodes_of(name) if node.is_usable), key=lambda node: node.name)
        rooms = {node.name: _room(state, node, volume_group) for node in nodes}
        known = tuple(room for room in rooms.values() if room is not None)
        found.append(MetadataRoom(name, volume_group, known, tuple(node for node, room in rooms.items() if not room)))
    return tuple(found)


def _room(state: ClusterState, node: LiveNode, volume_group: str) -> NodeRoom | None:
    """Return the room on a node: measured, else declared less the metadata of its DRBD disks, as if all were there."""
    found = _declared_at(state, node, ("disk_state", "plain", volume_group), DISK_STATE)
    declared = {name: value for name, (value, _) in found.items()}
    pools = pools_of(state, node)
    pool = pools.others.get(volume_group) if pools else None
    if pool is not None:
        free = sum(volume.free for volume in pool.allocatable)
    elif "disk_total" in declared:
        there = (item for item in state.instances.values() if node.name in (item.primary_node, *item.secondary_nodes))
        drbd_disks = sum(disk.template == "drbd" for item in there for disk in item.disks)
        free = declared["disk_total"] - declared.get("disk_overhead", 0) - DRBD_METADATA * drbd_disks
    else:
        return None
    free = max(0, free - declared.get("disk_reserved", 0))
    return NodeRoom(node.name, free, free // DRBD_METADATA, pool is not None)
