"""A plan as text, for a reviewer in a hurry: what changes, what is dear about it, by which commands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gpolicy.cluster.state import read_from
from gpolicy.ganeti.parameter import TakesEffect, Value
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.change import Change, ChangeAction, Risk, some
from gpolicy.plan.plan import Plan
from gpolicy.policy.source_file import Files
from gpolicy.printable import BOLD, DIM, GREEN, PLAIN, RED, YELLOW, as_text
from gpolicy.report.change_words import change_words, differs_in_effect, pair_changes, step_command
from gpolicy.report.findings_text import findings_lines
from gpolicy.report.section import count
from gpolicy.report.values_text import value_text
from gpolicy.report.verdict import can_be_allowed, guard_verdict, worst_first

if TYPE_CHECKING:
    from gpolicy.impact.impact import Impact

_SIGNS: Final = {ChangeAction.CREATE: "+", ChangeAction.REMOVE: "-", ChangeAction.RESET: "~"}
_PAINT: Final = {"+": GREEN, "-": RED, "~": YELLOW, "dim": DIM, "bold": BOLD}
_RISK_PAINT: Final = {Risk.HIGH: "-", Risk.MEDIUM: "~"}


def plan_report(plan: Plan, sources: Files, *, impact: Impact | None = None, colour: bool = False) -> str:
    """Return the plan as text, with its impact if known.

    `sources` are the policy's files, to show the lines that findings are about.
    """
    return as_text(_Report(plan, sources, impact, colour=colour).lines())


class _Report:
    def __init__(self, plan: Plan, sources: Files, impact: Impact | None, *, colour: bool) -> None:
        self.plan, self.sources, self.impact, self.colour = plan, sources, impact, colour

    def lines(self) -> Iterator[str]:
        plan = self.plan
        yield self._paint("bold", f"Plan for cluster {plan.cluster} (Ganeti {plan.version})")
        if plan.snapshot:
            yield self._paint("dim", f"read from {read_from(plan.source, plan.snapshot)}")
        errors = sum(finding.severity == "error" for finding in plan.findings)
        if errors:
            yield f"No plan: {count(errors, 'error')} in what the policy asks of this cluster."
        elif not plan.changes:
            yield "No changes: the cluster is what the policy declares."
        for obj, changes in itertools.groupby(plan.changes, key=lambda change: change.object):
            yield ""
            yield self._paint("bold", obj)
            for change in changes:
                yield from self._change(change)
        yield from self._unreadable()
        if self.impact is not None and plan.changes:
            from gpolicy.report.impact_text import impact_lines  # noqa: PLC0415 (brings the allocator's types)

            yield ""
            yield from impact_lines(self.impact, colour=self.colour)
        yield from self._steps()
        yield from self._guards()
        if plan.findings:
            yield ""
            yield from findings_lines(plan.findings, self.sources, colour=self.colour)
        for note in plan.notes:
            yield self._paint("dim", f"note: {note}")
        yield ""
        yield self._summary()

    def _change(self, change: Change) -> Iterator[str]:
        sign = _SIGNS.get(change.action, "~")
        if change.path == ("ipolicy", "minmax"):
            yield f"  {self._paint(sign, sign)} ipolicy.minmax"
            yield from (f"      {line}" for line in self._pairs(change.before, change.after))
        else:
            yield f"  {self._paint(sign, sign)} {change_words(change)}"
        if change.action in (ChangeAction.SET, ChangeAction.RESET) and differs_in_effect(change):
            effective = f"in effect: {value_text(change.effective_before)} → {value_text(change.effective_after)}"
            yield self._paint("dim", f"      {effective}")
        if change.takes_effect not in (TakesEffect.AT_ONCE, TakesEffect.CAPACITY_ONLY):
            yield self._paint("dim", f"      takes effect: {change.takes_effect}")
        if change.affects:
            yield self._paint("dim", f"      also in {some(change.affects, 4)}, which inherit it")
        if change.reason:
            yield self._paint(_RISK_PAINT.get(change.risk, "dim"), f"      {change.risk} risk: {change.reason}")

    def _pairs(self, before: Value, after: Value) -> Iterator[str]:
        for sign, line in pair_changes(before, after):
            paint = {" ": "", "#": "dim"}.get(sign, sign)
            text = f"({line})" if sign == "#" else f"{sign} {line}"
            yield self._paint(paint, text) if paint else text

    def _unreadable(self) -> Iterator[str]:
        if not self.plan.unreadable:
            return
        yield ""
        yield self._paint("bold", "Not compared: this source cannot show them")
        for item in self.plan.unreadable:
            wanted = f"{item.object} {'.'.join(item.path)} (wanted {value_text(item.wanted)})"
            yield f"  ? {wanted}"

    def _steps(self) -> Iterator[str]:
        if not self.plan.steps:
            return
        yield ""
        yield self._paint("bold", "Steps")
        for number, step in enumerate(self.plan.steps, start=1):
            yield f"  {number:>2}. {step.title}"
            yield self._paint("dim", f"      {step_command(step)}")
            for lost in step.inverse.not_restored:
                yield self._paint("~", f"      cannot be undone: {lost}")

    def _guards(self) -> Iterator[str]:
        if not self.plan.guards:
            return
        yield ""
        yield self._paint("bold", "Guards")
        for guard in worst_first(self.plan.guards):
            yield from self._guard(guard)

    def _guard(self, guard: GuardResult) -> Iterator[str]:
        sign = "-" if not guard.ok else "~" if guard.allowed else "+"
        yield f"  {self._paint(sign, guard_verdict(guard))} {guard.name}: {guard.message}"
        if can_be_allowed(guard):
            yield self._paint("dim", f"      pass it with --allow {guard.name}, if you must")

    def _summary(self) -> str:
        plan = self.plan
        parts = [count(len(plan.changes), "change"), count(len(plan.steps), "step")]
        if plan.unreadable:
            parts.append(f"{len(plan.unreadable)} not compared")
        failed = sum(not guard.ok for guard in plan.guards)
        if failed:
            parts.append(f"{count(failed, 'guard')} failed: not to be applied")
        return self._paint("bold", ", ".join(parts))

    def _paint(self, paint: str, text: str) -> str:
        return f"{_PAINT[paint]}{text}{PLAIN}" if self.colour else text
