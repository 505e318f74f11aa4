"""The plan as JSON: what `gpolicy plan -o` writes and other programs rely on. `plan_file` reads it.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpolicy import __version__
from gpolicy.json_values import fields, json_text, place
from gpolicy.plan.change import Change
from gpolicy.plan.effects import Effect, Observed
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.plan.terms_file import terms_data
from gpolicy.policy.guard import Guard

FORMAT_VERSION = "1.7"


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": "gpolicy-plan",
        "gpolicy": __version__,
        **fields(plan, "cluster", "cluster_uuid", "source", "snapshot"),
        **_provenance(plan),
        "ganeti_version": plan.version,
        **fields(plan, "policy_digest", "state_digest", "serials", "state_digest_rapi"),
        "observed": {name: observed_data(item) for name, item in plan.observed.items()},
        "not_shown": [fields(gap, "level", "prefix") for gap in plan.gaps],
        **fields(plan, "staying"),
        "changes": [_change(change) for change in plan.changes],
        "steps": [_step(step) for step in plan.steps],
        "impact": dict(impact or {}),
        "guards": [fields(guard, "name", "ok", "message", "allowed") for guard in plan.guards],
        "declared_guards": [_declared(guard) for guard in plan.declared_guards],
        **fields(plan, "pair_names"),
        "terms": terms_data(plan.terms),
        "unreadable": [
            {"object": item.object, "path": ".".join(item.path), "wanted": item.wanted} for item in plan.unreadable
        ],
        "part": fields(plan.part, "only", "exclude"),
        "left_out": [
            {"object": item.object, "keys": list(item.path), "action": item.action.value} for item in plan.left_out
        ],
        "findings": [
            {**fields(item, "code", "name", "severity", "message", "hint"), **place(item.span)}
            for item in plan.findings
        ],
        **fields(plan, "notes"),
        "summary": {
            "changes": len(plan.changes),
            "steps": len(plan.steps),
            "unreadable": len(plan.unreadable),
            "left_out": len(plan.left_out),
            "safe": plan.safe,
        },
    }


def _provenance(plan: Plan) -> dict[str, Any]:
    made = plan.provenance
    return {
        "made_at": made.made_at,
        "policy_commit": made.commit,
        "policy_dirty": made.dirty,
        "state_read_at": made.state_read_at(plan.source, plan.snapshot),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "object": change.object,
        "path": ".".join(change.path),
        "keys": list(change.path),
        **fields(change, "action", "before", "after", "effective_before", "effective_after", "takes_effect"),
        **fields(change, "risk", "reason", "affects"),
        "origin": str(change.span) if change.span else None,
    }


def _declared(guard: Guard) -> dict[str, Any]:
    return {
        "name": guard.name.value,
        **fields(guard, "measure", "limit", "percent"),
        "group": guard.group.value if guard.group else None,
        "spec": guard.spec.value if guard.spec else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "wave": int(step.wave),
        **fields(step, "object", "title"),
        **_command(step.command),
        "inverse": _inverse(step.inverse),
    }


def _command(command: PlannedCommand) -> dict[str, Any]:
    return {
        **fields(command, "argv"),
        "rapi": None if command.rapi is None else fields(command.rapi, "method", "path", "body"),
        "effects": list(map(effect_data, command.effects)),
    }


def effect_data(effect: Effect) -> dict[str, Any]:
    """Return what a command does to one leaf."""
    return {**fields(effect, "object"), "keys": list(effect.path), **fields(effect, "before", "after")}


def observed_data(item: Observed) -> dict[str, Any]:
    """Return an object as it was read."""
    return {
        **fields(item.identity, "uuid", "serial_no"),
        "values": [{"keys": list(path), "value": value} for path, value in item.values.items()],
    }


def _inverse(inverse: Inverse) -> dict[str, Any]:
    """Return the first command that undoes a step, the further ones under `more`, and the losses."""
    first, *more = map(_command, inverse.commands or (PlannedCommand(None),))
    return {**first, "more": more, "not_restored": list(inverse.not_restored)}


def plan_text(plan: Plan, impact: Mapping[str, Any] | None = None) -> str:
    """Return the JSON text of a plan, with its impact if known."""
    return json_text(plan_as_json(plan, impact))
