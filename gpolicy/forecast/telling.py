"""The forecast that tells all: it asks the rooms `testing`, `plan`, `impact` and `analysis`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from gpolicy.checking.forecast import Bounds, Forecast

if TYPE_CHECKING:
    from gpolicy.analysis.violations import PolicyViolation
    from gpolicy.cluster.state import LiveGroup, LiveInstance

_MINMAX: Final = ("ipolicy", "minmax")


def _when_asked(module: str, function: str) -> Callable[..., Any]:
    """Return a function whose module is loaded at its first call: most checks look at no cluster and have no tests."""

    def ask(*given: Any) -> Any:
        return getattr(import_module(f"gpolicy.{module}"), function)(*given)

    return ask


def _breached_pair(
    pairs: Sequence[Bounds], group: LiveGroup, instance: LiveInstance, violation: PolicyViolation
) -> PolicyViolation | None:
    """Return what an instance breaches of that of `pairs` which replaces the one it conforms to in its group.

    Ganeti names the pair with the fewest breaches, which may be one that nobody changed.
    """
    from gpolicy.analysis.violations import AllowedSizes, bounds_of, verdict_on  # noqa: PLC0415 (few checks ask)

    def breaches(bounds: Bounds) -> PolicyViolation | None:
        alone, exclusive = AllowedSizes(violation.group, (bounds,), (), (None,)), violation.exclusive_storage
        found = verdict_on(instance, alone, exclusive=exclusive, memory=instance.maxmem).violation
        numbers = [breach for breach in found.breaches if breach.beyond is not None] if found else []
        return replace(found, breaches=tuple(numbers)) if found and numbers else None

    old = bounds_of(group.effective.get(_MINMAX))
    number = next((number for number, bounds in enumerate(old) if breaches(bounds) is None), None)
    if number is None or not pairs:
        return None
    was = old[number]

    def unlike(place: int) -> tuple[int, bool]:
        new = pairs[place]
        return sum(was[end].get(name) != new[end][name] for end in (0, 1) for name in new[end]), place != number

    place = min(range(len(pairs)), key=unlike)
    found = breaches(pairs[place])
    return replace(found, pair=place + 1) if found is not None else None


FORECAST: Final = Forecast(
    outcomes=_when_asked("testing.running_tests", "run_small_tests"),
    idle_edits=_when_asked("testing.running_tests", "idle_edits"),
    objections=_when_asked("plan.plan", "objections_to_plan"),
    prospect=_when_asked("plan.projection", "prospect"),
    verdicts=_when_asked("impact.declared_guards", "verdicts_on"),
    impact=_when_asked("impact.declared_guards", "impact_of"),
    breached_pair=_breached_pair,
)
