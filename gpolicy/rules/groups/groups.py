"""GP601, GP608 to GP610 and GP616: the groups themselves: names, renames, removal, and a home for each size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import MINMAX, Context
from gpolicy.checking.pairs import Pair, comparable
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import NO_PLAN, Related, error_rule, warning_rule
from gpolicy.fit.fit_rules import RENAME_CLASH
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import GroupPolicy
from gpolicy.policy.source_file import Located
from gpolicy.rules.examples import CLUSTER, GROUP, spec

_SILVER: Final = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


class UuidName(Rule):
    info = error_rule("GP601", "uuid-shaped-name")(
        summary="The name of a group looks like a UUID.",
        rationale="Ganeti looks a group up by its UUID first, then by its name. Its own check of the configuration"
        " reports such a name.",
        source="Ganeti 3.0, configuration check",
        bad="gpolicy: v1\nkind: NodeGroup\nname: 0b2a5f52-7cf5-4a63-8c11-6c0f3d3f8a01\n",
        good=GROUP,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", group.name.lower()):
                message = f"{group.name} looks like a UUID"
                yield self.hit(group, message, group.span, hint="name the group with a word")


class GroupNameUnlikely(Rule):
    info = warning_rule("GP616", "group-name-unlikely")(
        summary="The name of a group differs from another one only in case, `-` or `_`, or no request can carry it.",
        rationale="Ganeti takes such a name for another group, and people confuse the two. RAPI addresses a group by"
        " its name in a path: a slash ends it, and blanks at its ends get lost on command lines.",
        source="Ganeti 3.0, RAPI /2/groups/NAME",
        bad=f"{GROUP}---\ngpolicy: v1\nkind: NodeGroup\nname: Gold\n",
        good=f"{GROUP}---\n{_SILVER}",
    )
    explains = Explains(order=3)
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        first: dict[str, GroupPolicy] = {}
        for group in context.groups:
            place = group.document.value_span(("name",))
            other = first.setdefault(_plain(group.name), group)
            if "/" in group.name or group.name != group.name.strip():
                what = "a slash" if "/" in group.name else "a blank at its end"
                yield self.hit(group, f"{group.name!r} has {what}", place, hint="write letters, digits, - and _")
            elif other is not group:
                related = (Related(other.span, f"{other.name} is declared here"),)
                message = f"{group.name} and {other.name} are almost the same name"
                yield self.hit(group, message, place, hint="rename one of the two groups", related=related)
        live = {_plain(name): name for name in context.state.groups} if context.state else {}
        gone = {group.renamed_from.value for group in context.groups if group.renamed_from}
        for group in context.groups:
            near = live.get(_plain(group.name), group.name)
            if near not in (group.name, *gone) and near not in context.policy.groups and group.renamed_from:  # GP728
                message = f"the cluster also has a group {near}, which is almost the name of {group.name}"
                place = group.document.value_span(("name",))
                yield self.hit(group, message, place, hint="choose another name, or rename that group")
        for group in context.groups:
            old = group.renamed_from
            taken = first.get(_plain(old.value)) if old else None
            if old is not None and taken is not None and taken is not group and old.value != taken.name:
                related = (Related(taken.span, f"{taken.name} is declared here"),)
                message = f"{group.name} is to be renamed from {old.value}, which is almost the name of {taken.name}"
                yield self.hit(
                    group, message, old.span, hint="write the old name as the cluster has it", related=related
                )


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").strip()


class RenameImpossible(Rule):
    info = error_rule("GP608", "rename-impossible", NO_PLAN)(
        summary="renamed_from names the group itself, another declared group, or what another group comes from; or"
        " groups take one another's names in a circle.",
        rationale="A rename takes one group from its old name to its new one, so the old name must be free afterwards.",
        source="Ganeti 3.0, gnt-group rename",
        bad=f"{GROUP}renamed_from: silver\n---\n{_SILVER}",
        good=f"{GROUP}renamed_from: silver\n",
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
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
                yield self.hit(group, message, old.span, hint="write the old name, or leave renamed_from out")
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
                hint = "names cannot be swapped: rename one of the groups to a third name first"
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
    info = error_rule("GP609", "removed-with-content")(
        summary="A group is to be removed, but still declares nodes, parameters, tags or an old name.",
        rationale="Only an empty group can be removed, so the rest of the document contradicts it.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\nnodes: [node1.example.org]\n",
        good=f"{GROUP}removed: true\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.policy.groups.values():
            leaf = next(iter(group.leaves.values()), None)
            place = (
                (group.nodes and group.nodes[0].span)
                or (leaf and leaf.span)
                or (group.tags and group.tags[0].span)
                or (group.renamed_from and group.renamed_from.span)
            )
            if group.removed is not None and place:
                message = f"{group.name} is to be removed, but its document has other keys"
                related = (Related(group.removed.span, "to be removed"),)
                hint = "move its nodes to another group, and keep only name and removed"
                yield self.hit(group, message, place, hint=hint, related=related)


_ALLOC_POLICY: Final[Path] = ("alloc_policy",)
_CLOSED: Final = "unallocable"


_SPECS: Final = "ipolicy:\n  minmax:\n"
_LARGE: Final = spec("large", "16G 64G", "4 16", "100G 1T")
_OWN_SPECS: Final = f"gpolicy: v1\nkind: NodeGroup\nname: silver\n{_SPECS}{spec('small', '1G 12G', '1 3', '10G 90G')}"


class UnallocableWithoutHome(Rule):
    info = warning_rule("GP610", "unallocable-without-home")(
        summary="A group is unallocable, but no other declared group takes the cluster's specs, or any instance.",
        rationale="hail and hspace put nothing into an unallocable group, so you can create instances of that size"
        " only by naming their nodes. A group with specs of its own is often closed on purpose, such as for a repair.",
        source="Ganeti 3.0, alloc_policy",
        bad=f"{CLUSTER}{_SPECS}{_LARGE}---\n{GROUP}alloc_policy: unallocable\n---\n{_OWN_SPECS}",
        good=f"{CLUSTER}{_SPECS}{_LARGE}---\n{GROUP}alloc_policy: last_resort\n---\n{_OWN_SPECS}",
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        if context.members.has_undeclared_groups:
            return  # they may take anything
        open_groups = [group for group in context.groups if not _is_closed(context, group)]
        elsewhere = [comparable(context.pairs(group)) for group in open_groups]
        if any(not pairs for pairs in elsewhere):
            return  # what that group takes is not known
        homes = [pair for pairs in elsewhere for pair in pairs]
        for group in context.groups:
            leaf = context.own(group, _ALLOC_POLICY)
            if leaf is None or leaf.value != _CLOSED:
                continue
            homeless = [pair for pair in comparable(context.pairs(group)) if not _has_home(pair, homes)]
            is_special = context.own(group, MINMAX) is not None
            if (homeless and not is_special) or not open_groups:
                names = ", ".join(pair.title for pair in homeless[:5]) or "any size"
                where = "no other group takes" if open_groups else "there is no other group for"
                message = f"group {group.name} takes no new instances, and {where} {names}"
                hint = "write last_resort to keep it for those, or let another group take them"
                yield self.hit(group, message, leaf.span, hint=hint)


def _is_closed(context: Context, group: GroupPolicy) -> bool:
    leaf = context.own(group, _ALLOC_POLICY)
    if leaf is not None:
        return leaf.value == _CLOSED
    observed = context.state.groups.get(group.name) if context.state else None
    return observed is not None and observed.own.get(_ALLOC_POLICY) == _CLOSED


def _has_home(pair: Pair, homes: list[Pair]) -> bool:
    return any(pair.overlap(other) is not None for other in homes)
