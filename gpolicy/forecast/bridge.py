"""The bridge from the numbers to the rules: a forecast that tells all, and the checkers that have it.

It asks the rooms `testing`, `plan`, `impact` and `analysis`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpolicy.checking import checking
from gpolicy.checking.context import Bounds, Forecast
from gpolicy.ganeti.vocabulary import MINMAX

if TYPE_CHECKING:
    from gpolicy.analysis.violations import PolicyViolation
    from gpolicy.cluster.state import ClusterState, LiveGroup, LiveInstance
    from gpolicy.impact.impact import Impact
    from gpolicy.plan.built_in_guards import GuardResult
    from gpolicy.plan.changes import Objection
    from gpolicy.plan.sides import Sides
    from gpolicy.policy.kinds import Policy
    from gpolicy.policy.scenario import Scenario, StageEdit
    from gpolicy.resolve.desired import Desired
    from gpolicy.testing.outcome import Outcome


def _outcomes(policy: Policy) -> Sequence[Outcome]:
    from gpolicy.testing.running_tests import run_small_tests  # noqa: PLC0415 (most policies have no tests)

    return run_small_tests(policy)


def _idle_edits(policy: Policy) -> Iterable[tuple[Scenario, StageEdit]]:
    from gpolicy.testing.running_tests import idle_edits  # noqa: PLC0415 (most policies have no tests)

    return idle_edits(policy)


def _sides(policy: Policy, state: ClusterState, desired: Desired) -> Sides | None:
    from gpolicy.plan.sides import planned_sides  # noqa: PLC0415 (most checks look at no cluster)

    return planned_sides(policy, state, desired)


def _objections(policy: Policy, state: ClusterState, sides: Sides) -> Mapping[str, Sequence[Objection]]:
    from gpolicy.plan.plan import objections_to_plan  # noqa: PLC0415 (as above)

    return objections_to_plan(policy, state, sides)


def _verdicts(policy: Policy, sides: Sides) -> tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]:
    from gpolicy.impact.declared_guards import verdicts_on  # noqa: PLC0415 (as above)

    return verdicts_on(policy, sides)


def _impact(sides: Sides, part: str) -> Impact:
    from gpolicy.impact.impact import measure_impact  # noqa: PLC0415 (as above)

    return measure_impact(sides, parts={part})


def _breached_pairs(
    pairs: Sequence[Bounds], group: LiveGroup, instance: LiveInstance, violation: PolicyViolation
) -> Sequence[PolicyViolation]:
    """Return what an instance breaches of that of `pairs` which replaces the one it conforms to in its group.

    Ganeti names the pair with the fewest breaches, which may be one that nobody changed; where there are more or fewer
    pairs than before, all with so few count.
    """
    from gpolicy.analysis.violations import AllowedSizes, bounds_of, verdict_on  # noqa: PLC0415 (as above)

    def breaches(bounds: Bounds) -> PolicyViolation | None:
        alone, exclusive = AllowedSizes(violation.group, (bounds,), (), (None,)), violation.exclusive_storage
        found = verdict_on(instance, alone, exclusive=exclusive, memory=instance.maxmem).violation
        numbers = [breach for breach in found.breaches if breach.beyond is not None] if found else []
        return replace(found, breaches=tuple(numbers)) if found and numbers else None

    old = bounds_of(group.effective.get(MINMAX))
    number = next((number for number, bounds in enumerate(old) if breaches(bounds) is None), None)
    if number is None:
        return ()
    was = old[number]

    def unlike(place: int) -> tuple[int, bool]:
        new = pairs[place]
        return sum(was[end].get(name) != new[end][name] for end in (0, 1) for name in new[end]), place != number

    places = range(len(pairs)) if len(pairs) != len(old) else [min(range(len(pairs)), key=unlike)]
    found = [replace(broken, pair=place + 1) for place in places if (broken := breaches(pairs[place]))]
    least = min((len(item.breaches) for item in found), default=0)
    return [item for item in found if len(item.breaches) == least] if len(found) == len(places) else ()


FORECAST: Final = Forecast(_outcomes, _idle_edits, _sides, _objections, _verdicts, _impact, _breached_pairs)

make_checker = partial(checking.Checker, forecast=FORECAST)
make_examination = partial(checking.Examination, forecast=FORECAST)
check_by_settings = partial(checking.check_by_settings, forecast=FORECAST)
"""Those of `gpolicy.checking.checking` with this forecast, for all who check policies."""
