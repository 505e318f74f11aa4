"""Random clusters, options and requests, wide in shape and small enough for the real programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

TEMPLATES = ["diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster"]
STATES = ["running"] * 8 + ["ADMIN_down", "ADMIN_offline", "ERROR_up", "ERROR_nodedown", "USER_down"]
CLUSTER_TAGS = [
    "htools:iextags:svc",
    "htools:nlocation:power",
    "htools:nlocation:rack",
    "htools:migration:hv",
    "htools:allowmigration:hv:a::hv:b",
    "htools:desiredlocation:power",
]
NODE_TAGS = ["power:a", "power:b", "rack:1", "rack:2", "hv:a", "hv:b"]
INSTANCE_TAGS = ["svc:a", "svc:b", "power:a", "power:b"]


@dataclass
class Node:
    name: str
    group: int
    memory: int
    node_memory: int
    disk: int
    cpus: int
    spindles: int
    exclusive: bool
    flag: str
    tags: list[str]
    os_cpus: int
    speed: float
    hidden: int
    used_memory: int = 0
    used_disk: int = 0
    used_spindles: int = 0
    unknown: bool = False


@dataclass
class RandomCluster:
    """One random cluster as text, and what it was made of."""

    text: str
    nodes: list[Node]
    instances: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    groups: int = 1


def _odd(rng: random.Random, value: int, odd: bool) -> int:
    """Return `value`, or a number near it that no unit divides."""
    return value + rng.choice([-1, 0, 1, 3, 7, 13]) if odd else value


def _spec_pairs(rng: random.Random, disk: int, memory: int) -> str:
    specs = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        low = (rng.choice([64, 128, 250]), 1, rng.choice([256, 512, 1000]), 1, 1, 1)
        high = (
            rng.randrange(500, memory),
            rng.randrange(1, 7),
            rng.randrange(1500, disk),
            rng.randrange(1, 4),
            8,
            rng.randrange(1, 5),
        )
        specs += [low, high]
    return ";".join(",".join(map(str, spec)) for spec in specs)


def _policy(rng: random.Random, owner: str, template: str, disk: int, memory: int) -> str:
    std = (rng.choice([128, 300, 512, 1000]), rng.choice([1, 1, 2]), rng.choice([512, 1024, 2000]), 1, 1, 1)
    others = rng.sample(TEMPLATES, rng.randrange(2, 9))
    templates = [template, *(name for name in others if name != template)]
    rng.shuffle(templates)
    ratios = f"{rng.choice([0.7, 1.5, 2.0, 4.0, 8.0])}|{rng.choice([2.0, 8.0, 32.0])}"
    pairs = _spec_pairs(rng, disk, memory)
    return f"{owner}|{','.join(map(str, std))}|{pairs}|{','.join(templates)}|{ratios}"


def random_cluster(rng: random.Random, template: str, most_nodes: int, *, sound: bool = False) -> RandomCluster:
    """Return a cluster whose policies allow `template`; `sound`: every mirrored instance has both nodes in a group."""
    groups = rng.choice([1, 1, 1, 2, 3])
    exclusive = rng.random() < 0.2
    spindleless = rng.random() < 0.03
    equal = rng.random() < 0.4
    tagged = rng.random() < 0.5
    odd = rng.random() < 0.3
    # many nodes are out of use on some clusters: instances on foreign storage may have to go there
    flags = rng.choice([["N"] * 9 + ["Y"], ["N"] * 9 + ["Y"], ["N"] * 2 + ["Y"], ["N"]])
    memory = _odd(rng, rng.choice([2048, 4096, 6000]), odd)
    disk = _odd(rng, rng.choice([8192, 20000, 33333]), odd)
    nodes = []
    for place in range(rng.randrange(2 if most_nodes <= 25 else 25, most_nodes + 1)):
        vary = 1.0 if equal else rng.choice([0.5, 0.75, 1.0, 1.0, 1.3])
        spindles = rng.choice([4, 8, 12]) if exclusive else rng.choice([1, 2, 4])
        if spindleless and rng.random() < 0.5:
            spindles = 0
        nodes.append(
            Node(
                name=f"node{place}.example.com",
                group=rng.randrange(groups),
                memory=_odd(rng, int(memory * vary), odd and not equal),
                node_memory=0 if equal else rng.choice([0, 100, 256]),
                disk=_odd(rng, int(disk * vary), odd and not equal),
                cpus=4 if equal else rng.choice([2, 4, 5, 8]),
                spindles=spindles,
                exclusive=exclusive and (rng.random() < 0.9 or equal),
                flag=rng.choice(flags),
                tags=[tag for tag in NODE_TAGS if tagged and rng.random() < 0.5],
                os_cpus=1 if equal else rng.choice([0, 1, 1, 2]),
                speed=1.0 if equal else rng.choice([0.8, 1.0, 1.0, 2.5]),
                hidden=0 if equal else rng.choice([0, 0, 50, -200]),
                unknown=rng.random() < 0.02,
            )
        )
    # pairs over two groups, without a second node, or with one that nothing needs
    odd_pairs = rng.random() < 0.1 and not sound
    rows = _instances(rng, nodes, template, odd=odd, odd_pairs=odd_pairs)
    tags = [tag for tag in CLUSTER_TAGS if tagged and rng.random() < 0.5]
    policies = ["", *(f"g{number}" for number in range(groups))]
    if rng.random() < 0.1:
        policies.pop()
    written = [_policy(rng, owner, template, disk, memory) for owner in policies]
    if rng.random() < 0.25:
        _tighten(rng, nodes, rows)
    lines = [f"g{n}|uuid-{n}|{_alloc_policy(rng)}||{'net1' if n % 2 else 'net1,net2'}" for n in range(groups)]
    lines += ["", *(_node_row(node, rng) for node in nodes), "", *rows, "", *tags, ""]
    lines += written
    return RandomCluster("\n".join(lines) + "\n", nodes, [row.split("|")[0] for row in rows], tags, groups)


def _tighten(rng: random.Random, nodes: list[Node], rows: list[str]) -> None:
    """Bring the memory of nodes, recorded and reported, near their largest reservation for a peer (N+1)."""
    reserved: dict[str, dict[str, int]] = {}
    for _, memory, _, _, state, balanced, primary, secondary, *_ in (row.split("|") for row in rows):
        if balanced == "Y" and state != "ADMIN_offline" and secondary:
            peers = reserved.setdefault(secondary, {})
            peers[primary] = peers.get(primary, 0) + int(memory)
    for node in nodes:
        if rng.random() < 0.6:
            most = max(reserved.get(node.name, {}).values(), default=0)
            node.memory = max(1, node.node_memory + node.used_memory + most + rng.choice([-1, 0, 1, 1, 64, 500]))
            node.hidden = rng.choice([-300, -1, 0, 1, 64])


def _alloc_policy(rng: random.Random) -> str:
    return rng.choice(["preferred", "preferred", "preferred", "last_resort", "unallocable"])


def _instances(rng: random.Random, nodes: list[Node], template: str, *, odd: bool, odd_pairs: bool) -> list[str]:
    rows = []
    mixed = rng.random() < 0.5
    for number in range(rng.randrange(0, rng.choice([3, 3, 6]) * len(nodes))):
        kind = rng.choice([template, template, *TEMPLATES]) if mixed else template
        primary = rng.choice(nodes)
        mates = [node for node in nodes if (node.group == primary.group or odd_pairs) and node is not primary]
        if kind == "drbd" and not mates:
            continue
        paired = kind == "drbd" and not (odd_pairs and rng.random() < 0.1)
        paired = paired or (odd_pairs and bool(mates) and rng.random() < 0.1)
        secondary = rng.choice(mates) if paired else None
        memory = _odd(rng, rng.choice([64, 128, 256, 500, 1024]), odd)
        disk = _odd(rng, rng.choice([256, 512, 700, 1024]), odd)
        state = rng.choice(STATES)
        running = state in {"running", "ERROR_up", "ERROR_nodedown"}
        forthcoming = rng.random() < 0.02
        if running and not forthcoming:
            if primary.used_memory + memory > primary.memory - primary.node_memory:
                continue
            primary.used_memory += memory
        places = [primary, secondary] if secondary else [primary] if kind == "plain" else []
        for node in places:
            if not forthcoming:
                node.used_disk += disk
                node.used_spindles += 1
        tags = ",".join(tag for tag in INSTANCE_TAGS if rng.random() < 0.2)
        balance = "N" if rng.random() < 0.1 else "Y"
        spindles = "-" if rng.random() < 0.1 else "1"
        rows.append(
            f"inst{number}.example.com|{memory}|{disk}|{rng.choice([1, 1, 2])}|{state}|{balance}|"
            f"{primary.name}|{secondary.name if secondary else ''}|{kind}|"
            f"{tags}|{rng.choice([1, 1, 2])}|{spindles}|"
            f"{'Y' if forthcoming else 'N'}"
        )
    return rows


def _node_row(node: Node, rng: random.Random) -> str:
    free = node.memory - node.node_memory - node.used_memory - node.hidden
    disk = max(0, node.disk - node.used_disk)
    spindles = max(0, node.spindles - node.used_spindles) if node.exclusive else 0
    memory = "?" if node.unknown else str(node.memory)
    return (
        f"{node.name}|{memory}|{node.node_memory}|{max(0, free)}|{node.disk}|{disk}|{node.cpus}|{node.flag}|"
        f"uuid-{node.group}|{node.spindles}|{','.join(node.tags)}|{'Y' if node.exclusive else 'N'}|"
        f"{spindles}|{node.os_cpus}|{node.speed}"
    )
