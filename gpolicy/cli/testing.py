"""`test`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.checking.repository import check_by_settings
from gpolicy.cli.checking import known_format, read, reader_today
from gpolicy.cli.findings_output import known_budget
from gpolicy.cli.terminal import wants_colour, working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.findings import Severity
from gpolicy.policy.loading import load_policy
from gpolicy.policy.roots import policy_roots
from gpolicy.report.findings_text import findings_text

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Policy
    from gpolicy.policy.scenario import Scenario
    from gpolicy.testing.outcome import Outcome

FORMATS = ("text", "json", "junit", "markdown", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which tests are to run, and how to show what came of them. `name` is a part of their names."""

    path: Path
    state: str | None
    options: SourceOptions
    name: str | None
    form: str
    budget: int


def run(request: Request) -> int:
    """Run the tests of each policy at the path, print what came of them, return the exit code."""
    known_format(request.form, FORMATS)
    known_budget(request.budget)
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
            sys.stderr.write(findings_text(errors, policy.files, colour=wants_colour(sys.stderr)))
            return int(ExitCode.FINDINGS)
    chosen = [(policy, _chosen(policy, request.name)) for policy in policies]
    if request.name is not None and not any(scenarios for _, scenarios in chosen):
        raise UsageError(f"no test has {request.name!r} in its name", hint="leave out -k to run all of them")
    outcomes: list[Outcome] = []
    with working("running the tests"):
        for policy, scenarios in chosen:
            outcomes += _run(policy, scenarios, state)
    _show(outcomes, request)
    return int(ExitCode.FINE if all(outcome.ok for outcome in outcomes) else ExitCode.FINDINGS)


def _chosen(policy: Policy, name: str | None) -> list[Scenario]:
    wanted = (name or "").lower()
    return [scenario for scenario in policy.scenarios if wanted in scenario.name.value.lower()]


def _run(policy: Policy, scenarios: list[Scenario], state: ClusterState | None) -> list[Outcome]:
    if not scenarios:
        return []
    from gpolicy.testing.running_tests import run_tests  # noqa: PLC0415 (the allocator comes with it)

    return run_tests(policy, chosen=scenarios, state=state)


def _show(outcomes: list[Outcome], request: Request) -> None:
    if request.form == "json":
        from gpolicy.report.outcomes_json import outcomes_json  # noqa: PLC0415

        sys.stdout.write(outcomes_json(outcomes))
    elif request.form == "junit":
        from gpolicy.report.outcomes_junit import outcomes_junit  # noqa: PLC0415

        sys.stdout.write(outcomes_junit(outcomes))
    elif request.form != "text":
        from gpolicy.cli.answering import write_answer  # noqa: PLC0415
        from gpolicy.report.outcomes_section import outcomes_answer  # noqa: PLC0415

        write_answer(outcomes_answer(outcomes), request.form, request.budget)
    else:
        from gpolicy.report.outcomes_text import outcomes_text  # noqa: PLC0415

        sys.stdout.write(outcomes_text(outcomes, colour=wants_colour(sys.stdout)))
