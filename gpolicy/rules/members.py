"""Which nodes of the observed cluster are in which group, and what is declared for each, once the policy is applied."""

from __future__ import annotations

from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import INHERIT, Leaf
from gpolicy.rules.context import Context


def group_of(context: Context, node: str) -> str | None:
    """Return the group that an observed node will be in; None without a cluster, or for a node that it has not."""
    wanted = context.desired.nodes.get(node) if context.desired else None
    if wanted is not None and wanted.group is not None:
        return wanted.group.value
    observed = context.state.nodes.get(node) if context.state else None
    if observed is None or context.desired is None:
        return None
    renamed = {group.current: group.policy.name for group in context.desired.groups if group.current}
    return renamed.get(observed.group, observed.group)


def declared_for(context: Context, node: str, path: Path) -> Leaf | None:
    """Return the declared value that counts for an observed node: of its sets, else its group, else the cluster."""
    wanted = context.desired.nodes.get(node) if context.desired else None
    leaf = wanted.leaves.get(path) if wanted else None
    if leaf is not None and leaf.value is not INHERIT:
        return leaf
    group = context.policy.groups.get(group_of(context, node) or "")
    return (context.own(group, path) if group else None) or context.cluster_leaf(path)
