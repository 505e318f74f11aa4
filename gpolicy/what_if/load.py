"""Nodes that are added, upgraded or moved in a state, and instances that come or go, with what they take of nodes."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import DiskTemplate, InstanceStatus
from gpolicy.allocator.evacuation import EvacuationMode, evacuate_nodes
from gpolicy.analysis.allocator_input import LOCAL, MIXED, disks_of, why_unreadable
from gpolicy.analysis.hail import hails_cluster
from gpolicy.analysis.node_resources import declared_by_policy, declared_numbers, prefixes, smallest_volume
from gpolicy.cluster.state import ClusterState, LiveInstance, LiveNode, PhysicalVolume, Resources
from gpolicy.errors import RequestError
from gpolicy.ganeti.amounts import exact_size
from gpolicy.printable import some


def with_all(state: ClusterState, instances: Sequence[LiveInstance]) -> ClusterState:
    """Return `state` with more instances, and with their resources taken from the nodes."""
    first = len(state.instances)
    placed = {item.name: replace(item, position=first + place) for place, item in enumerate(instances)}
    return replace(state, nodes=_with_use(state, instances, 1), instances={**state.instances, **placed})


def without(state: ClusterState, names: Sequence[str]) -> ClusterState:
    """Return `state` without these instances, and with their resources free on the nodes."""
    gone = {name: state.instances[name] for name in names}
    left = {name: item for name, item in state.instances.items() if name not in gone}
    return replace(state, nodes=_with_use(state, [*gone.values()], -1), instances=left)


def elsewhere(state: ClusterState, placed: Mapping[str, Sequence[str]]) -> ClusterState:
    """Return `state` with instances on other nodes, by name: the primary first."""
    old = [state.instances[name] for name in placed]
    homes = ((item, placed[item.name]) for item in old)
    new = [replace(item, primary_node=home[0], secondary_nodes=tuple(home[1:])) for item, home in homes]
    left = replace(state, nodes=_with_use(state, old, -1))
    instances = {**state.instances, **{item.name: item for item in new}}
    return replace(left, nodes=_with_use(left, new, 1), instances=instances)


def instances_on(state: ClusterState, node: str) -> list[LiveInstance]:
    """Return the instances whose primary or secondary node is `node`."""
    return [item for item in state.instances.values() if node in (item.primary_node, *item.secondary_nodes)]


def failed_over(state: ClusterState, lost: Collection[str]) -> tuple[ClusterState, list[str]]:
    """Return `state` with the DRBD instances of the nodes `lost` on their other node, and the names of the others.

    Each keeps the lost node as its secondary, as after `gnt-instance failover`. Those stay where they are that have no
    other node, or one that is lost, offline or drained, or has less memory free than their minimum: Ganeti refuses
    them. One after the other, by name.
    """
    instances, nodes, stay = dict(state.instances), dict(state.nodes), list[str]()
    for item in sorted(state.instances.values(), key=lambda item: item.name):
        if item.primary_node not in lost:
            continue
        other = next(iter(item.secondary_nodes), None)
        needed = memory_of(replace(item, oper_ram=None))
        free = nodes[other].resources.memory_free if other is not None else None
        too_little = free is not None and min(needed, item.minmem) > free
        if other is None or other in lost or not nodes[other].is_usable or too_little:
            stay.append(item.name)
            continue
        instances[item.name] = replace(item, primary_node=other, secondary_nodes=(item.primary_node,), oper_ram=None)
        nodes[other] = replace(nodes[other], resources=_changed(nodes[other].resources, memory_free=-needed))
    return replace(state, instances=instances, nodes=nodes), stay


def restarted(
    state: ClusterState, lost: Sequence[str], homeless: Sequence[str], *, resource_model: bool = False
) -> ClusterState:
    """Return `state` with those of the `homeless` instances on shared storage on the nodes that hail gives them.

    That is its evacuation of the nodes `lost`, when they are offline (`resource_model` is that of `settle`). In a
    group that is not known all stay.
    """
    readable = [name for name in homeless if why_unreadable(state.instances[name]) is None]
    shared = [name for name in readable if DiskTemplate(state.instances[name].disk_template).externally_mirrored]
    if not shared:
        return state
    fresh = {name: replace(state.instances[name], oper_ram=None) for name in shared}
    state = replace(state, instances={**state.instances, **fresh})
    settled, cluster = hails_cluster(offline(state, lost), resource_model=resource_model)
    if settled.hail.failure:
        return state
    wanted = [index for index, item in cluster.instances.items() if item.name in fresh]
    force = settled.hail.ignore_soft_errors
    moved = evacuate_nodes(cluster, EvacuationMode.PRIMARY, wanted, force=force).moved
    return elsewhere(state, {item.name: (cluster.nodes[where[0]].facts.name,) for item, _, where, _ in moved})


def offline(state: ClusterState, names: Collection[str]) -> ClusterState:
    """Return `state` with these nodes offline: they report nothing, and Ganeti says so of the instances on them."""
    dead = {
        item.name: replace(item, status=InstanceStatus.NODE_OFFLINE.value, running=None, oper_ram=None)
        for item in state.instances.values()
        if item.primary_node in names and item.running is not False
    }
    silent = {name: replace(state.nodes[name], offline=True, resources=Resources()) for name in names}
    return replace(state, nodes={**state.nodes, **silent}, instances={**state.instances, **dead})


def free_names(stem: str, count: int, taken: Collection[str]) -> list[str]:
    """Return `count` names that are not `taken`: STEM+1, STEM+2, …, which no real node or instance can have."""
    names = (f"{stem}+{number}" for number in itertools.count(1))
    return list(itertools.islice((name for name in names if name not in taken), count))


def _with_use(state: ClusterState, instances: Sequence[LiveInstance], sign: int) -> dict[str, LiveNode]:
    nodes = dict(state.nodes)
    exclusive: dict[str, bool] = {}
    for instance in instances:
        size, disks = disks_of(instance)
        made = not instance.forthcoming  # else its disks take nothing yet
        used = size if made and instance.disk_template in (MIXED, *LOCAL) else 0
        spindles = sum(disk.spindles or 0 for disk in disks) if made else 0
        for place, name in enumerate((instance.primary_node, *instance.secondary_nodes)):
            node = nodes[name]
            if name not in exclusive:
                exclusive[name] = state.has_exclusive_storage(node)
            memory = memory_of(instance) if place == 0 else 0
            taken = {"memory_free": memory, "disk_free": used, "spindles_free": spindles if exclusive[name] else 0}
            less = {figure: -sign * amount for figure, amount in taken.items()}
            nodes[name] = replace(node, resources=_changed(node.resources, **less))
    return nodes


def memory_of(instance: LiveInstance) -> int:
    """Return the memory (MiB) that an instance takes on its primary node."""
    if instance.running is False or instance.forthcoming:
        return 0
    return instance.maxmem if instance.oper_ram is None else instance.oper_ram


def _changed(resources: Resources, **amounts: int) -> Resources:
    """Return `resources` with these amounts more of each figure; what is not measured stays so."""
    now = {name: getattr(resources, name) for name in amounts}
    return replace(resources, **{name: value + amounts[name] for name, value in now.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Amount:
    """A number (MiB, CPUs or physical volumes): `more` of them than now, or in all."""

    number: int
    more: bool

    def total(self, now: int) -> int:
        """Return the number in all, of which there are `now`."""
        return now + self.number if self.more else self.number


UPGRADES: Final[Mapping[str, tuple[str, str]]] = {
    "memory": ("memory_total", "memory_free"),
    "disk": ("disk_total", "disk_free"),
    "cpus": ("cpu_total", ""),
    "pvs": ("spindles_total", "spindles_free"),
}
"""What an upgrade can change: the total of it, and what is free, in `Resources`."""


def nodes_like(state: ClusterState, like: str, number: int, group: str) -> ClusterState:
    """Return `state` with more nodes in `group`: empty ones, with the hardware, parameters and tags of `like`.

    They are named LIKE+1, LIKE+2, …. Raise RequestError where the hardware is not known, or where the group has other
    storage.
    """
    node = state.nodes[like]
    if not node.is_measured:
        raise RequestError(f"{like} is offline or takes no instances: nobody measures its hardware")
    if node.group != group:
        _check_storage(state, node, group)
    emptied = _with_use(state, instances_on(state, like), -1)[like]
    resources, volume = emptied.resources, smallest_volume(state, node)
    if state.has_exclusive_storage(node) and volume and resources.spindles_free is not None:
        # disks leave parts of their volumes unused, which an empty node has
        free = max(resources.disk_free or 0, resources.spindles_free * volume.usable)
        resources = replace(resources, disk_free=min(free, resources.disk_total or free))
    volumes = node.physical_volumes and tuple(replace(item, free=item.size, used=0) for item in node.physical_volumes)
    listed = all(item.position is not None for item in state.nodes.values())
    nodes, declared = dict(state.nodes), dict(state.declared)
    for name in free_names(like, number, state.nodes):
        nodes[name] = LiveNode(
            name=name,
            group=group,
            own=node.own,
            tags=node.tags,
            resources=resources,
            physical_volumes=volumes,
            position=len(nodes) if listed else None,
        )
        if (own := state.declared.get(f"node/{like}")) is not None:
            declared[f"node/{name}"] = own
    return replace(state, nodes=nodes, declared=declared)


def moved(state: ClusterState, name: str, group: str) -> ClusterState:
    """Return `state` with a node in another group. Raise RequestError where that would change its storage."""
    node = state.nodes[name]
    _check_storage(state, node, group)
    return replace(state, nodes={**state.nodes, name: replace(node, group=group)})


def _check_storage(state: ClusterState, node: LiveNode, group: str) -> None:
    if state.has_exclusive_storage(node) != state.has_exclusive_storage(replace(node, group=group)):
        hint = f"what {node.name} has free in {group} is not known before it is measured there"
        raise RequestError(f"exclusive storage is on in only one of the groups {node.group} and {group}", hint=hint)


def upgraded(state: ClusterState, name: str, amounts: dict[str, Amount]) -> ClusterState:
    """Return `state` with more (or less) memory, disk, CPUs or physical volumes in a node.

    A total that hv_state or disk_state declares for the node changes as the measured one. Raise RequestError where the
    figure is not measured, where exclusive storage counts volumes, and where the instances need what goes.
    """
    for what, amount in amounts.items():
        state = _upgraded(state, state.nodes[name], what, amount)
    return state


def _upgraded(state: ClusterState, node: LiveNode, what: str, amount: Amount) -> ClusterState:
    exclusive, now = state.has_exclusive_storage(node), node.resources
    if exclusive and what == "disk":
        hint = "say how many physical volumes: pvs=+1"
        raise RequestError(f"{node.name} has exclusive storage: its disk is counted in physical volumes", hint=hint)
    if not exclusive and what == "pvs":
        raise RequestError(f"{node.name} has no exclusive storage: volumes do not count", hint="say disk=+1T")
    total, left = UPGRADES[what]
    shown, free = getattr(now, total), getattr(now, left) if left else None
    if shown is None:
        raise RequestError(f"{node.name}: its {what} is not measured, so there is nothing to add to")
    more = amount.total(shown) - shown
    if free is not None and free + more < 0:
        used = shown - free
        text = str(used) if what == "pvs" else exact_size(used)
        raise RequestError(f"{node.name} uses {text} of its {what}: no less can be there", hint="write a larger amount")
    if amount.total(shown) < 1:
        raise RequestError(f"{node.name} would have no {what} left")
    if what == "pvs":
        return _with_volumes(state, node, more)
    state = _redeclared(state, node, what, more)
    figures = dict.fromkeys((total, left) if left else (total,), more)
    node = replace(state.nodes[node.name], resources=_changed(now, **figures))
    return replace(state, nodes={**state.nodes, node.name: node})


def _with_volumes(state: ClusterState, node: LiveNode, more: int) -> ClusterState:
    """Return `state` with more physical volumes in a node, each as large as its smallest one."""
    volume = smallest_volume(state, node)
    if volume is None:
        hint = "read them (--state snapshot with --physical-volumes), or write pv_size in the group's hardware"
        raise RequestError(f"{node.name}: the size of its physical volumes is not known", hint=hint)
    disk = more * volume.usable
    made = _changed(node.resources, spindles_total=more, spindles_free=more, disk_total=disk, disk_free=disk)
    volumes = node.physical_volumes
    if volumes is not None:
        empty = [item for item in volumes if item.free == item.size]
        new = (PhysicalVolume(name=f"new{n}", size=volume.smallest, free=volume.smallest, used=0) for n in range(more))
        volumes = (*volumes, *new) if more >= 0 else tuple(item for item in volumes if item not in empty[more:])
    changed = replace(node, resources=made, physical_volumes=volumes)
    return replace(state, nodes={**state.nodes, node.name: changed})


_DECLARED = {"memory": (0, "mem_total"), "cpus": (0, "cpu_total"), "disk": (1, "disk_total")}
"""Where hv_state (0) or disk_state (1) declares a total."""


def _redeclared(state: ClusterState, node: LiveNode, what: str, more: int) -> ClusterState:
    """Return `state` with the totals that are declared for a node, there or by the policy, changed by `more`."""
    place, name = _DECLARED[what]
    prefix, label = prefixes(state)[place], f"node/{node.name}"
    if prefix is None:
        return state
    own, by_policy = declared_numbers(state, node).get(name), declared_by_policy(state, node).get(name)
    if own is not None:
        changed = replace(node, own={**node.own, (*prefix, name): own + more})
        state = replace(state, nodes={**state.nodes, node.name: changed})
    if by_policy is not None:
        values = {**state.declared.get(label, {}), (*prefix, name): by_policy + more}
        state = replace(state, declared={**state.declared, label: values})
    return state


def without_node(state: ClusterState, name: str) -> ClusterState:
    """Return `state` without a node. Raise RequestError if an instance is on it."""
    if users := [item.name for item in instances_on(state, name)]:
        said = f"instance {users[0]} is" if len(users) == 1 else f"instances {some(users, 3)} are"
        raise RequestError(f"{said} on node {name}", hint="take instances away first")
    return replace(state, nodes={key: node for key, node in state.nodes.items() if key != name})
