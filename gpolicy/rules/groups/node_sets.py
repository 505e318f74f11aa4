"""GP6xx: groups, their nodes, and node sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity, Span
from gpolicy.fit.desired import is_glob, matches
from gpolicy.fit.fit_rules import RENAME_CLASH
from gpolicy.policy import edits
from gpolicy.policy.model import GroupPolicy, Leaf, NodeSetPolicy
from gpolicy.policy.source_file import Located

_GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
_SILVER: Final = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


class UuidName(Rule):
    """A group named like a UUID."""

    info = RuleInfo(
        code="GP601",
        name="uuid-shaped-name",
        severity=Severity.ERROR,
        summary="A group has a name that looks like a UUID.",
        rationale="Ganeti looks groups up by UUID before name; its own configuration check reports such a name.",
        source="Ganeti 3.0, configuration check",
        bad="gpolicy: v1\nkind: NodeGroup\nname: 0b2a5f52-7cf5-4a63-8c11-6c0f3d3f8a01\n",
        good=_GROUP,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.groups:
            if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", group.name.lower()):
                message = f"{group.name} looks like a UUID"
                yield self.hit(group, message, group.span, hint="name the group with a word")


class NodeNamedTwice(Rule):
    """A node that two groups claim."""

    info = RuleInfo(
        code="GP602",
        name="node-named-twice",
        severity=Severity.ERROR,
        summary="Two groups name the same node.",
        rationale="A node is in exactly one group: which of the two, the policy does not say.",
        source="Ganeti's data model",
        bad=f"{_GROUP}nodes: [node1.example.org]\n---\n{_SILVER}nodes: [node1.example.org]\n",
        good=f"{_GROUP}nodes: [node1.example.org]\n---\n{_SILVER}nodes: [node2.example.org]\n",
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
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


class NodeSetEmpty(Rule):
    """A node set that says of no node that it is in it."""

    info = RuleInfo(
        code="GP604",
        name="node-set-empty",
        severity=Severity.WARNING,
        summary="A node set with neither nodes nor groups.",
        rationale="It is about no node; what it sets is set nowhere.",
        source="gpolicy",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nndparams: {cpu_speed: 2}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for nodes in context.policy.node_sets:
            if not nodes.nodes and not nodes.groups:
                message = f"the node set {nodes.name} has no nodes"
                yield self.hit(nodes, message, nodes.span, hint="add `nodes:` or `groups:`")


class NodeSetUnknownGroup(Rule):
    """A node set of a group that is not there."""

    info = RuleInfo(
        code="GP605",
        name="node-set-unknown-group",
        severity=Severity.WARNING,
        summary="A node set is about a group that neither the policy nor the cluster has.",
        rationale="Most likely the name is misspelt, and the set is about no node. Without the cluster's state only the"
        " policy's own groups are known.",
        source="gpolicy",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [glod]\nndparams: {cpu_speed: 2}\n---\n" + _GROUP,
        good="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [gold]\nndparams: {cpu_speed: 2}\n---\n" + _GROUP,
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        known = {group.name for group in context.groups} | set(context.state.groups if context.state else ())
        for nodes in context.policy.node_sets:
            for group in nodes.groups:
                if group.value not in known:
                    where = "the policy or the cluster" if context.state else "the policy"
                    message = f"{where} has no group {group.value!r}"
                    yield self.hit(nodes, message, group.span, hint="correct the name, or declare the group")


class PatternWithoutNode(Rule):
    """A pattern that fits no node of the cluster."""

    info = RuleInfo(
        code="GP606",
        name="pattern-without-node",
        severity=Severity.WARNING,
        summary="A pattern of nodes fits no node of the cluster.",
        rationale="Nodes are added with gnt-node, not by a policy: what is said about nodes that are not there has no"
        " effect until they are. (A name that fits none is GP701, an error.)",
        source="gpolicy",
        bad=f'{_GROUP}nodes: ["rack9-*"]\n',
        good=f'{_GROUP}nodes: ["node*"]\n',
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        known = list(context.state.nodes) if context.state else []
        groups = [(group, group.nodes or ()) for group in context.groups]
        for declared, entries in (*groups, *((nodes, nodes.nodes) for nodes in context.policy.node_sets)):
            for entry in entries:
                if is_glob(entry.value) and not any(matches(entry.value, name) for name in known):
                    message = f"no node of the cluster fits {entry.value}"
                    yield self.hit(declared, message, entry.span, hint="correct the pattern, or add the nodes first")


class NodeSetConflict(Rule):
    """Two node sets that disagree about a node that both name."""

    info = RuleInfo(
        code="GP607",
        name="node-set-conflict",
        severity=Severity.ERROR,
        summary="Two node sets name the same node and set different values for one parameter.",
        rationale="A name wins over a pattern and a pattern over a group, but here both name the node.",
        source="gpolicy",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: slow\nnodes: [node1.example.org]\nndparams: {cpu_speed: 1}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: ssh\nnodes: [node1.example.org]\nndparams: {ssh_port: 22}\n",
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        first: dict[tuple[str, tuple[str, ...]], tuple[NodeSetPolicy, Leaf]] = {}
        reported: set[tuple[str, str, tuple[str, ...]]] = set()
        for nodes in context.policy.node_sets:
            names = [node.value for node in nodes.nodes if not is_glob(node.value)]
            for leaf in context.leaves(nodes).values():
                for name in names:
                    other, its = first.setdefault((name, leaf.path), (nodes, leaf))
                    key = (other.name, nodes.name, leaf.path)
                    if its.value != leaf.value and key not in reported:
                        reported.add(key)
                        message = f"{leaf.path[-1]} of {name} is also set by the node set {other.name}, differently"
                        related = (Related(its.span, f"set by {other.name} here"),)
                        hint = "take the node out of one of the sets"
                        yield self.hit(nodes, message, leaf.span, hint=hint, related=related)


class RenameImpossible(Rule):
    """renamed_from that cannot be."""

    info = RuleInfo(
        code="GP608",
        name="rename-impossible",
        severity=Severity.ERROR,
        summary="renamed_from names the group itself, another declared group, or what another group comes from; or"
        " groups take one another's names in a circle.",
        rationale="A rename takes one group from its old name to its new one; the old name must be free afterwards.",
        source="Ganeti 3.0, gnt-group rename",
        bad=f"{_GROUP}renamed_from: silver\n---\n{_SILVER}",
        good=f"{_GROUP}renamed_from: silver\n",
        fix="Takes out a renamed_from that is the group's own name.",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        found = context.desired.findings if context.desired else ()
        clashes = {finding.span for finding in found if finding.code == RENAME_CLASH.code}  # said already
        renamed = {group.name: group for group in context.groups if group.renamed_from}
        first: dict[str, GroupPolicy] = {}
        for group, old in ((group, group.renamed_from) for group in renamed.values() if group.renamed_from):
            earlier = first.setdefault(old.value, group)
            other = context.policy.groups.get(old.value)
            if old.span in clashes:
                continue
            if old.value == group.name:
                message = f"{group.name} is to be renamed from itself"
                removal = edits.remove_entry(group.document, ("renamed_from",))
                fix = edits.fix("take renamed_from out", removal)
                yield self.hit(group, message, old.span, hint="leave it out", fix=fix)
            elif other is not None and other.renamed_from is None:
                related = (Related(other.span, f"{old.value} is declared here"),)
                yield self._but(group, old, f"the policy also declares {old.value}", "remove one of the two", related)
            elif earlier is not group:
                related = (Related(earlier.span, f"{earlier.name} is also renamed from it"),)
                yield self._but(group, old, f"so is {earlier.name}", "only one group can be the old one", related)
            elif (circle := _circle(group, renamed)) and circle[0] is group:
                takers = [item for item in circle if item is not group]
                names = [(item.name, item.renamed_from.value) for item in takers if item.renamed_from]
                rest = "".join(f", {name} from {source}" for name, source in names[1:])
                reason = f"{names[0][0]} is to be renamed from {names[0][1]}{rest}"
                also = tuple(Related(item.span, f"{item.name} is declared here") for item in takers)
                hint = "names cannot be swapped: rename one of the groups to a new name, and go on from there later"
                yield self._but(group, old, reason, hint, also)

    def _but(self, group: GroupPolicy, old: Located[str], reason: str, hint: str, related: tuple[Related, ...]) -> Hit:
        message = f"{group.name} is to be renamed from {old.value}, but {reason}"
        return self.hit(group, message, old.span, hint=hint, related=related)


def _circle(group: GroupPolicy, renamed: dict[str, GroupPolicy]) -> list[GroupPolicy]:
    """Return the groups that take one another's names in a circle, the first declared first; none if they do not."""
    chain = [group]
    while (old := chain[-1].renamed_from) and old.value in renamed and len(chain) <= len(renamed):
        if old.value == group.name:
            return sorted(chain, key=list(renamed.values()).index)
        chain.append(renamed[old.value])
    return []


class RemovedWithContent(Rule):
    """A group that is to go, and to be something."""

    info = RuleInfo(
        code="GP609",
        name="removed-with-content",
        severity=Severity.ERROR,
        summary="A group is to be removed, but still declares nodes, parameters, tags or an old name.",
        rationale="Only an empty group can be removed; what else is said about it is contradictory.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{_GROUP}removed: true\nnodes: [node1.example.org]\n",
        good=f"{_GROUP}removed: true\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.policy.groups.values():
            leaf = next(iter(group.leaves.values()), None)
            place = (
                (group.nodes and group.nodes[0].span)
                or (leaf and leaf.span)
                or (group.tags and group.tags[0].span)
                or (group.renamed_from and group.renamed_from.span)
            )
            if group.removed is not None and place:
                message = f"{group.name} is to be removed, but more is said about it"
                related = (Related(group.removed.span, "to be removed"),)
                hint = "move its nodes to another group, and keep only name and removed"
                yield self.hit(group, message, place, hint=hint, related=related)


GROUP_RULES: Final = (
    UuidName(),
    NodeNamedTwice(),
    NodeSetEmpty(),
    NodeSetUnknownGroup(),
    PatternWithoutNode(),
    NodeSetConflict(),
    RenameImpossible(),
    RemovedWithContent(),
)
