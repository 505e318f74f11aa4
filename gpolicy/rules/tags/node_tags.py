"""The tags that nodes will have, group by group: for rules about failure domains and migration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gpolicy.checking.context import Context
from gpolicy.checking.members import groups_of_nodes
from gpolicy.findings import Span
from gpolicy.fit.desired import is_glob, matches
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.model import NodeSetPolicy
from gpolicy.policy.promised import promised_nodes


@dataclass(frozen=True)
class TaggedNode:
    """A node with its tags: where each is declared (the object's label and the place), None for one that it has now."""

    name: str
    tags: dict[str, tuple[str, Span] | None]

    def of(self, domain: str) -> frozenset[str]:
        """Return the tags of one domain: those that begin with it and a colon."""
        return self._domains.get(domain, frozenset())

    @cached_property
    def _domains(self) -> dict[str, frozenset[str]]:
        """The tags by each domain that they may be of: what stands before one of their colons."""
        found: dict[str, set[str]] = {}
        for tag in self.tags:
            for place, letter in enumerate(tag):
                if letter == ":":
                    found.setdefault(tag[:place], set()).add(tag)
        return {domain: frozenset(tags) for domain, tags in found.items()}


@lru_cache(maxsize=1)  # several rules ask, one after the other
def tagged_nodes(context: Context) -> dict[str, tuple[TaggedNode, ...]]:
    """Return the nodes of each group whose nodes are all known by name.

    With a cluster these are all of its groups, and the tags those that stay and those that come. Without one they are
    the groups that name their nodes, and the tags those that node sets declare; what nodes have besides is not known.
    """
    sets = _Sets.of(context)
    if context.state is None:
        groups = {group.name: promised_nodes(group) for group in context.groups}
        return {
            group: tuple(TaggedNode(name, sets.tags(name, group)) for name in names)
            for group, names in groups.items()
            if names is not None
        }
    found: dict[str, list[TaggedNode]] = {}
    groups_of = groups_of_nodes(context)
    for node in context.state.nodes.values():
        group = groups_of.get(node.name, node.group)
        wanted = context.desired.nodes.get(node.name) if context.desired else None
        managed = wanted is not None and wanted.tags is not None
        kept = [tag for tag in node.tags if not (managed and _owned(context, tag))]
        found.setdefault(group, []).append(
            TaggedNode(node.name, {**dict.fromkeys(kept), **sets.tags(node.name, group)})
        )
    return {group: tuple(nodes) for group, nodes in found.items()}


@dataclass(frozen=True, slots=True)
class _Sets:
    """The node sets that have tags, by the names, the patterns and the groups that they are about."""

    by_name: dict[str, list[NodeSetPolicy]]
    by_group: dict[str, list[NodeSetPolicy]]
    by_pattern: list[tuple[str, NodeSetPolicy]]

    @classmethod
    def of(cls, context: Context) -> _Sets:
        sets = cls({}, {}, [])
        for node_set in context.policy.node_sets:
            for pattern in node_set.nodes if node_set.tags else ():
                if is_glob(pattern.value):
                    sets.by_pattern.append((pattern.value, node_set))
                else:
                    sets.by_name.setdefault(pattern.value, []).append(node_set)
            for group in node_set.groups if node_set.tags else ():
                sets.by_group.setdefault(group.value, []).append(node_set)
        return sets

    def tags(self, node: str, group: str) -> dict[str, tuple[str, Span] | None]:
        """Return the tags that the sets declare for a node."""
        found: dict[str, tuple[str, Span] | None] = {}
        by_pattern = [node_set for pattern, node_set in self.by_pattern if matches(pattern, node)]
        for node_set in (*self.by_group.get(group, ()), *by_pattern, *self.by_name.get(node, ())):
            found |= {tag.value: (node_set.label, tag.span) for tag in node_set.tags or ()}
        return found


def known_node_tags(context: Context) -> set[str]:
    """Return all tags that a node set declares or a node of the cluster has."""
    observed = context.state.nodes.values() if context.state else ()
    return {*declared_node_tags(context), *(tag for node in observed for tag in node.tags)}


def declared_node_tags(context: Context) -> Iterator[str]:
    """Yield the tags that node sets declare."""
    for node_set in context.policy.node_sets:
        yield from (tag.value for tag in node_set.tags or ())


def _owned(context: Context, tag: str) -> bool:
    return any(Level.NODE in owned.levels and tag.startswith(owned.prefix) for owned in context.policy.owned)
