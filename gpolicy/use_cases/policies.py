"""What is asked of a policy: whether it is sound, what its tests find, and where a cluster is not as it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import ExitCode, GpolicyError, RequestError
from gpolicy.findings import Accepted, Finding, Severity
from gpolicy.policy.model import Policy
from gpolicy.policy.source_file import Files
from gpolicy.printable import count

if TYPE_CHECKING:
    from gpolicy.checking.rule import Hit
    from gpolicy.drift.comparing import DriftReport
    from gpolicy.show.effective_policy import EffectivePolicy
    from gpolicy.testing.outcome import Outcome


class PolicyError(GpolicyError):
    """The policy has errors that nobody accepted. `findings` are these, in `files`."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, findings: Sequence[Finding], files: Files) -> None:
        first = findings[0]
        where = f"{first.span}: " if first.span else ""
        super().__init__(f"the policy has {count(len(findings), 'error')}: {where}{first.message}", hint=first.hint)
        self.findings, self.files = tuple(findings), files


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """A policy, and what was found in it; what waivers, comments and the baseline accept of it is apart."""

    policy: Policy
    findings: tuple[Finding, ...]
    accepted: Sequence[Accepted] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity error."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    def sound(self) -> Policy:
        """Return the policy. Raise PolicyError if it has an error."""
        if self.errors:
            raise PolicyError(self.errors, self.policy.files)
        return self.policy


def check_policy(
    policy: Policy,
    state: ClusterState | None = None,
    *,
    today: date,
    together: Sequence[Hit] = (),
    only_errors: bool = False,
    texts: Mapping[str, str] | None = None,
) -> CheckedPolicy:
    """Check a policy by the settings of its repository (gpolicy.toml).

    With the `state` of a cluster, the rules that need one run as well. Waivers that end before `today` are no longer
    in force. `together` is what the policy shows beside others. With `only_errors`, rules that only warn may be left
    out. `texts` may hold another text of its baseline. Raise InputError for settings that are malformed.

    For example, a test of a policy is `assert not check_policy(load_policy("policies"), today=date.today()).errors`.
    """
    from gpolicy.checking.checking import check_by_settings  # noqa: PLC0415
    from gpolicy.forecast.telling import FORECAST  # noqa: PLC0415

    found = check_by_settings(
        policy, state, today=today, forecast=FORECAST, fleet=together, only_errors=only_errors, texts=texts
    )
    return CheckedPolicy(policy, tuple(found.findings), found.accepted)


def run_tests(
    policies: Sequence[CheckedPolicy], state: ClusterState | None = None, *, name: str | None = None
) -> list[Outcome]:
    """Run the tests of policies (documents of kind Test), with a `name` only those that have it in theirs.

    A test without a cluster of its own runs on `state`, else on the hardware that the groups promise. Raise PolicyError
    for a policy with an error, RequestError where no test has that name.
    """
    from gpolicy.testing import running_tests  # noqa: PLC0415 (the allocator comes with it)

    wanted = (name or "").lower()
    chosen = [
        (policy, [scenario for scenario in policy.scenarios if wanted in scenario.name.value.lower()])
        for policy in [checked.sound() for checked in policies]
    ]
    if name is not None and not any(scenarios for _, scenarios in chosen):
        raise RequestError(f"no test has {name!r} in its name", hint="leave out -k to run all of them")
    return [
        outcome
        for policy, scenarios in chosen
        if scenarios
        for outcome in running_tests.run_tests(policy, chosen=scenarios, stages=running_tests.Stages(policy, state))
    ]


def find_drift(checked: CheckedPolicy, state: ClusterState, *, today: date) -> DriftReport:
    """Return where the cluster in `state` differs from the policy, less what waivers accept on `today`.

    Raise PolicyError for a policy with an error.
    """
    from gpolicy.checking.settings_tables import settings_for  # noqa: PLC0415
    from gpolicy.drift.comparing import find_drift as compare  # noqa: PLC0415

    policy = checked.sound()
    return compare(policy, state, today=today, settings=settings_for(policy.root or Path()))


def show_policy(checked: CheckedPolicy) -> EffectivePolicy:
    """Return the effective values of cluster, groups and node sets, each with the place that it comes from.

    Raise PolicyError for a policy with an error.
    """
    from gpolicy.show.effective_policy import effective_view  # noqa: PLC0415

    return effective_view(checked.sound())
