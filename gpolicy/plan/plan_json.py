"""The plan as JSON: what `gpolicy plan -o` writes, `render` and `apply` read, and other programs rely on.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpolicy.cluster.json_input import read_json_file
from gpolicy.errors import InputError
from gpolicy.ganeti.commands import Command
from gpolicy.plan.change import Change
from gpolicy.plan.planning import Plan
from gpolicy.plan.steps import Inverse, Step

FORMAT_VERSION = "1.0"
_PROGRAMS = ("gnt-cluster", "gnt-group", "gnt-node")


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan in the form of the contract."""
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
        "impact": {},
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
    written = read_json_file(path)
    try:
        return _plan_file(written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{path}: not a plan of gpolicy: {reason}", hint="make one with `gpolicy plan -o FILE`"
        ) from None


def _plan_file(written: Any) -> PlanFile:
    if not isinstance(written, dict):
        raise TypeError("it is not a mapping")
    version = _text(written["format_version"])
    if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise ValueError(f"its format is {version[:20]!r}, this gpolicy reads {FORMAT_VERSION}")
    return PlanFile(
        cluster=_text(written["cluster"]),
        policy_digest=_text(written["policy_digest"]),
        state_digest=_text(written["state_digest"]),
        steps=tuple(_planned(step) for step in written["steps"]),
        failed_guards=tuple(
            f"{_text(guard['name'])}: {_text(guard['message'])}" for guard in written["guards"] if not guard["ok"]
        ),
    )


def _planned(step: Any) -> PlannedStep:
    inverse = step["inverse"]
    undo = [inverse, *inverse["more"]] if inverse["argv"] or inverse["rapi"] else []
    return PlannedStep(
        id=_text(step["id"]),
        wave=int(step["wave"]),
        title=_text(step["title"]),
        argv=_argv(step["argv"]),
        undo=tuple(_argv(command["argv"]) for command in undo),
        not_restored=tuple(_text(reason) for reason in inverse["not_restored"]),
    )


def _argv(words: Any) -> tuple[str, ...] | None:
    """Return an argument list; refuse any program but Ganeti's own: a plan file may have been tampered with."""
    if words is None:
        return None
    argv = tuple(_text(word) for word in words)
    if not argv or argv[0] not in _PROGRAMS:
        raise ValueError(
            f"a step runs {argv[0][:40]!r}, which is not one of {', '.join(_PROGRAMS)}" if argv else "an empty step"
        )
    return argv


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"{str(value)[:40]!r} should be text")
    return value


def plan_text(plan: Plan) -> str:
    """Return the JSON text of a plan."""
    return json.dumps(plan_as_json(plan), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
