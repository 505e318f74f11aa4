"""The invariants of every schedule, judged by the simulated cluster, its requests and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpolicy.apply.work import Task, backward, forward
from gpolicy.cluster.state import HIDDEN_BY_RAPI
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, Change, ChangeAction, words
from gpolicy.plan.effects import Contents, Effect, shown_by
from tests.simulator.scenarios import Scenario
from tests.simulator.simulated_ganeti import Job, SimulatedGaneti

if TYPE_CHECKING:
    from tests.simulator.simulated_machine import ApplyProcess
    from tests.simulator.simulated_world import Ended

_LONGEST_STEP: Final = 8000.0  # virtual seconds that one step may take: six attempts, each lost and looked for
_STATES: Final = (("hv_state",), ("disk_state",))


@dataclass(slots=True)
class Submission:
    """A request for a job: by whom, and what tells whether it may still be on its way to the queue."""

    mark: str
    key: str
    process: ApplyProcess
    on_its_way: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class Judge:
    """Collects requests, answers and effects, and checks the invariants."""

    scenario: Scenario
    ganeti: SimulatedGaneti
    route: str
    violations: list[str] = field(default_factory=list)
    replaced: SimulatedGaneti | None = None
    concurrent: bool = False
    submissions: dict[str, Submission] = field(default_factory=dict)
    known_tasks: dict[str, Task] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)  # of the steps, by mark, as journals have them
    looked: int = 0  # mutations that were judged

    def __post_init__(self) -> None:
        plan = self.scenario.plan
        tasks = [*forward(plan), *backward(plan, {step.id for step in plan.steps})]
        self.known_tasks = {task.key: task for task in tasks}

    def blame(self, text: str) -> None:
        """Note a broken invariant."""
        self.violations.append(text)

    # --- while a process runs ----------------------------------------------------------------------------------------

    def saw(self, process: ApplyProcess, ganeti: SimulatedGaneti, what: str) -> None:
        """A part of the cluster was shown to a process."""
        truth = ganeti.truth
        if what.endswith(("info", "config")):
            process.seen_identity = (ganeti.name, ganeti.uuid)
        prefixes = {"/2/info": ("cluster",), "/2/groups": ("group/",), "/2/nodes": ("node/",),
                    "/2/query/node": ("node/",), "config": ("cluster", "group/", "node/")}.get(what, ())  # fmt: skip
        if prefixes:
            kept = {name: values for name, values in process.seen.items() if not name.startswith(prefixes)}
            process.seen = kept | {name: values for name, values in truth.items() if name.startswith(prefixes)}

    def began(self, process: ApplyProcess, event: Mapping[str, Any]) -> None:
        """A step is about to begin."""
        self.keys[event["mark"]] = event["step"]
        if process.stops or process.root.stops:
            self.blame(f"step {event['step']} was begun after somebody had asked to stop")
        if process.root.dead:
            self.blame(f"step {event['step']} was begun after the roll-out was killed")
        if process.lock_lost:
            self.blame(f"step {event['step']} was begun after the lock was lost")

    def submitting(self, process: ApplyProcess, mark: str) -> None:
        """A job is asked for."""
        key = self._key(mark)
        task = self.known_tasks.get(key)
        if task is None or mark in self.submissions:
            self.blame(f"a job is asked for with the mark {mark!r}, {'a second time' if task else 'which is no step'}")
            return
        mine = [item for item in self.submissions.values() if item.process.machine == process.machine]
        pending = [job for job in self._jobs() if job.pending and job.mark in {item.mark for item in mine}]
        known = {job.mark for job in self._jobs()}
        on_the_way = [item for item in mine if item.mark not in known and item.on_its_way()]
        if pending or on_the_way:
            what = [f"job {job.number} of {self._key(job.mark)}" for job in pending] or ["one on its way"]
            self.blame(f"step {key} is asked for while {', '.join(what)} is under way")
        shown = shown_to(process)
        if not any(line.strip().startswith(f"{task.step}. ") and task.title in line for line in shown):
            self.blame(f"step {key} was not shown in the consent")
        if process.seen_identity != (self.scenario.plan.cluster, "1"):
            self.blame(f"step {key} goes to another cluster than the plan is for: {process.seen_identity}")
        attempted = any(item.key == key for item in mine)
        for effect in task.command.effects:
            self._as_expected(effect, task, process.seen, mine, attempted=attempted)
        self.submissions[mark] = Submission(mark, key, process)

    def _as_expected(
        self, effect: Effect, task: Task, seen: Contents, mine: list[Submission], *, attempted: bool
    ) -> None:
        """Blame a step that is begun although what it touches was seen to be neither what it was nor what it is to be.

        A leaf that is as the step will leave it is another's work if this step was never tried.
        """
        if effect.path in (NAME, MEMBERSHIP) or effect.object not in seen:
            return
        if not self.shows(effect.object, effect.path) and (effect.object == "cluster" or mine):
            return  # no serial number stands for the cluster's, and later ones are our own
        found = seen[effect.object].get(effect.path)
        others = {self._text(found)} & {self._text(item) for item in self._values(effect)}
        back = task.key != task.step
        if (
            found == effect.before
            or (found == effect.after and (attempted or back))
            or (others and (attempted or back))
        ):
            return
        self.blame(
            f"step {task.key} is begun although {effect.object} {'.'.join(effect.path)} was seen to be {found!r}, not"
            f" {effect.before!r}"
        )

    def _values(self, effect: Effect) -> list[Any]:
        same = [
            item
            for task in self.known_tasks.values()
            for item in task.command.effects
            if (item.object, item.path) == (effect.object, effect.path)
        ]
        return [value for item in same for value in (item.before, item.after)]

    @staticmethod
    def _text(value: Any) -> str:
        return repr(value)

    def in_flight(self, mark: str, on_its_way: Callable[[], bool]) -> None:
        """A request may still get to the queue, as long as `on_its_way` says so."""
        if mark in self.submissions:
            self.submissions[mark].on_its_way = on_its_way

    # --- after a process ---------------------------------------------------------------------------------------------

    def after(self, ended: Ended) -> None:
        """Judge the effects and the output of a run."""
        self._effects()
        self._twice()
        if ended.code is None:
            return
        text = ended.text
        back = "--rollback" in ended.process.flags
        mine = [item for item in self.submissions.values() if item.process is ended.process]
        if mine and "nothing was done" in text:
            self.blame("it says that nothing was done, after a job was asked for")
        steps = len(self.scenario.plan.steps)
        if ended.ended - ended.begun > _LONGEST_STEP * (steps + 2):
            self.blame(f"a run took {ended.ended - ended.begun:.0f} s")
        marks = {item.mark for item in self.submissions.values() if item.process.machine == ended.process.machine}
        here = {item.mark for item in mine}
        for job in self._jobs():
            if job.pending and job.mark in marks:
                self._named(ended, job, by_this_run=job.mark in here)
        if ended.code == 0 and not back and "nothing to do" not in text:
            for change in self.scenario.plan.changes:
                if not is_there(change, ended.process.seen) and not self._unseen(text, change.object, change.path):
                    self.blame(f"exit code 0, and {change.object} {'.'.join(change.path)} is not there")
        if (ended.code == 0 and back) or "as it was before" in text:
            self._as_before(ended)

    def _named(self, ended: Ended, job: Job, *, by_this_run: bool) -> None:
        if ended.code == 0:
            self.blame(f"exit code 0 while job {job.number} is under way")
        key = self._key(job.mark)
        words = ("goes on in Ganeti", "if there is one", "under way")
        said = any(f"step {key} (" in line and any(word in line for word in words) for line in ended.text.splitlines())
        if by_this_run and not said and self.replaced is None:  # who has another cluster before him cannot know
            self.blame(f"job {job.number} of step {key} is under way, and nothing says so")

    # --- what was changed --------------------------------------------------------------------------------------------

    def _jobs(self) -> list[Job]:
        jobs = list(self.ganeti.jobs.values())
        return jobs if self.replaced is None else [*jobs, *self.replaced.jobs.values()]

    @property
    def foreign(self) -> bool:
        """Whether somebody else has changed the cluster, or another one took its place."""
        return self.replaced is not None or any(not item.mark for item in self.ganeti.mutations)

    def ours(self) -> list[Job]:
        """Return the jobs of the plan, by number."""
        jobs = [job for job in self.ganeti.jobs.values() if job.mark in self.submissions]
        return sorted(jobs, key=lambda item: item.number)

    def task_of(self, job: Job) -> Task:
        """Return the task of one of the plan's jobs."""
        return self.known_tasks[self._key(job.mark)]

    def _effects(self) -> None:
        """Check that our jobs changed exactly the effects of their steps."""
        for mutation in self.ganeti.mutations[self.looked :]:
            task = self.known_tasks.get(self._key(mutation.mark)) if mutation.mark in self.submissions else None
            for (name, path), (_, after) in mutation.changes.items() if task else ():
                assert task is not None
                if not _announced(task, name, path, after):
                    self.blame(f"step {task.key} changed {name} {'.'.join(path)} to {after!r}, which it does not say")
        self.looked = len(self.ganeti.mutations)

    def _twice(self) -> None:
        """See that no step took effect twice, but for what others or a way back did in between.

        A value that the look cannot show is set again when nobody knows any more what became of the first job.
        """
        if self.concurrent or any(not item.mark for item in self.ganeti.mutations):
            return
        last: dict[str, bool] = {}
        forgotten = {self._key(job.mark) for job in self.ganeti.jobs.values() if job.archived and job.mark}
        for job in self.ours():
            if not job.took_effect or job.error:
                continue
            task = self.task_of(job)
            key = task.key
            unknown = key in forgotten and task.repeatable
            unseen = not any(self.shows(effect.object, effect.path) for effect in task.command.effects)
            if last.get(key) and not (unknown and unseen):
                self.blame(f"step {key} took effect twice")
            last[key] = True
            for other, known in self.known_tasks.items():
                if known.step == task.step and (other == other.partition("-")[0]) != (key == key.partition("-")[0]):
                    last[other] = False

    def _as_before(self, ended: Ended) -> None:
        """See that all that the plan touches is as the plan found it, but for what it says cannot be."""
        text, seen = ended.text, ended.process.seen
        plan = self.scenario.plan
        effects = [effect for step in plan.steps for effect in step.command.effects]
        lost = {
            (effect.object, effect.path)
            for step in plan.steps
            if step.inverse.not_restored
            for effect in (*step.command.effects, *(item for back in step.inverse.commands for item in back.effects))
        }
        for effect in effects:
            names = [effect.object, *([f"group/{effect.after}"] if effect.path == NAME and effect.after else [])]
            for name in names:
                if (name, effect.path) in lost or self._unseen(text, name, effect.path):
                    continue
                known, values = plan.observed.get(name), seen.get(name)
                if (known is None) != (values is None):
                    self.blame(f"taken back, and {name} is {'there' if values is not None else 'not there'}")
                elif known is not None and values is not None:
                    before, found = known.values.get(effect.path), values.get(effect.path)
                    if before != found:
                        path = ".".join(effect.path)
                        self.blame(f"taken back, and {name} {path} is {found!r}, not {before!r}")

    def _unseen(self, text: str, name: str, path: tuple[str, ...]) -> bool:
        """Return whether a value is hidden, and it is said or somebody else has changed it last: nobody can know."""
        if self.shows(name, path):
            return False
        last = [item for item in self.ganeti.mutations if (name, path) in item.changes]
        said = f"not seen: {name} {'.'.join(path)}" in text or f"left alone: {name} serial_no" in text
        return said or bool(last and not last[-1].mark)

    def shows(self, name: str, path: tuple[str, ...]) -> bool:
        """Return whether a look can show a value."""
        return self.route != "rapi" or shown_by(HIDDEN_BY_RAPI, name, path)

    def _key(self, mark: str) -> str:
        return self.keys.get(mark, "")


def _announced(task: Task, name: str, path: tuple[str, ...], after: Any) -> bool:
    """Return whether a task says that it changes a leaf to this."""
    for effect in task.command.effects:
        if effect.path == NAME:
            if name in (effect.object, f"group/{effect.after}") and (effect.renames or effect.after is None):
                return True
            if name == effect.object and path in (NAME, ("alloc_policy",)):
                return True
            if effect.renames and path == MEMBERSHIP:
                return bool(after == effect.after)
    for effect in task.command.effects:
        if (effect.object, effect.path) == (name, path):
            return bool(after == effect.after)
    beside = {effect.path[:-1] for effect in task.command.effects if effect.object == name}
    return path[:1] in _STATES and path[:-1] in beside


def is_there(change: Change, seen: Contents) -> bool:
    """Return whether a cluster that was seen so has a change."""
    values = seen.get(change.object, {})
    match change.action:
        case ChangeAction.REMOVE:
            return f"group/{change.before}" not in seen
        case ChangeAction.RENAME:
            return f"group/{change.before}" not in seen and change.object in seen
    if change.path == TAGS:
        have = {path[1] for path in values if path[:1] == TAGS}
        before, after = set(words(change.before)), set(words(change.after))
        return change.object in seen and after - before <= have and not (before - after) & have
    return change.object in seen and values.get(change.path) == change.after


def shown_to(process: ApplyProcess) -> list[str]:
    """Return the lines of the consent before a process began: those of its cluster, in a roll-out."""
    lines = process.root.said.getvalue().splitlines()
    if process.parent is None:
        return lines
    mine, shown = False, list[str]()
    for line in lines:
        if not line.startswith(" "):
            mine = line.startswith(f"{process.site}: ")
        if mine:
            shown.append(line)
    return shown
