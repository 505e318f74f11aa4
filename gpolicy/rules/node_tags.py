"""The tags that nodes will have, group by group: for rules about failure domains and migration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpolicy.findings import Span
from gpolicy.fit.desired import matches
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.promised import promised_nodes
from gpolicy.rules.context import Context
from gpolicy.rules.members import group_of


@dataclass(frozen=True, slots=True)
class TaggedNode:
    """A node with its tags: where each is declared (the object's label and the place), None for one that it has now."""

    name: str
    tags: dict[str, tuple[str, Span] | None]

    def of(self, domain: str) -> frozenset[str]:
        """Return the tags of one domain: those that begin with it and a colon."""
        return frozenset(tag for tag in self.tags if tag.startswith(f"{domain}:"))


def tagged_nodes(context: Context) -> dict[str, tuple[TaggedNode, ...]]:
    """Return the nodes of each group whose nodes are all known by name.

    With a cluster these are all of its groups, and the tags those that stay and those that come. Without one they are
    the groups that name their nodes, and the tags those that node sets declare; what nodes have besides is not known.
    """
    if context.state is None:
        groups = {group.name: promised_nodes(group) for group in context.groups}
        return {
            group: tuple(TaggedNode(name, _declared(context, name, group)) for name in names)
            for group, names in groups.items()
            if names is not None
        }
    found: dict[str, list[TaggedNode]] = {}
    for node in context.state.nodes.values():
        group = group_of(context, node.name) or node.group
        declared = _declared(context, node.name, group)
        wanted = context.desired.nodes.get(node.name) if context.desired else None
        managed = wanted is not None and wanted.tags is not None
        kept = [tag for tag in node.tags if not (managed and _owned(context, tag))]
        found.setdefault(group, []).append(TaggedNode(node.name, {**dict.fromkeys(kept), **declared}))
    return {group: tuple(nodes) for group, nodes in found.items()}


def declares_node_tags(context: Context, domain: str) -> bool:
    """Return whether a node set declares a tag of this domain."""
    return any(tag.startswith(f"{domain}:") for tag in _texts(context))


def known_node_tags(context: Context) -> set[str]:
    """Return all tags that a node set declares or a node of the cluster has."""
    observed = context.state.nodes.values() if context.state else ()
    return {*_texts(context), *(tag for node in observed for tag in node.tags)}


def _texts(context: Context) -> Iterator[str]:
    for node_set in context.policy.node_sets:
        yield from (tag.value for tag in node_set.tags or ())


def _declared(context: Context, node: str, group: str) -> dict[str, tuple[str, Span] | None]:
    """Return the tags that node sets declare for a node."""
    found: dict[str, tuple[str, Span] | None] = {}
    for node_set in context.policy.node_sets:
        in_group = any(item.value == group for item in node_set.groups)
        if in_group or any(matches(pattern.value, node) for pattern in node_set.nodes):
            found |= {tag.value: (node_set.label, tag.span) for tag in node_set.tags or ()}
    return found


def _owned(context: Context, tag: str) -> bool:
    return any(Level.NODE in owned.levels and tag.startswith(owned.prefix) for owned in context.policy.owned)
