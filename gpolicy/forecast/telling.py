"""The forecast that tells all: what the small tests of a policy find, and what the plan that it leads to would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpolicy.checking.forecast import Bounds, Forecast

if TYPE_CHECKING:
    from gpolicy.analysis.violations import PolicyViolation
    from gpolicy.cluster.state import ClusterState, LiveGroup, LiveInstance
    from gpolicy.impact.impact import Impact
    from gpolicy.plan.built_in_guards import GuardResult
    from gpolicy.plan.change import Objection
    from gpolicy.plan.projection import Prospect
    from gpolicy.policy.model import Policy
    from gpolicy.policy.scenario import Scenario, StageEdit
    from gpolicy.testing.outcome import Outcome

_MINMAX: Final = ("ipolicy", "minmax")


class Telling(Forecast):
    """Asks the rooms `testing`, `plan`, `impact` and `analysis`."""

    def outcomes(self, policy: Policy) -> Sequence[Outcome]:
        """Return the outcomes of the policy's small tests."""
        from gpolicy.testing.running_tests import run_small_tests  # noqa: PLC0415 (most policies have no tests)

        return run_small_tests(policy)

    def idle_edits(self, policy: Policy) -> Iterable[tuple[Scenario, StageEdit]]:
        """Return the edits of small tests that leave their cluster as it was."""
        from gpolicy.testing.running_tests import idle_edits  # noqa: PLC0415 (most policies have no tests)

        return idle_edits(policy)

    def objections(self, policy: Policy, state: ClusterState) -> Mapping[str, Sequence[Objection]]:
        """Return what the built-in guards have against the plan."""
        from gpolicy.plan.plan import objections_to_plan  # noqa: PLC0415 (most checks look at no cluster)

        return objections_to_plan(policy, state)

    def prospect(self, policy: Policy, state: ClusterState) -> Prospect | None:
        """Return what the plan would do."""
        from gpolicy.plan.projection import prospect  # noqa: PLC0415 (as above)

        return prospect(policy, state)

    def verdicts(self, prospect: Prospect) -> tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]:
        """Return the verdicts of guards on the plan."""
        from gpolicy.impact.declared_guards import verdicts_on  # noqa: PLC0415 (as above)

        return verdicts_on(prospect)

    def impact(self, prospect: Prospect, part: str) -> Impact:
        """Return a part of what the plan would do."""
        from gpolicy.impact.declared_guards import impact_of  # noqa: PLC0415 (as above)

        return impact_of(prospect, part)

    def breached_pair(
        self, pairs: Sequence[Bounds], group: LiveGroup, instance: LiveInstance, violation: PolicyViolation
    ) -> PolicyViolation | None:
        """Return what an instance breaches of that of `pairs` which replaces the one it conforms to in its group.

        Ganeti names the pair with the fewest breaches, which may be one that nobody changed.
        """
        from gpolicy.analysis.violations import AllowedSizes, bounds_of, verdict_on  # noqa: PLC0415 (as above)

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


FORECAST: Final = Telling()
