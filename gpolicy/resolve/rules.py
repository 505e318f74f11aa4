"""Rules about how a policy fits the cluster that it is checked or planned with: GP7xx."""

from __future__ import annotations

from gpolicy.findings import AMBIGUOUS, NO_PLAN, error_rule

_CLUSTER = "gpolicy: v1\nkind: Cluster\nname: {}.example.org\n"
_GOLD = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
_SILVER = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


def _set(name: str, pattern: str, spindles: int) -> str:
    return f'gpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: ["{pattern}"]\nndparams: {{spindle_count: {spindles}}}\n'


UNKNOWN_NODE = error_rule("GP701", "unknown-node", NO_PLAN)(
    summary="The policy names a node that the cluster does not have.",
    rationale="gpolicy would silently do nothing for a misspelt node.",
    bad=f"{_GOLD}nodes: [node99.example.org]\n",
    good=f"{_GOLD}nodes: [node1.example.org]\n",
)
NODE_IN_TWO_GROUPS = error_rule("GP702", "node-in-two-groups", AMBIGUOUS)(
    summary="Two groups claim the same node of the cluster.",
    rationale="A node is in exactly one group. A name wins over a pattern, but two names or two patterns cannot both"
    " win. Without a cluster check calls the same mistake GP602 (names) or GP611 (patterns).",
    bad=f'{_GOLD}nodes: ["node*"]\n---\n{_SILVER}nodes: ["*.example.org"]\n',
    good=f'{_GOLD}nodes: ["node*"]\n---\n{_SILVER}nodes: ["host*"]\n',
)
NODE_SETS_DISAGREE = error_rule("GP703", "node-sets-disagree", AMBIGUOUS)(
    summary="Two node sets set different values for the same node.",
    rationale="A name wins over a pattern, and a pattern over a group. At the same rank nothing decides which value"
    " holds. Without a cluster check calls the same mistake GP607 (names) or GP611 (patterns).",
    bad=_set("few", "node[12].example.org", 2) + "---\n" + _set("many", "node?.example.org", 8),
    good=_set("few", "node[12].example.org", 2) + "---\n" + _set("many", "host?.example.org", 8),
)
RENAME_CLASH = error_rule("GP704", "rename-clash", NO_PLAN)(
    summary="A group is to be renamed, but both names exist in the cluster.",
    rationale="Ganeti cannot merge groups. The policy must say which of the two it means.",
    source="Ganeti: a group cannot take the name of another",
    bad=f"{_GOLD}renamed_from: silver\n",
    good=_GOLD,
)
OTHER_CLUSTER = error_rule("GP705", "other-cluster", NO_PLAN)(
    summary="The policy is for another cluster than the state.",
    rationale="Every difference between two clusters would look like a change, and every figure would be of a cluster"
    " that nobody has. A text file of htools and simulated hardware have no name, and are not compared. Only"
    " `gpolicy plan` can go on, with `--allow right-cluster`, for a cluster that was renamed.",
    bad=_CLUSTER.format("other"),
    good=_CLUSTER.format("c"),
)
