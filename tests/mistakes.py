"""What is wrong with a policy, for tests of single rules and of what becomes of findings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from gpolicy.checking.catalogue import asked_codes
from gpolicy.checking.checking import Examination
from gpolicy.checking.context import NO_FORECAST, Forecast
from gpolicy.checking.rule import Hit
from gpolicy.checking.settings import Settings
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding
from gpolicy.policy.kinds import Policy

EVERY_RULE: Final = Settings(asked=asked_codes(["ALL"]))


def find_mistakes(
    policy: Policy,
    *,
    today: date,
    state: ClusterState | None = None,
    settings: Settings = EVERY_RULE,
    together: Iterable[Hit] = (),
    forecast: Forecast = NO_FORECAST,
) -> list[Finding]:
    """Return everything that is wrong with `policy` and not accepted, sorted by place."""
    examination = Examination(
        policy=policy, today=today, state=state, settings=settings, together=together, forecast=forecast
    )
    return examination.run().findings
