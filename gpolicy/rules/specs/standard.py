"""GP205 and GP216: the standard instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import MINMAX, Context, number
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import REFUSED, Related, error_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.spec_distance import spec_distance
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy.model import GroupPolicy, Leaf
from gpolicy.rules.examples import CLUSTER, bounds
from gpolicy.rules.specs.examples import SIZES, SMALL


class StdOutside(Rule):
    info = error_rule("GP205", "std-outside", REFUSED)(
        summary="The standard spec (std) lies in none of the cluster's specs.",
        rationale="Ganeti refuses the policy: all six parameters of std must lie inside one spec.",
        source=f"{SIZES}; Ganeti 3.0 checks it on the cluster",
        bad=f"{CLUSTER}ipolicy:\n  std: {{memory-size: 512, cpu-count: 2}}\n  minmax:\n" + SMALL,
        good=f"{CLUSTER}ipolicy:\n  std: {{memory-size: 2G, cpu-count: 2}}\n  minmax:\n" + SMALL,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        cluster, leaf = context.policy.cluster, context.cluster_leaf(MINMAX)
        if cluster is None or leaf is None:
            return
        paths: dict[str, Path] = {name: ("ipolicy", "std", name) for name in SPEC_PARAMETERS}
        std = {name: found for name, path in paths.items() if (found := context.cluster_leaf(path))}
        pairs = context.pairs(cluster)
        if not all(pair.possible for pair in pairs):
            return  # std may lie in what is meant
        outside = [
            [name for name, leaf in std.items() if not pair.minimum[name] <= number(leaf) <= pair.maximum[name]]
            for pair in pairs
        ]
        if not pairs or not all(outside):
            return
        distances = [
            spec_distance((int(number(leaf)), pair.minimum[name], pair.maximum[name]) for name, leaf in std.items())
            for pair in pairs
        ]
        nearest = distances.index(min(distances))
        pair, names = pairs[nearest], outside[nearest]
        reasons = ", ".join(
            f"{name} {amount(name, int(number(std[name])))} is not in {amount(name, pair.minimum[name])} to"
            f" {amount(name, pair.maximum[name])}"
            for name in names
        )
        message = f"std lies in no spec; the nearest is {pair.title}, but {reasons}"
        hint = "Ganeti refuses this: correct std, or the spec"
        related = pair.here
        yield self.hit(cluster, message, std[names[0]].span, hint=hint, related=related)


_CLUSTER: Final = (
    f"{CLUSTER}ipolicy:\n"
    "  std: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}\n---\n"
)


_GROUP: Final = f"{_CLUSTER}gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n    - name: some\n      "


class StdNowhere(Rule):
    info = warning_rule("GP216", "std-fits-no-group")(
        summary="The cluster's std lies in no spec of any group.",
        rationale="hspace counts with std, but Ganeti compares it with the cluster's specs only. If every group has"
        " its own specs and none takes std, hspace counts 0.",
        source="Partitioned Ganeti, Constrained instance sizes; hspace of Ganeti 3.0",
        bad=f"{_GROUP}{bounds('16G 64G', '4 16', '100G 1T')}",
        good=f"{_GROUP}{bounds('1G 64G', '1 16', '10G 1T')}",
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        cluster = context.policy.cluster
        std = {name: context.cluster_leaf(("ipolicy", "std", name)) for name in SPEC_PARAMETERS}
        written = {name: leaf for name, leaf in std.items() if leaf is not None}
        groups = [(group, context.pairs(group)) for group in context.groups]
        known = bool(groups) and all(pairs for _, pairs in groups) and not context.members.has_undeclared_groups
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
