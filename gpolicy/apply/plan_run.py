"""The three runs of a plan or remedy: apply it, resume it after a run was killed or failed, roll it back.

Each reads the cluster, compares the plan with it, runs its steps, and reads the cluster again. Before a run begins, it
must be the right cluster, as the plan or remedy saw it, and the guards must pass.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gpolicy.apply import journals, work
from gpolicy.apply.carrying import ApplyError, Carrier, CarryingError, HaltedError, effect_name, told, written_serials
from gpolicy.apply.jobs import JobOutcome, JobResult, Runner
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError, RequestError, argument
from gpolicy.ganeti.releases import release_of, unknown_release
from gpolicy.impact.declared_guards import judge_declared_again, measures_nodes
from gpolicy.json_values import DIGEST, LENGTH, Document, Key
from gpolicy.plan.built_in_guards import GuardResult, judge
from gpolicy.plan.changes import NAME, words
from gpolicy.plan.effects import Effect, Progress, written
from gpolicy.plan.plan import Plan, sides_of_plan
from gpolicy.plan.sides import undo
from gpolicy.plan.step import Procedure
from gpolicy.progress import Tell, silent
from gpolicy.remedy.saved_remedy import SavedRemedy, Supposed, moved_residents, residents_of

_CHANGED = "the cluster has changed since the {} was made; nothing was done"


class RefusedError(ApplyError):
    """The plan or remedy does not match the present cluster: nothing was done."""


def refuse_differences(differences: Sequence[work.LeafDifference], why: str, noun: str) -> None:
    """Raise RefusedError, which says why, if there are differences."""
    if differences:
        raise RefusedError(why, differences=differences, hint=f"make a fresh {noun} from the cluster as it is now")


def check_cluster(procedure: Procedure, state: ClusterState) -> None:
    """Raise RefusedError if the plan or remedy is for another cluster."""
    if other := work.ClusterIdentity(procedure.cluster, procedure.cluster_uuid).other(state):
        question = f"is {argument('destination')} the right address?"
        hint = f"{question} If the cluster was renamed or made anew, make a fresh {procedure.noun}"
        raise RefusedError(f"{other}; nothing was done", hint=hint)
    release = release_of(state.software_version)
    if procedure.version and release not in (None, procedure.version):
        commands = f"the commands of the {procedure.noun} are those of {procedure.version}"
        message = f"the cluster runs Ganeti {release} now, {commands}; nothing was done"
        raise RefusedError(message, hint=f"make a fresh {procedure.noun}")


def check_suppositions(
    procedure: Procedure, state: ClusterState, sight: work.Sight, done: Sequence[Effect] = ()
) -> tuple[str, ...]:
    """Check that a cluster is as a remedy supposes it, after its effects `done`; plans suppose nothing.

    Return notes on what cannot be seen. Raise RefusedError where the plan that it was worked out for was not applied,
    where a node may hold no instance any more, or holds others than it should. `sight` is a look no older than `state`,
    with instances.
    """
    if not isinstance(procedure, SavedRemedy):
        return ()
    unseen = () if procedure.supposed is None else _was_applied(procedure.supposed, sight)
    expected, found = moved_residents(procedure.residents, done), residents_of(sight.contents, procedure.residents)
    targets = {node for effect in procedure.outcome for node in {*words(effect.after)} - {*words(effect.before)}}
    differences = [
        work.LeafDifference(f"node/{name}", ("instances",), list(names), list(found[name]))
        for name, names in expected.items()
        if names != found[name]
    ]
    unusable = [name for name in sorted(targets & state.nodes.keys()) if not state.nodes[name].is_usable]
    why = "offline, drained or not vm_capable"
    differences += [work.LeafDifference(f"node/{name}", (), "usable", why) for name in unusable]
    begun = "the cluster has changed since the last run; no further step was begun"
    refuse_differences(differences, begun if done else _CHANGED.format(procedure.noun), procedure.noun)
    return tuple(f"{what} cannot be read this way; assumed to be as the remedy supposes" for what in unseen)


def _was_applied(supposed: Supposed, sight: work.Sight) -> tuple[str, ...]:
    """Return what cannot be seen of a plan, or of the plan of a policy, that is applied. Raise RefusedError if not."""
    look = work.judge_outcome(supposed.effects, sight)
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


def check_untouched(procedure: Procedure, runner: Runner, state: ClusterState) -> tuple[str, ...]:
    """Check that a cluster is as `procedure` saw it, and that none of its jobs waits or runs.

    Return notes on what cannot be compared. Raise RefusedError after a change, or for a job whose journal must be
    somewhere else.
    """
    differences, notes = work.compare_plan(procedure, work.Sight.of(state, instances=procedure.moves_instances), (), {})
    refuse_differences(differences, _CHANGED.format(procedure.noun), procedure.noun)
    for job in runner.marked_jobs(journals.mark_start(procedure.digest, "")):
        if job.pending:
            options = f"{argument('resume')}, {argument('journal_file')} FILE"
            way = f"continue with the journal of the run that began it ({options})"
            hint = f"{way}, or wait for its end and make a fresh {procedure.noun}"
            raise RefusedError(f"job {job.number} of this {procedure.noun} is under way; nothing was done", hint=hint)
    return tuple(notes)


def guards_now(plan: Plan, state: ClusterState, tell: Tell = silent, *, begun: bool = False) -> tuple[GuardResult, ...]:
    """Return the verdicts on the plan's changes on the cluster as it is now. Raise RefusedError for one that fails.

    A guard that was allowed by name when the plan was made passes as long as it says what was allowed then. Once the
    plan has `begun`, it says less and less, and passes.
    """
    allowed = {guard.name: guard.message for guard in plan.guards if guard.allowed}
    sides = sides_of_plan(plan, state)
    compared = sides_of_plan(plan, undo(state, plan.changes)) if begun and measures_nodes(plan) else sides
    verdicts = [
        *judge(sides, frozenset(allowed)),
        *judge_declared_again(plan, compared, frozenset(allowed), tell),
    ]
    hint = f"make a fresh plan, with {argument('allowed')} NAME for each guard that may be passed"
    if failed := [guard for guard in verdicts if not guard.ok]:
        reasons = "; ".join(f"{guard.name}: {guard.message}" for guard in failed)
        raise RefusedError(f"a guard fails on the cluster as it is now: {reasons}", hint=hint)
    for guard in verdicts:
        if guard.allowed and not begun and guard.message != allowed[guard.name]:
            now = f"now it says: {guard.message}"
            raise RefusedError(f"guard {guard.name} was allowed when it said: {allowed[guard.name]}; {now}", hint=hint)
    return tuple(verdicts)


def check_route(
    procedure: Procedure, runner: Runner, direction: journals.Direction, history: journals.RunHistory | None
) -> None:
    """Raise GpolicyError if a step that is left cannot go the chosen way, before anything begins."""
    attempts = history.attempts if history is not None and history.plan_digest == procedure.digest else {}
    back = direction is journals.Direction.ROLLBACK
    tasks = work.backward(procedure, set(attempts)) if back else work.forward(procedure)
    if stuck := [task for task in work.left_of(tasks, attempts) if not task.carried_by(runner.route)]:
        what = "; ".join(f"step {task.key} ({task.title})" for task in stuck)
        other = "local: or ssh://" if runner.route == "rapi" else "rapi://"
        without = ", or take this out of the policy" if isinstance(procedure, Plan) else ""
        message = f"{runner.destination} cannot carry {what}; nothing was done"
        raise GpolicyError(message, hint=f"apply the {procedure.noun} through {other}{without}")


@dataclass(frozen=True, slots=True)
class Intention:
    """The preview of a run, shown before it asks for consent: the tasks and notes.

    `guards` are the verdicts on the present cluster.
    """

    direction: journals.Direction
    tasks: tuple[work.Task, ...]
    skipped: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    guards: tuple[GuardResult, ...] = ()


@dataclass(slots=True, kw_only=True)
class PlanRun(Carrier):
    """One run of a plan, or of a remedy.

    `history` is what earlier runs of this plan did, None for the first. `agree` shows the intention and returns
    whether to go on; it may raise. `judging` surrounds the judging of guards; it is told what is being computed.
    """

    journal_file: Path
    agree: Callable[[Intention], bool]
    direction: journals.Direction = journals.Direction.APPLY
    history: journals.RunHistory | None = None
    judging: Callable[[], AbstractContextManager[Callable[[str], None]]] = lambda: nullcontext(lambda _: None)
    _journal_id: str = field(init=False)

    def go(self, state: ClusterState) -> work.FinalLook | None:
        """Run on the cluster that `state` shows, read a moment ago. Return what a look at the end shows.

        Return None without consent. Raise RefusedError with nothing done, or CarryingError half-way.
        """
        check_cluster(self.procedure, state)  # again: this look is under the lock
        self._journal_id = secrets.token_hex(4) if self.history is None else self.history.id
        if self.history is None:
            return self._run_first(state)
        if self.direction is journals.Direction.ROLLBACK:
            return self._roll_back(state, self.history)
        return self._resume(state, self.history)

    def _run_first(self, state: ClusterState) -> work.FinalLook | None:
        """Run all steps, if the cluster is as the procedure saw it."""
        sight = work.Sight.of(state, instances=self.procedure.moves_instances)
        notes = [*check_suppositions(self.procedure, state, sight)]
        notes += check_untouched(self.procedure, self.runner, state)
        guards = self._judge_guards(state)
        tasks = work.forward(self.procedure)
        other = work.note_other_changes(self.procedure, state) if isinstance(self.procedure, Plan) else None
        unknown = unknown_release(state.software_version)
        if self.procedure.cluster_uuid is None and state.cluster.identity.uuid is not None:
            noun = self.procedure.noun
            notes.append(f"the {noun} holds no UUID: only the name says that this is the right cluster")
        notes += filter(None, (unknown, other))
        if not self.agree(Intention(journals.Direction.APPLY, tuple(tasks), notes=tuple(notes), guards=guards)):
            return None
        with self._writing(state):
            self.carry(tasks)
            return work.judge_outcome(self.procedure.outcome, self.take_last_sight())

    def _resume(self, state: ClusterState, history: journals.RunHistory) -> work.FinalLook | None:
        """Find out what earlier runs did, and run the steps that are left."""
        if history.direction is journals.Direction.ROLLBACK:
            hint = f"continue with {argument('rollback')}, or make a fresh {self.procedure.noun}"
            raise RequestError(f"a rollback of this {self.procedure.noun} has begun", hint=hint)
        tasks = work.forward(self.procedure)
        open_tasks = work.left_of(tasks, history.attempts)
        guards = self._judge_guards(state) if open_tasks else ()
        if not self.agree(replace(self._intention(tasks, open_tasks), guards=guards)):
            return None
        with self._writing(state):
            settled = self._settle(tasks, history)
            done = settled.all_effects(tasks)
            differences, _ = work.compare_plan(self.procedure, self.known, done, settled.serials)
            why = "the cluster has changed since the last run; no further step was begun"
            refuse_differences(differences, why, self.procedure.noun)
            left = [task for task in tasks if task.key not in settled.done]
            if left:
                check_suppositions(self.procedure, state, self.known, done)
            self.carry(left, first=len(tasks) - len(left) + 1, count=len(tasks))
            return work.judge_outcome(self.procedure.outcome, self.take_last_sight())

    def _intention(self, tasks: Sequence[work.Task], left: Sequence[work.Task], lost: Sequence[str] = ()) -> Intention:
        keys = {task.key for task in left}
        skipped = tuple(task.title for task in tasks if task.key not in keys)
        return Intention(self.direction, tuple(left), skipped, tuple(lost))

    def _settle(self, tasks: Sequence[work.Task], history: journals.RunHistory) -> _SettledSteps:
        """Find out what became of the steps that had begun when the last run ended, and write it into the journal."""
        settled = _SettledSteps(serials=dict(history.serials))
        jobs = self.marked_jobs()
        late = {job.mark: job.number for job in jobs}
        if unknown := sorted(number for mark, number in late.items() if mark not in history.marks):
            what = f"job {unknown[0]} belongs to this journal, which does not know it"
            raise CarryingError(f"{what}: the last lines of the journal are lost", hint=journals.DISTRUSTED)
        last = {attempt.mark for attempt in history.attempts.values()}
        self.await_jobs(job for job in jobs if job.mark not in last)
        for task in tasks:
            attempt = history.attempts.get(task.key)
            if attempt is None:
                continue
            if attempt.fate is journals.Fate.FAILED and attempt.job is None and attempt.mark in late:
                attempt = replace(attempt, fate=journals.Fate.BEGUN, job=late[attempt.mark])  # its request came late
            match attempt.fate:
                case journals.Fate.DONE:
                    settled.done.add(task.key)
                    settled.effects[task.key] = task.command.effects
                case journals.Fate.FAILED:
                    did = [effect for effect in task.command.effects if effect_name(effect) in attempt.did]
                    settled.effects[task.key] = did
                case journals.Fate.BEGUN:
                    self.note(f"step {task.key} ({task.title}) had begun: asking Ganeti what became of it")
                    outcome = self.resolve(task, attempt.mark, attempt.job, JobOutcome(JobResult.UNKNOWN))
                    if self._was_done(task, outcome):
                        self.record_done(task)
                        settled.done.add(task.key)
                        settled.effects[task.key] = task.command.effects
                    else:
                        settled.effects[task.key] = self.record_failed(task, outcome, self.known)
                    if outcome.job is not None or task.key in settled.done:  # else what has changed may not be ours
                        settled.serials.update(written_serials(task, self.known))
        return settled

    def _was_done(self, task: work.Task, outcome: JobOutcome) -> bool:
        """Return whether a step that had begun is done. Raise CarryingError if nobody can tell."""
        succeeded = outcome.result is JobResult.SUCCESS
        self.known = self.await_effects(task, outcome) if succeeded else self.take_sight()
        is_done = work.is_done(task, self.known, succeeded=succeeded)
        if not is_done and not work.may_run(task, self.known):
            half = f"step {task.key} ({task.title}) is half done, and cannot be run again"
            raise CarryingError(half, hint=f"look at the cluster, then make a fresh {self.procedure.noun}")
        return is_done

    def _roll_back(self, state: ClusterState, history: journals.RunHistory) -> work.FinalLook | None:
        """Find out what earlier runs did, and undo it."""
        tasks = [task for task in work.forward(self.procedure) if task.key in history.attempts]
        tried = {task.step for task in tasks}
        undo = work.backward(self.procedure, tried)
        lost = [text for step in self.procedure.steps if step.id in tried for text in step.lost]
        if not self.agree(self._intention(undo, work.left_of(undo, history.attempts), lost)):
            return None
        with self._writing(state):
            settled = self._settle([*tasks, *undo], history)
            done = settled.all_effects([*tasks, *undo])
            differences, _ = work.compare_plan(self.procedure, self.known, done, settled.serials)
            # what steps that never began were to change is not ours, whatever its value is now
            our_objects = written([effect for task in (*tasks, *undo) for effect in task.command.effects])
            our_differences = [item for item in differences if item.object in our_objects]
            why = "the cluster has changed since the last run; nothing was taken back"
            refuse_differences(our_differences, why, self.procedure.noun)
            for item in differences:
                self.note(f"changed by somebody else, and left alone: {told(item)}")
            waiting = [task for task in undo if task.key not in settled.done]
            left = [task for task in waiting if task.step in settled.done or settled.is_partly_done(task, self.known)]
            self.carry(left)
            everything = [*done, *(effect for task in left for effect in task.command.effects)]
            return work.judge_restored(self.procedure, self.take_last_sight(), everything)

    def _judge_guards(self, state: ClusterState) -> tuple[GuardResult, ...]:
        if not isinstance(self.procedure, Plan):
            return ()
        with self.judging() as tell:
            return guards_now(self.procedure, state, tell, begun=self.history is not None)

    @contextmanager
    def _writing(self, state: ClusterState) -> Iterator[None]:
        """Begin a run on the cluster that `state` shows in the journal; write down how it ended, whatever ends it."""
        self.mark = journals.mark_start(self.procedure.digest, self._journal_id)
        self.cluster = work.ClusterIdentity(state.name, state.cluster.identity.uuid)
        self.known = work.Sight.of(state, instances=self.procedure.moves_instances)
        end = None if self.history is None else self.history.end
        self.journal = journals.begin_run(self.journal_file, end, RUN_BEGUN, self)
        try:
            yield
            self.journal.write(journals.END, {"outcome": "done"})
        except BaseException as error:
            outcome = "stopped" if isinstance(error, HaltedError) else "failed"
            with suppress(journals.JournalError):
                self.journal.write(journals.END, {"outcome": outcome})
            if isinstance(error, journals.JournalError):
                raise CarryingError(error.message) from None
            raise
        finally:
            self.journal.close()


RUN_BEGUN: Final = journals.begin_event(
    PlanRun,
    journals.JOURNAL_FILE,
    "journal direction resumed plan_digest signer cluster destination steps",
    journal=Key({"type": "string", "pattern": "^[0-9a-f]{8}$"}, "_journal_id"),
    plan_digest=Key(DIGEST, "procedure.digest"),
    signer="procedure.signer",
    cluster="procedure.cluster",
    destination="runner.destination",
    steps=Key(LENGTH, "procedure.steps"),
)
JOURNAL_DOCUMENT: Final = Document(
    "One line of the journal of gpolicy apply", journals.LINE, (RUN_BEGUN, *journals.STEP_EVENTS, journals.END)
)


@dataclass(slots=True)
class _SettledSteps:
    """What became of the steps that earlier runs began: keys of those that are done, and what each has changed.

    `serials` are the serial numbers of objects as they were seen after our own steps.
    """

    serials: dict[str, int]
    done: set[str] = field(default_factory=set)
    effects: dict[str, Sequence[Effect]] = field(default_factory=dict)

    def all_effects(self, tasks: Sequence[work.Task]) -> list[Effect]:
        return [effect for task in tasks for effect in self.effects.get(task.key, ())]

    def is_partly_done(self, undo: work.Task, sight: work.Sight) -> bool:
        """Return whether the failed step behind `undo` has changed something that is still to be brought back.

        What the step was seen to have changed decides, not only the look now: when a rollback is asked for again, the
        objects of steps that changed nothing may have other names. What no look shows may have changed.
        """
        effects = [effect for effect in undo.command.effects if effect.before != effect.after]
        if not any(effect.object in sight.contents or effect.path == NAME for effect in effects):
            return False  # its object has its old name again: this rollback was here before, and had nothing to do
        whole = [effect for effect in effects if effect.path == NAME]  # an object comes and goes with all its values
        if not all(sight.shows(effect.object, effect.path) for effect in whole or effects):
            return True
        return work.seen_progress(effects, sight) is not Progress.DONE and bool(self.effects.get(undo.step))
