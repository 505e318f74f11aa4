"""GP216: the standard instance against the groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.members import has_other_groups
from gpolicy.checking.pairs import Pair
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy.model import GroupPolicy, Leaf
from gpolicy.rules.specs.overlap import bounds

_CLUSTER: Final = (
    "gpolicy: v1\nkind: Cluster\nname: c.example.org\nipolicy:\n"
    "  std: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}\n---\n"
)
_GROUP: Final = f"{_CLUSTER}gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n    - name: some\n      "


class StdNowhere(Rule):
    """A standard instance that no group takes."""

    info = RuleInfo(
        code="GP216",
        name="std-fits-no-group",
        severity=Severity.WARNING,
        summary="The cluster's std lies in no spec of any group.",
        rationale="std is what hspace counts with. Ganeti holds it against the cluster's specs only; where every group"
        " has specs of its own and none takes it, the count is 0 whatever is free.",
        source="Partitioned Ganeti, Constrained instance sizes; hspace of Ganeti 3.0",
        bad=f"{_GROUP}{bounds('16G 64G', '4 16', '100G 1T')}",
        good=f"{_GROUP}{bounds('1G 64G', '1 16', '10G 1T')}",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        cluster = context.policy.cluster
        std = {name: context.cluster_leaf(("ipolicy", "std", name)) for name in SPEC_PARAMETERS}
        written = {name: leaf for name, leaf in std.items() if leaf is not None}
        groups = [(group, context.pairs(group)) for group in context.groups]
        known = bool(groups) and all(pairs for _, pairs in groups) and not has_other_groups(context)
        if cluster is None or len(written) != len(std) or not known:
            return
        own = [group for group, _ in groups if context.own(group, ("ipolicy", "minmax"))]
        if not own or any(_takes(pair, written) for _, pairs in groups for pair in pairs):
            return
        first = written["memory-size"]
        message = f"std fits no spec of {_names([group for group, _ in groups])}: hspace counts no standard instance"
        hint = "choose a std that one of the groups takes"
        related = tuple(Related(pairs[0].leaf.span, f"the specs of {group.name}") for group, pairs in groups[:3])
        yield self.hit(cluster, message, first.span, hint=hint, related=related)


def _takes(pair: Pair, std: dict[str, Leaf]) -> bool:
    return all(pair.minimum[name] <= number(leaf) <= pair.maximum[name] for name, leaf in std.items())


def _names(groups: list[GroupPolicy]) -> str:
    names = [group.name for group in groups]
    return f"group {names[0]}" if len(names) == 1 else f"the groups {', '.join(names[:5])}"


STANDARD_RULES: Final = (StdNowhere(),)
