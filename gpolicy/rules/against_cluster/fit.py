"""GP7xx: how a policy fits the cluster that it is checked against. `gpolicy plan` finds the same in the same way."""

from __future__ import annotations

from collections.abc import Iterator

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.fit.fit_rules import NODE_IN_TWO_GROUPS, NODE_SETS_DISAGREE, OTHER_CLUSTER, RENAME_CLASH, UNKNOWN_NODE


def _found(rule: Rule, context: Context) -> Iterator[Hit]:
    """Yield what resolving the policy on the cluster finds of this rule."""
    for finding in context.desired.findings if context.desired else ():
        if finding.code == rule.info.code:
            yield Hit("", finding)  # no waiver can name it, so its object need not be known


class OtherCluster(Rule):
    info = OTHER_CLUSTER
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        yield from _found(self, context)


class UnknownNode(Rule):
    info = UNKNOWN_NODE
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        yield from _found(self, context)


class NodeInTwoGroups(Rule):
    info = NODE_IN_TWO_GROUPS
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        yield from _found(self, context)


class NodeSetsDisagree(Rule):
    info = NODE_SETS_DISAGREE
    needs_state = True
    needs_whole_policy = True  # a leaf with an error inside does not hold what was written

    def check(self, context: Context) -> Iterator[Hit]:
        yield from _found(self, context)


class RenameClash(Rule):
    info = RENAME_CLASH
    needs_state = True
    needs_whole_policy = True  # the other group's own new name may stand in what could not be read

    def check(self, context: Context) -> Iterator[Hit]:
        yield from _found(self, context)
