"""A made-up cluster of 200 nodes with 800 instances, the same each time.

    python benchmarks/large_cluster.py FILE      writes it as a snapshot, to plan against:
    gpolicy plan policies/large-cluster --state snapshot:FILE

It has four groups of different hardware: `web` and `db` mirror disks with DRBD, `batch` does not, and the nodes of
`dedicated` are handed out in parts (exclusive storage). Every node lies in one of ten racks and on one of two power
feeds.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import checkout  # noqa: F401

from gpolicy.cluster.state import (
    ClusterObject,
    ClusterState,
    Identity,
    LiveDisk,
    LiveGroup,
    LiveInstance,
    LiveNode,
    Resources,
)
from gpolicy.cluster.state_files import write_snapshot
from gpolicy.ganeti.parameters import default_in, fill, known_in, parameters_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Level, Value, Values

SEED = 200
VERSION = "3.0"
DOMAIN = "example.org"
NODE_MEMORY = 2300
DRBD_METADATA = 128
GIB = 1024

Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""The least and the most of a spec pair: memory, CPUs, disk, disks, network interfaces, spindle use."""


@dataclass(frozen=True)
class Plan:
    """One group: so many nodes of this hardware (MiB), and so many instances of these sizes."""

    name: str
    nodes: int
    instances: int
    memory: int
    cpus: int
    disk: int
    template: str
    sizes: tuple[tuple[int, int, int], ...]
    volumes: int = 0


WEB = Plan(
    *("web", 90, 380, 257_600, 48, 7_600_000, "drbd"),
    ((4 * GIB, 2, 40 * GIB), (8 * GIB, 4, 80 * GIB), (16 * GIB, 4, 160 * GIB), (32 * GIB, 8, 300 * GIB)),
)
DB = Plan(
    *("db", 50, 150, 515_500, 64, 15_200_000, "drbd"),
    ((32 * GIB, 8, 500 * GIB), (64 * GIB, 12, 1000 * GIB), (96 * GIB, 16, 1500 * GIB)),
)
BATCH = Plan(
    *("batch", 40, 230, 128_500, 32, 3_800_000, "plain"),
    ((2 * GIB, 2, 20 * GIB), (8 * GIB, 4, 100 * GIB), (12 * GIB, 8, 200 * GIB)),
)
PLANS = (
    *(WEB, DB, BATCH),
    Plan(
        *("dedicated", 20, 40, 386_300, 64, 12 * 1_907_729, "plain"),
        ((92 * GIB, 15, 5425 * GIB), (184 * GIB, 31, 10850 * GIB)),
        volumes=12,
    ),
)

LEAST = (128, 1, GIB, 1, 1, 1)
LARGE = (LEAST, (128 * GIB, 32, 2048 * GIB, 16, 8, 12))
DEDICATED = ((80 * GIB, 12, GIB, 1, 1, 1), (376 * GIB, 64, 22 * 1024 * GIB, 1, 8, 12))


def large_cluster() -> ClusterState:
    """Return the cluster as it is before the change that `policies/large-cluster` makes."""
    return cluster_with(PLANS)


def cluster_of(nodes: int) -> ClusterState:
    """Return a cluster like the one of 200 nodes, with this many, and as many instances in proportion."""
    plans = (replace(plan, nodes=plan.nodes * nodes // 200, instances=plan.instances * nodes // 200) for plan in PLANS)
    return cluster_with(tuple(plans))


def cluster_with(plans: Sequence[Plan]) -> ClusterState:
    """Return a cluster with these groups."""
    chance = random.Random(SEED)  # noqa: S311 (the same cluster each time is the point)
    cluster = _cluster()
    groups = {plan.name: _group(place, plan, cluster) for place, plan in enumerate(plans)}
    nodes: list[LiveNode] = []
    instances: list[LiveInstance] = []
    for plan in plans:
        members = [_node(plan, number) for number in range(1, plan.nodes + 1)]
        found = _instances(plan, [node.name for node in members], chance)
        nodes += [_measured(node, plan, found, chance) for node in members]
        instances += found
    return ClusterState(
        source="local:",
        name=f"large.{DOMAIN}",
        software_version="3.0.2",
        cluster=ClusterObject(
            own=cluster,
            tags=frozenset({"htools:iextags:service:", "htools:nlocation:power"}),
            identity=Identity(uuid="c0", serial_no=4711),
        ),
        groups=groups,
        nodes={node.name: replace(node, position=place) for place, node in enumerate(nodes)},
        instances={item.name: replace(item, position=place) for place, item in enumerate(instances)},
    )


def _cluster() -> Values:
    """Return Ganeti's defaults, and what this cluster has set."""
    own: Values = {
        parameter.path: value
        for parameter in parameters_of(Level.CLUSTER)
        if known_in(parameter, VERSION) and (value := default_in(parameter, VERSION)) is not None
    }
    own["enabled_disk_templates",] = ["drbd", "plain"]
    own["enabled_hypervisors",] = ["kvm"]
    own["volume_group_name",] = "xenvg"
    own["ipolicy", "minmax"] = [_pair(LARGE)]
    own["ipolicy", "disk-templates"] = ["drbd", "plain"]
    own["ipolicy", "vcpu-ratio"] = 4.0
    own["ipolicy", "spindle-ratio"] = 32.0
    std = {"memory-size": 4 * GIB, "cpu-count": 2, "disk-size": 40 * GIB}
    for name, value in (*std.items(), ("disk-count", 1), ("nic-count", 1), ("spindle-use", 1)):
        own["ipolicy", "std", name] = value
    return own


def _pair(pair: Pair) -> Value:
    low, high = (dict[str, Value](zip(SPEC_PARAMETERS, bound, strict=True)) for bound in pair)
    return {"min": low, "max": high}


def _group(place: int, plan: Plan, cluster: Values) -> LiveGroup:
    own: Values = {("alloc_policy",): "preferred"}
    if plan.volumes:
        own["ndparams", "exclusive_storage"] = True
        own["ipolicy", "minmax"] = [_pair(DEDICATED)]
        own["ipolicy", "disk-templates"] = ["plain"]
        own["ipolicy", "vcpu-ratio"] = 1.0
    elif plan.template == "plain":
        own["ipolicy", "disk-templates"] = ["plain"]
    return LiveGroup(
        name=plan.name,
        own=own,
        effective=fill(own, cluster, Level.GROUP),
        identity=Identity(uuid=f"g{place}", serial_no=12),
        position=place,
    )


def _node(plan: Plan, number: int) -> LiveNode:
    return LiveNode(
        name=f"{plan.name}{number:03}.{DOMAIN}",
        group=plan.name,
        own={},
        tags=frozenset({f"rack:r{number % 10}", f"power:{'ab'[number // 10 % 2]}"}),
        identity=Identity(uuid=f"{plan.name}-{number}", serial_no=3),
        master=(plan.name, number) == ("web", 1),
        master_candidate=plan.name == "web" and number <= 10,
        master_capable=True,
    )


def _instances(plan: Plan, nodes: list[str], chance: random.Random) -> list[LiveInstance]:
    """Return the instances of a group, spread evenly; a secondary lies some nodes further, never the same way twice."""
    if plan.volumes:
        return _in_parts(plan, nodes)
    found = []
    for number in range(plan.instances):
        round_, place = divmod(number, len(nodes))
        memory, vcpus, disk = chance.choice(plan.sizes)
        other = nodes[(place + 1 + (3 * round_ + place % 7) % (len(nodes) - 1)) % len(nodes)]
        parts = 2 if disk > 100 * GIB and chance.random() < 0.3 else 1
        stopped = chance.random() < 0.03
        disks = (LiveDisk(size=disk // parts, template=plan.template),) * parts
        item = _instance(plan, number, nodes[place], memory, vcpus, disks, number % (plan.instances // 2))
        if plan.template == "drbd":
            item = replace(item, secondary_nodes=(other,))
        if stopped:
            item = replace(item, admin_state="down", status="ADMIN_down", running=False, oper_ram=None)
        found.append(item)
    return found


def _instance(
    plan: Plan, number: int, primary: str, memory: int, vcpus: int, disks: tuple[LiveDisk, ...], service: int
) -> LiveInstance:
    return LiveInstance(
        name=f"{plan.name}-vm{number + 1:03}.{DOMAIN}",
        primary_node=primary,
        disk_template=plan.template,
        disks=disks,
        minmem=memory,
        maxmem=memory,
        vcpus=vcpus,
        spindle_use=1,
        nic_count=1,
        status="running",
        running=True,
        hypervisor="kvm",
        oper_ram=memory,
        tags=frozenset({f"service:{plan.name}{service}"}),
        identity=Identity(uuid=f"{plan.name}-i{number}", serial_no=2),
    )


def _in_parts(plan: Plan, nodes: list[str]) -> list[LiveInstance]:
    """Return instances that take a quarter or a half of a node each: three of four nodes are in use."""
    found = []
    for number in range(plan.instances):
        place, turn = number % (3 * len(nodes) // 4), number // (3 * len(nodes) // 4)
        part = (place + turn) % 2 if turn < 2 else 0
        memory, vcpus, disk = plan.sizes[part]
        spindles = plan.volumes // (2 if part else 4)
        disks = (LiveDisk(size=disk, template="plain", spindles=spindles),)
        found.append(_instance(plan, number, nodes[place], memory, vcpus, disks, number))
    return found


def _measured(node: LiveNode, plan: Plan, instances: list[LiveInstance], chance: random.Random) -> LiveNode:
    """Return the node with what it would measure: instances take a little more memory than they are said to."""
    here = [item for item in instances if item.primary_node == node.name]
    used = Counter[str]()
    for item in instances:
        if node.name in (item.primary_node, *item.secondary_nodes):
            extra = DRBD_METADATA if item.disk_template == "drbd" else 0
            used["disk"] += sum(disk.size + extra for disk in item.disks)
            used["volumes"] += sum(disk.spindles or 0 for disk in item.disks)
    running = sum(item.maxmem + 40 for item in here if item.running)
    total = plan.memory - chance.randrange(0, 40)
    volume = plan.disk // plan.volumes if plan.volumes else 0
    free_volumes = plan.volumes - used["volumes"]
    return replace(
        node,
        resources=Resources(
            memory_total=total,
            memory_node=NODE_MEMORY,
            memory_free=total - NODE_MEMORY - running - chance.randrange(200, 700),
            disk_total=plan.disk,
            disk_free=free_volumes * int(volume / 1.03) if plan.volumes else plan.disk - used["disk"],
            cpu_total=plan.cpus,
            cpu_node=1,
            spindles_total=plan.volumes or None,
            spindles_free=free_volumes if plan.volumes else None,
        ),
    )


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 3
    state = large_cluster()
    write_snapshot(state, Path(sys.argv[1]))
    print(f"wrote {sys.argv[1]}: {len(state.nodes)} nodes, {len(state.instances)} instances")
    return 0


if __name__ == "__main__":
    sys.exit(main())
