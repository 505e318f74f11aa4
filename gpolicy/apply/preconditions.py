"""What must hold before a run of a plan begins: the right cluster, as the plan saw it, and guards that pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpolicy.analysis.pair_names import PairNames
from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.deciding import left_of
from gpolicy.apply.journal import Direction, History, mark_start
from gpolicy.apply.runner import JobStatus, Runner
from gpolicy.apply.staleness import ClusterIdentity, LeafDifference, Sight, compare_plan
from gpolicy.apply.tasks import backward, forward
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.releases import release_of
from gpolicy.impact.declared_guards import judge_declared_again, need_impact
from gpolicy.plan.built_in_guards import GuardResult, judge_again
from gpolicy.plan.plan import Plan


class RefusedError(ApplyError):
    """The plan does not match the present cluster: nothing was done."""


def refuse_differences(differences: Sequence[LeafDifference], why: str) -> None:
    """Raise RefusedError, which says why, if there are differences."""
    if differences:
        raise RefusedError(why, differences=differences, hint="make a fresh plan from the cluster as it is now")


def right_cluster(plan: Plan, state: ClusterState) -> None:
    """Raise RefusedError if the plan is for another cluster."""
    if other := ClusterIdentity(plan.cluster, plan.cluster_uuid).other(state):
        hint = "is --to the right address? If the cluster was renamed or made anew, make a fresh plan"
        raise RefusedError(f"{other}; nothing was done", hint=hint)
    release = release_of(state.software_version)
    if release not in (None, plan.version):
        raise RefusedError(
            f"the cluster runs Ganeti {release} now, the commands of the plan are those of {plan.version};"
            " nothing was done",
            hint="make a fresh plan",
        )


def nothing_done(plan: Plan, runner: Runner, state: ClusterState) -> tuple[str, ...]:
    """Return notes on a cluster that is as the plan saw it, and where no job of the plan waits or runs.

    Raise RefusedError for any other: after a change, or a job whose journal must be somewhere else.
    """
    comparison = compare_plan(plan, Sight.of(state), (), {})
    refuse_differences(comparison.differences, "the cluster has changed since the plan was made; nothing was done")
    for job in runner.marked_jobs(mark_start(plan.digest, "")):
        if job.status is JobStatus.PENDING:
            raise RefusedError(
                f"job {job.number} of this plan is under way; nothing was done",
                hint="continue with the journal of the run that began it (--resume, --journal FILE), or wait for"
                " its end and make a fresh plan",
            )
    return comparison.notes


def measures_nodes(plan: Plan) -> bool:
    """Return whether a guard of `plan` can be judged again only with what nodes measure."""
    return need_impact(plan.declared_guards)


def guards_now(
    plan: Plan, state: ClusterState, observer: Callable[[str], None] | None = None, *, begun: bool = False
) -> tuple[GuardResult, ...]:
    """Return the verdicts on the plan's changes on the cluster as it is now. Raise RefusedError for one that fails.

    A guard that was allowed by name when the plan was made passes as long as it says what was allowed then. Once the
    plan has `begun`, it says less and less, and passes.
    """
    allowed = {guard.name: guard.message for guard in plan.guards if guard.allowed}
    names = PairNames(
        plan.pair_names.get("cluster", ()),
        {name.removeprefix("group/"): names for name, names in plan.pair_names.items() if name != "cluster"},
    )
    verdicts = [
        *judge_again(plan.changes, state, frozenset(allowed)),
        *judge_declared_again(
            plan.declared_guards, plan.changes, state, plan.terms, names, frozenset(allowed), observer
        ),
    ]
    hint = "make a fresh plan, with --allow NAME for each guard that may be passed"
    failed = [guard for guard in verdicts if not guard.ok]
    if failed:
        reasons = "; ".join(f"{guard.name}: {guard.message}" for guard in failed)
        raise RefusedError(f"a guard fails on the cluster as it is now: {reasons}", hint=hint)
    for guard in verdicts:
        if guard.allowed and not begun and guard.message != allowed[guard.name]:
            raise RefusedError(
                f"guard {guard.name} was allowed when it said: {allowed[guard.name]}; now it says: {guard.message}",
                hint=hint,
            )
    return tuple(verdicts)


def can_be_carried(plan: Plan, runner: Runner, direction: Direction, history: History | None) -> None:
    """Raise GpolicyError if a step that is left cannot go the chosen way, before anything begins."""
    attempts = history.attempts if history is not None and history.plan_digest == plan.digest else {}
    tasks = forward(plan) if direction is Direction.APPLY else backward(plan, set(attempts))
    stuck = [task for task in left_of(tasks, attempts) if not task.carried_by(runner.route)]
    if stuck:
        what = "; ".join(f"step {task.key} ({task.title})" for task in stuck)
        other = "local: or ssh://" if runner.route == "rapi" else "rapi://"
        raise GpolicyError(
            f"{runner.destination} cannot carry {what}; nothing was done",
            hint=f"apply the plan through {other}, or take this out of the policy",
        )
