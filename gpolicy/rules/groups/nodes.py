"""GP602, GP606 and GP611 to GP613: the nodes that groups and node sets name, and their patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity, Span
from gpolicy.fit.desired import is_glob, matches
from gpolicy.policy import edits
from gpolicy.policy.model import GroupPolicy
from gpolicy.policy.promised import written_out
from gpolicy.policy.source_file import Located
from gpolicy.rules.examples import GROUP

_SILVER: Final = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


class NodeNamedTwice(Rule):
    info = RuleInfo(
        code="GP602",
        name="node-named-twice",
        severity=Severity.ERROR,
        summary="Two groups name the same node.",
        rationale="A node is in exactly one group, and the policy does not say in which.",
        source="Ganeti's data model",
        bad=f"{GROUP}nodes: [node1.example.org]\n---\n{_SILVER}nodes: [node1.example.org]\n",
        good=f"{GROUP}nodes: [node1.example.org]\n---\n{_SILVER}nodes: [node2.example.org]\n",
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        first: dict[str, tuple[GroupPolicy, Span]] = {}
        for group in context.groups:
            for node in group.nodes or ():
                if is_glob(node.value):
                    continue
                other, place = first.setdefault(node.value, (group, node.span))
                if other is not group:
                    message = f"{node.value} is to be in {group.name} and in {other.name}"
                    related = (Related(place, f"in {other.name} here"),)
                    yield self.hit(group, message, node.span, hint="leave it in one of the two", related=related)


class PatternWithoutNode(Rule):
    info = RuleInfo(
        code="GP606",
        name="pattern-without-node",
        severity=Severity.WARNING,
        summary="A pattern matches no node of the cluster.",
        rationale="Nodes are added with gnt-node, not by a policy: what the policy says about a missing node has no"
        " effect until the node exists. (A name that matches none is GP701, an error.)",
        bad=f'{GROUP}nodes: ["rack9-*"]\n',
        good=f'{GROUP}nodes: ["node*"]\n',
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        known = list(context.state.nodes) if context.state else []
        groups = [(group, group.nodes or ()) for group in context.groups]
        for declared, entries in (*groups, *((nodes, nodes.nodes) for nodes in context.policy.node_sets)):
            for entry in entries:
                if is_glob(entry.value) and not any(matches(entry.value, name) for name in known):
                    message = f"no node of the cluster matches {entry.value}"
                    yield self.hit(declared, message, entry.span, hint="correct the pattern, or add the nodes first")


_SET: Final = "gpolicy: v1\nkind: NodeSet\nname: fast\nndparams: {cpu_speed: 2}\n"
_LETTERS: Final = re.compile(r"[A-Za-z0-9._*?!\[\]-]+")
_EMPTY_RANGE: Final = re.compile(r"\[([0-9a-z])-([0-9a-z])\]")
MOST_LOOKED_AT: Final = 1_000_000
MOST_COMPARED: Final = 50_000
"""Pairs of patterns that are looked at, and that are compared: each with each of some 300 groups."""
MOST_NAMES: Final = 500_000
"""Names that patterns are written out to, to compare them."""
_WILDCARD: Final = re.compile(r"[*?\[]")
_RANGE: Final = re.compile(r"([^\[\]!-])-([^\]])")


class PatternsOverlap(Rule):
    info = RuleInfo(
        code="GP611",
        name="patterns-overlap",
        severity=Severity.WARNING,
        summary="Patterns of two groups match the same nodes.",
        rationale="A node is in exactly one group. A name wins over a pattern, but nothing decides between two"
        " patterns: if the cluster has such a node, the policy cannot be applied (GP702).",
        source="Ganeti's data model",
        bad=f'{GROUP}nodes: ["node*"]\n---\n{_SILVER}nodes: ["node[1-4].example.org"]\n',
        good=f'{GROUP}nodes: ["node*"]\n---\n{_SILVER}nodes: [node1.example.org]\n',
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        patterns = [(group, entry) for group in context.groups for entry in group.nodes or () if is_glob(entry.value)]
        reported: set[tuple[str, str]] = set()
        pairs, are_all = _could_meet([entry.value for _, entry in patterns], [group.name for group, _ in patterns])
        if not are_all:
            yield self._too_many(patterns)
        names = 0
        for first, second in pairs:
            (group, entry), (other, place) = patterns[first], patterns[second]
            pair = (group.name, other.name)
            if pair in reported:
                continue
            names += sum(len(written_out(item.value) or ()) for item in (entry, place))
            if names > MOST_NAMES:
                yield self._too_many(patterns)
                return
            if _share_nodes(entry.value, place.value):
                reported.add(pair)
                message = f"{place.value} and {entry.value} of group {group.name} match the same nodes"
                related = (Related(entry.span, f"{group.name} is here"),)
                hint = "narrow one of them, or name the nodes: a name wins over a pattern"
                yield self.hit(other, message, place.span, hint=hint, related=related)

    def _too_many(self, patterns: list[tuple[GroupPolicy, Located[str]]]) -> Hit:
        group, entry = patterns[-1]
        message = f"the policy has {len(patterns)} patterns of nodes: too many to compare each with each"
        return self.hit(group, message, entry.span, hint="start more patterns with letters, or name the nodes")


def _could_meet(patterns: list[str], groups: list[str]) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs, by place, of patterns of two groups that begin and end alike as far as letters go.

    No others share nodes. False with them: there are more than are looked at.
    """
    letters = [_WILDCARD.split(pattern) for pattern in patterns]
    ends = ["" if "[" in pattern else parts[-1] for pattern, parts in zip(patterns, letters, strict=True)]
    begins = sorted((parts[0], place) for place, parts in enumerate(letters))
    pairs: list[tuple[int, int]] = []
    looked_at = 0
    for number, (begin, place) in enumerate(begins):
        for following in range(number + 1, len(begins)):
            longer, other = begins[following]
            if not longer.startswith(begin):
                break  # sorted: whatever begins so stands together
            looked_at += 1
            if looked_at > MOST_LOOKED_AT or len(pairs) > MOST_COMPARED:
                return sorted(pairs), False
            alike = ends[place].endswith(ends[other]) or ends[other].endswith(ends[place])
            if alike and groups[place] != groups[other]:
                pairs.append((min(place, other), max(place, other)))
    return sorted(pairs), True


def _share_nodes(one: str, other: str) -> bool:
    """Return whether two patterns surely mean common nodes: one takes all, or some written out, of the other."""
    first, second = written_out(one), written_out(other)
    if first is not None and second is not None:
        return not set(first).isdisjoint(second)
    if first is not None:
        return any(matches(other, name) for name in first)
    if second is not None:
        return any(matches(one, name) for name in second)
    return matches(one, other) or matches(other, one)


class PatternUnlikely(Rule):
    info = RuleInfo(
        code="GP612",
        name="pattern-unlikely",
        severity=Severity.WARNING,
        summary="A name or pattern of nodes cannot match any node.",
        rationale="In patterns, * stands for any letters, ? for one letter and [1-4] for one of a set. Braces, a"
        " bracket that is not closed and a range such as 4-1 are taken literally, or match nothing.",
        bad=f'{GROUP}nodes: ["node{{1..4}}.example.org"]\n',
        good=f'{GROUP}nodes: ["node[1-4].example.org"]\n',
        fix="Reverses an empty range: 4-1 becomes 1-4.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        groups = [(group, group.nodes or ()) for group in context.groups]
        for declared, entries in (*groups, *((nodes, nodes.nodes) for nodes in context.policy.node_sets)):
            for entry in entries:
                reason = _unlikely(entry.value)
                if reason:
                    hint = "write * for any letters, [1-4] for one of a set"
                    turned = _EMPTY_RANGE.sub(_turned, entry.value)
                    can_fix = turned != entry.value and not _unlikely(turned)
                    fix = edits.replace_word(context.policy, entry.span, entry.value, turned) if can_fix else None
                    yield self.hit(declared, f"{entry.value}: {reason}", entry.span, hint=hint, fix=fix)


def _turned(match: re.Match[str]) -> str:
    low, high = match[1], match[2]
    return f"[{high}-{low}]" if low > high else match[0]


def _unlikely(pattern: str) -> str:
    """Return why no node can be meant, or nothing."""
    if not _LETTERS.fullmatch(pattern):
        odd = next(letter for letter in pattern if not _LETTERS.fullmatch(letter))
        return f"no node has {odd!r} in its name"
    if pattern.rfind("[") > pattern.rfind("]") or "]" in pattern.partition("[")[0]:
        return "a bracket is not closed, or not opened"
    for before_end in pattern.split("]")[:-1]:
        for low, high in _RANGE.findall(before_end.partition("[")[2].removeprefix("!")):
            if low > high:
                return f"the range {low}-{high} is empty"
    return ""


class NodeSetNodeUnknown(Rule):
    info = RuleInfo(
        code="GP613",
        name="node-in-no-group",
        severity=Severity.WARNING,
        summary="A node set names a node that is in no group of the policy, though every group names its nodes.",
        rationale="Each node is in a group. Most likely the name is misspelt, so the set matches no node, and the"
        " intended node does not get its values.",
        bad=f'{GROUP}nodes: ["node*.example.org"]\n---\n{_SET}nodes: [nod1.example.org]\n',
        good=f'{GROUP}nodes: ["node*.example.org"]\n---\n{_SET}nodes: [node1.example.org]\n',
    )
    only_without_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        groups: list[GroupPolicy] = context.groups
        if not groups or not all(group.nodes for group in groups):
            return
        entries: list[Located[str]] = [entry for group in groups for entry in group.nodes or ()]
        names = {entry.value for entry in entries}
        patterns = [entry.value for entry in entries if is_glob(entry.value)]
        for nodes in context.policy.node_sets:
            for entry in nodes.nodes:
                is_known = entry.value in names or any(matches(pattern, entry.value) for pattern in patterns)
                if not is_glob(entry.value) and not is_known:
                    message = f"{entry.value} is in no group of the policy"
                    hint = "correct the name, or add the node to its group"
                    yield self.hit(nodes, message, entry.span, hint=hint)
