"""Helpers for plans: recorded clusters, states made by hand, policies as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any

from gpolicy.cluster.state import ClusterObject, ClusterState, Identity, LiveGroup, LiveInstance, LiveNode, Unreadable
from gpolicy.cluster.state_files import read_config_file
from gpolicy.forecast.bridge import FORECAST
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import Level, Values
from gpolicy.json_values import json_text
from gpolicy.plan import plan as planning
from gpolicy.plan.changes import Change
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_json import plan_as_json
from gpolicy.plan.step import Step
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.strategies import base_cluster

CLUSTERS = FilePath(__file__).parent.parent / "data" / "clusters"
HEAD = "gpolicy: v1\nkind: Cluster\nname: cluster.example.org\n"


def make_plan(policy: Policy, state: ClusterState, **more: Any) -> Plan:
    """Return the plan alone, of the plan and what it does."""
    return planning.make_plan(policy, state, **more)[0]


def recorded(name: str) -> ClusterState:
    return read_config_file(CLUSTERS / name / "config.data")


def policy_of(*documents: str) -> Policy:
    """Return a policy; each document lacks its first line, and `Cluster`, `NodeGroup`, … stands for its kind."""
    texts = [f"gpolicy: v1\nkind: {textwrap.dedent(document).lstrip()}" for document in documents]
    with TemporaryDirectory() as directory:
        file = FilePath(directory, "policy.yaml")
        file.write_text("\n---\n".join(texts), encoding="utf-8")
        policy = load_policy(file)
    errors = [finding.message for finding in policy.findings if finding.severity == "error"]
    assert errors == []
    return policy


def cluster(
    own: Values | None = None,
    groups: dict[str, Values] | None = None,
    nodes: dict[str, str] | None = None,
    *instances: LiveInstance,
    enabled: tuple[str, ...] = ("plain", "drbd", "file", "rbd"),
    tags: frozenset[str] = frozenset(),
    unreadable: tuple[Unreadable, ...] = (),
) -> ClusterState:
    """Return a state: own values of the cluster over Ganeti's defaults, of groups, and the nodes' groups."""
    values = base_cluster(list(enabled)) | (own or {})
    preferred: Values = {("alloc_policy",): "preferred"}
    made = {
        name: LiveGroup(
            name=name,
            own=preferred | value,
            effective=fill(preferred | value, values, Level.GROUP),
            identity=Identity(serial_no=3),
        )
        for name, value in (groups if groups is not None else {"default": {}}).items()
    }
    return ClusterState(
        source="config:test",
        name="cluster.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own=values, tags=tags, identity=Identity(serial_no=9)),
        groups=made,
        nodes={name: LiveNode(name=name, group=group, own={}) for name, group in (nodes or {}).items()},
        instances={instance.name: instance for instance in instances},
        unreadable=unreadable,
    )


def complaints(*documents: str) -> list[str]:
    """Return the errors of loading and checking a policy: codes and messages."""
    texts = [f"gpolicy: v1\nkind: {document}" for document in documents]
    with TemporaryDirectory() as directory:
        file = FilePath(directory, "policy.yaml")
        file.write_text("\n---\n".join(texts), encoding="utf-8")
        found = find_mistakes(load_policy(file), today=date(2026, 1, 1), forecast=FORECAST)
    return [f"{finding.severity} {finding.name}: {finding.message}" for finding in found]


def with_node(state: ClusterState, name: str, own: Values, tags: frozenset[str] = frozenset()) -> ClusterState:
    """Return `state` with own values and tags of a node that it has."""
    return replace(state, nodes={**state.nodes, name: replace(state.nodes[name], own=own, tags=tags)})


def with_group_tags(state: ClusterState, name: str, *tags: str) -> ClusterState:
    """Return `state` with tags of a group that it has."""
    return replace(state, groups={**state.groups, name: replace(state.groups[name], tags=frozenset(tags))})


def plan_for(state: ClusterState, *documents: str, allow: tuple[str, ...] = ()) -> Plan:
    return make_plan(policy_of(*documents), state, allowed=frozenset(allow))


def plan_text(plan: Plan, impact: Mapping[str, Any] | None = None) -> str:
    """Return the content of the file of a plan."""
    return json_text(plan_as_json(plan, impact))


def change(plan: Plan, obj: str, path: str) -> Change:
    """Return the one change of a path of an object."""
    found = [item for item in plan.changes if (item.object, ".".join(item.path)) == (obj, path)]
    assert len(found) == 1, [(item.object, item.path) for item in plan.changes]
    return found[0]


def argv(plan: Plan) -> list[str]:
    """Return the commands of a plan's steps as text."""
    return [" ".join(step.command.argv or ("RAPI only",)) for step in plan.steps]


def undo(step: Step) -> list[str]:
    return [" ".join(command.argv or ("RAPI only",)) for command in step.inverse.commands]


def failed(plan: Plan) -> dict[str, str]:
    """Return the guards that fail, with their messages."""
    return {guard.name: guard.message for guard in plan.guards if not guard.ok}
