"""Whatever `plan` would refuse on a cluster that has changed behind the policy's back, `check --state` finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpolicy.adopt.adopting import adopt_cluster
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.findings import Severity, told
from gpolicy.forecast.bridge import FORECAST
from gpolicy.impact.declared_guards import verdicts_on
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.plan.planned import make_plan
from tests.rules.run_rules import TODAY

STATE = read_state(f"snapshot:{Path(__file__).parents[2] / 'policies' / 'two-groups.snapshot.json'}")
GUARDS = """\
gpolicy: v1
kind: Guards
guards:
  - {name: none-violates, newly_violating: 0}
  - {name: few, max_changes: 5}
  - {name: survive, group: default, node_failures: 1}
"""
Mutation = Callable[[ClusterState], ClusterState]


def _cluster(name: str, value: Any) -> Mutation:
    return lambda state: replace(
        state, cluster=replace(state.cluster, own={**state.cluster.own, tuple(name.split(".")): value})
    )


def _group(group: str, name: str, value: Any) -> Mutation:
    def change(state: ClusterState) -> ClusterState:
        path = tuple(name.split("."))
        now = state.groups[group]
        changed = replace(now, own={**now.own, path: value}, effective={**now.effective, path: value})
        return replace(state, groups={**state.groups, group: changed})

    return change


def _node(name: str, **values: Any) -> Mutation:
    return lambda state: replace(state, nodes={**state.nodes, name: replace(state.nodes[name], **values)})


def _renamed_group(old: str, new: str) -> Mutation:
    def change(state: ClusterState) -> ClusterState:
        groups = {new if name == old else name: item for name, item in state.groups.items()}
        groups[new] = replace(groups[new], name=new)
        nodes = {name: replace(node, group=new) if node.group == old else node for name, node in state.nodes.items()}
        return replace(state, groups=groups, nodes=nodes)

    return change


def _without(node: str) -> Mutation:
    def stays(name: str, _: LiveNode) -> bool:
        return name != node

    def change(state: ClusterState) -> ClusterState:
        nodes = {name: item for name, item in state.nodes.items() if stays(name, item)}
        there = {
            name: item
            for name, item in state.instances.items()
            if node not in (item.primary_node, *item.secondary_nodes)
        }
        return replace(state, nodes=nodes, instances=there)

    return change


RENAMES = (("default", "shared"), ("dedicated", "Dedicated"), ("spare", "old"))
MUTATIONS: dict[str, Mutation] = {
    "name": lambda state: replace(state, name="other.example.org"),
    "name in capitals": lambda state: replace(state, name=state.name.upper()),
    "release 3.1": lambda state: replace(state, software_version="3.1.0"),
    "release 2.16": lambda state: replace(state, software_version="2.16.2"),
    **{f"templates {words}": _cluster("enabled_disk_templates", words.split()) for words in ("drbd", "plain")},
    **{f"hypervisors {words}": _cluster("enabled_hypervisors", words.split()) for words in ("xen-pvm", "xen-pvm kvm")},
    **{f"volume group {name}": _cluster("volume_group_name", name) for name in ("", "ssdvg", "XENVG")},
    "helper": _cluster("drbd_usermode_helper", ""),
    "interface": _cluster("master_netdev", "eth1"),
    "netmask": _cluster("master_netmask", 16),
    "allocator": _cluster("default_iallocator", "hial"),
    "pool": _cluster("candidate_pool_size", 3),
    "ratio": _group("dedicated", "ipolicy.vcpu-ratio", 1.0),
    "allowed": _group("dedicated", "ipolicy.disk-templates", ["plain"]),
    "mode off": _group("dedicated", "ndparams.exclusive_storage", False),
    "mode on": _group("default", "ndparams.exclusive_storage", True),
    "mode of a node": _node("node6.example.org", own={("ndparams", "exclusive_storage"): False}),
    "moved in": _node("node5.example.org", group="default"),
    "moved out": _node("node1.example.org", group="dedicated"),
    "spare": _node("node8.example.org", group="default"),
    **{f"{old} is {new}": _renamed_group(old, new) for old, new in RENAMES},
    **{f"without {name}": _without(name) for name in STATE.nodes},
    "tags": lambda state: replace(state, cluster=replace(state.cluster, tags=frozenset())),
}


@pytest.fixture(name="adopted", scope="module")
def _adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a policy that the cluster has, with guards."""
    directory = tmp_path_factory.mktemp("adopted")
    for name, text in adopt_cluster(STATE).files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "guards.yaml").write_text(GUARDS, encoding="utf-8")
    return directory


def _refuses(directory: Path, state: ClusterState) -> list[str]:
    policy = load_policy(directory)
    plan = make_plan(policy, state)
    declared, built_in = verdicts_on(policy, planned_sides(policy, state))
    verdicts = (*plan.guards, *declared, *built_in)
    errors = [item.code for item in plan.findings if item.severity is Severity.ERROR]
    return [*errors, *(guard.name for guard in verdicts if not guard.ok)]


def _finds(directory: Path, state: ClusterState) -> set[tuple[str, str]]:
    found = find_mistakes(load_policy(directory), state=state, today=TODAY, forecast=FORECAST)
    return {(item.code, item.message) for item in told(found) if item.severity is not Severity.INFO}


def test_the_cluster_itself_is_refused_nothing(adopted: Path) -> None:
    assert _refuses(adopted, STATE) == []
    assert make_plan(load_policy(adopted), STATE).changes == ()


def test_what_the_plan_refuses_is_found(adopted: Path) -> None:
    before = _finds(adopted, STATE)
    states = {name: change(STATE) for name, change in MUTATIONS.items()}
    refused = {name: said for name, state in states.items() if (said := _refuses(adopted, state))}
    assert [name for name in refused if not _finds(adopted, states[name]) - before] == []
    assert len(refused) > len(MUTATIONS) // 3, refused
