"""Which nodes of the observed cluster are in which group, and what is declared for each, once the policy is applied."""

from __future__ import annotations

from functools import lru_cache

from gpolicy.checking.context import Context
from gpolicy.cluster.state import Node
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import INHERIT, GroupPolicy, Leaf


@lru_cache(maxsize=1)  # rules ask for one node after the other
def groups_of_nodes(context: Context) -> dict[str, str]:
    """Return the group that each observed node will be in; empty without a cluster."""
    if context.state is None or context.desired is None:
        return {}
    renamed = {group.current: group.policy.name for group in context.desired.groups if group.current}
    found = {}
    for name, node in context.state.nodes.items():
        wanted = context.desired.nodes.get(name)
        found[name] = wanted.group.value if wanted and wanted.group else renamed.get(node.group, node.group)
    return found


def group_of(context: Context, node: str) -> str | None:
    """Return the group that an observed node will be in; None without a cluster, or for a node that it has not."""
    return groups_of_nodes(context).get(node)


def nodes_in(context: Context, group: GroupPolicy) -> list[Node]:
    """Return the observed nodes that will be in a group, by name."""
    return [] if context.state is None else _nodes_by_group(context).get(group.name, [])


@lru_cache(maxsize=1)
def _nodes_by_group(context: Context) -> dict[str, list[Node]]:
    nodes = context.state.nodes if context.state else {}
    found: dict[str, list[Node]] = {}
    for name, group in sorted(groups_of_nodes(context).items()):
        found.setdefault(group, []).append(nodes[name])
    return found


def hosts_in(context: Context, group: GroupPolicy) -> list[Node]:
    """Return those of them that can have instances."""
    return [node for node in nodes_in(context, group) if node.vm_capable]


def has_other_groups(context: Context) -> bool:
    """Return whether the observed cluster has groups that the policy says nothing about."""
    groups = context.policy.groups.values()
    names = {group.name for group in groups} | {group.renamed_from.value for group in groups if group.renamed_from}
    return context.state is not None and not names.issuperset(context.state.groups)


def declared_for(context: Context, node: str, path: Path) -> Leaf | None:
    """Return the declared value that counts for an observed node: of its sets, else its group, else the cluster."""
    wanted = context.desired.nodes.get(node) if context.desired else None
    leaf = wanted.leaves.get(path) if wanted else None
    if leaf is not None and leaf.value is not INHERIT:
        return leaf
    group = context.policy.groups.get(group_of(context, node) or "")
    return (context.own(group, path) if group else None) or context.cluster_leaf(path)
