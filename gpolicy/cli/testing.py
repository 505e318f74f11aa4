"""`test`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings, read_for
from gpolicy.cli.output import Report
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.json_values import json_text
from gpolicy.policy.files import policy_roots
from gpolicy.report.forms import Display

if TYPE_CHECKING:
    from gpolicy.cli.options import Clusters, OutputFile
    from gpolicy.cluster.state import ClusterState
    from gpolicy.policy.model import Policy
    from gpolicy.policy.scenario import Scenario
    from gpolicy.testing.outcome import Outcome


def test(asked: Clusters, path: Path | None, display: Display, *, name: str | None, also: Sequence[OutputFile]) -> int:
    """Run the tests of policies, print the outcomes, return the exit code. With a `name` only those that have it."""
    return run(partial(_tested, name=name), asked, path, display, verb="test", also=also)


def _tested(target: Target, *, name: str | None) -> Report:
    """Run the tests of each policy of a target."""
    from gpolicy.report.outcomes_answer import outcomes_answer, outcomes_data  # noqa: PLC0415

    roots = policy_roots(target.policy)
    observed = read_for(roots, target)
    policies = []
    for root in roots:
        policy, found = policy_with_findings(root, observed)
        if errors := errors_among(found):
            return Report(exit_code=int(ExitCode.FINDINGS), errors=tuple(errors), files=policy.files)
        policies.append(policy)
    chosen = [(policy, _chosen(policy, name)) for policy in policies]
    if name is not None and not any(scenarios for _, scenarios in chosen):
        raise UsageError(f"no test has {name!r} in its name", hint="leave out -k to run all of them")
    outcomes: list[Outcome] = []
    with working("running the tests"):
        for policy, scenarios in chosen:
            outcomes += _run(policy, scenarios, observed)
    return Report(
        exit_code=int(ExitCode.FINE if all(outcome.ok for outcome in outcomes) else ExitCode.FINDINGS),
        answer=lambda: outcomes_answer(outcomes),
        own={"json": lambda: json_text(outcomes_data(outcomes)), "junit": lambda: _junit(outcomes)},
        policy=(target.policy,),
    )


def _chosen(policy: Policy, name: str | None) -> list[Scenario]:
    wanted = (name or "").lower()
    return [scenario for scenario in policy.scenarios if wanted in scenario.name.value.lower()]


def _run(policy: Policy, scenarios: list[Scenario], state: ClusterState | None) -> list[Outcome]:
    if not scenarios:
        return []
    from gpolicy.testing.running_tests import run_tests  # noqa: PLC0415 (the allocator comes with it)
    from gpolicy.testing.stage import Stages  # noqa: PLC0415

    return run_tests(policy, chosen=scenarios, stages=Stages(policy, state))


def _junit(outcomes: list[Outcome]) -> str:
    from gpolicy.report.junit import outcomes_junit  # noqa: PLC0415 (slow to import)

    return outcomes_junit(outcomes)
