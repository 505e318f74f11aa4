"""The verdict on a plan in one line, and on each of its guards: the same in every form of report."""

from __future__ import annotations

from collections.abc import Iterable

from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.plan import Plan
from gpolicy.report.answer import Section, Weight, count


def nothing_to_do(plan: Plan) -> str:
    """Return why there is nothing to carry out; nothing where there is."""
    errors = sum(item.severity == "error" for item in plan.findings)
    if errors:
        return f"No plan: {count(errors, 'error')} in what the policy asks of this cluster"
    return "" if plan.changes else "No changes: the cluster is what the policy declares"


def verdict(plan: Plan) -> str:
    """Return in a few words whether the plan may be carried out."""
    failed = sum(not guard.ok for guard in plan.guards)
    if failed and not any(item.severity == "error" for item in plan.findings):
        return f"Not to be applied: {count(failed, 'guard')} of {len(plan.guards)} {'fails' if failed == 1 else 'fail'}"
    allowed = sum(guard.allowed for guard in plan.guards)
    overridden = f", {count(allowed, 'guard')} overridden" if allowed else ""
    return nothing_to_do(plan) or f"Can be applied{overridden}"


def get_worse(plan: Plan, sections: Iterable[Section]) -> str:
    """Return what gets worse, of a plan that can be applied; nothing for one that cannot, or that does no harm."""
    worse = [section.title.lower() for section in sections if section.weight is Weight.WORSE]
    if not plan.safe or not worse:
        return ""
    return f"but worse: {', '.join(worse)}"


def amount(plan: Plan) -> str:
    """Return how much there is of the plan: 3 changes in 2 steps."""
    words = f"{count(len(plan.changes), 'change')} in {count(len(plan.steps), 'step')}"
    return f"{words}, {len(plan.unreadable):,} not compared" if plan.unreadable else words


def guard_verdict(guard: GuardResult) -> str:
    """Return the verdict of a guard in one word."""
    return "FAILS" if not guard.ok else "overridden" if guard.allowed else "passes"


def worst_first(guards: tuple[GuardResult, ...]) -> list[GuardResult]:
    """Return failed guards first, then overridden ones, then those that pass."""
    return sorted(guards, key=lambda guard: (guard.ok, not guard.allowed))
