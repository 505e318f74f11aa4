"""`check`, `show` and `explain`."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.findings_output import CHECK_FORMATS, known_budget, shown
from gpolicy.cli.terminal import wants_colour, working
from gpolicy.errors import UsageError
from gpolicy.exit_codes import ExitCode
from gpolicy.findings import Finding, Severity
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy
from gpolicy.policy.roots import policy_roots
from gpolicy.report.findings_text import findings_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState
    from gpolicy.rules.rule import Hit

FORMATS = ("text", "json")


def check(paths: list[Path], src: str | None, form: str, options: SourceOptions, budget: int) -> int:
    """Check each policy at `paths`, print what was found, return the exit code. `budget`: most bytes of Markdown."""
    known_format(form, CHECK_FORMATS)
    known_budget(budget)
    roots = [root for path in paths for root in policy_roots(path)]
    state = read(src, options) if src else None
    if state is not None and len(roots) > 1:
        names = ", ".join(map(str, roots))
        raise UsageError(f"--state is of one cluster, these are {len(roots)} policies: {names}")
    findings: list[Finding] = []
    sources: dict[str, str] = {}
    policies = [load_policy(root) for root in roots]
    for policy, fleet in zip(policies, beside_others(policies), strict=True):
        findings += find(policy, state, fleet)
        sources |= policy.sources
    sys.stdout.write(shown(findings, sources, form, budget=budget))
    return exit_code(findings)


def beside_others(policies: list[Policy]) -> list[list[Hit]]:
    """Return for each policy what it shows only beside the others."""
    if len(policies) < 2:
        return [[] for _ in policies]
    from gpolicy.rules.fleet import fleet_hits  # noqa: PLC0415 (needed for several policies only)

    found = fleet_hits(policies)
    return [[item.hit for item in found if item.policy == number] for number in range(len(policies))]


def find(policy: Policy, state: ClusterState | None = None, fleet: Iterable[Hit] = ()) -> list[Finding]:
    """Return all findings about `policy`; `fleet` is what it shows only beside others."""
    from gpolicy.rules.checking import check_policy  # noqa: PLC0415 (plan of a broken policy does not need it)

    today = date.today()  # noqa: DTZ011 (a waiver ends at the reader's midnight)
    return check_policy(policy, state=state, today=today, fleet=fleet)


def exit_code(findings: list[Finding]) -> int:
    """Return 1 if there is an error among `findings`."""
    errors = any(finding.severity is Severity.ERROR for finding in findings)
    return int(ExitCode.FINDINGS if errors else ExitCode.FINE)


def sound_policy(path: Path, state: ClusterState | None = None) -> Policy | None:
    """Return the policy at `path`; if it has an error, show its errors on standard error and return None."""
    policy, errors = policy_with_errors(path, state)
    if not errors:
        return policy
    sys.stderr.write(findings_text(errors, policy.sources, colour=wants_colour(sys.stderr)))
    return None


def policy_with_errors(path: Path, state: ClusterState | None = None) -> tuple[Policy, list[Finding]]:
    """Return the one policy at `path`, and its findings of severity error. Raise UsageError if there are several."""
    roots = policy_roots(path)
    if len(roots) > 1:
        raise UsageError(f"{path} holds {len(roots)} policies: {', '.join(map(str, roots))}", hint="name one of them")
    policy = load_policy(roots[0])
    return policy, [finding for finding in find(policy, state) if finding.severity is Severity.ERROR]


def read(src: str, options: SourceOptions) -> ClusterState:
    """Return the state that `src` names, with a sign of life when that takes long."""
    from gpolicy.cluster.sources import read_state  # noqa: PLC0415

    with working(f"reading {src}"):
        return read_state(src, options)


def known_format(form: str, formats: tuple[str, ...] = FORMATS) -> None:
    """Raise UsageError for a format that this verb does not have."""
    if form not in formats:
        raise UsageError(f"unknown format {form!r}", hint=f"the formats are {', '.join(formats)}")


def show(path: Path, form: str, *, origin: bool) -> int:
    """Print the effective policy."""
    from gpolicy.show.rendering import effective_json, effective_text  # noqa: PLC0415
    from gpolicy.show.view import effective_view  # noqa: PLC0415

    known_format(form)
    policy = sound_policy(path)
    if policy is None:
        return int(ExitCode.FINDINGS)
    view = effective_view(policy)
    if form == "json":
        sys.stdout.write(effective_json(view))
    else:
        sys.stdout.write(effective_text(view, origin=origin, colour=wants_colour(sys.stdout)))
    return int(ExitCode.FINE)


def explain(rule: str | None) -> int:
    """Print what a rule means, or the list of rules."""
    from gpolicy.rules.explaining import explain_rule, find_explained, list_rules  # noqa: PLC0415

    if rule is None:
        sys.stdout.write(list_rules())
        return int(ExitCode.FINE)
    info, hint = find_explained(rule)
    if info is None:
        raise UsageError(f"there is no rule {rule!r}", hint=hint)
    sys.stdout.write(explain_rule(info))
    return int(ExitCode.FINE)
