"""Check a policy: what its structure lacks, what the rules find, less what is waived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date

from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding, Span
from gpolicy.policy.model import Policy
from gpolicy.rules.catalogue import find_rule
from gpolicy.rules.context import Context
from gpolicy.rules.registry import RULES
from gpolicy.rules.rule import Hit, Rule
from gpolicy.rules.settings import DEFAULT, Settings
from gpolicy.rules.waiving import Waivers, can_be_waived


def check_policy(
    policy: Policy, *, state: ClusterState | None = None, today: date, settings: Settings = DEFAULT
) -> list[Finding]:
    """Return everything that is wrong with `policy`, sorted by place.

    Rules run on what could be read; those that judge by what is absent only when everything could. With `state`
    the rules that need a cluster run as well, and in place of their twins that can do without. `today` decides which
    waivers are still in force. An exception in a rule is a fault of gpolicy and not caught.
    """
    context = Context(policy, state, settings)
    rules = [rule for rule in RULES if _applies(rule, context)]
    waivers = Waivers(policy.waivers, find_rule, today)
    kept = [hit.finding for hit in _hits(policy, rules, context) if not waivers.covers(hit)]
    if context.whole:
        ran = {rule.info.code for rule in rules}
        kept += waivers.unused(lambda code: code in ran or code.startswith("GP0"))
    kept += waivers.findings
    unique = {finding.sort_key(): finding for finding in kept}  # two groups with one base share its findings
    return [unique[key] for key in sorted(unique)]


def _applies(rule: Rule, context: Context) -> bool:
    fits_state = not (rule.needs_state if context.state is None else rule.only_without_state)
    return fits_state and (context.whole or not rule.needs_whole_policy)


def _hits(policy: Policy, rules: list[Rule], context: Context) -> Iterator[Hit]:
    yield from _structure_hits(policy)
    for rule in rules:
        yield from rule.check(context)


def _structure_hits(policy: Policy) -> Iterator[Hit]:
    """Yield the findings about structure, each with the object in whose document it stands."""
    documents: dict[str, list[tuple[Span, str]]] = defaultdict(list)
    for declared in policy.objects:
        documents[declared.document.file].append((declared.document.value_span(()), declared.label))
    for finding in policy.findings:
        place = finding.span
        around = documents[place.file] if place and _could_be_waived(finding) else []
        inside = (label for span, label in around if place and _is_inside(place, span))
        yield Hit(next(inside, ""), finding)


def _could_be_waived(finding: Finding) -> bool:
    """Return whether a waiver could name the rule of this finding."""
    info, _ = find_rule(finding.code)
    return info is not None and can_be_waived(info)


def _is_inside(place: Span, around: Span) -> bool:
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    return (around.line, around.column) <= start and end <= (around.end_line, around.end_column)
