"""A run of a roll-out: wave after wave, a look at each, and one journal of the whole.

The journals of the clusters say which steps were done. This one says which plans belong together, which clusters were
begun, which journal each of them has, and what the looks at them found. It has their form (`gpolicy.apply.journals`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from gpolicy.apply import journals
from gpolicy.apply.jobs import FailedJob, Runner, StopRequests, pause
from gpolicy.apply.plan_run import RefusedError, check_cluster, guards_now
from gpolicy.apply.work import Sight, judge_outcome, path_text
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import ExitCode, GpolicyError, RequestError, argument
from gpolicy.fleet.named_clusters import RolloutWave
from gpolicy.ganeti.parameters import amount_text
from gpolicy.json_values import DIGEST, FROM_ONE, NOT_EMPTY, TEXTS, Document, Many, OwnFile, Shape
from gpolicy.plan.plan import Plan

ROLLOUT_FILE: Final = OwnFile("gpolicy-rollout-journal", "1.0", "a roll-out's journal", unread=("",))
NAME: Final = "_rollout.journal.jsonl"
"""The name of the file, beside the plans. No cluster can have it: names of clusters begin with a letter or a digit."""

BEGUN: Final = Shape(dict, "cluster-begun").with_keys(cluster=NOT_EMPTY)
ENDED: Final = Shape(dict, "cluster-ended").with_keys(cluster=NOT_EMPTY, exit_code=int, message=str, journal=str | None)
LOOKED: Final = Shape(dict, "cluster-looked").with_keys(cluster=NOT_EMPTY, troubles=TEXTS, failed_jobs=Many(FROM_ONE))


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutHistory:
    """The history of all runs of a roll-out.

    `plans` are the digests of plan files by cluster. `begun` are the clusters with which a run has begun, `journal_ids`
    the identifiers of their journals, as far as a run has seen the cluster's end. `failed_jobs` are jobs that looks
    have told of, by cluster. `ended` is the outcome of the last run, None if it was killed.
    """

    direction: journals.Direction
    plans: Mapping[str, str]
    begun: frozenset[str] = frozenset()
    journal_ids: Mapping[str, str] = field(default_factory=dict)
    failed_jobs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    ended: str | None = None
    end: journals.ChainEnd = field(default_factory=journals.ChainEnd)

    def is_of(self, plans: Mapping[str, str]) -> bool:
        """Return whether one of these plans is among those of the roll-out."""
        return any(self.plans.get(cluster) == digest for cluster, digest in plans.items())


def read_rollout(data: bytes, where: str) -> RolloutHistory:
    """Return the history in the content of a journal. Raise InputError, which begins with `where`, if it is not one."""
    events, end = journals.read_chain(data, where, lambda event: journals.right_format(event, ROLLOUT_FILE))
    direction, ended = journals.Direction.APPLY, None
    plans, begun, ids, failed = dict[str, str](), frozenset[str](), dict[str, str](), dict[str, frozenset[int]]()
    for event in events:
        match event.text("event"):  # a later 1.x may have more events
            case journals.BEGIN:
                journals.right_format(event, ROLLOUT_FILE)
                direction, planned, ended = event.choice("direction", journals.Direction), event.record("plans"), None
                plans |= {cluster: planned.text(cluster) for cluster in planned.fields}
            case journals.END.name:
                ended = event.text("outcome")
            case BEGUN.name:
                begun |= {event.name("cluster")}
            case ENDED.name:
                if journal := event.text_or_none("journal"):
                    ids[event.name("cluster")] = journal
            case LOOKED.name:
                cluster, told = event.name("cluster"), event.items("failed_jobs")
                jobs = [job for job in told if type(job) is int]
                if len(jobs) < len(told):
                    event.refuse("failed_jobs", "a list of numbers")
                failed[cluster] = failed.get(cluster, frozenset()).union(jobs)
    return RolloutHistory(
        direction=direction, plans=plans, begun=begun, journal_ids=ids, failed_jobs=failed, ended=ended, end=end
    )


def rollout_history(path: Path, plans: Mapping[str, str], *, resume: bool, rollback: bool) -> RolloutHistory | None:
    """Return what the journal at `path` says of a roll-out of these plans, None without a journal.

    Raise RequestError when the run that is asked for does not follow from it. A journal of other plans is not judged
    here: `RolloutHistory.is_of` says no.
    """
    hint = "name the directory of the plans that were begun"
    data = journals.read_begun(path, resume=resume, rollback=rollback, hint=hint)
    if data is None:
        return None
    history = read_rollout(data, str(path))
    if not history.is_of(plans):
        if resume or rollback:
            raise RequestError(f"{path}: is the journal of other plans", hint="make fresh plans of all clusters")
        return history
    if not resume and not rollback:
        way = f"{argument('resume')} continues it, {argument('rollback')} undoes it;"
        if history.direction is journals.Direction.ROLLBACK:
            way = f"continue with {argument('rollback')},"
        before = f"this roll-out has begun before ({journals.how_ended(history.direction, history.ended)})"
        raise RequestError(f"{path}: {before}", hint=f"{way} or make fresh plans of all clusters")
    if resume and history.direction is journals.Direction.ROLLBACK:
        hint = f"continue with {argument('rollback')}, or make fresh plans"
        raise RequestError(f"{path}: a rollback of this roll-out has begun", hint=hint)
    return history


class PlanStage(StrEnum):
    """How far a plan is."""

    EMPTY = "nothing to do"  # it has no steps
    UNTOUCHED = "not begun"
    PARTLY = "partly done"
    DONE = "done"
    PARTLY_BACK = "partly taken back"
    BACK = "taken back"
    UNKNOWN = "unknown"  # its journal cannot be read, or has gone


COMPLETE = frozenset({PlanStage.EMPTY, PlanStage.DONE})
"""Nothing of the plan is left to do."""

REVERTED = frozenset({PlanStage.EMPTY, PlanStage.UNTOUCHED, PlanStage.BACK})
"""Nothing of the plan is left to take back."""


def stage_of(history: journals.RunHistory | None, *, is_empty: bool = False) -> PlanStage:
    """Return how far a plan is, which has no steps if it `is_empty`; `history` is what its journal says, if any."""
    if is_empty:
        return PlanStage.EMPTY
    if history is None:
        return PlanStage.UNTOUCHED
    if history.direction is journals.Direction.ROLLBACK:
        return PlanStage.BACK if history.ended == "done" else PlanStage.PARTLY_BACK
    return PlanStage.DONE if history.ended == "done" else PlanStage.PARTLY


@dataclass(frozen=True, slots=True)
class RolloutAction:
    """Carry out the plans of these clusters of a wave, or take them back; `is_look`: look at them, which are done."""

    wave: RolloutWave
    clusters: tuple[str, ...]
    is_look: bool = False


def next_forward(
    waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], looked_at: AbstractSet[str]
) -> RolloutAction | None:
    """Return the next action of a roll-out without trouble so far, None at its end.

    A wave begins only when the plans of all waves before it are done, and a look at each of their clusters was good
    (`looked_at`, by the wave's label).
    """
    for wave in waves:
        if left := tuple(name for name in wave.clusters if stages[name] not in COMPLETE):
            return RolloutAction(wave, left)
        if wave.label not in looked_at:
            return RolloutAction(wave, wave.clusters, is_look=True)
    return None


def next_back(
    waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], tried: AbstractSet[str]
) -> RolloutAction | None:
    """Return the next clusters whose plans are taken back, None at the end: the last wave is the first.

    Those that were `tried` once are left alone, whatever came of it: trouble with one hinders no other.
    """
    for wave in reversed(waves):
        left = tuple(name for name in wave.clusters if stages[name] not in REVERTED and name not in tried)
        if left:
            return RolloutAction(wave, left)
    return None


@dataclass(frozen=True, slots=True)
class LookResult:
    """What a look found: `troubles` stop the roll-out. `failed_jobs` are the jobs that it tells of."""

    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failed_jobs: tuple[int, ...] = ()


def look_at(
    plan: Plan, runner: Runner, state: ClusterState, history: journals.RunHistory | None, told: AbstractSet[int]
) -> LookResult:
    """Return what is wrong with a cluster after its plan: missing changes, guards that fail, jobs that failed since.

    `history` is what the plan's journal says. Jobs that were `told` of before are a note: who resumes knows them.
    """
    troubles: list[str] = []
    failed: list[FailedJob] = []
    try:
        check_cluster(plan, state)
    except RefusedError as error:
        return LookResult((error.message,))
    for item in judge_outcome(plan.outcome, Sight.of(state)).differences:
        where = f"{item.object} {path_text(item.path)}".rstrip()
        expected, found = (amount_text(item.path, value) or json.dumps(value) for value in (item.expected, item.found))
        troubles.append(f"{where}: expected {expected}, found {found}")
    try:
        guards_now(plan, state, begun=True)
    except RefusedError as error:
        troubles.append(error.message)
    if history is not None:
        marked = runner.marked_jobs(journals.mark_start(plan.digest, history.id))
        own = {job.number for job in marked}  # its steps were seen
        known = own | history.jobs
        failed = [job for job in (runner.failed_jobs(min(known)) if known else ()) if job.number not in own]
    texts = {job.number: f"job {job.number} ({job.summary}) has failed since the plan began" for job in failed}
    notes = tuple(f"{text}; an earlier look has told of it" for job, text in texts.items() if job in told)
    new = {job: text for job, text in texts.items() if job not in told}
    return LookResult((*troubles, *new.values()), notes, tuple(new))


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the run of one cluster's plan ended: the exit code of `apply`, and why where it is not 0."""

    exit_code: int
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledOut:
    """One cluster at the end of a roll-out, or of the attempt. `outcome` and `look` are None where there was none."""

    name: str
    labels: Mapping[str, str]
    wave: str
    stage: PlanStage
    plan: str
    plan_digest: str
    journal: str
    outcome: RunResult | None = None
    look: LookResult | None = None

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong, in sentences."""
        found = self.look.troubles if self.look else ()
        return (self.outcome.message, *found) if self.outcome and self.outcome.exit_code else found

    def is_finished(self, *, back: bool) -> bool:
        """Return whether nothing is left to do with it: to carry a plan out, a look at the cluster is the last."""
        return self.stage in REVERTED if back else self.stage in COMPLETE and self.look is not None


class Hands(Protocol):
    """What a roll-out does with clusters, several at once. Results come in the order in which they are there."""

    def read_history(self, cluster: str) -> journals.RunHistory | None:
        """Return what the journal of the cluster's plan says; None without one. Raise InputError if it is damaged."""

    def run_each(self, clusters: Sequence[str], may_begin: Callable[[str], bool]) -> Iterator[tuple[str, RunResult]]:
        """Run the plans of clusters, or take them back. Right before each begins, `may_begin` is asked."""

    def look_at_each(
        self, clusters: Sequence[str], told: Mapping[str, AbstractSet[int]]
    ) -> Iterator[tuple[str, LookResult]]:
        """Look at clusters; `told` are the failed jobs that earlier looks have told of."""


@dataclass(slots=True)
class RolloutRun:
    """One run of a roll-out of `plans`: their digests, by cluster. All are in `waves`; those in `empty` have no steps.

    `history` is what earlier runs did, None for the first. `seconds` is the pause before the look at a wave. `say` gets
    lines about the progress. Afterwards `outcomes` and `looks` say what came of each cluster that this run came to.
    """

    waves: Sequence[RolloutWave]
    plans: Mapping[str, str]
    empty: AbstractSet[str]
    hands: Hands
    journal_file: Path
    say: Callable[[str], None]
    direction: journals.Direction = journals.Direction.APPLY
    history: RolloutHistory | None = None
    seconds: float = 0.0
    stop: StopRequests = field(default_factory=StopRequests)
    outcomes: dict[str, RunResult] = field(default_factory=dict)
    looks: dict[str, LookResult] = field(default_factory=dict)
    _lost: journals.JournalError | None = field(default=None, init=False)
    _seen: set[str] = field(default_factory=set, init=False)  # clusters whose journal was there

    def go(self) -> None:
        """Run to the end, to the first trouble, or until somebody asks to stop."""
        with self._writing() as journal:
            if self.direction is journals.Direction.ROLLBACK:
                self._back(journal)
            else:
                self._forward(journal)
            if self._lost:
                raise self._lost

    def stages(self) -> dict[str, PlanStage]:
        """Return how far each cluster is, as the journals on disk say."""
        return {name: self._standing(name)[0] for name in self.plans}

    def _standing(self, cluster: str) -> tuple[PlanStage, str | None]:
        """Return how far a cluster is, and the identifier of its journal.

        A journal that cannot be read, or has gone, ends no other run.
        """
        try:
            history = self.hands.read_history(cluster)
        except GpolicyError:
            return PlanStage.UNKNOWN, None
        if history is None:
            gone = cluster in self._seen
            return PlanStage.UNKNOWN if gone else stage_of(None, is_empty=cluster in self.empty), None
        self._seen.add(cluster)
        return stage_of(history, is_empty=cluster in self.empty), history.id

    @property
    def has_trouble(self) -> bool:
        """Whether a run or a look so far has not ended well."""
        failed = any(outcome.exit_code for outcome in self.outcomes.values())
        return failed or any(look.troubles for look in self.looks.values())

    def _forward(self, journal: journals.JournalFile) -> None:
        looked_at, known = set[str](), self.history
        unseen = set() if known is None else {*known.begun} - known.failed_jobs.keys()  # no look has told of them yet
        while not (self.has_trouble or self.stop.after_step):
            action = next_forward(self.waves, self.stages(), looked_at)
            if action is None:
                return
            if not action.is_look:
                self._tell(action)
                self._carry(journal, action, COMPLETE, may_go_on=lambda: not self.has_trouble)
                unseen.update(action.clusters)
                continue
            if self.seconds and not unseen.isdisjoint(action.clusters):
                self.say(f"waiting {self.seconds:g} s before the look at this wave")
                for _ in range(int(self.seconds * 5) + 1):  # a first request to stop ends the pause: nothing runs
                    if self.stop.after_step:
                        return
                    pause(min(0.2, self.seconds), self.stop)
                if self.stop.after_step:
                    return
            self._tell(action)
            self._look(journal, action.clusters)
            looked_at.add(action.wave.label)

    def _back(self, journal: journals.JournalFile) -> None:
        while not self.stop.after_step:
            action = next_back(self.waves, self.stages(), self.outcomes.keys())
            if action is None:
                return
            self._tell(action)
            self._carry(journal, action, REVERTED, may_go_on=lambda: True)

    def _tell(self, action: RolloutAction) -> None:
        what = "looking at wave" if action.is_look else "wave"
        number = self.waves.index(action.wave) + 1
        self.say(f"{what} {number} of {len(self.waves)} ({action.wave.label}): {', '.join(action.clusters)}")

    def _carry(
        self,
        journal: journals.JournalFile,
        action: RolloutAction,
        wanted: AbstractSet[PlanStage],
        *,
        may_go_on: Callable[[], bool],
    ) -> None:
        """Run the plans of a wave. Each is in the journal before it begins."""

        def may_begin(cluster: str) -> bool:
            if self._lost or self.stop.after_step or not may_go_on():
                return False
            return self._write(journal, BEGUN, {"cluster": cluster})

        for cluster, told in self.hands.run_each(action.clusters, may_begin):
            stage, journal_id = self._standing(cluster)
            if not told.exit_code and stage not in wanted:
                reason = "its run ended well, but its journal does not say that all is done"
                told = RunResult(int(ExitCode.FINDINGS), reason)  # noqa: PLW2901
            self.outcomes[cluster] = told
            how = {"exit_code": told.exit_code, "message": told.message, "journal": journal_id}
            self._write(journal, ENDED, {"cluster": cluster, **how})

    def _look(self, journal: journals.JournalFile, clusters: tuple[str, ...]) -> None:
        told = {} if self.history is None else self.history.failed_jobs
        for cluster, look in self.hands.look_at_each(clusters, told):
            self.looks[cluster] = look
            for text in look.troubles or ("all is well",):
                self.say(f"{cluster}: {text}")
            for text in look.notes:
                self.say(f"{cluster}:   note: {text}")
            found = {"troubles": look.troubles, "failed_jobs": look.failed_jobs}
            self._write(journal, LOOKED, {"cluster": cluster, **found})

    def _write(self, file: journals.JournalFile, event: Shape, value: Mapping[str, Any]) -> bool:
        """Write an event. If that fails, the clusters that run end their steps, and no other begins."""
        try:
            file.write(event, value)
        except journals.JournalError as error:
            self._lost = self._lost or error
            self.stop.ask()
            return False
        return True

    @contextmanager
    def _writing(self) -> Iterator[journals.JournalFile]:
        end = None if self.history is None else self.history.end
        journal = journals.begin_run(self.journal_file, end, ROLLOUT_BEGUN, self)
        try:
            yield journal
            outcome = "failed" if self.has_trouble else "stopped" if self.stop.after_step else "done"
            journal.write(journals.END, {"outcome": outcome})
        except GpolicyError:
            with suppress(journals.JournalError):
                journal.write(journals.END, {"outcome": "failed"})
            raise
        finally:
            journal.close()


ROLLOUT_BEGUN: Final = journals.begin_event(
    RolloutRun,
    ROLLOUT_FILE,
    "direction resumed plans waves",
    plans=DIGEST,
    waves=Many(Shape(RolloutWave).with_keys("label clusters")),
)
ROLLOUT_DOCUMENT: Final = Document(
    "One line of the journal of gpolicy apply --all", journals.LINE, (ROLLOUT_BEGUN, BEGUN, ENDED, LOOKED, journals.END)
)


def lost_journals(history: RolloutHistory, journals: Mapping[str, str | None]) -> list[str]:
    """Return the clusters whose journal is not the one that the roll-out has seen; `journals` are those on disk."""
    return [name for name, journal in history.journal_ids.items() if name in journals and journals[name] != journal]
