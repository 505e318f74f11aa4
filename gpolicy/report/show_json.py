"""The effective policy as JSON: what `gpolicy show --format json` promises (`schemas/output/show.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti.parameter import Value
from gpolicy.json_values import fields, place
from gpolicy.show.effective_policy import Declaration, EffectiveObject, EffectivePolicy, EffectiveValue

FORMAT_VERSION: Final = "1.1"


def show_data(view: EffectivePolicy) -> dict[str, Any]:
    """Return the view as JSON's own types."""
    return {
        "format_version": FORMAT_VERSION,
        "ganeti_version": view.version,
        "objects": [_object(item) for item in view.objects],
    }


def _object(item: EffectiveObject) -> dict[str, Any]:
    return {
        "object": item.label,
        **fields(item, "kind", "name", "group"),
        **place(item.span),
        **fields(item, "nodes", "tags"),
        "values": [_value(value) for value in item.values],
        "effective": item.effective,
    }


def _value(value: EffectiveValue) -> dict[str, Any]:
    own: Value = None
    if value.state is Declaration.INHERIT:
        own = "inherit"
    elif value.state is Declaration.EXPLICIT:
        own = value.value
    origin = value.origin
    return {
        "path": ".".join(value.path),
        "state": value.state.value,
        "own": own,
        "effective": value.value,
        "from": origin.object if origin else None,
        "base": origin.base if origin else None,
        **place(origin.span if origin else value.span),
        "overrides": [{**fields(other, "object", "base", "value"), **place(other.span)} for other in value.overrides],
    }
