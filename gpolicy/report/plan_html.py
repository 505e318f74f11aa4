"""A plan as one page: verdict, capacity bars, specs as boxes, nodes now and then, failure domains, tables, steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from gpolicy import __version__
from gpolicy.analysis.pair_names import PairNames
from gpolicy.cluster.state import ClusterState, read_from
from gpolicy.ganeti.parameter import TakesEffect
from gpolicy.impact.fit_change import CapacityChange
from gpolicy.impact.impact import Impact
from gpolicy.plan.change import NAME, Change, ChangeAction, some
from gpolicy.plan.plan import Plan
from gpolicy.report.capacity_section import changed_groups, comparisons
from gpolicy.report.change_words import change_words, differs_in_effect, pair_changes, step_command
from gpolicy.report.cluster_picture import domain_pictures, domain_turns, group_pictures
from gpolicy.report.html_page import render_page
from gpolicy.report.impact_sections import impact_sections, not_known
from gpolicy.report.section import Weight
from gpolicy.report.spec_picture import spec_pictures
from gpolicy.report.values_text import value_text
from gpolicy.report.verdict import amount, can_be_allowed, get_worse, guard_verdict, verdict, worst_first


@dataclass(frozen=True, slots=True)
class Bar:
    """Two lengths from 0 to 1 beside a row of the capacity table; None where there is no such side."""

    now: float | None
    then: float | None


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change in words: lines with a sign each, and remarks."""

    lines: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    risk: str


def plan_html(
    plan: Plan,
    *,
    impact: Impact | None = None,
    before: ClusterState | None = None,
    after: ClusterState | None = None,
    names: PairNames | None = None,
) -> str:
    """Return the plan as one HTML file that needs nothing else.

    `before` and `after` are the states that the plan leads between; without them there are no pictures of the cluster.
    `names` are what the spec pairs of `after` are called.
    """
    known = impact if plan.changes else None
    if not plan.changes:
        before = after = None  # nothing to show beside the verdict
    sections = list(impact_sections(known)) if known else []
    renamed = {
        str(item.after): str(item.before)
        for item in plan.changes
        if item.path == NAME and item.action is ChangeAction.RENAME
    }
    return render_page(
        "plan.html.j2",
        plan=plan,
        read_from=read_from(plan.source, plan.snapshot),
        version=__version__,
        verdict=verdict(plan),
        amount=amount(plan),
        cost=get_worse(plan, sections),
        guards=[(guard, guard_verdict(guard), can_be_allowed(guard)) for guard in worst_first(plan.guards)],
        sections=sections,
        same=Weight.SAME,
        worse=Weight.WORSE,
        bars=list(capacity_bars(known.capacity)) if known and known.capacity else [],
        not_known=list(not_known(known)) if known else [],
        groups=group_pictures(before, after, renamed) if before and after else [],
        specs=spec_pictures(before, after, renamed, names, _verdicts(known)) if before and after else [],
        domains=domain_pictures(before, after, known.location if known else None) if before and after else {},
        kind_turns=domain_turns(before, after) if before and after else {},
        changes=[
            (obj, [_change(change) for change in changes])
            for obj, changes in itertools.groupby(plan.changes, key=lambda change: change.object)
        ],
        steps=[(step, step_command(step)) for step in plan.steps],
        unreadable=[(item, value_text(item.wanted)) for item in plan.unreadable],
    )


def capacity_bars(change: CapacityChange) -> Iterator[Bar]:
    """Give a bar for each row of the capacity table; lengths are shares of the largest figure of the group."""
    for item in changed_groups(change):
        rows = [row for _, row in comparisons(item)]
        sides = [[fit.fits if fit else None for fit in (row.before, row.after)] for row in rows]
        most = max((number for side in sides for number in side if number is not None), default=0) or 1
        for side in sides:
            now, then = (None if number is None else number / most for number in side)
            yield Bar(now, then)


def _verdicts(impact: Impact | None) -> dict[str, str]:
    if impact is None or impact.violations is None:
        return {}
    kinds = (("still", impact.violations.still), ("newly", impact.violations.newly))
    return {item.instance: kind for kind, items in kinds for item in items}


def _change(change: Change) -> ChangeWords:
    if change.path == ("ipolicy", "minmax"):
        pairs = pair_changes(change.before, change.after)
        lines = (("~", "ipolicy.minmax"), *((sign, line) for sign, line in pairs if sign != " "))
    else:
        sign = {ChangeAction.CREATE: "+", ChangeAction.REMOVE: "-"}.get(change.action, "~")
        lines = ((sign, change_words(change)),)
    remarks = []
    if change.action in (ChangeAction.SET, ChangeAction.RESET) and differs_in_effect(change):
        remarks.append(f"in effect: {value_text(change.effective_before)} → {value_text(change.effective_after)}")
    if change.takes_effect not in (TakesEffect.AT_ONCE, TakesEffect.CAPACITY_ONLY):
        remarks.append(f"takes effect: {change.takes_effect}")
    if change.affects:
        remarks.append(f"also in {some(change.affects, 4)}, which inherit it")
    if change.reason:
        remarks.append(f"{change.risk} risk: {change.reason}")
    return ChangeWords(lines, tuple(remarks), change.risk)
