"""What must hold before a run begins: the right cluster, as the plan or remedy saw it, and guards that pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.journal import Direction, History, mark_start
from gpolicy.apply.runner import Runner
from gpolicy.apply.tasks import (
    ClusterIdentity,
    LeafDifference,
    Sight,
    backward,
    compare_plan,
    forward,
    judge_outcome,
    left_of,
)
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.releases import release_of
from gpolicy.impact.declared_guards import judge_declared_again
from gpolicy.plan.built_in_guards import GuardResult, judge_again
from gpolicy.plan.change import words
from gpolicy.plan.effects import Effect
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Procedure
from gpolicy.progress import Tell, silent
from gpolicy.remedy.saved_remedy import SavedRemedy, Supposed, moved_residents, residents_of

_CHANGED: Final = "the cluster has changed since the {} was made; nothing was done"


class RefusedError(ApplyError):
    """The plan or remedy does not match the present cluster: nothing was done."""


def refuse_differences(differences: Sequence[LeafDifference], why: str, noun: str) -> None:
    """Raise RefusedError, which says why, if there are differences."""
    if differences:
        raise RefusedError(why, differences=differences, hint=f"make a fresh {noun} from the cluster as it is now")


def right_cluster(plan: Procedure, state: ClusterState) -> None:
    """Raise RefusedError if the plan or remedy is for another cluster."""
    if other := ClusterIdentity(plan.cluster, plan.cluster_uuid).other(state):
        hint = f"is --to the right address? If the cluster was renamed or made anew, make a fresh {plan.noun}"
        raise RefusedError(f"{other}; nothing was done", hint=hint)
    release = release_of(state.software_version)
    if plan.version and release not in (None, plan.version):
        commands = f"the commands of the {plan.noun} are those of {plan.version}"
        message = f"the cluster runs Ganeti {release} now, {commands}; nothing was done"
        raise RefusedError(message, hint=f"make a fresh {plan.noun}")


def suppositions_hold(
    plan: Procedure, state: ClusterState, sight: Sight, done: Sequence[Effect] = ()
) -> tuple[str, ...]:
    """Return notes on a cluster that is as a remedy supposes it, after its effects `done`; plans suppose nothing.

    Raise RefusedError where the plan that it was worked out for was not applied, where a node may hold no instance any
    more, or holds others than it should. `sight` is a look no older than `state`, with instances.
    """
    if not isinstance(plan, SavedRemedy):
        return ()
    unseen = () if plan.supposed is None else _was_applied(plan.supposed, sight)
    expected, found = moved_residents(plan.residents, done), residents_of(sight.contents, plan.residents)
    targets = {node for effect in plan.outcome for node in {*words(effect.after)} - {*words(effect.before)}}
    differences = [
        LeafDifference(f"node/{name}", ("instances",), list(names), list(found[name]))
        for name, names in expected.items()
        if names != found[name]
    ]
    unusable = [name for name in sorted(targets & state.nodes.keys()) if not state.nodes[name].is_usable]
    why = "offline, drained or not vm_capable"
    differences += [LeafDifference(f"node/{name}", (), "usable", why) for name in unusable]
    begun = "the cluster has changed since the last run; no further step was begun"
    refuse_differences(differences, begun if done else _CHANGED.format(plan.noun), plan.noun)
    return tuple(f"{what} cannot be read this way; assumed to be as the remedy supposes" for what in unseen)


def _was_applied(supposed: Supposed, sight: Sight) -> tuple[str, ...]:
    """Return what cannot be seen of a plan, or of the plan of a policy, that is applied. Raise RefusedError if not."""
    look = judge_outcome(supposed.effects, sight)
    if look.good:
        return look.unseen
    policy = f"policy {supposed.file} makes it, and a plan of that policy"
    what = f"plan {supposed.file} makes it, and that plan" if supposed.is_plan else policy
    none = len(look.differences) == len(supposed.effects)
    how = "was not applied" if none else "was applied only in part, or the cluster has changed since"
    first = f"gpolicy apply {supposed.file}" if supposed.is_plan else "apply a plan of the policy"
    message = f"the remedy is for the cluster as {what} {how}; nothing was done"
    hint = f"first {first}, then apply the remedy; or make a remedy for the cluster as it is"
    raise RefusedError(message, differences=look.differences, hint=hint)


def nothing_done(plan: Procedure, runner: Runner, state: ClusterState) -> tuple[str, ...]:
    """Return notes on a cluster that is as `plan` saw it, and where none of its jobs waits or runs.

    Raise RefusedError for any other: after a change, or a job whose journal must be somewhere else.
    """
    differences, notes = compare_plan(plan, Sight.of(state, instances=plan.moves_instances), (), {})
    refuse_differences(differences, _CHANGED.format(plan.noun), plan.noun)
    for job in runner.marked_jobs(mark_start(plan.digest, "")):
        if job.pending:
            way = "continue with the journal of the run that began it (--resume, --journal FILE)"
            hint = f"{way}, or wait for its end and make a fresh {plan.noun}"
            raise RefusedError(f"job {job.number} of this {plan.noun} is under way; nothing was done", hint=hint)
    return tuple(notes)


def guards_now(plan: Plan, state: ClusterState, tell: Tell = silent, *, begun: bool = False) -> tuple[GuardResult, ...]:
    """Return the verdicts on the plan's changes on the cluster as it is now. Raise RefusedError for one that fails.

    A guard that was allowed by name when the plan was made passes as long as it says what was allowed then. Once the
    plan has `begun`, it says less and less, and passes.
    """
    allowed = {guard.name: guard.message for guard in plan.guards if guard.allowed}
    verdicts = [
        *judge_again(plan.changes, state, frozenset(allowed)),
        *judge_declared_again(plan, state, frozenset(allowed), tell, begun=begun),
    ]
    hint = "make a fresh plan, with --allow NAME for each guard that may be passed"
    failed = [guard for guard in verdicts if not guard.ok]
    if failed:
        reasons = "; ".join(f"{guard.name}: {guard.message}" for guard in failed)
        raise RefusedError(f"a guard fails on the cluster as it is now: {reasons}", hint=hint)
    for guard in verdicts:
        if guard.allowed and not begun and guard.message != allowed[guard.name]:
            now = f"now it says: {guard.message}"
            raise RefusedError(f"guard {guard.name} was allowed when it said: {allowed[guard.name]}; {now}", hint=hint)
    return tuple(verdicts)


def can_be_carried(plan: Procedure, runner: Runner, direction: Direction, history: History | None) -> None:
    """Raise GpolicyError if a step that is left cannot go the chosen way, before anything begins."""
    attempts = history.attempts if history is not None and history.plan_digest == plan.digest else {}
    tasks = forward(plan) if direction is Direction.APPLY else backward(plan, set(attempts))
    stuck = [task for task in left_of(tasks, attempts) if not task.carried_by(runner.route)]
    if stuck:
        what = "; ".join(f"step {task.key} ({task.title})" for task in stuck)
        other = "local: or ssh://" if runner.route == "rapi" else "rapi://"
        without = ", or take this out of the policy" if isinstance(plan, Plan) else ""
        message = f"{runner.destination} cannot carry {what}; nothing was done"
        raise GpolicyError(message, hint=f"apply the {plan.noun} through {other}{without}")
