"""Names of groups and specs that nothing has, wherever guards, tests and node sets write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy.model import Declared
from gpolicy.policy.source_file import Located

_NUMBERS: Final = re.compile(r"\[[^][]*+\]|[\d*?]++")


class NameRule(Rule):
    """A rule about names of groups or specs. What refers to one missing name is one finding."""

    finds_more_with_state = needs_whole_policy = True

    def unknown_group(
        self, context: Context, subject: Declared | str, group: Located[str] | None, who: str = ""
    ) -> Iterator[Hit]:
        """Yield a finding if neither the policy nor the cluster has the group. `who: ` names it stands before it."""
        if group is None or group.value in context.known_groups:
            return
        where = "neither the policy nor the cluster has a" if context.state else "the policy has no"
        message, hint = f"{who}{where} group {group.value!r}", "declare the group"
        if group.value in context.policy.groups:
            message, hint = f"{who}group {group.value!r} is to be removed", "name another group, or keep this one"
        elif context.known_groups:
            hint = did_you_mean_one_of(group.value, "groups", context.known_groups)
        yield self.hit(subject, message, group.span, hint=hint, missing=f"group {group.value}")

    def unknown_spec(
        self, context: Context, subject: Declared | str, group: str | None, spec: Located[str], who: str = ""
    ) -> Iterator[Hit]:
        """Yield a finding if the group (None: any group) has no such spec; none if the group is not known either."""
        known = context.spec_names(group) if group is None or group in context.known_groups else None
        if known is None or spec.value in known:
            return
        message = f"{who}{f'group {group}' if group else 'no group'} has {'no' if group else 'a'} spec {spec.value!r}"
        hint = did_you_mean_one_of(spec.value, "specs", tuple(known)) if known else "name the pairs of minmax"
        missing = f"spec {spec.value}"
        if group is not None and group not in context.policy.groups:
            message += ", since the policy does not declare the group: it has the specs of the cluster"
            missing = f"group {group}"
        yield self.hit(subject, message, spec.span, hint=hint, missing=missing)


def nodes_like(name: str) -> str:
    """Return what is missing where a node or a pattern of nodes is unknown: all that differ in numbers only."""
    return f"nodes like {_NUMBERS.sub('#', name)}"
