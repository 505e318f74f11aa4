"""What rules ask of rooms that most checks do without: tests of the policy, and the plan that it leads to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

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

Bounds = tuple[Mapping[str, int], Mapping[str, int]]
"""The least and the greatest values of a spec pair."""


class Forecast:
    """Tells nothing: rules that ask find nothing. `gpolicy.forecast` has one that tells all."""

    def outcomes(self, policy: Policy) -> Sequence[Outcome]:  # noqa: ARG002
        """Return the outcomes of the policy's small tests."""
        return ()

    def idle_edits(self, policy: Policy) -> Iterable[tuple[Scenario, StageEdit]]:  # noqa: ARG002
        """Return the edits of small tests that leave their cluster as it was."""
        return ()

    def objections(self, policy: Policy, state: ClusterState) -> Mapping[str, Sequence[Objection]]:  # noqa: ARG002
        """Return what the built-in guards have against the plan that would make `state` what `policy` declares."""
        return {}

    def prospect(self, policy: Policy, state: ClusterState) -> Prospect | None:  # noqa: ARG002
        """Return what that plan would do; None where nobody can tell."""
        return None

    def verdicts(self, prospect: Prospect) -> tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]:
        """Return the verdicts of the policy's guards on the plan, and those of the built-in one on its figures."""
        raise NotImplementedError

    def impact(self, prospect: Prospect, part: str) -> Impact:
        """Return a part of what the plan would do."""
        raise NotImplementedError

    def breached_pair(
        self,
        pairs: Sequence[Bounds],  # noqa: ARG002
        group: LiveGroup,  # noqa: ARG002
        instance: LiveInstance,  # noqa: ARG002
        violation: PolicyViolation,  # noqa: ARG002
    ) -> PolicyViolation | None:
        """Return what an instance breaches of that of `pairs` which replaces the one it conforms to in its group."""
        return None
