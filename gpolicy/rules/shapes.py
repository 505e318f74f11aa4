"""Shapes that rules of several families have: what they need to be asked, and how they are told."""

from __future__ import annotations

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import InForce, places
from gpolicy.checking.rule import Hit, Rule
from gpolicy.policy.model import ClusterPolicy, GroupPolicy


class StateRule(Rule):
    """A rule that runs only where a cluster's state is given."""

    needs_state = True


class MoreWithState(Rule):
    """A rule that finds more where a cluster's state is given."""

    finds_more_with_state = True


class WholePolicyRule(Rule):
    """A rule that judges by what is absent."""

    needs_whole_policy = True


def conflict(
    rule: Rule, context: Context, declared: ClusterPolicy | GroupPolicy, message: str, hint: str, *values: InForce
) -> Hit:
    """Return a hit at the first of contradicting values that the object declares itself; the others are related."""
    place, related, note = places(context, declared, *values)
    return rule.hit(declared, f"{message}{note}", place, hint=hint, related=related)
