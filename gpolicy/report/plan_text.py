"""A plan as text, for a reviewer in a hurry: what changes, what is dear about it, by which commands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from gpolicy.ganeti.grammar import shell_line
from gpolicy.ganeti.parameter import TakesEffect, Value
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, Action, Change, Risk, some, words
from gpolicy.plan.guards import OVERRIDABLE, GuardResult
from gpolicy.plan.planning import Plan
from gpolicy.plan.steps import Step
from gpolicy.report.findings_text import findings_text, printable
from gpolicy.report.values_text import pair_lines as _pair_lines
from gpolicy.report.values_text import value_text as _value

_SIGNS: Final = {Action.CREATE: "+", Action.REMOVE: "-", Action.RESET: "~"}
_PAINT: Final = {"+": "\x1b[32m", "-": "\x1b[31m", "~": "\x1b[33m", "dim": "\x1b[2m", "bold": "\x1b[1m"}
_RISK_PAINT: Final = {Risk.HIGH: "-", Risk.MEDIUM: "~"}


def plan_report(plan: Plan, sources: Mapping[str, str], *, colour: bool = False) -> str:
    """Return the plan as text. `sources` are the policy's files, to show the lines that findings are about."""
    return "\n".join(_Report(plan, sources, colour=colour).lines()) + "\n"


class _Report:
    def __init__(self, plan: Plan, sources: Mapping[str, str], *, colour: bool) -> None:
        self.plan, self.sources, self.colour = plan, sources, colour

    def lines(self) -> Iterator[str]:
        plan = self.plan
        yield self._paint("bold", f"Plan for cluster {printable(plan.cluster)} (Ganeti {plan.version})")
        errors = sum(finding.severity == "error" for finding in plan.findings)
        if errors:
            yield f"No plan: {_count(errors, 'error')} in what the policy asks of this cluster."
        elif not plan.changes:
            yield "No changes: the cluster is what the policy declares."
        for obj, changes in itertools.groupby(plan.changes, key=lambda change: change.object):
            yield ""
            yield self._paint("bold", printable(obj))
            for change in changes:
                yield from self._change(change)
        yield from self._unreadable()
        yield from self._steps()
        yield from self._guards()
        if plan.findings:
            yield ""
            yield findings_text(plan.findings, self.sources, colour=self.colour).rstrip("\n")
        for note in plan.notes:
            yield self._paint("dim", f"note: {printable(note)}")
        yield ""
        yield self._summary()

    def _change(self, change: Change) -> Iterator[str]:
        sign = _SIGNS.get(change.action, "~")
        if change.path == ("ipolicy", "minmax"):
            yield f"  {self._paint(sign, sign)} ipolicy.minmax"
            yield from (f"      {line}" for line in self._pairs(change.before, change.after))
        else:
            yield f"  {self._paint(sign, sign)} {printable(_words(change))}"
        if change.action in (Action.SET, Action.RESET) and _differs(change):
            effective = f"in effect: {_value(change.effective_before)} → {_value(change.effective_after)}"
            yield self._paint("dim", f"      {printable(effective)}")
        if change.takes_effect not in (TakesEffect.AT_ONCE, TakesEffect.CAPACITY_ONLY):
            yield self._paint("dim", f"      takes effect: {change.takes_effect}")
        if change.affects:
            yield self._paint("dim", f"      also in {printable(some(change.affects, 4))}, which inherit it")
        if change.reason:
            yield self._paint(
                _RISK_PAINT.get(change.risk, "dim"), f"      {change.risk} risk: {printable(change.reason)}"
            )

    def _pairs(self, before: Value, after: Value) -> Iterator[str]:
        old, new = _pair_lines(before), _pair_lines(after)
        for line in old:
            if line not in new:
                yield self._paint("-", f"- {line}")
        for line in new:
            yield f"  {line}" if line in old else self._paint("+", f"+ {line}")
        if old and not new:
            yield self._paint("dim", "(own pairs removed, the cluster's hold)")
        elif sorted(old) == sorted(new):
            yield self._paint("dim", "(same pairs, other order)")

    def _unreadable(self) -> Iterator[str]:
        if not self.plan.unreadable:
            return
        yield ""
        yield self._paint("bold", "Not compared: this source cannot show them")
        for item in self.plan.unreadable:
            wanted = f"{item.object} {'.'.join(item.path)} (wanted {_value(item.wanted)})"
            yield f"  ? {printable(wanted)}"

    def _steps(self) -> Iterator[str]:
        if not self.plan.steps:
            return
        yield ""
        yield self._paint("bold", "Steps")
        for number, step in enumerate(self.plan.steps, start=1):
            yield f"  {number:>2}. {printable(step.title)}"
            yield self._paint("dim", f"      {printable(_command(step))}")
            for lost in step.inverse.not_restored:
                yield self._paint("~", f"      cannot be undone: {printable(lost)}")

    def _guards(self) -> Iterator[str]:
        if not self.plan.guards:
            return
        yield ""
        yield self._paint("bold", "Guards")
        for guard in self.plan.guards:
            yield from self._guard(guard)

    def _guard(self, guard: GuardResult) -> Iterator[str]:
        sign, verdict = ("~", "allowed") if guard.ok else ("-", "FAILS")
        yield f"  {self._paint(sign, verdict)} {guard.name}: {printable(guard.message)}"
        if not guard.ok and guard.name in OVERRIDABLE:
            yield self._paint("dim", f"      pass it with --allow {guard.name}, if you must")

    def _summary(self) -> str:
        plan = self.plan
        parts = [_count(len(plan.changes), "change"), _count(len(plan.steps), "step")]
        if plan.unreadable:
            parts.append(f"{len(plan.unreadable)} not compared")
        failed = sum(not guard.ok for guard in plan.guards)
        if failed:
            parts.append(f"{_count(failed, 'guard')} failed: not to be applied")
        return self._paint("bold", ", ".join(parts))

    def _paint(self, paint: str, text: str) -> str:
        return f"{_PAINT[paint]}{text}\x1b[0m" if self.colour else text


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _words(change: Change) -> str:
    match change.path, change.action:
        case path, Action.CREATE if path == NAME:
            return f"create group {change.object_name}"
        case path, Action.REMOVE if path == NAME:
            return f"remove group {change.before}"
        case path, _ if path == NAME:
            return f"rename from {change.before}"
        case path, _ if path == MEMBERSHIP:
            return f"move from group {change.before} to {change.after}"
        case path, _ if path == TAGS:
            before, after = words(change.before), words(change.after)
            added = [f"+{tag}" for tag in after if tag not in before]
            return f"tags {', '.join([*added, *(f'-{tag}' for tag in before if tag not in after)])}"
    name = ".".join(change.path)
    if change.action is Action.RESET:
        return f"{name}: {_value(change.before)} → inherit"
    return f"{name}: {'not set' if change.before is None else _value(change.before)} → {_value(change.after)}"


def _differs(change: Change) -> bool:
    if change.path == ("ipolicy", "minmax"):
        return False
    shown = (change.before, change.after)
    return (change.effective_before, change.effective_after) != shown and change.effective_before is not None


def _command(step: Step) -> str:
    if step.command.argv is not None:
        return shell_line(step.command.argv)
    rapi = step.command.rapi
    return f"RAPI only: {rapi.method} {rapi.path}" if rapi else "no command"
