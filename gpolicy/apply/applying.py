"""The three runs of a plan: carry it out, go on after a run that was killed or failed, take it back.

Each begins by looking at the cluster, holds the plan against what it sees, and ends by looking again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpolicy import __version__
from gpolicy.apply.carrying import Carrier, CarryingError, Progressing, StoppedError
from gpolicy.apply.deciding import Decision, decide, decide_by_looking, effects_there
from gpolicy.apply.journal import FORMAT_VERSION, KIND, Direction, EventName, History
from gpolicy.apply.journal_file import JournalFile, create_journal, reopen_journal
from gpolicy.apply.runner import Outcome, Patience, Result, Runner, Stop
from gpolicy.apply.staleness import Comparison, Difference, Sight, compare_plan, elsewhere
from gpolicy.apply.tasks import Task, backward, forward
from gpolicy.apply.verdict import Verdict, judge_applied, judge_restored
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError, InputError, UsageError
from gpolicy.exit_codes import ExitCode
from gpolicy.plan.effects import Effect, written
from gpolicy.plan.guards import judge_again
from gpolicy.plan.plan_file import PlanFile


class RefusedError(GpolicyError):
    """The plan does not fit the cluster as it is: nothing was done. `differences` say where."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, message: str, *, differences: Sequence[Difference] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.differences = tuple(differences)


@dataclass(frozen=True, slots=True)
class Intention:
    """What a run is about to do, to be shown before it is asked for: the tasks, and what is worth knowing."""

    direction: Direction
    tasks: tuple[Task, ...]
    skipped: tuple[str, ...]
    lost: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class Run:
    """One run of a plan.

    `history` is what earlier runs of this plan did, None for the first. `agree` shows the intention and returns
    whether to go on; it may raise. `lock_is_lost` is asked before each step: no further one begins without the lock.
    """

    plan: PlanFile
    runner: Runner
    journal_file: Path
    progressing: Progressing
    agree: Callable[[Intention], bool]
    direction: Direction = Direction.APPLY
    history: History | None = None
    patience: Patience = field(default_factory=Patience)
    stop: Stop = field(default_factory=Stop)
    lock_is_lost: Callable[[], bool] = lambda: False

    def go(self, state: ClusterState) -> Verdict | None:
        """Carry the run out on the cluster that `state` shows, read a moment ago. Return what is seen at the end.

        None if it was not agreed to. Raise RefusedError with nothing done, or CarryingError half-way.
        """
        right_cluster(self.plan, state)
        if self.history is None:
            return self._first(state)
        return self._back(state) if self.direction is Direction.ROLLBACK else self._further(state)

    # --- the first run ---------------------------------------------------------------------------------------------

    def _first(self, state: ClusterState) -> Verdict | None:
        sight = Sight.of(state)
        comparison = compare_plan(self.plan, sight, (), {})
        self._refuse(comparison, "the cluster has changed since the plan was made; nothing was done")
        guards_now(self.plan, state)
        tasks = forward(self.plan)
        other = elsewhere(self.plan, state)
        notes = (*comparison.notes, *((other,) if other else ()))
        if not self.agree(Intention(Direction.APPLY, tuple(tasks), (), (), notes)):
            return None
        with self._writing(create_journal(self.journal_file), resumed=False) as journal:
            carrier = self._carrier(journal, sight)
            carrier.carry(tasks)
            return judge_applied(self.plan.changes, carrier.glance())

    # --- going on --------------------------------------------------------------------------------------------------

    def _further(self, state: ClusterState) -> Verdict | None:
        assert self.history is not None  # noqa: S101 (said by the caller)
        if self.history.direction is Direction.ROLLBACK:
            raise UsageError("this plan is being taken back", hint="go on with --rollback, or make a fresh plan")
        tasks = forward(self.plan)
        open_tasks = [task for task in tasks if decide(self.history.attempts.get(task.key)) is not Decision.SKIP]
        if not self.agree(self._intention(tasks, open_tasks)):
            return None
        with self._writing(reopen_journal(self.journal_file), resumed=True) as journal:
            carrier = self._carrier(journal, Sight.of(state))
            done = self._settle(carrier, tasks)
            effects = self._effects_so_far(carrier.known, tasks, done)
            comparison = compare_plan(self.plan, carrier.known, effects, self._serials(carrier.known, tasks))
            self._refuse(comparison, "the cluster has changed since the last run; no further step was begun")
            left = [task for task in tasks if task.key not in done]
            carrier.carry(left, first=len(tasks) - len(left) + 1, count=len(tasks))
            return judge_applied(self.plan.changes, carrier.glance())

    def _intention(self, tasks: Sequence[Task], left: Sequence[Task]) -> Intention:
        keys = {task.key for task in left}
        return Intention(
            self.direction, tuple(left), tuple(task.title for task in tasks if task.key not in keys), (), ()
        )

    def _settle(self, carrier: Carrier, tasks: Sequence[Task]) -> set[str]:
        """Find out what became of the steps that had begun when the last run ended; return the keys of all done."""
        assert self.history is not None  # noqa: S101
        done: set[str] = set()
        for task in tasks:
            attempt = self.history.attempts.get(task.key)
            match decide(attempt):
                case Decision.SKIP:
                    done.add(task.key)
                case Decision.ASK:
                    assert attempt is not None  # noqa: S101
                    carrier.progressing.note(f"step {task.key} ({task.title}) had begun: asking what became of it")
                    outcome = carrier.resolve(task, attempt.mark, attempt.job, Outcome(Result.UNKNOWN))
                    if self._was_done(carrier, task, outcome):
                        carrier.found_done(task)
                        done.add(task.key)
        return done

    def _serials(self, sight: Sight, tasks: Sequence[Task]) -> dict[str, int]:
        """Return the serial numbers that the journal knows; of objects that a cut-off step wrote, those of now."""
        assert self.history is not None  # noqa: S101
        attempts = self.history.attempts
        cut_off = [task for task in tasks if decide(attempts.get(task.key)) is Decision.ASK]
        ours = written([effect for task in cut_off for effect in task.command.effects])
        return {
            **self.history.serials,
            **{name: number for name, number in sight.serials().items() if name in ours},
        }

    def _was_done(self, carrier: Carrier, task: Task, outcome: Outcome) -> bool:
        """Return whether a step that had begun is done. Raise CarryingError if nobody can tell."""
        if outcome.result is Result.SUCCESS:
            carrier.known = carrier.look(task, outcome)
            decision = decide_by_looking(task, carrier.known)
            seen = [effect for effect in task.command.effects if carrier.known.shows(effect.object, effect.path)]
            return decision is Decision.SKIP or not seen
        carrier.known = carrier.glance()
        decision = decide_by_looking(task, carrier.known)
        if decision is Decision.REFUSE:
            raise CarryingError(
                f"step {task.key} ({task.title}) is half done, and cannot be run again",
                hint="look at the cluster, then make a fresh plan",
            )
        return decision is Decision.SKIP

    @staticmethod
    def _effects_so_far(sight: Sight, tasks: Sequence[Task], done: set[str]) -> list[Effect]:
        """Return the effects of steps that are done, and of the others the part that Ganeti accepted all the same."""
        effects: list[Effect] = []
        for task in tasks:
            mine = task.command.effects
            effects += mine if task.key in done else _partly(mine, sight)
        return effects

    # --- taking back -----------------------------------------------------------------------------------------------

    def _back(self, state: ClusterState) -> Verdict | None:
        assert self.history is not None  # noqa: S101 (said by the caller)
        tasks = forward(self.plan)
        tried = {task.step for task in tasks if task.key in self.history.attempts}
        undo = backward(self.plan, tried)
        lost = [
            f"step {step.id}: {reason}" for step in self.plan.steps if step.id in tried for reason in step.not_restored
        ]
        open_tasks = [task for task in undo if decide(self.history.attempts.get(task.key)) is not Decision.SKIP]
        skipped = tuple(task.title for task in undo if task not in open_tasks)
        if not self.agree(Intention(Direction.ROLLBACK, tuple(open_tasks), skipped, tuple(lost), ())):
            return None
        with self._writing(reopen_journal(self.journal_file), resumed=True) as journal:
            carrier = self._carrier(journal, Sight.of(state))
            forward_done = self._settle(carrier, tasks)
            back_done = self._settle(carrier, undo)
            done = self._done_and_undone(carrier.known, tasks, forward_done, undo, back_done)
            serials = self._serials(carrier.known, [*tasks, *undo])
            comparison = compare_plan(self.plan, carrier.known, done, serials)
            self._refuse(comparison, "the cluster has changed since the last run; nothing was taken back")
            left = [
                task
                for task in undo
                if task.key not in back_done and (task.step in forward_done or self._has_effect(carrier.known, task))
            ]
            carrier.carry(left)
            everything = [*done, *(effect for task in left for effect in task.command.effects)]
            return judge_restored(self.plan, carrier.glance(), everything)

    @staticmethod
    def _has_effect(sight: Sight, undo: Task) -> bool:
        """Return whether a step that failed has changed something that `undo` is to bring back."""
        return decide_by_looking(undo, sight) is not Decision.SKIP

    def _done_and_undone(
        self, sight: Sight, tasks: Sequence[Task], done: set[str], undo: Sequence[Task], undone: set[str]
    ) -> list[Effect]:
        """Return all effects so far, forward and back, in the order in which they came."""
        begun_back = {task.key for task in undo if self.history and task.key in self.history.attempts}
        forward_effects: list[Effect] = []
        for task in tasks:
            back = [item for item in undo if item.step == task.step]
            taken_back = any(item.key in begun_back for item in back)
            mine = task.command.effects
            forward_effects += mine if task.key in done or taken_back else _partly(mine, sight)
        back_effects: list[Effect] = []
        for task in undo:
            mine = task.command.effects
            back_effects += mine if task.key in undone else _partly(mine, sight) if task.key in begun_back else ()
        return [*forward_effects, *back_effects]

    # --- what all have in common -----------------------------------------------------------------------------------

    def _refuse(self, comparison: Comparison, why: str) -> None:
        if comparison.differences:
            hint = "make a fresh plan from the cluster as it is now"
            raise RefusedError(why, differences=comparison.differences, hint=hint)

    def _carrier(self, journal: JournalFile, sight: Sight) -> Carrier:
        mark = f"gpolicy-plan-{self.plan.digest.rpartition(':')[2][:12]}"
        return Carrier(self.runner, journal, self.progressing, sight, mark, self.patience, self.stop, self.lock_is_lost)

    @contextmanager
    def _writing(self, journal: JournalFile, *, resumed: bool) -> Iterator[JournalFile]:
        """Begin a run in the journal, and write down how it ended, whatever ends it."""
        outcome = "failed"
        try:
            if self.history is not None and self.history.torn:
                journal.end_torn_line()
            journal.write(
                EventName.BEGIN,
                kind=KIND,
                format_version=FORMAT_VERSION,
                gpolicy=__version__,
                direction=self.direction.value,
                resumed=resumed,
                plan_digest=self.plan.digest,
                cluster=self.plan.cluster,
                destination=self.runner.destination,
                steps=len(self.plan.steps),
                pid=os.getpid(),
                host=socket.gethostname(),
            )
            yield journal
            outcome = "done"
        except StoppedError:
            outcome = "stopped"
            raise
        finally:
            try:
                journal.write(EventName.END, outcome=outcome)
            finally:
                journal.close()


def _partly(effects: Sequence[Effect], sight: Sight) -> list[Effect]:
    return [effect for effect in effects_there(effects, sight) if sight.shows(effect.object, effect.path)]


def right_cluster(plan: PlanFile, state: ClusterState) -> None:
    """Raise RefusedError if the plan is for another cluster."""
    if state.name != plan.cluster:
        hint = "is --to the right one? If the cluster was renamed, make a fresh plan"
        raise RefusedError(f"the plan is for cluster {plan.cluster}, this is {state.name}; nothing was done", hint=hint)


def guards_now(plan: PlanFile, state: ClusterState) -> None:
    """Judge the plan's changes again on the cluster as it is now. Raise RefusedError for a guard that fails now.

    A guard that was passed by name when the plan was made stays passed.
    """
    allowed = frozenset(name for name, _, overridden in plan.guards if overridden)
    failed = [guard for guard in judge_again(plan.changes, state, allowed) if not guard.ok]
    if failed:
        reasons = "; ".join(f"{guard.name}: {guard.message}" for guard in failed)
        raise RefusedError(
            f"a guard fails on the cluster as it is now: {reasons}",
            hint="make a fresh plan, with --allow NAME for each guard that may be passed",
        )


def can_be_carried(plan: PlanFile, runner: Runner, direction: Direction, history: History | None) -> None:
    """Raise GpolicyError if a step that is left cannot go the chosen way, before anything begins."""
    attempts = history.attempts if history is not None and history.plan_digest == plan.digest else {}
    tasks = forward(plan) if direction is Direction.APPLY else backward(plan, set(attempts))
    tasks = [task for task in tasks if decide(attempts.get(task.key)) is not Decision.SKIP]
    stuck = [task for task in tasks if not task.carried_by(runner.route)]
    if stuck:
        what = "; ".join(f"step {task.key} ({task.title})" for task in stuck)
        other = "local: or ssh://" if runner.route == "rapi" else "rapi://"
        raise GpolicyError(
            f"{runner.destination} cannot carry {what}; nothing was done",
            hint=f"apply the plan through {other}, or take this out of the policy",
        )


def check_plan(plan: PlanFile, where: str) -> None:
    """Raise RefusedError for a plan with a guard that fails, InputError for one that does not say what its steps do."""
    if plan.failed_guards:
        hint = "mend the policy, or make the plan again with --allow NAME for each guard that may be passed"
        raise RefusedError(f"the plan is not safe: {'; '.join(plan.failed_guards)}; nothing was done", hint=hint)
    if plan.format < (1, 1) or not all(step.command.effects for step in plan.steps):
        raise InputError(f"{where}: is of an older format, which can be rendered but not applied", hint="make it again")
