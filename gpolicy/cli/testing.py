"""`test`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.checking.repository import check_by_settings
from gpolicy.cli.checking import read, reader_today
from gpolicy.cli.output import show_errors, write_report
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.findings import Severity
from gpolicy.policy.loading import load_policy
from gpolicy.policy.roots import policy_roots
from gpolicy.report.forms import Look

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Policy
    from gpolicy.policy.scenario import Scenario
    from gpolicy.testing.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which tests are to run, and how to show what came of them. `name` is a part of their names."""

    path: Path
    state: str | None
    options: SourceOptions
    name: str | None
    look: Look


def run(request: Request) -> int:
    """Run the tests of each policy at the path, print what came of them, return the exit code."""
    from gpolicy.report.outcomes_answer import outcomes_answer  # noqa: PLC0415
    from gpolicy.report.outcomes_json import outcomes_json  # noqa: PLC0415

    roots = policy_roots(request.path)
    state = read(request.state, request.options) if request.state else None
    if state is not None and len(roots) > 1:
        names = ", ".join(map(str, roots))
        raise UsageError(f"--state is of one cluster, these are {len(roots)} policies: {names}")
    policies = [load_policy(root) for root in roots]
    for policy in policies:
        errors = [
            finding
            for finding in check_by_settings(policy, state, today=reader_today())
            if finding.severity is Severity.ERROR
        ]
        if errors:
            show_errors(errors, policy.files)
            return int(ExitCode.FINDINGS)
    chosen = [(policy, _chosen(policy, request.name)) for policy in policies]
    if request.name is not None and not any(scenarios for _, scenarios in chosen):
        raise UsageError(f"no test has {request.name!r} in its name", hint="leave out -k to run all of them")
    outcomes: list[Outcome] = []
    with working("running the tests"):
        for policy, scenarios in chosen:
            outcomes += _run(policy, scenarios, state)
    write_report(
        request.look,
        lambda: outcomes_answer(outcomes),
        {"json": lambda: outcomes_json(outcomes), "junit": lambda: _junit(outcomes)},
    )
    return int(ExitCode.FINE if all(outcome.ok for outcome in outcomes) else ExitCode.FINDINGS)


def _chosen(policy: Policy, name: str | None) -> list[Scenario]:
    wanted = (name or "").lower()
    return [scenario for scenario in policy.scenarios if wanted in scenario.name.value.lower()]


def _run(policy: Policy, scenarios: list[Scenario], state: ClusterState | None) -> list[Outcome]:
    if not scenarios:
        return []
    from gpolicy.testing.running_tests import run_tests  # noqa: PLC0415 (the allocator comes with it)

    return run_tests(policy, chosen=scenarios, state=state)


def _junit(outcomes: list[Outcome]) -> str:
    from gpolicy.report.outcomes_junit import outcomes_junit  # noqa: PLC0415 (slow to import)

    return outcomes_junit(outcomes)
