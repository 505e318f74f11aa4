"""Random clusters whose instances lie close to the bounds of random policies; a seed gives the same one each time."""

from __future__ import annotations

import random
from collections.abc import Mapping

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveDisk, LiveGroup, LiveInstance, LiveNode
from gpolicy.ganeti.parameters import canonical, fill
from gpolicy.ganeti.vocabulary import Level, Value, Values
from tests.strategies import base_cluster

AMOUNTS = {
    "memory-size": (128, 255, 256, 257, 512, 1024),
    "cpu-count": (1, 2, 3, 4),
    "disk-size": (1023, 1024, 1025, 2048, 4096),
    "disk-count": (0, 1, 2, 3),
    "nic-count": (0, 1, 2),
    "spindle-use": (0, 1, 2, 3, 4),
}
TEMPLATES = ("plain", "drbd", "file", "diskless", "rbd")
EXCLUSIVE = ("ndparams", "exclusive_storage")


def _pair(rnd: random.Random) -> dict[str, Value]:
    """Return a pair of bounds; half of the parameters allow everything, so that some instances conform."""
    low: dict[str, Value] = {}
    high: dict[str, Value] = {}
    for name, values in AMOUNTS.items():
        ends = sorted(rnd.choices(values, k=2)) if rnd.random() < 0.5 else [values[0], values[-1]]
        low[name], high[name] = ends
    return {"min": low, "max": high}


def policy(rnd: random.Random, *, sparse: bool) -> Values:
    """Return own values of an instance policy, without some of them if `sparse`."""
    pairs: list[Value] = [_pair(rnd) for _ in range(rnd.randint(1, 3))]
    templates: list[Value] = [*rnd.sample(TEMPLATES, rnd.randint(2, 5))]
    own: Values = {("ipolicy", "minmax"): pairs, ("ipolicy", "disk-templates"): templates}
    own = {path: canonical(path, value) for path, value in own.items()}
    return {path: value for path, value in own.items() if not sparse or rnd.random() < 0.6}


def _instance(rnd: random.Random, name: str, nodes: list[str]) -> LiveInstance:
    ends = rnd.sample(nodes, 2)
    drbd = rnd.random() < 0.4
    kinds = ["drbd"] if drbd else rnd.choices(TEMPLATES[2:3] + TEMPLATES[:1] + TEMPLATES[4:], k=rnd.choice((1, 1, 2)))
    disks = tuple(
        LiveDisk(
            size=rnd.choice(AMOUNTS["disk-size"]),
            template=rnd.choice(kinds),
            spindles=rnd.choice((None, 0, 1, 1, 2)) if rnd.random() < 0.5 else 1,
        )
        for _ in range(rnd.choice(AMOUNTS["disk-count"]))
    )
    templates = {disk.template for disk in disks} or {"diskless"}
    maxmem = rnd.choice(AMOUNTS["memory-size"])
    return LiveInstance(
        name=name,
        primary_node=ends[0],
        secondary_nodes=(ends[1],) if drbd and disks else (),
        disk_template=templates.pop() if len(templates) == 1 else "mixed",
        disks=disks,
        minmem=min(maxmem, rnd.choice(AMOUNTS["memory-size"])),
        maxmem=maxmem,
        vcpus=rnd.choice(AMOUNTS["cpu-count"]),
        spindle_use=rnd.choice(AMOUNTS["spindle-use"]),
        nic_count=rnd.choice(AMOUNTS["nic-count"]),
    )


def _flag(rnd: random.Random) -> Values:
    return {EXCLUSIVE: rnd.random() < 0.5} if rnd.random() < 0.6 else {}


def instances_of(rnd: random.Random, nodes: list[str], count: int) -> dict[str, LiveInstance]:
    """Return instances on these nodes."""
    return {name: _instance(rnd, name, nodes) for name in (f"inst{number}" for number in range(count))}


def state_of(rnd: random.Random, instances: Mapping[str, LiveInstance], nodes: list[str]) -> ClusterState:
    """Return a cluster of three groups with random policies, flags and membership."""
    own = base_cluster([*TEMPLATES]) | policy(rnd, sparse=False) | {EXCLUSIVE: rnd.random() < 0.3}
    groups = {}
    for name in ("default", "gold", "silver"):
        values: Values = {("alloc_policy",): "preferred", **policy(rnd, sparse=True), **_flag(rnd)}
        groups[name] = LiveGroup(name=name, own=values, effective=fill(values, own, Level.GROUP))
    return ClusterState(
        source="config:generated",
        name="cluster.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own=own),
        groups=groups,
        nodes={name: LiveNode(name=name, group=rnd.choice(sorted(groups)), own={}) for name in nodes},
        instances=dict(instances),
    )
