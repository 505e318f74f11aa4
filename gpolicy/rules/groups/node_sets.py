"""GP604, GP605, GP607 and GP620: node sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, name_of
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import AMBIGUOUS, Related, error_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import GroupPolicy, Leaf, NodeSetPolicy
from gpolicy.policy.promised import promised_nodes
from gpolicy.resolve.desired import is_glob, matches
from gpolicy.rules.examples import GROUP
from gpolicy.rules.shared import NameRule

_SET: Final = "gpolicy: v1\nkind: NodeSet\nname: fast\nndparams: {cpu_speed: 2}\n"


class NodeSetEmpty(Rule):
    info = warning_rule("GP604", "node-set-empty")(
        summary="A node set has neither nodes nor groups, or sets nothing.",
        rationale="It matches no node, so its values are set nowhere; or it has no values and no tags to set.",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nndparams: {cpu_speed: 2}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for nodes in context.policy.node_sets:
            if not nodes.nodes and not nodes.groups:
                message = f"the node set {nodes.name} has no nodes"
                yield self.hit(nodes, message, nodes.span, hint="add `nodes:` or `groups:`")
            elif not nodes.leaves and nodes.tags is None:
                message = f"the node set {nodes.name} has no values and no tags"
                yield self.hit(nodes, message, nodes.span, hint="add what its nodes are to have, or remove it")


class NodeSetHidesGroup(Rule):
    info = warning_rule("GP620", "node-set-hides-group")(
        summary="A node set takes in every node of a group and sets another value: no node has the group's.",
        rationale="A value of nodes comes before that of their group, which then holds for no node but those that are"
        " added later. Most likely the pattern of the set is too wide.",
        bad=f'{GROUP}nodes: [n1, n2]\nndparams: {{cpu_speed: 1}}\n---\n{_SET}nodes: ["n*"]\n',
        good=f"{GROUP}nodes: [n1, n2]\nndparams: {{cpu_speed: 1}}\n---\n{_SET}nodes: [n2]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for nodes in context.policy.node_sets:
            leaves = [leaf for leaf in context.leaves(nodes).values() if context.declares(leaf.path)]
            for group in context.groups if leaves else ():
                for leaf in leaves:
                    hidden = context.own(group, leaf.path)
                    is_own = hidden is not None and hidden.document is group.document and hidden.value != leaf.value
                    if is_own and hidden is not None and _takes_in(nodes, group):
                        message = f"{leaf.dotted} of {name_of(nodes)} is set for every node of {name_of(group)}"
                        related = (Related(hidden.span, f"the value of {name_of(group)}, which no node has"),)
                        hint = "narrow the set, or set the value in the group alone"
                        yield self.hit(nodes, message, leaf.span, hint=hint, related=related)


def _takes_in(nodes: NodeSetPolicy, group: GroupPolicy) -> bool:
    """Return whether a set surely has every node of a group, and the group has several."""
    names = promised_nodes(group) or ()
    if group.name in [item.value for item in nodes.groups]:
        return len(names) != 1
    return len(names) > 1 and all(any(matches(entry.value, name) for entry in nodes.nodes) for name in names)


class NodeSetUnknownGroup(NameRule):
    info = error_rule("GP605", "node-set-unknown-group")(
        summary="A node set names a group that neither the policy nor the cluster has.",
        rationale="Most likely the name is misspelt, and the set matches no node. Without the cluster's state gpolicy"
        " knows only the groups of the policy.",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [glod]\nndparams: {cpu_speed: 2}\n---\n" + GROUP,
        good="gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [gold]\nndparams: {cpu_speed: 2}\n---\n" + GROUP,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for nodes in context.policy.node_sets:
            for group in nodes.groups:
                yield from self.unknown_group(context, nodes, group)


class NodeSetConflict(Rule):
    info = error_rule("GP607", "node-set-conflict", AMBIGUOUS)(
        summary="Two node sets set different values for one parameter of the same node, and neither wins.",
        rationale="A name wins over a pattern, and a pattern over a group. But here both sets name the node, or both"
        " name the group. (Patterns that match the same nodes are GP611. With a cluster at hand the same mistake is"
        " GP703.)",
        bad="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: slow\nnodes: [node1.example.org]\nndparams: {cpu_speed: 1}\n",
        good="gpolicy: v1\nkind: NodeSet\nname: fast\nnodes: [node1.example.org]\nndparams: {cpu_speed: 2}\n---\n"
        "gpolicy: v1\nkind: NodeSet\nname: ssh\nnodes: [node1.example.org]\nndparams: {ssh_port: 22}\n",
    )
    only_without_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        first: dict[tuple[str, str, Path], tuple[NodeSetPolicy, Leaf]] = {}
        reported: set[tuple[str, str, Path]] = set()
        for nodes in context.policy.node_sets:
            named = [("node", node.value) for node in nodes.nodes if not is_glob(node.value)]
            named += [("group", group.value) for group in nodes.groups]
            for leaf in context.leaves(nodes).values():
                for kind, name in named:
                    other, its = first.setdefault((kind, name, leaf.path), (nodes, leaf))
                    key = (other.name, nodes.name, leaf.path)
                    if its.value != leaf.value and key not in reported:
                        reported.add(key)
                        where = name if kind == "node" else f"group {name}"
                        yield self._conflict(nodes, leaf, other, its, where)

    def _conflict(self, nodes: NodeSetPolicy, leaf: Leaf, other: NodeSetPolicy, its: Leaf, where: str) -> Hit:
        message = f"the node set {other.name} sets another {leaf.path[-1]} for {where}"
        related = (Related(its.span, f"{other.name} sets it here"),)
        return self.hit(nodes, message, leaf.span, hint="remove the node from one of the sets", related=related)
