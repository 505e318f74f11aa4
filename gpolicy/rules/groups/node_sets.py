"""GP604, GP605 and GP607: node sets."""

from __future__ import annotations

from collections.abc import Iterator

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.fit.desired import is_glob
from gpolicy.policy.model import Leaf, NodeSetPolicy
from gpolicy.rules.examples import GROUP


class NodeSetEmpty(Rule):
    info = RuleInfo(
        code="GP604",
        name="node-set-empty",
        severity=Severity.WARNING,
        summary="A node set has neither nodes nor groups.",
        rationale="It matches no node, so its values are set nowhere.",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nndparams: {cpu_speed: 2}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for nodes in context.policy.node_sets:
            if not nodes.nodes and not nodes.groups:
                message = f"the node set {nodes.name} has no nodes"
                yield self.hit(nodes, message, nodes.span, hint="add `nodes:` or `groups:`")


class NodeSetUnknownGroup(Rule):
    info = RuleInfo(
        code="GP605",
        name="node-set-unknown-group",
        severity=Severity.WARNING,
        summary="A node set names a group that neither the policy nor the cluster has.",
        rationale="Most likely the name is misspelt, and the set matches no node. Without the cluster's state gpolicy"
        " knows only the groups of the policy.",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [glod]\nndparams: {cpu_speed: 2}\n---\n" + GROUP,
        good="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [gold]\nndparams: {cpu_speed: 2}\n---\n" + GROUP,
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        known = context.known_groups
        for nodes in context.policy.node_sets:
            for group in nodes.groups:
                if group.value not in known:
                    where = "the policy or the cluster" if context.state else "the policy"
                    message = f"{where} has no group {group.value!r}"
                    yield self.hit(nodes, message, group.span, hint="correct the name, or declare the group")


class NodeSetConflict(Rule):
    info = RuleInfo(
        code="GP607",
        name="node-set-conflict",
        severity=Severity.ERROR,
        summary="Two node sets name the same node and set different values for one parameter.",
        rationale="A name wins over a pattern, and a pattern over a group. But here both sets name the node.",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: slow\nnodes: [node1.example.org]\nndparams: {cpu_speed: 1}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: ssh\nnodes: [node1.example.org]\nndparams: {ssh_port: 22}\n",
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:
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
                        message = f"the node set {other.name} sets another {leaf.path[-1]} for {name}"
                        related = (Related(its.span, f"{other.name} sets it here"),)
                        hint = "remove the node from one of the sets"
                        yield self.hit(nodes, message, leaf.span, hint=hint, related=related)
