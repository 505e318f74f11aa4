"""The figures that come first in a plan: changes, newly violating, capacity, node failures, location, guards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from gpolicy.colour import Tone
from gpolicy.findings import Severity
from gpolicy.impact.impact import Impact
from gpolicy.impact.location_change import LocationChange
from gpolicy.impact.redundancy_change import RedundancyChange
from gpolicy.impact.violation_change import ViolationChange
from gpolicy.plan.plan import Plan
from gpolicy.printable import count
from gpolicy.report.answer import Figure, Section, Weight
from gpolicy.report.capacity_section import headline
from gpolicy.report.remedy_section import remedy_figures

_MOST: Final = 2
_TONES: Final = {Weight.WORSE: Tone.BAD, Weight.CHANGED: Tone.PLAIN}


def plan_figures(plan: Plan, impact: Impact, sections: Iterable[Section]) -> tuple[Figure, ...]:
    """Return the figures of a plan with its impact; what is not known says why. `sections` are those of it.

    Location has one where there are conflicts, now or then.
    """
    known = {section.key: section for section in sections}
    middle: Mapping[str, tuple[str, Callable[[Impact, Section], Figure]]] = {
        "violations": ("newly violating", _violations),
        "capacity": ("capacity", partial(_capacity, in_verdict=plan.safe)),
        "redundancy": ("node failures", _redundancy),
    }
    figures = [
        figure(impact, known[part])
        if part in known
        else Figure(name, "?", f"not known: {impact.unavailable.get(part, 'not computed')}", Tone.QUIET, "impact")
        for part, (name, figure) in middle.items()
    ]
    if impact.location is not None and any(map(any, impact.location.numbers)):
        figures.append(_location(impact, impact.location, known["location"]))
    return (_changes(plan), *figures, _guards(plan))


def _tone(section: Section) -> Tone:
    tone = _TONES.get(section.weight, Tone.GOOD)
    return Tone.CAREFUL if section.unknown and tone is not Tone.BAD else tone


def _changes(plan: Plan) -> Figure:
    detail = [f"in {count(len(plan.steps), 'step')} on {count(len({item.object for item in plan.changes}), 'object')}"]
    warnings = sum(item.severity is not Severity.ERROR for item in plan.findings)
    detail += [f"{len(plan.unreadable):,} not compared"] if plan.unreadable else []
    detail += [count(warnings, "warning")] if warnings else []
    return Figure("changes", f"{len(plan.changes):,}", ", ".join(detail), about="changes")


def _violations(impact: Impact, section: Section) -> Figure:
    change = impact.violations or ViolationChange()
    newly = len(change.newly) + len(change.nodes_newly)
    tone = Tone.BAD if newly else Tone.CAREFUL if section.weight is Weight.WORSE else _tone(section)
    return Figure("newly violating", f"{newly:,}", section.worse or section.summary, tone, section.key)


def _capacity(impact: Impact, section: Section, *, in_verdict: bool) -> Figure:
    """Return the figure of capacity, with the row that is worse unless the verdict names it."""
    value, detail = headline(impact.capacity) if impact.capacity else ("?", "")
    worse = f"; worse: {section.worse}" if section.worse and not in_verdict else ""
    detail = "; ".join((*section.unknown, detail))
    return Figure("capacity", value, f"{detail}{worse}", _tone(section), section.key)


def _redundancy(impact: Impact, section: Section) -> Figure:
    groups = impact.redundancy.groups if isinstance(impact.redundancy, RedundancyChange) else ()
    sides = ([item.before for item in groups], [item.after for item in groups])
    now, then = (min((one.survives for one in side if one and one.nodes), default=0) for side in sides)
    value = count(then, "node") if now == then else f"{now} → {count(then, 'node')}"
    detail = f"of each {'known ' if section.unknown else ''}group may fail; {section.summary}"
    unmirrored, split = (sum(getattr(item, what) for item in sides[1] if item) for what in ("unmirrored", "split"))
    if unmirrored:
        detail += f"; {count(unmirrored, 'instance')} without a mirror cannot fail over"
    if split:
        verb = "counts" if split == 1 else "count"
        detail += f"; {count(split, 'instance')} with the mirror in another group {verb} as if without"
    return Figure("node failures", value, detail, _tone(section), section.key)


def _location(impact: Impact, change: LocationChange, section: Section) -> Figure:
    new = sum(number for number, _, _ in change.numbers)
    cure = f"; remedy: {remedy_figures(impact.remedy)}" if new and impact.remedy and impact.remedy.new else ""
    return Figure("location conflicts", f"{new:,} new", f"{section.summary}{cure}", _tone(section), section.key)


def _guards(plan: Plan) -> Figure:
    """Return how many guards fail, and why; else how many pass, and which are overridden."""
    failed = [guard for guard in plan.guards if not guard.ok]
    overridden = [guard for guard in plan.guards if guard.ok and guard.allowed]
    told = [f"{guard.name}: {guard.message}" for guard in (*failed, *(overridden if not failed else ()))]
    more = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
    all_of_them = len(plan.guards)
    word = "fails" if len(failed) == 1 else "fail" if failed else "pass"
    value = f"{len(failed) or all_of_them - len(overridden)} of {all_of_them} {word}" if all_of_them else "none"
    detail = "; ".join([*(f"{'' if failed else 'overridden: '}{text}" for text in told[:_MOST]), *more])
    tone = Tone.BAD if failed else Tone.CAREFUL if overridden else Tone.GOOD
    otherwise = "nothing is in the way" if all_of_them else "the policy declares none"
    return Figure("guards", value, detail or otherwise, tone if all_of_them else Tone.PLAIN, "guards")
