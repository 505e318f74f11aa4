"""The nodes of groups: which are there once the policy is applied, what patterns have in common, and tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final, Generic, TypeVar

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.findings import Span
from gpolicy.ganeti.vocabulary import TAG_FAMILIES, Level
from gpolicy.policy import model
from gpolicy.policy.kinds import Policy
from gpolicy.resolve.desired import Desired


@dataclass(frozen=True, eq=False)
class Members:
    """The groups of the observed cluster and their nodes, as the policy wants them; empty without a cluster."""

    policy: Policy
    state: ClusterState
    desired: Desired

    @cached_property
    def group_of(self) -> dict[str, str]:
        """The group that each observed node will be in."""
        found = {name: self.desired.name_after(node.group) for name, node in self.state.nodes.items()}
        wanted = {name: node.group.value for name, node in self.desired.nodes.items() if node.group and name in found}
        return found | wanted

    @cached_property
    def _by_group(self) -> dict[str, list[LiveNode]]:
        found: dict[str, list[LiveNode]] = {}
        for name, group in sorted(self.group_of.items()):
            found.setdefault(group, []).append(self.state.nodes[name])
        return found

    def nodes_in(self, group: model.GroupPolicy) -> list[LiveNode]:
        """Return the observed nodes that will be in a group, by name."""
        return self._by_group.get(group.name, [])

    def hosts_in(self, group: model.GroupPolicy) -> list[LiveNode]:
        """Return those of them that can have instances."""
        return [node for node in self.nodes_in(group) if node.vm_capable]

    @property
    def has_undeclared_groups(self) -> bool:
        """Whether the observed cluster has groups that the policy says nothing about."""
        groups = self.policy.groups.values()
        names = {group.name for group in groups} | {group.renamed_from.value for group in groups if group.renamed_from}
        return not names.issuperset(self.state.groups)


_ANY: Final = "\0"  # a letter that no pattern lists: only a wildcard matches it
_MOST_EXAMPLES: Final = 100
_ANY_BUT: Final = re.compile(r"\[![^][]++\]|\?")


def takes_in(wide: str, narrow: str) -> bool:
    """Return whether a name or pattern surely matches whatever another one does."""
    if wide == narrow:
        return True
    if not model.is_glob(narrow):
        return model.matches(wide, narrow)
    if not model.is_glob(wide) or "[!" in wide:
        return False
    examples = _examples(narrow)
    return bool(examples) and all(model.matches(wide, name) for name in examples)


def share_nodes(one: str, other: str) -> bool:
    """Return whether two patterns surely mean common nodes: one takes all, or some written out, of the other."""
    first, second = model.written_out(one), model.written_out(other)
    if first is not None and second is not None:
        return not set(first).isdisjoint(second)
    if first is not None:
        return any(model.matches(other, name) for name in first)
    if second is not None:
        return any(model.matches(one, name) for name in second)
    return takes_in(one, other) or takes_in(other, one)


@lru_cache(maxsize=1024)
def _examples(pattern: str) -> tuple[str, ...]:
    """Return names that a pattern matches, for wildcards with a letter that none lists; none if it lists too many."""
    found: dict[str, None] = {}
    for letters in ("", _ANY * 2):
        found.update(dict.fromkeys(model.written_out(_ANY_BUT.sub(_ANY, pattern).replace("*", letters)) or ()))
    return tuple(found) if len(found) <= _MOST_EXAMPLES and all(model.matches(pattern, name) for name in found) else ()


HTOOLS: Final = "htools:"
_MOST_PROMISED: Final = 100_000
"""Nodes of groups that are looked at one by one; those of further groups are taken for unknown."""
_MOST_COMPARED: Final = 500_000  # entries of node sets, compared with each pattern
_Owner = TypeVar("_Owner")
_LETTERS: Final = 8
_FEW: Final = 100
"""Patterns whose letters are looked for in a text one after the other."""


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
    own = [(item.label, item.level, tag, False) for item in policy.objects for tag in item.tags or ()]
    rendered = [("cluster", Level.CLUSTER, tag, True) for rules in policy.tag_rules for tag in rules.tags]
    found = []
    for label, level, tag, typed in (*own, *rendered):
        family = next((name for name, prefix in TAG_FAMILIES.items() if tag.value.startswith(prefix)), "")
        found.append(Tag(label, level, tag.value, tag.span, typed, family))
    return tuple(found)


@dataclass(frozen=True)
class TaggedNode:
    """A node with its tags: where each is declared (the object's label and the place), None for one that it has now.

    `several`: it stands for all nodes of a pattern or a group, with the tags that each of them surely has.
    """

    name: str
    tags: dict[str, tuple[str, Span] | None]
    several: bool = False

    def of(self, domain: str) -> frozenset[str]:
        """Return the tags of one domain: those that begin with it and a colon."""
        return self.domains.get(domain, frozenset())

    @cached_property
    def domains(self) -> dict[str, frozenset[str]]:
        """The tags by each domain that they may be of: what stands before one of their colons."""
        found: dict[str, set[str]] = {}
        for tag in self.tags:
            for place, letter in enumerate(tag):
                if letter == ":":
                    found.setdefault(tag[:place], set()).add(tag)
        return {domain: frozenset(tags) for domain, tags in found.items()}


def promised_tags(policy: Policy) -> dict[str, tuple[TaggedNode, ...]]:
    """Return the nodes of each group that names its nodes, with the tags of node sets; they may have others besides."""
    sets, left = _Sets.of(policy), _MOST_PROMISED
    promised: dict[str, tuple[TaggedNode, ...]] = {}
    for declared in policy.groups.values():
        names = model.promised_nodes(declared) if declared.removed is None and left > 0 else None
        if names is not None:
            promised[declared.name] = tuple(TaggedNode(name, sets.tags(name, declared.name)) for name in names)
            left -= len(names)
    return promised


def tagged_nodes(policy: Policy, members: Members) -> dict[str, tuple[TaggedNode, ...]]:
    """Return the nodes of each group of an observed cluster, with the tags that stay and those that come."""
    sets = _Sets.of(policy)
    found: dict[str, list[TaggedNode]] = {}
    owned = tuple(item.prefix for item in policy.owned if Level.NODE in item.levels)
    for node in members.state.nodes.values():
        group = members.group_of.get(node.name, node.group)
        wanted = members.desired.nodes.get(node.name)
        managed = wanted is not None and wanted.tags is not None
        kept = [tag for tag in node.tags if not (managed and tag.startswith(owned))]
        tags = {**dict.fromkeys(kept), **sets.tags(node.name, group)}
        found.setdefault(group, []).append(TaggedNode(node.name, tags))
    return {group: tuple(nodes) for group, nodes in found.items()}


def tagged_groups(policy: Policy, known: Collection[str]) -> dict[str, TaggedNode]:
    """Return what all nodes have, by node sets, of each group that is not among those whose nodes are `known`."""
    sets = _Sets.of(policy)
    groups = (group for group in policy.groups.values() if group.removed is None and group.name not in known)
    return {group.name: TaggedNode(f"of group {group.name}", sets.of_all(group), several=True) for group in groups}


def tagged_entries(policy: Policy, known: Collection[str]) -> Iterator[TaggedNode]:
    """Yield what nodes have by the names and patterns of node sets, those not among the nodes that are `known`."""
    sets = _Sets.of(policy, likely=True)
    patterns = sets.by_pattern.all
    groups = _Patterns[str]()
    for group in policy.groups.values():
        for pattern in (group.nodes or ()) if group.removed is None else ():
            groups.add(pattern.value, group.name)
    left = _MOST_COMPARED // (len(patterns) + len(policy.groups) + 1)
    written = (name for text in patterns for name in model.written_out(text) or (text,))
    for entry in islice(dict.fromkeys((*sets.by_name, *islice(written, left))), left):
        if entry not in known and not model.unlikely(entry):
            home = next(groups.taking_in(entry), "")
            yield TaggedNode(entry, sets.tags(entry, home), several=model.is_glob(entry))


@dataclass(slots=True)
class _Patterns(Generic[_Owner]):
    """Patterns with their owners, ordered by their literal beginnings, by letters that all matching names have."""

    by_letters: dict[str, list[tuple[tuple[int, int], str, _Owner]]] = field(default_factory=dict)
    all: list[str] = field(default_factory=list)

    def add(self, pattern: str, owner: _Owner) -> None:
        parts = model.WILDCARD.split(pattern.partition("[")[0])
        order = len(parts[0]), len(self.all)
        self.all.append(pattern)
        self.by_letters.setdefault(max(parts, key=len)[:_LETTERS], []).append((order, pattern, owner))

    def taking_in(self, entry: str) -> Iterator[_Owner]:
        """Yield whose patterns surely match all that a name or pattern matches."""
        if not self.by_letters:
            return
        text = next(iter(_examples(entry)), entry) if model.is_glob(entry) else entry
        if len(self.by_letters) <= _FEW:
            letters = {part for part in self.by_letters if part in text}
        else:
            ends = range(1, len(text) + 1)
            parts = {text[begin:end] for end in ends for begin in range(max(0, end - _LETTERS), end)}
            letters = {"", *parts} & self.by_letters.keys()
        near = [item for part in letters for item in self.by_letters[part]]
        for _, pattern, owner in sorted(near, key=lambda item: item[0]):
            if takes_in(pattern, entry):
                yield owner


@dataclass(frozen=True, slots=True)
class _Sets:
    """The node sets that have tags, by the names, the patterns and the groups that they are about."""

    by_name: dict[str, list[model.NodeSetPolicy]]
    by_group: dict[str, list[model.NodeSetPolicy]]
    by_pattern: _Patterns[model.NodeSetPolicy]

    @classmethod
    def of(cls, policy: Policy, *, likely: bool = False) -> _Sets:
        """Return the node sets of a policy; `likely`: without patterns that have a slip."""
        sets = cls({}, {}, _Patterns())
        for node_set in (item for item in policy.node_sets if item.tags):
            for pattern in node_set.nodes:
                if not model.is_glob(pattern.value):
                    sets.by_name.setdefault(pattern.value, []).append(node_set)
                elif not (likely and model.unlikely(pattern.value)):
                    sets.by_pattern.add(pattern.value, node_set)
            for group in node_set.groups:
                sets.by_group.setdefault(group.value, []).append(node_set)
        return sets

    def of_all(self, group: model.GroupPolicy) -> dict[str, tuple[str, Span] | None]:
        """Return the tags that the sets declare for all nodes of a group, as far as its patterns tell."""
        each = [self.tags(pattern.value, group.name) for pattern in group.nodes or ()] or [self.tags("", group.name)]
        return {tag: place for tag, place in each[0].items() if all(tag in tags for tags in each)}

    def tags(self, node: str, group: str) -> dict[str, tuple[str, Span] | None]:
        """Return the tags that the sets declare for a node, or for all that a pattern matches."""
        found: dict[str, tuple[str, Span] | None] = {}
        by_pattern = self.by_pattern.taking_in(node)
        for node_set in (*self.by_group.get(group, ()), *by_pattern, *self.by_name.get(node, ())):
            found |= {tag.value: (node_set.label, tag.span) for tag in node_set.tags or ()}
        return found
