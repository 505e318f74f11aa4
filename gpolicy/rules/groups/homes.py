"""GP610: groups that take no new instances, and sizes that no other group takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.members import has_other_groups
from gpolicy.checking.pairs import Pair, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import GroupPolicy
from gpolicy.rules.specs.overlap import bounds

_ALLOC_POLICY: Final[Path] = ("alloc_policy",)
_CLOSED: Final = "unallocable"


def _group(name: str, alloc_policy: str, pair: str) -> str:
    head = f"gpolicy: v1\nkind: NodeGroup\nname: {name}\nalloc_policy: {alloc_policy}\nipolicy:\n  minmax:\n"
    return f"{head}    - name: {name}-size\n      {pair}"


_LARGE: Final = bounds("16G 64G", "4 16", "100G 1T")
_SMALL: Final = bounds("1G 12G", "1 3", "10G 90G")


class UnallocableWithoutHome(Rule):
    """Sizes that can only be made in a group where nothing is to be made."""

    info = RuleInfo(
        code="GP610",
        name="unallocable-without-home",
        severity=Severity.WARNING,
        summary="A group is unallocable, and no other declared group takes the sizes of one of its specs.",
        rationale="hail and hspace put nothing into an unallocable group: instances of that size can be created only"
        " by naming their nodes. While a group is being emptied that may be meant.",
        source="Ganeti 3.0, alloc_policy",
        bad=f"{_group('gold', 'unallocable', _LARGE)}---\n{_group('silver', 'preferred', _SMALL)}",
        good=f"{_group('gold', 'last_resort', _LARGE)}---\n{_group('silver', 'preferred', _SMALL)}",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        if has_other_groups(context):
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
            if homeless or not open_groups:
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


HOME_RULES: Final = (UnallocableWithoutHome(),)
