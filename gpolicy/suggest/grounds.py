"""The basis of the sizes of one group: template, divisors, and what its empty nodes have for instances.

Memory counts as in the allocator: total less the memory of the node itself, or the measured free memory if that is
less. If hv_state or disk_state declares a greater reserve than measured, that one counts. A node must keep some free
memory and disk, so a size never uses the last MiB. Sources: design documents "resource model" and "partitioned Ganeti"
(dedicated CPUs and RAM).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpolicy.allocator.cluster_data import DiskTemplate, Node, NodeData
from gpolicy.allocator.merge import ClusterData, merge
from gpolicy.analysis.node_resources import declared_numbers, known_states
from gpolicy.analysis.wanted_instance import allowed_templates, enabled_templates, wanted_template
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import VolumeSize, sizes_differ
from gpolicy.cluster.volume_pools import pools_of
from gpolicy.errors import GpolicyError, RequestError, about, argument
from gpolicy.ganeti.amounts import compared_sizes, exact_size, rough_size
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS, hail_parameters
from gpolicy.printable import count, some
from gpolicy.suggest.suggestion import NodeHardware, NodeKind, SuggestRequest, size_name
from gpolicy.suggest.tiling import Amounts, Ground, Tiling, combined, part, tiling


class Grounds:
    """The basis of the sizes of one group, worked out once. `data` is the group alone, as the allocator's input.

    `volume` is the size of the smallest physical volume (MiB) where volumes count, `empty` the group without instances,
    `ratio` virtual CPUs for each CPU. `notes` are what is to be said of all this. Raise GpolicyError where nothing can
    be worked out, RequestError for a request that the group cannot meet.
    """

    def __init__(self, state: ClusterState, request: SuggestRequest, data: ClusterData) -> None:
        self.state, self.request, self.data = state, request, data
        self.group = data.groups[0].name
        self.notes: list[str] = []
        self.exclusive = self._exclusive()
        self.template = self._template()
        self.ratio = request.vcpu_ratio or (1.0 if self.exclusive else data.policy.vcpu_ratio)
        self.ground, self.volume = self._ground()
        self.empty = emptied(data, self.ground.volume)
        self.kinds = self._kinds()

    def _exclusive(self) -> bool:
        """Return whether the nodes have exclusive storage; all nodes of a group should agree."""
        flags = {node.exclusive for node in self.data.nodes if not node.offline}
        if len(flags) > 1:
            wrong = "exclusive storage is on for only some of its nodes"
            raise GpolicyError(f"group {self.group}: {wrong}", hint="split the group")
        return flags == {True}

    def _template(self) -> DiskTemplate:
        enabled, today = enabled_templates(self.state), self.data.policy
        if self.exclusive:
            if self.request.template not in (None, DiskTemplate.PLAIN.value):
                raise RequestError(f"group {self.group} has exclusive storage, which is for plain disks only")
            return wanted_template(DiskTemplate.PLAIN.value, enabled)
        if self.request.template is None:
            allowed = allowed_templates(enabled, today, exclusive=False)
            if not allowed:
                raise GpolicyError(f"group {self.group}: no enabled disk template is allowed by its policy")
            return allowed[0]
        template = wanted_template(self.request.template, enabled)
        if template not in today.templates:
            names = ", ".join(item.value for item in today.templates)
            raise RequestError(f"group {self.group} does not allow {template.value}", hint=f"it allows {names}")
        return template

    def _ground(self) -> tuple[Ground, int | None]:
        """Return the properties of all nodes, and the size of the smallest physical volume if volumes count."""
        nodes = [node for node in self.data.nodes if not node.offline]
        if not nodes:
            raise GpolicyError(f"group {self.group}: no node is online, so there is nothing to measure")
        mirrored = self.template is DiskTemplate.DRBD
        threads = min(int(node.total_cpus) for node in nodes)
        if mirrored and len(nodes) == 1:
            hint = f"for instances without a mirror: {argument('template')} plain"
            raise RequestError(f"group {self.group}: drbd needs two nodes, but only one is online", hint=hint)
        if left_out := [node.name for node in self.data.nodes if node.offline]:
            self.notes.append(f"skipped, since offline or drained: {', '.join(left_out)}")
        if not known_states(self.state):
            hidden = "the source does not show hv_state and disk_state: the reserve of nodes is the measured one"
            self.notes.append(hidden)
        if not self.exclusive:
            return Ground(mirrored, len(nodes), threads), None
        smallest = smallest_volume(self.state, [node.name for node in nodes], self.request.volume, self.notes)
        usable = VolumeSize(smallest).usable
        if usable < 1:
            message = f"a physical volume of {exact_size(smallest)} is too small for any disk"
            raise RequestError(message, hint=f"{argument('volume')} takes MiB, or 1T")
        return Ground(mirrored, len(nodes), threads, usable), smallest

    def _kinds(self) -> tuple[NodeKind, ...]:
        """Return the kinds of nodes that have room for instances."""
        kinds = kinds_of(node_hardware(self.empty, self.state, self.template, self.ratio, self.request))
        useless = [node.name for kind in kinds for node in kind.nodes if not (node.room.memory and node.room.cpus)]
        if useless:
            self.notes.append(f"no memory or no CPUs for instances: {', '.join(useless)}")
        usable = tuple(kind for kind in kinds if kind.room.memory and kind.room.cpus)
        if not usable:
            wrong = f"its nodes have no memory or no CPUs for instances ({_room(kinds[0])})"
            hint = "compare vcpu-ratio and hv_state with the nodes' own reserve"
            raise GpolicyError(f"group {self.group}: {wrong}", hint=hint)
        if len(usable) > 1:
            alike = len({kind.room for kind in usable}) < len(usable)
            told = []
            for kind in usable:
                most = kind.nodes[0].spindle_use
                spindles = f", {most:g} of spindle use" if alike and most is not None else ""
                told.append(f"{some([node.name for node in kind.nodes])} ({_room(kind)}{spindles})")
            self.notes.append(f"there are {len(usable)} kinds of nodes: {'; '.join(told)}")
        return usable

    def tiles(self) -> Tiling:
        """Return the requested sizes, or suitable ones. Raise RequestError or GpolicyError if there is none."""
        divisors = self.request.divisors or (tuple(sorted(self.request.mix)) if self.request.mix else None)
        rooms = [(kind.room, len(kind.nodes)) for kind in self.kinds]
        if (found := tiling(rooms, self.ground, divisors)) is not None:
            return found
        room = f"the largest node has {_room(self.kinds[0])}"
        for divisor in divisors or ():
            if not any(part(kind.room, divisor, self.ground) for kind in self.kinds):
                hint = f"name other {argument('divisors')}"
                raise RequestError(
                    f"group {self.group}: there is no {size_name(divisor)} of its nodes: {room}", hint=hint
                )
        raise GpolicyError(f"group {self.group}: its nodes are too small for any instance: {room}")

    def spindle_use(self, tiles: Tiling) -> dict[int, int]:
        """Return the greatest spindle use of each size: its volumes, or its share of the spindle-ratio."""
        nodes = merge(self.data).nodes.values()
        most = min(node.facts.high_spindles for node in nodes if not node.facts.offline)
        copies = 2 if self.template is DiskTemplate.DRBD else 1
        return {
            divisor: size.volumes if size.volumes is not None else max(1, int(most // (divisor * copies)))
            for divisor, size in tiles.sizes.items()
        }


def _room(kind: NodeKind) -> str:
    room = kind.room
    parts = [f"{rough_size(room.memory)} memory", count(room.cpus, "virtual CPU")]
    if room.disk is not None:
        parts.append(f"{rough_size(room.disk)} disk")
    if room.volumes is not None:
        parts.append(count(room.volumes, "physical volume"))
    return f"{', '.join(parts)} for instances"


ALIKE = 0.97
"""Nodes are of the same kind if none has less than this share of another's resource: measurements vary."""


def emptied(data: ClusterData, volume: int | None = None) -> ClusterData:
    """Return `data` without instances, with their known resources free.

    `volume` (MiB) is what Ganeti counts of each physical volume under exclusive storage: a disk frees its whole
    volumes.
    """
    nodes = {node.index: node for node in data.nodes}
    for instance in data.instances:
        for index in {instance.primary, instance.secondary} & nodes.keys():
            nodes[index] = nodes[index].freed(instance)
    found = []
    for node in nodes.values():
        volumes = min(node.spindles, node.free_spindles) if node.exclusive else node.free_spindles
        free = max(node.free_disk, volumes * (volume or 0)) if node.exclusive else node.free_disk
        found.append(replace(node, free_disk=min(int(node.total_disk), free), free_spindles=volumes))
    return replace(data, nodes=tuple(found), instances=())


def node_hardware(
    empty: ClusterData, state: ClusterState, template: DiskTemplate, ratio: float, request: SuggestRequest
) -> list[NodeHardware]:
    """Return the hardware of the nodes of `empty` (one group, emptied); `ratio` is virtual CPUs for each CPU."""
    hail = hail_parameters(state.cluster.own.get(ALLOCATOR_PARAMETERS))
    merged = merge(empty, static_kvm_node_memory=hail.static_kvm_node_memory).nodes
    return [
        _hardware(node, merged[node.index], declared_numbers(state, state.nodes[node.name]), template, ratio, request)
        for node in empty.nodes
        if not node.offline
    ]


def _hardware(
    node: NodeData, merged: Node, kept: Mapping[str, int], template: DiskTemplate, ratio: float, request: SuggestRequest
) -> NodeHardware:
    total = int(node.total_memory)
    keeps = kept.get("mem_node", 0) + kept.get("mem_hv", 0)
    measured = min(merged.unallocated_memory, merged.forth_free_memory)
    memory = min(math.floor(measured * (1 - request.margin / 100)), measured - 1, total - keeps - 1)
    kept_cpus = max(node.node_cpus, kept.get("cpu_node", 0))
    cpus = math.floor(ratio * node.total_cpus) if ratio > 0 else int(node.total_cpus)
    while cpus > 0 and 0 < ratio < cpus / node.total_cpus:
        cpus -= 1  # the product was rounded up
    disk = None
    if template.local:
        reserved = kept.get("disk_reserved", 0) + kept.get("disk_overhead", 0)
        disk = max(0, min(node.free_disk, int(node.total_disk) - reserved) - 1)
    volumes = max(0, node.free_spindles) if node.exclusive else None
    return NodeHardware(
        name=node.name,
        room=Amounts(max(0, memory), max(0, cpus - kept_cpus), disk, volumes),
        total_memory=total,
        kept_memory=max(total - measured, keeps),
        total_cpus=int(node.total_cpus),
        kept_cpus=kept_cpus,
        spindle_use=merged.facts.high_spindles if template.local else None,
    )


def kinds_of(nodes: Iterable[NodeHardware]) -> tuple[NodeKind, ...]:
    """Return the kinds of `nodes`, the most numerous first."""
    kinds: list[list[NodeHardware]] = []
    rooms = [(node.room.cpus, node.room.volumes or 0, node.room.memory, node.room.disk or 0, node) for node in nodes]
    for *_, node in sorted(rooms, key=lambda one: one[:4], reverse=True):
        if home := next((kind for kind in kinds if _alike(kind[0], node)), None):
            home.append(node)
        else:
            kinds.append([node])
    kinds.sort(key=lambda kind: -len(kind))
    by_name = [tuple(sorted(kind, key=lambda node: node.name)) for kind in kinds]
    return tuple(NodeKind(nodes=kind, room=combined(min, [node.room for node in kind])) for kind in by_name)


def _alike(node: NodeHardware, another: NodeHardware) -> bool:
    one, other = node.room, another.room
    if (one.cpus, one.volumes, node.spindle_use) != (other.cpus, other.volumes, another.spindle_use):
        return False
    pairs = ((one.memory, other.memory), (one.disk or 0, other.disk or 0))
    return all(min(pair) >= ALIKE * max(pair) for pair in pairs)


def smallest_volume(state: ClusterState, names: Sequence[str], given: int | None, notes: list[str]) -> int:
    """Return the size (MiB) of the smallest physical volume of the nodes `names`; `given` overrides the measured sizes.

    If the state does not show single volumes, those of a node are assumed to be equal, with a note in `notes`. Raise
    GpolicyError if it shows nothing about them.
    """
    if given is not None:
        return given
    pools = [pools_of(state, state.nodes[name]) for name in names]
    volumes = [volume.size for pool in pools if pool for volume in pool.own.allocatable]
    if volumes and all(pool and pool.own.count for pool in pools):
        _judge(min(volumes), max(volumes), notes)
        return min(volumes)
    sizes = []
    for name in names:
        measured = state.nodes[name].resources
        if not measured.spindles_total or not measured.disk_total:
            see = "see `gpolicy explain exclusive-storage-reads`"
            hint = f"give the size of the smallest: {argument('volume')} 1T (and {see})"
            raise GpolicyError(about(state.address, f"not known: the physical volumes of {name}"), hint=hint)
        sizes.append(measured.disk_total // measured.spindles_total)
    notes.append(
        f"physical volumes are assumed to be equal on each node: disk / spindles, at least {rough_size(min(sizes))}"
        " (or use --pv-size)"
    )
    _judge(min(sizes), max(sizes), notes)
    return min(sizes)


def _judge(smallest: int, largest: int, notes: list[str]) -> None:
    if sizes_differ(smallest, largest):
        small, large = compared_sizes(smallest, largest)
        notes.append(
            f"physical volumes of {small} and {large} are too different for one group with exclusive storage:"
            " Ganeti calls that an error; all count as the smallest"
        )
