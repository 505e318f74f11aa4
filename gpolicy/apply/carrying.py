"""Run tasks one after another: the journal has each before it begins, and it is done when the cluster shows it."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from gpolicy.apply import jobs, journals, work
from gpolicy.errors import ExitCode, GpolicyError, InputError, UnreachableError, argument
from gpolicy.plan.effects import Effect, carried_out, written
from gpolicy.plan.step import Procedure
from gpolicy.plan.steps import POOL_SIZE
from gpolicy.printable import Tone, clipped, count

_T = TypeVar("_T")
_PROMOTING_ATTEMPTS: Final = 2
_LONGEST_MESSAGE: Final = 256 * 1024  # characters; one warning names all instances that violate a policy


class ApplyError(GpolicyError):
    """A run ends before its time. `differences` say where the cluster is not as it should be."""

    exit_code = ExitCode.FINDINGS

    def __init__(
        self, message: str, *, differences: Sequence[work.LeafDifference] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.differences = tuple(differences)


class CarryingError(ApplyError):
    """A step failed, or may not be begun: what was done before stays done."""


class HaltedError(CarryingError):
    """Somebody asked us to stop, or a job takes longer than we wait: nothing is wrong yet."""


@dataclass(slots=True, kw_only=True)
class Carrier:
    """Carries tasks of `procedure` out through `runner`. Without the lock (`lock_is_lost`) no further one begins.

    `say` gets lines about the progress, with their tones.
    While the `journal` is open, `known` is the last look, and the marks of all jobs begin with `mark`.
    """

    procedure: Procedure
    runner: jobs.Runner
    say: Callable[[str, Tone], None]
    patience: jobs.Patience = field(default_factory=jobs.Patience)
    stop: jobs.StopRequests = field(default_factory=jobs.StopRequests)
    lock_is_lost: Callable[[], bool] = lambda: False
    journal: journals.JournalFile = field(init=False)
    known: work.Sight = field(init=False)
    cluster: work.ClusterIdentity = field(init=False)
    mark: str = field(init=False)
    _unanswered: dict[str, str] = field(default_factory=dict)  # titles of steps with requests without answer and job
    _silent: bool = False  # no further message is kept or shown

    def carry(self, tasks: Sequence[work.Task], *, first: int = 1, count: int | None = None) -> None:
        """Carry out `tasks`, which are numbers `first` … of `count`. Raise CarryingError at the first that fails."""
        for index, task in enumerate(tasks):
            self.say(f"[{first + index}/{count or len(tasks)}] {task.title}", Tone.STRONG)
            sight = self.take_sight()
            self._accept((), sight, tasks[index:])  # somebody else may have changed what is left to do
            self._carry(task, tasks[index:])

    def _check_may_begin(self, task: work.Task, attempt: int) -> None:
        # nothing may take time between this and the attempt: a look at the cluster lasts up to two minutes
        if self.stop.after_step:
            when = "before" if attempt == 1 else "after an attempt at"
            raise HaltedError(f"stopped {when} step {task.key}, as asked")
        if self.lock_is_lost():
            so = f"step {task.key} ({task.title}) was not {'begun' if attempt == 1 else 'tried again'}"
            raise HaltedError(f"the lock on the master was lost (its connection has ended): {so}")

    def note(self, text: str) -> None:
        """Say what is worth knowing."""
        self.say(f"  note: {text}", Tone.PLAIN)

    def message(self, text: str) -> None:
        """Say what Ganeti says about a job: a line of its log, a warning."""
        self.say(f"  {text}", Tone.CAREFUL if "WARNING" in text else Tone.PLAIN)

    def _carry(self, task: work.Task, left: Sequence[work.Task]) -> None:
        begun = time.monotonic()
        for attempt, pause in enumerate([*self.patience.pauses(), None], start=1):  # None after the last
            if attempt > 1:
                self.await_jobs(self.marked_jobs() if self._unanswered else ())
                sight = self.take_sight()
                if work.is_done(task, sight):
                    self._finish(task, left, sight, since=begun)
                    return
                there = work.effects_there(task.command.effects, sight)
                self._check_expected(there, sight, left)  # all attempts are held against the look before the first
            self._check_may_begin(task, attempt)
            outcome = self._attempt(task, attempt)
            sight = self.await_effects(task, outcome)
            succeeded = outcome.result is jobs.JobResult.SUCCESS
            if work.is_done(task, sight, succeeded=succeeded):
                if not succeeded:
                    self.message(f"the job failed ({outcome.text}), but its changes are there")
                self._finish(task, left, self._promoting(task, sight, attempt), since=begun)
                return
            if succeeded and self.stop.at_once:
                raise self._left_alone(task, outcome)  # what it stored may not be shown yet
            missing = work.effects_missing(task.command.effects, sight)
            self.record_failed(task, outcome, sight)
            again = not succeeded and jobs.passes(outcome.text)
            if pause is None or not again or not work.may_run(task, sight):
                partly = succeeded or len(missing) < len(task.command.effects)
                values = [sight.contents.get(item.object, {}).get(item.path) for item in missing]
                differences = [
                    work.LeafDifference(item.object, item.path, item.after, value)
                    for item, value in zip(missing, values, strict=True)
                    if partly
                ]
                raise CarryingError(f"step {task.key} ({task.title}) failed: {_why(outcome)}", differences=differences)
            self.note(f"{outcome.text}: this is temporary, trying again in {pause:.0f} s")
            jobs.pause(pause, self.stop)
            if self.stop.after_step:
                raise HaltedError(f"stopped after an attempt at step {task.key}, as asked")

    def _promoting(self, task: work.Task, sight: work.Sight, attempts: int) -> work.Sight:
        """Send a step that enlarges the candidate pool again while the pool lacks nodes; return the last look.

        Ganeti's first job may only store the size, and promote nobody (seen on 3.0.2 and 3.1).
        """
        sizes = [(item.before, item.after) for item in task.command.effects if item.path == POOL_SIZE]
        enlarged = any(isinstance(old, int) and isinstance(new, int) and old < new for old, new in sizes)
        for attempt in range(attempts + 1, attempts + 1 + _PROMOTING_ATTEMPTS):
            if not (enlarged and sight.lacking_candidates) or self.stop.after_step or self.lock_is_lost():
                break
            self.note(f"the candidate pool lacks {count(sight.lacking_candidates, 'node')}: sent again")
            outcome = self._attempt(task, attempt)
            if outcome.result is not jobs.JobResult.SUCCESS:
                self.note(f"it failed: {_why(outcome)}")
            sight = self.await_effects(task, outcome)
        if enlarged and sight.lacking_candidates:
            lacking = f"the candidate pool still lacks {count(sight.lacking_candidates, 'node')}"
            self.note(f"{lacking}: send gnt-cluster modify -C with its size once more")
        return sight

    def _attempt(self, task: work.Task, number: int) -> jobs.JobOutcome:
        """Start a job and wait for it. One that is lost sight of is looked for until Ganeti tells what became of it."""
        mark = f"{self.mark}-{task.key}-{secrets.token_hex(6)}"
        job = {"mark": mark, "attempt": number, "route": self.runner.route}
        self.journal.write(journals.STARTED, {"step": task.key, "title": task.title, **job})
        try:
            outcome = self.runner.run(task.command, mark, self._watch(task))
            if outcome.result is jobs.JobResult.UNKNOWN:
                outcome = self.resolve(task, mark, outcome.job, outcome)
        except journals.JournalError as error:
            begun = f"step {task.key} ({task.title}) has begun, and its job goes on in Ganeti"
            raise CarryingError(f"{error.message}; {begun}") from None
        return outcome

    def resolve(self, task: work.Task, mark: str, job: int | None, so_far: jobs.JobOutcome) -> jobs.JobOutcome:
        """Return the result of a job whose connection was lost. Raise HaltedError if it cannot be found in time."""
        until = time.monotonic() + self.patience.contact
        poll = jobs.Poll(self.patience.first_pause, self.patience.longest_pause, self.stop)
        looked = False
        while True:
            if so_far.waiting or self.stop.at_once:
                raise self._left_alone(task, so_far)
            try:
                if job is None:
                    job = self._find_job(task, mark)
                if job is None and looked:
                    self._unanswered[task.key] = task.title
                    return jobs.JobOutcome(jobs.JobResult.FAILED, so_far.text)
                if job is None:
                    looked = True
                    jobs.pause(self.patience.look_again, self.stop)
                    continue
                outcome = self.runner.follow(job, self._watch(task))
                if outcome is None:
                    found = self._find_job(task, mark, job)
                    if found == job:  # archived: the look decides
                        return jobs.JobOutcome(jobs.JobResult.UNKNOWN, so_far.text, job)
                    job = found  # what answered our request gave another number
                    continue
                if outcome.result is not jobs.JobResult.UNKNOWN:
                    return outcome
                so_far = outcome
            except (UnreachableError, InputError) as error:
                so_far = jobs.JobOutcome(jobs.JobResult.UNKNOWN, error.message, job)
                self.note(f"{error.message}; asking again")
            if time.monotonic() >= until:
                raise self._left_alone(task, so_far)
            poll.wait()

    def _find_job(self, task: work.Task, mark: str, job: int | None = None) -> int | None:
        """Return the number of the job with `mark`: `job` if it is listed or none is, else another, which is noted."""
        numbers = [found.number for found in self._ask_runner(partial(self.runner.marked_jobs, mark))]
        if not numbers or job in numbers:
            return job
        self._watch(task).job(numbers[0])
        return numbers[0]

    def await_jobs(self, marked: Iterable[jobs.MarkedJob]) -> None:
        """Wait for those of the `marked` jobs that have not ended: the jobs of requests that got no answer."""
        for job in marked:
            if job.pending:
                self.note(f"job {job.number}, of a request that got no answer, came late: waiting for it")
                ignored = jobs.Watch(lambda _: None, self.message, self.note)
                outcome = self._reaching(partial(self.runner.follow, job.number, ignored))
                if outcome is not None and outcome.result is jobs.JobResult.UNKNOWN:
                    raise HaltedError(f"job {job.number}, of a request that got no answer, goes on in Ganeti")

    def marked_jobs(self) -> list[jobs.MarkedJob]:
        """Return the jobs of this journal that Ganeti's queue holds."""
        return self._reaching(lambda: self._ask_runner(partial(self.runner.marked_jobs, self.mark)))

    def _left_alone(self, task: work.Task, outcome: jobs.JobOutcome) -> HaltedError:
        job = f"job {outcome.job}" if outcome.job is not None else "its job, if there is one,"
        why = f": {outcome.text}" if outcome.text else ""
        begun = f"step {task.key} ({task.title}) has begun, but we no longer wait for it{why}"
        return HaltedError(f"{begun}; {job} goes on in Ganeti")

    def _watch(self, task: work.Task) -> jobs.Watch:
        def job(number: int) -> None:
            self.journal.write(journals.SUBMITTED, {"step": task.key, "job": number})
            self.say(f"  job {number}", Tone.PLAIN)

        def message(text: str) -> None:
            if self._silent:
                return
            self._silent = self.journal.is_long
            text = "the journal is too long for more messages" if self._silent else clipped(text, _LONGEST_MESSAGE)
            self.journal.write(journals.MESSAGE, {"step": task.key, "text": text})
            self.message(text)

        return jobs.Watch(job, message, self.note)

    def take_sight(self) -> work.Sight:
        """Return a new look at the cluster, as soon as possible. Raise CarryingError if another one answers."""
        instances = self.procedure.moves_instances
        state = self._reaching(lambda: self._ask_runner(partial(self.runner.glance, instances=instances)))
        if other := self.cluster.other(state):
            hint = f"is {argument('destination')} still the right address? {argument('resume')} goes on once it is"
            raise CarryingError(f"{other}; no further step was begun", hint=hint)
        return work.Sight.of(state, instances=instances)

    def take_last_sight(self) -> work.Sight:
        """Return a look at the cluster after everything that this run began."""
        self.await_jobs(self.marked_jobs() if self._unanswered else ())
        for key in self._unanswered:
            what = "whether Ganeti accepted one of its requests is unknown; no job of it was found"
            self.note(f"step {key}: {what}")
        return self.take_sight()

    def _ask_runner(self, ask: Callable[[], _T]) -> _T:
        with jobs.told_if_slow(self.note, self.runner.destination):
            return ask()

    def _reaching(self, ask: Callable[[], _T]) -> _T:
        """Return the answer to a question, asked again until it comes. Raise HaltedError if it does not in time."""
        until = time.monotonic() + self.patience.contact
        poll = jobs.Poll(self.patience.first_pause, self.patience.longest_pause, self.stop)
        while True:
            try:
                return ask()
            except (UnreachableError, InputError) as error:
                if time.monotonic() >= until or self.stop.at_once:
                    goes_on = "has begun: its job, if there is one, goes on in Ganeti"
                    begun = "".join(f"; step {key} ({title}) {goes_on}" for key, title in self._unanswered.items())
                    raise HaltedError(f"the cluster cannot be read: {error.message}{begun}") from None
                self.note(f"{error.message}; asking again")
            poll.wait()

    def await_effects(self, task: work.Task, outcome: jobs.JobOutcome) -> work.Sight:
        """Return a look at what a job did: Ganeti may answer before what it stored can be read."""
        until = time.monotonic() + self.patience.settle
        poll = jobs.Poll(self.patience.first_poll, 1.0, self.stop)
        while True:
            sight = self.take_sight()
            settled = not work.effects_missing(task.command.effects, sight) or outcome.result is jobs.JobResult.FAILED
            if settled or time.monotonic() >= until or self.stop.at_once:
                return sight
            poll.wait()

    def _accept(self, done: Sequence[Effect], sight: work.Sight, left: Sequence[work.Task]) -> None:
        """Check a look, and know it from now on. Raise CarryingError if it is not as expected."""
        self._check_expected(done, sight, left)
        self.known = sight

    def _check_expected(self, done: Sequence[Effect], sight: work.Sight, left: Sequence[work.Task]) -> None:
        """Raise CarryingError if a look shows, of what is `left`, anything but `done` beside what was known."""
        expected = carried_out(done, self.known.contents)
        touched = {effect.object for task in left for effect in task.command.effects}
        names = dict.fromkeys((*expected, *sight.contents))
        changed = work.compare_contents(names, expected, sight.contents, (*self.known.gaps, *sight.gaps), done)
        if not done:
            effects = (effect for task in left for effect in task.command.effects)
            changed += work.by_serial(effects, sight, self.known.serials())[0]
        in_our_way = [item for item in changed if item.object in touched]
        for item in changed:
            if item not in in_our_way:
                self.note(f"also changed, not by this {self.procedure.noun}: {told(item)}")
        if in_our_way:
            text = "somebody else has changed objects that the remaining steps touch; those steps were not begun"
            undo = f"the journal has what was done so far, and {argument('rollback')} undoes it"
            raise CarryingError(text, differences=in_our_way, hint=f"make a fresh {self.procedure.noun}; {undo}")

    def _finish(self, task: work.Task, left: Sequence[work.Task], sight: work.Sight, *, since: float) -> None:
        """Hold a look after a step against what the step was to change, and nothing else; then it is done."""
        self._accept(task.command.effects, sight, left[1:])
        self.record_done(task, ran=True)
        self.say(f"  done ({time.monotonic() - since:.1f} s)", Tone.PLAIN)

    def record_done(self, task: work.Task, *, ran: bool = False) -> None:
        """Write into the journal that a step is done; `ran` is false if it was found done."""
        found = {"found": not ran, "serials": written_serials(task, self.known)}
        self.journal.write(journals.DONE, {"step": task.key, **found})

    def record_failed(self, task: work.Task, outcome: jobs.JobOutcome, sight: work.Sight) -> list[Effect]:
        """Write into the journal that an attempt failed; return what Ganeti did all the same, as far as it is seen."""
        effects = task.command.effects
        there = [effect for effect in work.effects_there(effects, sight) if effect.before != effect.after]
        seen = [effect for effect in there if sight.shows(effect.object, effect.path)]
        found = {
            "step": task.key,
            "reason": _why(outcome),
            "done": [effect_name(effect) for effect in seen],
            "missing": [effect_name(effect) for effect in work.effects_missing(effects, sight)],
            "serials": {} if outcome.job is None else written_serials(task, sight),
        }
        self.journal.write(journals.FAILED, found)
        return seen


def effect_name(effect: Effect) -> str:
    """Return how the journal names an effect."""
    return f"{effect.object} {'.'.join(effect.path)}"


def written_serials(task: work.Task, sight: work.Sight) -> dict[str, int]:
    """Return the serial numbers of the objects that a step writes, as a look shows them."""
    ours = written(task.command.effects)
    return {name: number for name, number in sight.serials().items() if name in ours}


def told(item: work.LeafDifference) -> str:
    """Return a difference in words."""
    where = f"{item.object} {'.'.join(item.path)}".rstrip()
    return f"{where}, from {json.dumps(item.expected)} to {json.dumps(item.found)}"


def _why(outcome: jobs.JobOutcome) -> str:
    if outcome.result is jobs.JobResult.SUCCESS:
        return "Ganeti reports success, but some of the changes are missing"
    return outcome.text or "Ganeti gives no reason"
