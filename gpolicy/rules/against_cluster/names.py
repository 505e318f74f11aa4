"""GP728, GP744 and GP747: names beside those of the observed cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.misspelt import MOST_GUESSES, name_meant
from gpolicy.policy.model import GroupPolicy
from gpolicy.printable import some
from gpolicy.rules.examples import CLUSTER, GROUP
from gpolicy.rules.parameters.paths import FILES


class MisspeltGroup(Rule):
    info = warning_rule("GP728", "misspelt-group")(
        summary="A new group has almost the name, or all nodes, of a group of the cluster that the policy does not"
        " name.",
        rationale="gpolicy creates a group that the cluster lacks. Where its name is misspelt or `renamed_from` is"
        " forgotten, the intended group keeps what it has, and the cluster gets another group beside it. Names that"
        " differ in a number or a single letter, such as rack1 and rack2, are no misspelling.",
        bad="gpolicy: v1\nkind: NodeGroup\nname: sliver\n",
        good="gpolicy: v1\nkind: NodeGroup\nname: silver\n",
    )
    needs_state = True
    needs_whole_policy = True  # what could not be read may name the other group

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None or context.desired is None:
            return
        named = {item.policy.renamed_from.value for item in context.desired.groups.values() if item.policy.renamed_from}
        left = [name for name in context.state.groups if name not in named and name not in context.desired.groups]
        new = [item.policy for item in context.desired.groups.values() if item.current is None]
        for group in [group for group in new if group.removed is None][:MOST_GUESSES]:
            old = group.renamed_from
            wanted, place = (old.value, old.span) if old else (group.name, group.span)
            near = name_meant(wanted, left)
            if near is not None:
                rename = "" if old else f" To rename it, add `renamed_from: {near}`."
                told = f"the cluster has no group {wanted}, but {near}, which the policy does not name"
                message = f"{told}: group {group.name} will be created"
                yield self.hit(group, message, place, hint=f"Did you mean `{near}`?{rename}")
            elif old is None and (emptied := _emptied_by(context, group, left)):
                message = f"the cluster has no group {group.name}, which takes all nodes of {emptied}"
                yield self.hit(group, message, place, hint=f"to rename that group, add `renamed_from: {emptied}`")


def _emptied_by(context: Context, group: GroupPolicy, left: list[str]) -> str | None:
    """Return the group of the cluster, of those in `left`, whose nodes are all that a new group gets."""
    state, desired = context.state, context.desired
    if state is None or desired is None:
        return None
    mine = {name for name, node in desired.nodes.items() if node.group and node.group.value == group.name}
    return next((name for name in left if mine and mine == {node.name for node in state.nodes_of(name)}), None)


class GroupNotThere(Rule):
    info = warning_rule("GP744", "group-not-there")(
        summary="A group is to be renamed from one that the cluster does not have, or removed by a misspelt name.",
        rationale="gpolicy creates the renamed group then, without nodes; and a group that is removed by another name"
        " stays. Remove `renamed_from` when the rename is done.",
        source="gpolicy",
        bad=f"{GROUP}renamed_from: default\n",
        good=f"{GROUP}renamed_from: silver\n",
    )
    needs_state = True
    needs_whole_policy = True  # what could not be read may name the other group

    def check(self, context: Context) -> Iterator[Hit]:
        there = list(context.state.groups) if context.state else []
        old_names = Counter(group.renamed_from.value for group in context.groups if group.renamed_from)
        guess = MOST_GUESSES
        for name, item in context.desired.groups.items() if context.desired else ():
            group, old = item.policy, item.policy.renamed_from
            if item.current is not None:
                continue
            if group.removed is not None and guess > 0:
                guess -= 1
                near = name_meant(name, there)
                if near is not None and near not in context.policy.groups:
                    message = f"group {name} is to be removed, but the cluster has {near}"
                    yield self.hit(group, message, group.removed.span, hint=f"Did you mean `{near}`?")
            elif old is not None and old_names[old.value] == 1 and not name_meant(old.value, there):
                message = f"{name} is to be renamed from {old.value}, but the cluster has neither"
                yield self.hit(group, message, old.span, hint=f"its groups are {some(sorted(there))}")


_OUTSIDE: Final[tuple[Path, ...]] = (
    ("default_iallocator",),
    ("master_netdev",),
    ("instance_communication_network",),
    ("nicparams", "link"),
    ("ndparams", "ovs_name"),
    ("ndparams", "ovs_link"),
    ("diskparams", "rbd", "pool"),
    ("diskparams", "gluster", "host"),
    ("diskparams", "gluster", "volume"),
    *FILES,
)
"""Names of things that are outside of Ganeti: it cannot say whether they exist."""


class AlmostLiveName(Rule):
    info = warning_rule("GP747", "almost-live-name")(
        summary="A bridge, pool, server, allocator, network or file has almost the name that the cluster has now.",
        rationale="Ganeti stores any name, and cannot say whether there is such a thing. One slip from the present name"
        " is most likely a misspelling: instances then find no network or no disk. Names that differ in a number or a"
        " single letter are no misspelling.",
        source="gpolicy",
        bad=f"{CLUSTER}nicparams: {{link: br-pubilc}}\n",
        good=f"{CLUSTER}nicparams: {{link: br-public}}\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None:
            return
        live = [context.state.cluster.own, *(group.own for group in context.state.groups.values())]
        for declared, leaf in context.explicit_at(*_OUTSIDE):
            now = {str(own[leaf.path]) for own in live if own.get(leaf.path)}
            near = name_meant(str(leaf.value), now) if str(leaf.value) not in now else None
            if near is not None:
                message = f"{leaf.dotted} is to be {leaf.value}, but the cluster has {near}"
                yield self.hit(declared, message, leaf.span, hint=f"Did you mean `{near}`?")
