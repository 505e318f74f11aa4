"""The plan as JSON: what `gpolicy plan -o` writes, `render` and `apply` read, and other programs rely on.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpolicy.cluster.json_input import Record, read_json_file
from gpolicy.errors import InputError
from gpolicy.ganeti.commands import Command
from gpolicy.plan.change import Change
from gpolicy.plan.planning import Plan
from gpolicy.plan.steps import Inverse, Step

FORMAT_VERSION = "1.1"
_COMMANDS = frozenset(
    (f"gnt-{level}", verb)
    for level, verbs in {
        "cluster": ("modify",),
        "group": ("add", "modify", "rename", "remove", "assign-nodes"),
        "node": ("modify",),
    }.items()
    for verb in (*verbs, "add-tags", "remove-tags")
)
"""All that the steps of a plan run, and so all that a plan file may."""


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": "gpolicy-plan",
        "cluster": plan.cluster,
        "source": plan.source,
        "ganeti_version": plan.version,
        "policy_digest": plan.policy_digest,
        "state_digest": plan.state_digest,
        "serials": plan.serials,
        "changes": [_change(change) for change in plan.changes],
        "steps": [_step(number, step) for number, step in enumerate(plan.steps, start=1)],
        "impact": dict(impact or {}),
        "guards": [
            {"name": guard.name, "ok": guard.ok, "message": guard.message, "allowed": guard.allowed}
            for guard in plan.guards
        ],
        "unreadable": [
            {"object": item.object, "path": ".".join(item.path), "wanted": item.wanted} for item in plan.unreadable
        ],
        "findings": [
            {
                "code": item.code,
                "name": item.name,
                "severity": item.severity,
                "message": item.message,
                "hint": item.hint,
                "file": item.span.file if item.span else None,
                "line": item.span.line if item.span else None,
                "column": item.span.column if item.span else None,
            }
            for item in plan.findings
        ],
        "notes": list(plan.notes),
        "summary": {
            "changes": len(plan.changes),
            "steps": len(plan.steps),
            "unreadable": len(plan.unreadable),
            "safe": plan.safe,
        },
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "object": change.object,
        "path": ".".join(change.path),
        "action": change.action,
        "before": change.before,
        "after": change.after,
        "effective_before": change.effective_before,
        "effective_after": change.effective_after,
        "takes_effect": change.takes_effect,
        "risk": change.risk,
        "reason": change.reason,
        "affects": list(change.affects),
        "origin": str(change.span) if change.span else None,
    }


def _step(number: int, step: Step) -> dict[str, Any]:
    return {
        "id": str(number),
        "wave": int(step.wave),
        "object": step.object,
        "title": step.title,
        **_command(step.command),
        "inverse": _inverse(step.inverse),
    }


def _command(command: Command) -> dict[str, Any]:
    return {
        "argv": None if command.argv is None else list(command.argv),
        "rapi": None if command.rapi is None else command.rapi.as_json(),
    }


def _inverse(inverse: Inverse) -> dict[str, Any]:
    """Return the first command that undoes a step, those that follow it under `more`, and what is lost."""
    made = [_command(command) for command in inverse.commands]
    first = made[0] if made else {"argv": None, "rapi": None}
    return {**first, "more": made[1:], "not_restored": list(inverse.not_restored)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a plan file, as far as rendering needs it."""

    id: str
    wave: int
    title: str
    argv: tuple[str, ...] | None
    undo: tuple[tuple[str, ...] | None, ...]
    not_restored: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What a plan file says, checked."""

    cluster: str
    policy_digest: str
    state_digest: str
    steps: tuple[PlannedStep, ...]
    failed_guards: tuple[str, ...]


def read_plan(path: Path) -> PlanFile:
    """Return the plan in a file. Raise InputError if it is not a plan that this gpolicy can carry out."""
    try:
        return _plan_file(Record.of(read_json_file(path), str(path)))
    except InputError as error:
        raise InputError(error.message, hint=error.hint or "make a plan with `gpolicy plan -o FILE`") from None


def _plan_file(written: Record) -> PlanFile:
    version = written.text("format_version")
    if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise InputError(f"{written.where}: its format is {version[:20]!r}, this gpolicy reads {FORMAT_VERSION}")
    for key in ("steps", "guards"):
        if not isinstance(written.fields.get(key), list):
            written.refuse(key, "a list")
    guards = [Record.of(guard, f"{written.where}: guards") for guard in written.items("guards")]
    findings = [Record.of(finding, f"{written.where}: findings") for finding in written.items("findings")]
    return PlanFile(
        cluster=_text(written, "cluster"),
        policy_digest=_text(written, "policy_digest"),
        state_digest=_text(written, "state_digest"),
        steps=tuple(_planned(Record.of(step, f"{written.where}: steps")) for step in written.items("steps")),
        failed_guards=(
            *(f"{_text(guard, 'name')}: {_text(guard, 'message')}" for guard in guards if not guard.flag("ok")),
            *(_text(finding, "message") for finding in findings if finding.text("severity") == "error"),
        ),
    )


def _planned(step: Record) -> PlannedStep:
    inverse = step.record("inverse")
    commands = [inverse, *(Record.of(command, f"{step.where}: inverse") for command in inverse.items("more"))]
    undo = [command for command in commands if (command.fields.get("argv"), command.fields.get("rapi")) != (None, None)]
    return PlannedStep(
        id=_text(step, "id"),
        wave=step.whole("wave"),
        title=_text(step, "title"),
        argv=_argv(step),
        undo=tuple(_argv(command) for command in undo),
        not_restored=tuple(_no_null(reason, step.where) for reason in inverse.texts("not_restored")),
    )


def _argv(command: Record) -> tuple[str, ...] | None:
    """Return an argument list; refuse any command but those that plans hold: the file may have been tampered with."""
    if command.fields.get("argv") is None:
        return None
    argv = tuple(_no_null(word, command.where) for word in command.texts("argv"))
    if argv[:2] not in _COMMANDS:
        what = " ".join(argv[:2])[:40]
        raise InputError(f"{command.where}: would run {what!r}, which is no command of a plan")
    if argv[1] == "assign-nodes" and len([word for word in argv[2:] if word != "--"]) < 2:
        raise InputError(f"{command.where}: assign-nodes without a node would move every node of the cluster")
    return argv


def _text(record: Record, key: str) -> str:
    return _no_null(record.text(key), record.where)


def _no_null(text: str, where: str) -> str:
    if "\0" in text:
        raise InputError(f"{where}: holds a null character, which no command can carry")
    return text


def plan_text(plan: Plan, impact: Mapping[str, Any] | None = None) -> str:
    """Return the JSON text of a plan, with its impact if known."""
    return json.dumps(plan_as_json(plan, impact), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
