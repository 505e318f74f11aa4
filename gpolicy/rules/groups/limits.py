"""GP615 and GP617: limits and disk templates that need more nodes than a group has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, Context, name_of, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.policy.model import GroupPolicy
from gpolicy.policy.promised import promised_nodes
from gpolicy.printable import count
from gpolicy.rules.examples import GROUP

_FAILURES: Final = "max_node_failures"


class LimitsNeverHold(Rule):
    info = warning_rule("GP615", "limits-never-hold")(
        summary="The limits of a group let as many nodes fail as it has.",
        rationale="Then no node is left to take over, so nothing fits under these limits: `gpolicy capacity` counts 0,"
        " and `gpolicy place` refuses every instance that is not mirrored. The limits of the cluster hold for each"
        " group that has none. gpolicy looks at groups that name their nodes; with a wildcard (* or ?) their number is"
        " unknown without `--state`.",
        source="Resource model, max_node_failures",
        bad=f'{GROUP}nodes: ["node[1-2].example.org"]\nlimits: {{max_node_failures: 2}}\n',
        good=f'{GROUP}nodes: ["node[1-3].example.org"]\nlimits: {{max_node_failures: 2}}\n',
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            own, nodes = group.limits.get(_FAILURES), _node_count(context, group)
            failures = own or (context.policy.cluster.limits.get(_FAILURES) if context.policy.cluster else None)
            policy = context.own(group, ("alloc_policy",))
            is_closed = own is None and policy is not None and policy.value == "unallocable"  # a spare node
            if failures is not None and nodes and failures.value >= nodes and not is_closed:
                has = f"{name_of(group)} has {count(nodes, 'node')}"
                message = f"max_node_failures is {failures.value}, and {has}: none is left"
                hint = f"write at most {nodes - 1}" if own else f"lower it, or give {name_of(group)} limits of its own"
                yield self.hit(group, message, failures.span, hint=hint)


class MirrorsWithoutPartner(Rule):
    info = warning_rule("GP617", "mirrors-without-partner")(
        summary="A group is to have DRBD disks, but has only one node.",
        rationale="A DRBD disk needs a second node of the same group: no instance with such disks can be created.",
        source="Ganeti 3.0, creation of instances",
        bad=f"{GROUP}nodes: [node1.example.org]\nipolicy: {{disk-templates: [drbd]}}\n",
        good=f"{GROUP}nodes: [node1.example.org, node2.example.org]\nipolicy: {{disk-templates: [drbd]}}\n",
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            own, enabled = context.own(group, DISK_TEMPLATES), context.enabled_templates()
            leaf = own or context.cluster_leaf(DISK_TEMPLATES)
            templates = {*texts(leaf)} if leaf else {*enabled.values} if enabled else set()
            is_meant = own is not None or not templates - {"drbd", "diskless"}  # else the others are there for it
            if "drbd" in templates and is_meant and _node_count(context, group) == 1:
                message = f"{name_of(group)} has one node: no instance with DRBD disks can be created there"
                hint = "allow templates that need no second node, or add nodes"
                yield self.hit(group, message, own.span if own else group.span, hint=hint)


def _node_count(context: Context, group: GroupPolicy) -> int | None:
    """Return how many nodes of a group can have instances; None where nobody knows."""
    if context.state is not None:
        return len(context.members.hosts_in(group))
    names = promised_nodes(group)
    return None if names is None else len(names)
