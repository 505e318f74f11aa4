"""`test`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import checked_policy, read_for
from gpolicy.cli.output import Report
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode
from gpolicy.json_values import json_text
from gpolicy.policy.files import policy_roots
from gpolicy.report.forms import Display
from gpolicy.use_cases.policies import run_tests

if TYPE_CHECKING:
    from gpolicy.cli.options import Clusters, OutputFile
    from gpolicy.testing.outcome import Outcome


def test(asked: Clusters, path: Path | None, display: Display, *, name: str | None, also: Sequence[OutputFile]) -> int:
    """Run the tests of policies, print the outcomes, return the exit code. With a `name` only those that have it."""
    return run(partial(_tested, name=name), asked, path, display, verb="test", also=also)


def _tested(target: Target, *, name: str | None) -> Report:
    """Run the tests of each policy of a target."""
    from gpolicy.report.outcomes_answer import outcomes_answer  # noqa: PLC0415
    from gpolicy.report.outcomes_json import outcomes_data  # noqa: PLC0415

    roots = policy_roots(target.policy)
    state = read_for(roots, target)
    policies = [checked_policy(root, state) for root in roots]
    with working("running the tests"):
        outcomes = run_tests(policies, state, name=name)
    return Report(
        exit_code=int(ExitCode.FINE if all(outcome.ok for outcome in outcomes) else ExitCode.FINDINGS),
        answer=lambda: outcomes_answer(outcomes),
        own={"json": lambda: json_text(outcomes_data(outcomes)), "junit": lambda: _junit(outcomes)},
        policy=(target.policy,),
    )


def _junit(outcomes: list[Outcome]) -> str:
    from gpolicy.report.junit import outcomes_junit  # noqa: PLC0415 (slow to import)

    return outcomes_junit(outcomes)
