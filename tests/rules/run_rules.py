"""Check policies given as text, with or without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveDisk, LiveGroup, LiveInstance, LiveNode, Resources
from gpolicy.findings import Finding
from gpolicy.forecast.bridge import FORECAST
from gpolicy.ganeti.vocabulary import Values
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes

TODAY = date(2026, 6, 15)


def check(text: str, directory: Path, *, state: ClusterState | None = None, today: date = TODAY) -> list[Finding]:
    """Return all findings about a policy of one file, `policy.yaml` in `directory`."""
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return find_mistakes(load_policy(directory), state=state, today=today, forecast=FORECAST)


def codes(findings: Iterable[Finding]) -> list[str]:
    """Return the codes of findings, in their order."""
    return [finding.code for finding in findings]


def cluster(
    groups: dict[str, Values], nodes: dict[str, str] | None = None, own_of_nodes: dict[str, Values] | None = None
) -> ClusterState:
    """Return a cluster with these groups (own values) and nodes (name → group)."""
    return ClusterState(
        source="test",
        name="c.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own={}),
        groups={name: LiveGroup(name=name, own=own, effective=own) for name, own in groups.items()},
        nodes={
            name: LiveNode(name=name, group=group, own=(own_of_nodes or {}).get(name, {}))
            for name, group in (nodes or {}).items()
        },
        instances={},
    )


def with_instance(state: ClusterState, node: str, *, template: str, hypervisor: str) -> ClusterState:
    """Return the cluster with one instance of one disk on `node`."""
    instance = LiveInstance(
        name="web1.example.org",
        primary_node=node,
        disk_template=template,
        disks=(LiveDisk(size=1024, template=template),),
        minmem=1024,
        maxmem=1024,
        vcpus=1,
        spindle_use=1,
        hypervisor=hypervisor,
    )
    return replace(state, instances={**state.instances, instance.name: instance})


def with_resources(state: ClusterState, **resources: int) -> ClusterState:
    """Return the cluster with these measured resources on every node."""
    nodes = {name: replace(node, resources=Resources(**resources)) for name, node in state.nodes.items()}
    return replace(state, nodes=nodes)
