"""GP728: the names of new groups beside those of the observed cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.policy.misspelt import MOST_GUESSES, surely_meant

_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")


class MisspeltGroup(Rule):
    info = RuleInfo(
        code="GP728",
        name="misspelt-group",
        severity=Severity.WARNING,
        summary="A new group has almost the name of a group of the cluster that the policy does not name.",
        rationale="gpolicy creates a group that the cluster lacks. Where its name is misspelt, the intended group keeps"
        " what it has, and the cluster gets an empty group beside it. Names that differ in a number or a single letter,"
        " such as rack1 and rack2, are no misspelling.",
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
            near = surely_meant(wanted, [name for name in left if not _in_one_series(wanted, name)])
            if near is not None:
                rename = "" if old else f" To rename it, add `renamed_from: {near}`."
                told = f"the cluster has no group {wanted}, but {near}, which the policy does not name"
                message = f"{told}: group {group.name} will be created"
                yield self.hit(group, message, place, hint=f"Did you mean `{near}`?{rename}")


def _in_one_series(one: str, other: str) -> bool:
    """Return whether two names differ in their numbers or single letters only: rack1 and rack2, gold and gold-b."""
    (words, marks), (other_words, other_marks) = _split(one), _split(other)
    return words == other_words and marks != other_marks


def _split(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a name, and its numbers and single letters."""
    parts = _PARTS.findall(name.lower())
    words = [part for part in parts if len(part) > 1 and not part.isdigit()]
    return words, [part for part in parts if len(part) == 1 or part.isdigit()]
