"""What rules ask of rooms that most checks do without: tests of the policy, and the plan that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

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


def _without_prospect(*_: object) -> NoReturn:
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Forecast:
    """By itself it tells nothing, and rules that ask find nothing. `gpolicy.forecast` has one that tells all."""

    outcomes: Callable[[Policy], Sequence[Outcome]] = lambda _: ()
    """The outcomes of the policy's small tests."""
    idle_edits: Callable[[Policy], Iterable[tuple[Scenario, StageEdit]]] = lambda _: ()
    """The edits of small tests that leave their cluster as it was."""
    objections: Callable[[Policy, ClusterState], Mapping[str, Sequence[Objection]]] = lambda *_: {}
    """What the built-in guards have against the plan that would make the cluster what the policy declares."""
    prospect: Callable[[Policy, ClusterState], Prospect | None] = lambda *_: None
    """What that plan would do; None where nobody can tell."""
    verdicts: Callable[[Prospect], tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]] = _without_prospect
    """The verdicts of the policy's guards on the plan, and those of the built-in one on its figures."""
    impact: Callable[[Prospect, str], Impact] = _without_prospect
    """A part of what the plan would do."""
    breached_pair: Callable[[Sequence[Bounds], LiveGroup, LiveInstance, PolicyViolation], PolicyViolation | None] = (
        lambda *_: None
    )
    """What an instance breaches of that one of the pairs which replaces the one it conforms to in its group."""


NO_FORECAST = Forecast()
