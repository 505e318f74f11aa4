"""The plan as JSON: what `gpolicy plan -o` writes and other programs rely on. `plan_file` reads it.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpolicy import __version__
from gpolicy.ganeti.rapi_calls import RapiCall
from gpolicy.plan.change import Change
from gpolicy.plan.contents import Observed
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.policy.guard import Guard

FORMAT_VERSION = "1.3"


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": "gpolicy-plan",
        "gpolicy": __version__,
        "cluster": plan.cluster,
        "cluster_uuid": plan.cluster_uuid,
        "source": plan.source,
        "snapshot": asdict(plan.snapshot) if plan.snapshot else None,
        "ganeti_version": plan.version,
        "policy_digest": plan.policy_digest,
        "state_digest": plan.state_digest,
        "serials": plan.serials,
        "state_digest_rapi": plan.state_digest_rapi,
        "observed": {name: _observed(item) for name, item in plan.observed.items()},
        "not_shown": [{"level": gap.level.value, "prefix": list(gap.prefix)} for gap in plan.gaps],
        "staying": list(plan.staying),
        "changes": [_change(change) for change in plan.changes],
        "steps": [_step(step) for step in plan.steps],
        "impact": dict(impact or {}),
        "guards": [
            {"name": guard.name, "ok": guard.ok, "message": guard.message, "allowed": guard.allowed}
            for guard in plan.guards
        ],
        "declared_guards": [_declared(guard) for guard in plan.declared_guards],
        "pair_names": {name: list(names) for name, names in plan.pair_names.items()},
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
        "keys": list(change.path),
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


def _declared(guard: Guard) -> dict[str, Any]:
    return {
        "name": guard.name.value,
        "measure": guard.measure.value,
        "limit": guard.limit,
        "percent": guard.percent,
        "group": guard.group.value if guard.group else None,
        "spec": guard.spec.value if guard.spec else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "wave": int(step.wave),
        "object": step.object,
        "title": step.title,
        **_command(step.command),
        "inverse": _inverse(step.inverse),
    }


def _call(call: RapiCall | None) -> dict[str, Any] | None:
    return None if call is None else {"method": call.method, "path": call.path, "body": call.body}


def _command(command: PlannedCommand) -> dict[str, Any]:
    return {
        "argv": None if command.argv is None else list(command.argv),
        "rapi": _call(command.rapi),
        "effects": [
            {"object": item.object, "keys": list(item.path), "before": item.before, "after": item.after}
            for item in command.effects
        ],
    }


def _observed(item: Observed) -> dict[str, Any]:
    return {
        "uuid": item.identity.uuid,
        "serial_no": item.identity.serial_no,
        "values": [{"keys": list(path), "value": value} for path, value in item.values.items()],
    }


def _inverse(inverse: Inverse) -> dict[str, Any]:
    """Return the first command that undoes a step, those that follow it under `more`, and what is lost."""
    first, *more = map(_command, inverse.commands or (PlannedCommand(None),))
    return {**first, "more": more, "not_restored": list(inverse.not_restored)}


def plan_text(plan: Plan, impact: Mapping[str, Any] | None = None) -> str:
    """Return the JSON text of a plan, with its impact if known."""
    return json.dumps(plan_as_json(plan, impact), indent=2, allow_nan=False) + "\n"
