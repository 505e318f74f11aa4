"""The tags that a policy declares, and those that nodes will have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gpolicy.checking.members import Members
from gpolicy.findings import Span
from gpolicy.fit.desired import is_glob, matches
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.model import NodeSetPolicy, Policy
from gpolicy.policy.promised import promised_nodes
from gpolicy.policy.schema_tag_rules import TAG_FAMILIES

HTOOLS: Final = "htools:"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that an object is to have. `typed`: rendered from a TagRules document, not written as it is.

    `family` is the htools family of the tag (`iextags`), or an empty string.
    """

    label: str
    level: Level
    text: str
    span: Span
    typed: bool
    family: str

    @property
    def suffix(self) -> str:
        """What stands behind the family's prefix."""
        return self.text.removeprefix(TAG_FAMILIES[self.family]) if self.family else ""


def declared_tags(policy: Policy) -> tuple[Tag, ...]:
    """Return all tags that the policy declares, those rendered from TagRules on the cluster included."""
    own = [
        Tag(declared.label, declared.level, tag.value, tag.span, typed=False, family=_family(tag.value))
        for declared in policy.objects
        for tag in declared.tags or ()
    ]
    rendered = [
        Tag("cluster", Level.CLUSTER, tag.value, tag.span, typed=True, family=_family(tag.value))
        for rules in policy.tag_rules
        for tag in rules.tags
    ]
    return (*own, *rendered)


def _family(text: str) -> str:
    if not text.startswith(HTOOLS):
        return ""
    return next((name for name, prefix in TAG_FAMILIES.items() if text.startswith(prefix)), "")


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


def tagged_nodes(policy: Policy, members: Members) -> dict[str, tuple[TaggedNode, ...]]:
    """Return the nodes of each group whose nodes are all known by name.

    With a cluster these are all of its groups, and the tags those that stay and those that come. Without one they are
    the groups that name their nodes, and the tags those that node sets declare; what nodes have besides is not known.
    """
    sets = _Sets.of(policy)
    if members.state is None or members.desired is None:
        groups = {group.name: promised_nodes(group) for group in policy.groups.values() if group.removed is None}
        return {
            group: tuple(TaggedNode(name, sets.tags(name, group)) for name in names)
            for group, names in groups.items()
            if names is not None
        }
    found: dict[str, list[TaggedNode]] = {}
    groups_of = members.group_of
    for node in members.state.nodes.values():
        group = groups_of.get(node.name, node.group)
        wanted = members.desired.nodes.get(node.name)
        managed = wanted is not None and wanted.tags is not None
        kept = [tag for tag in node.tags if not (managed and _owned(policy, tag))]
        found.setdefault(group, []).append(
            TaggedNode(node.name, {**dict.fromkeys(kept), **sets.tags(node.name, group)})
        )
    return {group: tuple(nodes) for group, nodes in found.items()}


def tagged_as_groups(policy: Policy, groups: Sequence[str]) -> tuple[TaggedNode, ...]:
    """Return what every node of these groups has by the node sets that name its group."""
    sets = _Sets.of(policy)
    return tuple(TaggedNode(f"of group {group}", sets.tags("", group)) for group in groups if group in sets.by_group)


@dataclass(frozen=True, slots=True)
class _Sets:
    """The node sets that have tags, by the names, the patterns and the groups that they are about."""

    by_name: dict[str, list[NodeSetPolicy]]
    by_group: dict[str, list[NodeSetPolicy]]
    by_pattern: list[tuple[str, NodeSetPolicy]]

    @classmethod
    def of(cls, policy: Policy) -> _Sets:
        sets = cls({}, {}, [])
        for node_set in policy.node_sets:
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


def _owned(policy: Policy, tag: str) -> bool:
    return any(Level.NODE in owned.levels and tag.startswith(owned.prefix) for owned in policy.owned)
