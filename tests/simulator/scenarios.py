"""Small clusters and real plans for them, made by gpolicy's own planning from random policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from gpolicy.cluster.state import ClusterObject, ClusterState, Identity, LiveGroup, LiveInstance, LiveNode
from gpolicy.cluster.state_files import parse_config
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import Level, Path, Value, Values
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import read_plan
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Inherit
from tests.plan.ganeti_model import ModelCluster
from tests.plan.planned import make_plan, plan_text
from tests.simulator.ganeti_configuration import config_data, instance_of
from tests.strategies import ALLOWED, ENABLED, base_cluster, document, yaml_text

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

SITES: Final = ("ham", "ber", "cam")
"""Where the clusters are: scenarios take them in turn, so that those of one schedule can have different names."""

GROUPS: Final = ("default", "gold", "silver", "bronze")
TAGS: Final = ("team:a", "team:b", "team:c")
CLUSTER_VALUES: Final[dict[Path, tuple[Any, ...]]] = {
    ("ipolicy", "vcpu-ratio"): (2.0, 4.0, 7.5),
    ("ipolicy", "spindle-ratio"): (16.0, 32.0, 40.0),
    ("candidate_pool_size",): (2, 3, 10),
    ("max_running_jobs",): (10, 20, 30),
    ("max_tracked_jobs",): (25, 50),
    ("ndparams", "spindle_count"): (1, 2, 4),
    ("diskparams", "drbd", "resync-rate"): (50000, 61440, 70000),
    ("diskparams", "drbd", "net-custom"): ("", "a,b=c", "x y"),
    ("hv_state", "kvm", "mem_node"): (512, 1024, 2048),
    ("disk_state", "plain", "xenvg", "disk_reserved"): (1024, 2048),
    ("beparams", "vcpus"): (1, 2, 4),
    ("hvparams", "kvm", "kernel_args"): ("ro", "ro quiet", "a=b,c\\d"),
}
GROUP_VALUES: Final[dict[Path, tuple[Any, ...]]] = {
    ("alloc_policy",): ("preferred", "last_resort", "unallocable"),
    ("ipolicy", "vcpu-ratio"): (3.0, 5.0, 8.0),
    ("ipolicy", "spindle-ratio"): (12.0, 24.0),
    ("ndparams", "spindle_count"): (3, 6),
    ("diskparams", "drbd", "resync-rate"): (40000, 80000),
    ("diskparams", "plain", "stripes"): (1, 2),
    ("hv_state", "kvm", "mem_node"): (256, 4096),
    ("disk_state", "plain", "xenvg", "disk_reserved"): (512, 4096),
}
NODE_VALUES: Final[dict[Path, tuple[Any, ...]]] = {
    ("ndparams", "spindle_count"): (5, 7, 9),
    ("ndparams", "cpu_speed"): (1.5, 2.0),
    ("hv_state", "kvm", "mem_node"): (128, 8192),
    ("hv_state", "kvm", "cpu_node"): (1, 2),
}
LEVEL_VALUES: Final = {Level.CLUSTER: CLUSTER_VALUES, Level.GROUP: GROUP_VALUES, Level.NODE: NODE_VALUES}
_FEW: Final = {
    "hvparams": {"kernel_args", "acpi"},
    "diskparams": {"resync-rate", "net-custom", "stripes"},
    "ndparams": {"spindle_count", "cpu_speed", "exclusive_storage"},
    "hv_state": {"mem_node", "cpu_node"},
    "enabled_data_collectors": {"cpu-avg-load"},
    "data_collector_interval": {"cpu-avg-load"},
}
"""Of these families the clusters have no more, so that a look at one is quick."""
PLANS: Final[dict[bytes, Plan]] = {}
"""The plans of the scenarios so far, by the content of their files: to read one takes as long as to carry it out."""

_ACCEPTED: Final = frozenset({"disks-stay", "exclusive-storage", "master-network", "right-cluster"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, the text of a policy for it, and that of the plan that was made from both.

    `declared` are the values that the policy demands of the cluster and its groups.
    """

    state: ClusterState
    policy: str
    declared: Mapping[tuple[str, Path], Value]
    text: str
    plan: Plan


@lru_cache(maxsize=4096)
def scenario(seed: int) -> Scenario:
    """Return the scenario of a number: a plan of one to seven steps that is safe."""
    random = Random(f"scenario {seed}")
    while True:
        state = _state(random, f"{SITES[seed % len(SITES)]}.example.org")
        seen = parse_config(config_data(ModelCluster(state), {}, "1"), where="config.data", source="local:")
        with TemporaryDirectory() as directory:
            file = FilePath(directory, "policy.yaml")
            text = yaml_text(_policy(random, state))
            file.write_text(text, encoding="utf-8")
            policy = load_policy(file)
            if any(finding.severity == "error" for finding in policy.findings):
                continue
            plan = make_plan(policy, seen, allowed=_ACCEPTED)
            if not plan.safe or not 1 <= len(plan.steps) <= 7:
                continue
            planned = plan_text(plan).replace(directory, "/policies")  # the same plan each time, byte by byte
            kept = FilePath(directory, "plan.json")
            kept.write_text(planned, encoding="utf-8")
            plan = PLANS[kept.read_bytes()] = read_plan(kept)
            return Scenario(state, text, _declared(policy), planned, plan)


def _declared(policy: Policy) -> dict[tuple[str, Path], Value]:
    objects = [*([policy.cluster] if policy.cluster else []), *policy.groups.values()]
    leaves = {(item.label, path): leaf.value for item in objects for path, leaf in item.leaves.items()}
    return {(name, path): value for (name, path), value in leaves.items() if not isinstance(value, Inherit)}


def _some(random: Random, values: dict[Path, tuple[Any, ...]], most: int) -> dict[Path, Any]:
    chosen = random.sample(sorted(values), random.randint(0, most))
    return {path: random.choice(values[path]) for path in chosen}


def _state(random: Random, called: str) -> ClusterState:
    enabled = ["plain", "drbd", "file", *random.sample(["rbd", "diskless"], random.randint(0, 2))]
    own: Values = {
        path: value
        for path, value in base_cluster(enabled).items()
        if path[0] not in ("hvparams", "hv_state") or path[1] == "kvm"
        if path[0] not in _FEW or path[-1] in _FEW[path[0]]
    }
    own = {**own, ("enabled_hypervisors",): ["kvm"]}
    values = _some(random, CLUSTER_VALUES, 4)
    own |= {path: value for path, value in values.items() if path[0] != "disk_state"}
    groups: dict[str, LiveGroup] = {}
    for name in sorted(random.sample(GROUPS, random.randint(1, 3))):
        mine: Values = {("alloc_policy",): "preferred", **_some(random, GROUP_VALUES, 3)}
        if random.random() < 0.3:
            mine[ALLOWED] = ["drbd", "plain"]
        tags = frozenset(random.sample(TAGS, random.randint(0, 2)))
        groups[name] = LiveGroup(name=name, own=mine, effective=fill(mine, own, Level.GROUP), tags=tags)
    nodes = {
        name: LiveNode(
            name=name,
            group=random.choice(sorted(groups)),
            own=_some(random, NODE_VALUES, 1),
            tags=frozenset(random.sample(TAGS, random.randint(0, 1))),
            identity=Identity(serial_no=1),
        )
        for name in (f"node{number}" for number in range(1, random.randint(2, 4) + 1))
    }
    return ClusterState(
        source="local:",
        name=called,
        software_version="3.0.2",
        cluster=ClusterObject(own=own, tags=frozenset(random.sample(TAGS, random.randint(0, 2)))),
        groups=groups,
        nodes=nodes,
        instances={item.name: item for item in _instances(random, nodes)},
    )


def _instances(random: Random, nodes: dict[str, LiveNode]) -> list[LiveInstance]:
    made = []
    for number in range(random.randint(0, 2)):
        node = nodes[random.choice(sorted(nodes))]
        others = sorted(item.name for item in nodes.values() if item.group == node.group and item is not node)
        pair = (random.choice(others),) if others and random.random() < 0.5 else ()
        made.append(instance_of(f"inst{number}", node.name, pair))
    return made


def _policy(random: Random, state: ClusterState) -> list[dict[str, Any]]:
    values = _some(random, CLUSTER_VALUES, 3) if random.random() < 0.7 else {}
    enabled = [str(item) for item in (state.cluster.own[ENABLED] or ())]  # type: ignore[union-attr]
    if random.random() < 0.2:
        after = ["plain", "drbd", "file", *random.sample(["rbd", "diskless", "ext"], random.randint(0, 2))]
        values[ENABLED], values[ALLOWED] = after, random.sample(after, random.randint(2, len(after)))
        enabled = after
    made = [document("Cluster", state.name, values, **_tags(random))]
    homes = {name: node.group for name, node in state.nodes.items()}
    alone = [name for name in homes if not _tied(state, name)]
    for name in alone if random.random() < 0.4 else ():
        homes[name] = random.choice(sorted(state.groups))
    free = [name for name in GROUPS if name not in state.groups]
    fresh = free.pop() if free and random.random() < 0.35 else None
    if fresh and alone and random.random() < 0.6:
        homes[random.choice(alone)] = fresh
    for group in state.groups.values():
        moved = sorted(name for name, home in homes.items() if home == group.name != state.nodes[name].group)
        if group.name not in homes.values() and len(state.groups) > 1 and random.random() < 0.7:
            made.append(document("NodeGroup", group.name, removed=True))
            continue
        more: dict[str, Any] = {"nodes": moved} if moved else {}
        name = group.name
        if free and random.random() < 0.2:
            name, more["renamed_from"] = free.pop(), group.name
        made.append(document("NodeGroup", name, _own(random, group, enabled), **more, **_tags(random)))
    if fresh:
        here = sorted(name for name, home in homes.items() if home == fresh)
        given = {path: value for path, value in _some(random, GROUP_VALUES, 2).items() if path[0] != "disk_state"}
        made.append(document("NodeGroup", fresh, given, **({"nodes": here} if here else {}), **_tags(random)))
    if random.random() < 0.5:
        chosen = sorted(random.sample(sorted(state.nodes), random.randint(1, len(state.nodes))))
        made.append(document("NodeSet", "some", _some(random, NODE_VALUES, 2), nodes=chosen, **_tags(random)))
    made.append(document("TagRules", None, owns=[{"prefix": "team:", "on": ["cluster", "group", "node"]}]))
    return made


def _tied(state: ClusterState, node: str) -> bool:
    return any(node in (item.primary_node, *item.secondary_nodes) for item in state.instances.values())


def _own(random: Random, group: LiveGroup, enabled: list[str]) -> dict[Path, Any]:
    values = _some(random, GROUP_VALUES, 2)
    for path in group.own:
        if path not in (("alloc_policy",), ALLOWED) and random.random() < 0.25:
            values[path] = "inherit"
    if ALLOWED in group.own and (set(map(str, group.own[ALLOWED] or ())) - set(enabled) or random.random() < 0.3):  # type: ignore[arg-type]
        values[ALLOWED] = "inherit"
    return values


def _tags(random: Random) -> dict[str, Any]:
    return {"tags": sorted(random.sample(TAGS, random.randint(0, 2)))} if random.random() < 0.35 else {}
