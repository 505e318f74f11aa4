"""GP615: limits of groups that no cluster can keep."""

from __future__ import annotations

from collections.abc import Iterator

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.policy.promised import promised_nodes
from gpolicy.rules.examples import GROUP


class LimitsNeverHold(Rule):
    info = RuleInfo(
        code="GP615",
        name="limits-never-hold",
        severity=Severity.WARNING,
        summary="The limits of a group let as many nodes fail as it has.",
        rationale="Then no node is left to take over, so nothing fits under these limits: `gpolicy capacity` counts 0,"
        " and `gpolicy place` refuses every instance that is not mirrored. gpolicy looks at groups with limits of their"
        " own that name their nodes; with a wildcard (* or ?) their number is unknown.",
        source="Resource model, max_node_failures",
        bad=f'{GROUP}nodes: ["node[1-2].example.org"]\nlimits: {{max_node_failures: 2}}\n',
        good=f'{GROUP}nodes: ["node[1-3].example.org"]\nlimits: {{max_node_failures: 2}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            failures, nodes = group.limits.get("max_node_failures"), promised_nodes(group)
            if failures is not None and nodes is not None and failures.value >= len(nodes):
                message = f"max_node_failures is {failures.value}, and the group has {len(nodes)} nodes: none is left"
                hint = f"write at most {len(nodes) - 1}"
                yield self.hit(group, message, failures.span, hint=hint)
