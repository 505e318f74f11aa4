"""`plan` and `render`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from gpolicy.cli.checking import errors_among, policy_with_findings
from gpolicy.cli.output import Report, check_no_file_is_lost, named_policy, repository_path
from gpolicy.cli.pager import write_long
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.findings import Finding, Severity
from gpolicy.printable import as_text, count, some
from gpolicy.resolve.rules import OTHER_CLUSTER

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.cli.targets import Target
    from gpolicy.cluster.state import ClusterState
    from gpolicy.cluster.terms import Limits
    from gpolicy.impact.impact import Impact
    from gpolicy.plan.part import Part
    from gpolicy.plan.plan import Plan
    from gpolicy.plan.signature import Signers
    from gpolicy.policy.model import Policy
    from gpolicy.report.plan_answer import Sides
    from gpolicy.what_if.words import WhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be planned.

    `limits` replace those of the policy.
    `what_if` is supposed of the cluster before and after the changes, in the names that groups and spec pairs have
    before them; the changes are those of the real one. `upgrade` is the release that it is supposed to have after them.
    """

    output: Path | None
    allowed: frozenset[str]
    detailed_exitcode: bool
    part: Part
    limits: Limits
    with_impact: bool = True
    what_if: WhatIf | None = None
    upgrade: str | None = None

    @property
    def supposes(self) -> bool:
        """Whether anything is supposed."""
        return self.what_if is not None or self.upgrade is not None


def plan(target: Target, request: PlanRequest) -> Report:
    """Make and keep a plan; return it as a report."""
    from gpolicy.analysis.pair_names import PairNames, pair_names  # noqa: PLC0415
    from gpolicy.cli.provenance import provenance_of  # noqa: PLC0415
    from gpolicy.cluster.private_file import write_private  # noqa: PLC0415
    from gpolicy.cluster.terms import with_limits  # noqa: PLC0415
    from gpolicy.impact.declared_guards import extent_of, with_declared_guards  # noqa: PLC0415
    from gpolicy.plan.built_in_guards import check_allowed  # noqa: PLC0415
    from gpolicy.plan.plan import make_plan, refused_plan  # noqa: PLC0415
    from gpolicy.plan.plan_json import plan_text  # noqa: PLC0415
    from gpolicy.plan.projection import before_and_after, projected  # noqa: PLC0415
    from gpolicy.report.plan_answer import Sides  # noqa: PLC0415
    from gpolicy.what_if.supposing import suppose  # noqa: PLC0415

    if request.supposes and request.output is not None:
        hint = "leave --output out; the plan itself does not depend on what is supposed"
        raise UsageError("a plan that is kept is about the cluster as it is, not about a supposed one", hint=hint)
    if request.supposes and not request.with_impact:
        hint = "leave --no-impact out; the changes themselves do not depend on what is supposed"
        raise UsageError("what is supposed counts in the impact only", hint=hint)
    path, output = target.policy, target.output(request.output)
    check_no_file_is_lost(path, output)
    state = target.read()
    policy, found = policy_with_findings(path, state, target.together)
    if errors := _errors_in_the_way(found):
        refused = refused_plan(policy, state, errors)
        report = _report(refused, Sides(state, state, PairNames()), None, policy, target, request)
        return replace(report, errors=tuple(errors), files=policy.files)
    check_allowed(request.allowed, policy)
    with working("comparing the policy with the cluster"):
        made = make_plan(policy, state, allowed=request.allowed, part=request.part)
    _refuse_nothing(made, target)
    made = replace(made, findings=(*made.findings, *(item for item in found if item.severity is Severity.WARNING)))
    terms = with_limits(made.terms, request.limits)
    before, after = before_and_after(state, made.changes, terms)
    if request.what_if is not None:
        before = suppose(before, request.what_if, pair_names(policy, before))
        after = projected(before, made.changes, terms)
    if request.upgrade is not None:
        said = f"Ganeti {request.upgrade} after the changes"
        after = replace(after, software_version=request.upgrade, supposed=(*after.supposed, said))
    names = pair_names(policy, after)
    known = None
    if request.with_impact and not any(item.severity == "error" for item in made.findings):
        known = _impact(policy, before, after, names, request.limits)
    made = replace(made, provenance=provenance_of(policy.files))
    made = with_declared_guards(
        made, policy, terms, names, known, request.allowed, extent_of(made.left_out, before, after, names)
    )
    if output is not None:
        write_private(output, plan_text(made, _impact_data(known)).encode())
    report = _report(made, Sides(before, after, names), known, policy, target, request)
    return replace(report, following=tuple(_following(made, output)))


def _errors_in_the_way(found: list[Finding]) -> list[Finding]:
    """Return the errors; none where the only one is that the policy is of another cluster, which is a guard's."""
    errors = errors_among(found)
    return errors if any(error.code != OTHER_CLUSTER.code for error in errors) else []


def _refuse_nothing(made: Plan, target: Target) -> None:
    """Raise UsageError for a part of a plan that leaves out every change; of several clusters, some need nothing."""
    if made.left_out and not made.changes and not target.several:
        changing = list(dict.fromkeys(item.object for item in made.left_out))
        message = f"--only and --exclude leave nothing of {count(len(made.left_out), 'change')}"
        raise UsageError(message, hint=f"what changes: {some(changing, 8)}")


def _impact(policy: Policy, before: ClusterState, after: ClusterState, names: PairNames, asked: Limits) -> Impact:
    from gpolicy.cluster.terms import limits_in_force  # noqa: PLC0415
    from gpolicy.impact.declared_guards import failures_asked  # noqa: PLC0415
    from gpolicy.impact.impact import impact  # noqa: PLC0415

    failures = max(asked.max_node_failures or 1, failures_asked(policy.guards))
    hardware = {group.name: group.hardware for group in policy.groups.values() if group.hardware}
    with working("working out what the changes do") as tell:
        found = impact(before, after, names=names, hardware=hardware, failures=failures, tell=tell)
    return replace(found, limits=limits_in_force(after, asked), what_if=after.supposed)


def _impact_data(known: Impact | None) -> dict[str, object] | None:
    if known is None:
        return None
    from gpolicy.report.impact_json import impact_data  # noqa: PLC0415

    return impact_data(known)


def _report(
    made: Plan, sides: Sides, known: Impact | None, policy: Policy, target: Target, request: PlanRequest
) -> Report:
    """Return the report of a plan."""
    from gpolicy.plan.plan_json import plan_text  # noqa: PLC0415
    from gpolicy.report.plan_answer import plan_answer  # noqa: PLC0415
    from gpolicy.report.plan_github import plan_github  # noqa: PLC0415

    places = {guard.name.value: guard.name.span for guard in policy.guards}
    return Report(
        exit_code=_exit_code(made, detailed=request.detailed_exitcode),
        answer=lambda: plan_answer(
            made,
            impact=known,
            sides=sides,
            sources=policy.files,
            locate=repository_path,
            of=named_policy(target.policy, policy),
            unmanaged=_unmanaged(policy, sides.after),
        ),
        own={
            "json": lambda: plan_text(made, _impact_data(known)),
            "github": lambda: plan_github(made, impact=known, guard_places=places, locate=repository_path),
        },
    )


def _unmanaged(policy: Policy, state: ClusterState) -> list[str]:
    """Return the groups that a policy of groups leaves out: a file that is gone removes no group."""
    named = {*policy.groups, *(group.renamed_from.value for group in policy.groups.values() if group.renamed_from)}
    return [name for name in state.groups if name not in named] if policy.groups else []


def _following(made: Plan, output: Path | None) -> Iterator[str]:
    """Yield where the plan file is, and what to do with it."""
    if output is None:
        return
    yield ""
    yield f"wrote {output}"
    file = quote(str(output))
    if made.safe and made.steps:
        yield f"next: gpolicy apply {file} --to DST, or gpolicy render {file} for the script"


def _exit_code(made: Plan, *, detailed: bool) -> int:
    if not made.safe:
        return int(ExitCode.FINDINGS)
    return int(ExitCode.CHANGES if detailed and made.changes else ExitCode.FINE)


def render(plan_file: Path, output: Path | None, signers: Signers | None, *, rollback: bool) -> int:
    """Write the script of a plan."""
    from gpolicy.cluster.private_file import write_program  # noqa: PLC0415
    from gpolicy.plan.plan_file import read_plan  # noqa: PLC0415
    from gpolicy.render.script import render_script  # noqa: PLC0415

    check_no_file_is_lost(plan_file, output)
    plan = read_plan(plan_file, signers)
    script = render_script(plan, rollback=rollback)
    if output is None:
        write_long(script)
    else:
        write_program(output, script.encode())
        what = "takes back" if rollback else "carries out"
        wrote = f"wrote {output}: it {what} {count(len(plan.steps), 'step')} on cluster {plan.cluster}"
        sys.stdout.write(as_text([wrote, "next: read it, and run it on the master of the cluster"]))
    return int(ExitCode.FINE)
