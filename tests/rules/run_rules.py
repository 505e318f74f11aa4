"""Check policies given as text, with or without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from gpolicy.cluster.state import ClusterObject, ClusterState, Group, Node
from gpolicy.findings import Finding
from gpolicy.ganeti.parameter import Values
from gpolicy.policy.loading import load_policy
from gpolicy.rules.checking import check_policy

TODAY = date(2026, 6, 15)


def check(text: str, directory: Path, *, state: ClusterState | None = None, today: date = TODAY) -> list[Finding]:
    """Return all findings about a policy of one file, `policy.yaml` in `directory`."""
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return check_policy(load_policy(directory), state=state, today=today)


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
        groups={name: Group(name=name, own=own, effective=own) for name, own in groups.items()},
        nodes={
            name: Node(name=name, group=group, own=(own_of_nodes or {}).get(name, {}))
            for name, group in (nodes or {}).items()
        },
        instances={},
    )
