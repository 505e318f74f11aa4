"""A roll-out: plans of several clusters carried out in waves with consent, and each cluster looked at afterwards.

What is done with one cluster is done in a process of its own, side by side with those of other clusters.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path

from gpolicy.apply import journals
from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.jobs import SharedStopRequests, Signals, StopRequests
from gpolicy.apply.lock import local_lock, lock_directory, lock_name
from gpolicy.apply.plan_run import Intention, RefusedError, check_cluster, check_untouched
from gpolicy.apply.work import FinalLook
from gpolicy.checking.settings_tables import settings_for
from gpolicy.cluster.json_input import read_bytes
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import find_drift
from gpolicy.errors import ExitCode, GpolicyError, InputError, RequestError
from gpolicy.fleet.named_clusters import RolloutWave
from gpolicy.fleet.workers import Failed, Result, Watcher, results_as_they_come
from gpolicy.opening import real_path
from gpolicy.plan.plan import Plan, policy_digest
from gpolicy.plan.plan_file import read_plan
from gpolicy.policy.files import only_root
from gpolicy.policy.loading import load_policy
from gpolicy.printable import Tone, some
from gpolicy.progress import Working, quietly
from gpolicy.rollout import rollout_run
from gpolicy.rollout.rollout_run import LookResult, PlanStage, RolledOut, RolloutHistory, RunResult
from gpolicy.use_cases.carrying_out import ApplyRequest, apply_plan, read_for, runner_for


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """A cluster, by its name, and where its plan goes; `digest` is that of the file now.

    A look compares the cluster with its `policy` as well. Raise InputError for a file that cannot be read.
    """

    name: str
    request: ApplyRequest
    policy: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = f"sha256:{hashlib.sha256(read_bytes(self.request.plan)).hexdigest()}"
        object.__setattr__(self, "digest", digest)

    def read_journal(self) -> journals.RunHistory | None:
        """Return what the journal says now, of whichever plan: others may write it. Raise InputError if damaged."""
        path = self.request.journal_file
        data = journals.read_journal(path)
        return None if data is None else journals.read_history(data, str(path))

    def read_history(self) -> journals.RunHistory | None:
        """Return what the journal says now of this plan; None if it is another plan's."""
        journal = self.read_journal()
        return journal if journal is not None and journal.plan_digest == self.digest else None

    def run_request(self) -> ApplyRequest:
        """Return the request for the next run: a plan that has not begun cannot be resumed, but begun."""
        return replace(self.request, resume=self.request.resume and self.read_history() is not None)

    def read_plan(self) -> Plan:
        """Return the plan. Raise RefusedError if the file is not the one that was found."""
        plan = read_plan(self.request.plan, self.request.signers)
        if plan.digest != self.digest:
            raise RefusedError(f"{self.request.plan} has changed since the roll-out began; nothing was done")
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a run is going to do with a cluster, and lines that it `said` so far; or why it cannot: `refusal`.

    There is no `intention` if there is nothing to do. `error` is what the plan or the cluster was refused with.
    """

    plan: Plan | None = None
    intention: Intention | None = None
    said: tuple[tuple[str, Tone], ...] = ()
    refusal: RunResult | None = None
    error: ApplyError | None = None

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the tasks."""
        return frozenset(task.key for task in self.intention.tasks) if self.intention else frozenset()


ErrorText = Callable[[GpolicyError], tuple[str, str | None]]
"""Gives message and hint of an error."""

Carry = Callable[[ClusterPlan, Callable[[Intention], bool], StopRequests], FinalLook | None]
"""Carries out the plan of one cluster if that agrees, and may tell of it."""


def carry_quietly(member: ClusterPlan, agree: Callable[[Intention], bool], stop: StopRequests) -> FinalLook | None:
    """Carry out the plan of one cluster, and tell nobody."""
    return apply_plan(member.run_request(), agree=agree, plan=member.read_plan(), stop=stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRequest:
    """The plans to carry out, each in one of the waves. The journal of the whole is in `directory`.

    `resume` continues a roll-out that was interrupted, `rollback` takes it back. Before the looks at a wave there is a
    `pause`, in seconds; waivers that end before `today` are no longer in force. So many `jobs` plans are carried out at
    once, and each cluster is read within `seconds`. `watch` gives who is told what runs. In the process of a cluster,
    `carry` carries its plan out, `working` is told of looks, and `words` gives message and hint of an error.
    """

    directory: Path
    plans: tuple[ClusterPlan, ...]
    waves: tuple[RolloutWave, ...]
    today: date
    pause: float = 0.0
    jobs: int = 1
    seconds: float = 600.0
    resume: bool = False
    rollback: bool = False
    watch: Callable[[Sequence[str]], Watcher] = lambda _: Watcher()
    carry: Carry = carry_quietly
    working: Working = quietly
    words: ErrorText = lambda error: (error.message, error.hint)

    @property
    def journal_file(self) -> Path:
        """The journal of the whole."""
        return self.directory / rollout_run.NAME


def preview_one(member: ClusterPlan, rollout: RolloutRequest) -> Preview:
    """Return what is to be done. It does everything that a run does before it asks for consent."""
    shown: list[Intention] = []
    said: list[tuple[str, Tone]] = []

    def keep(intention: Intention) -> bool:
        shown.append(intention)
        return False

    def say(line: str, tone: Tone = Tone.ALARM) -> None:
        said.append((line, tone))

    try:
        plan = member.read_plan()
        apply_plan(member.run_request(), agree=keep, plan=plan, say=say, warn=say)
    except ApplyError as error:
        return Preview(said=tuple(said), refusal=outcome_of(error, rollout.words), error=error)
    except (GpolicyError, OSError) as error:
        return Preview(refusal=outcome_of(error, rollout.words))
    if not shown:
        say(f"nothing to do: the plan for cluster {plan.cluster} has no steps", Tone.PLAIN)
    return Preview(plan=plan, intention=shown[0] if shown else None, said=tuple(said))


def preview_untouched(member: ClusterPlan, rollout: RolloutRequest) -> Preview:
    """Return that nothing of a plan was done which had begun and has no journal; a refusal if anything was."""
    try:
        plan = member.read_plan()
        if plan.steps:
            runner = runner_for(member.request, StopRequests())
            state = runner.read()
            check_cluster(plan, state)
            check_untouched(plan, runner, state)
    except (GpolicyError, OSError) as error:
        return Preview(
            refusal=replace(outcome_of(error, rollout.words), hint="its journal is gone: look at the cluster")
        )
    return Preview(plan=plan, said=(("nothing to take back: the cluster is as the plan saw it", Tone.PLAIN),))


def run_one(member: ClusterPlan, shown: AbstractSet[str], stop: StopRequests, rollout: RolloutRequest) -> RunResult:
    """Run the plan, or take it back: no task but those that were `shown`."""
    Signals(stop).catch()
    try:
        found = rollout.carry(member, partial(_agree, shown), stop)
    except (GpolicyError, OSError) as error:
        return outcome_of(error, rollout.words)
    if found is None or found.good:
        return RunResult(int(ExitCode.FINE))
    return RunResult(int(ExitCode.FINDINGS), "the cluster is not as it should be after all steps")


def _agree(shown: AbstractSet[str], intention: Intention) -> bool:
    if {task.key for task in intention.tasks} <= shown:
        return True
    raise RefusedError("more is to be done than was shown; nothing was done", hint="begin the roll-out again")


def look_at_one(member: ClusterPlan, told: AbstractSet[int], rollout: RolloutRequest) -> LookResult:
    """Look at the cluster after its plan: its changes, its policy, its guards, its jobs."""
    try:
        plan = member.read_plan()
        runner = runner_for(member.request, StopRequests())
        with rollout.working(f"reading {member.request.destination}"):
            state = read_for(member.request, plan, runner)
        found = rollout_run.look_at(plan, runner, state, member.read_history(), told)
        if found.troubles or member.policy is None:
            return found
        return _with_drift(member.policy, plan, state, rollout, found)
    except (GpolicyError, OSError) as error:
        return LookResult((f"cannot be looked at: {outcome_of(error, rollout.words).message}",))


def _with_drift(path: Path, plan: Plan, state: ClusterState, rollout: RolloutRequest, found: LookResult) -> LookResult:
    """Return a look with what differs from the policy as well, if the plan was made from just this policy."""
    if not plan.part.is_whole:
        return replace(found, notes=(*found.notes, "the plan is a part of the policy: the rest was not compared"))
    try:
        with rollout.working(f"reading {path}"):
            policy = load_policy(only_root(path))
            settings = settings_for(policy.root or Path())
    except GpolicyError as error:
        return replace(found, notes=(*found.notes, f"its policy was not compared: {error.message}"))
    if policy_digest(policy) != plan.policy_digest:
        note = "the policy has changed since the plan was made: only the plan's changes were compared"
        return replace(found, notes=(*found.notes, note))
    drift = find_drift(policy, state, today=rollout.today, settings=settings).drift
    return replace(found, troubles=tuple(f"{item.object} {item.name} is not as the policy declares" for item in drift))


def outcome_of(error: GpolicyError | OSError, words: ErrorText) -> RunResult:
    """Return how a run ended that this error ended."""
    if isinstance(error, GpolicyError):
        message, hint = words(error)
        return RunResult(int(error.exit_code), message, hint or "")
    return RunResult(int(ExitCode.COULD_NOT_RUN), f"{error.filename or 'the system'}: {error.strerror or error}")


Agree = Callable[[Mapping[str, Preview], Mapping[str, PlanStage]], bool]
"""Gets what is to be done with each cluster with which anything is, and how far each plan is; says whether to do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutResult:
    """What came of each cluster, and what was to be done.

    `agreed`: there was consent; None: nobody was asked, as not every cluster can be begun. `error` is what ended a
    roll-out that had begun.
    """

    clusters: tuple[RolledOut, ...]
    previews: Mapping[str, Preview]
    agreed: bool | None = None
    error: GpolicyError | None = None


def roll_out(
    request: RolloutRequest,
    *,
    agree: Agree,
    say: Callable[[str, Tone], None] = lambda _, __: None,
    stop: SharedStopRequests | None = None,
) -> RolloutResult:
    """Carry out the plans of several clusters in waves, go on or take them back, if `agree` says so.

    The first trouble ends it after the running steps, as `stop` may; `say` gets lines of progress. Raise GpolicyError,
    with nothing done, if another roll-out of these plans is under way, or if journals do not fit the plans.

    For example, `roll_out(request, agree=lambda previews, stages: True).clusters` says how far each plan is.
    """
    if sorted(item.name for item in request.plans) != sorted(name for wave in request.waves for name in wave.clusters):
        raise RequestError("each cluster with a plan must be in one wave, and no other")
    as_asked = partial(replace, resume=request.resume, rollback=request.rollback)
    members = {item.name: replace(item, request=as_asked(item.request)) for item in request.plans}
    hands, where = SideBySide(request, members, stop or SharedStopRequests()), request.directory
    environ = next((item.request.options.environ for item in request.plans), None)
    with local_lock(lock_directory(environ), lock_name("roll-out", str(real_path(where))), f"roll-out of {where}"):
        return _run(hands, agree, say)


def _run(hands: SideBySide, agree: Agree, say: Callable[[str, Tone], None]) -> RolloutResult:
    """Find what is to be done, ask, and do it; the lock is held."""
    rollout, members, journal = hands.rollout, hands.members, hands.rollout.journal_file
    digests = {name: member.digest for name, member in members.items()}
    found = rollout_run.rollout_history(journal, digests, resume=rollout.resume, rollback=rollout.rollback)
    is_of_these = found is not None and found.is_of(digests)
    history, earlier = (found, None) if is_of_these else (None, found)
    _refuse_other_journals(hands, history)
    previews = _previews(hands, history)
    refused = {name: found.refusal for name, found in previews.items() if found.refusal is not None}
    run = rollout_run.RolloutRun(
        waves=rollout.waves,
        plans=digests,
        empty={name for name, found in previews.items() if found.plan is not None and not found.plan.steps},
        hands=hands,
        journal_file=journal,
        say=lambda line: say(line, Tone.PLAIN),
        direction=journals.Direction.ROLLBACK if rollout.rollback else journals.Direction.APPLY,
        history=history,
        seconds=rollout.pause,
        stop=hands.stop,
        outcomes=dict(refused),
    )
    agreed, problem = None, None
    if rollout.rollback or not refused:
        agreed = agree(previews, run.stages())
    if agreed:
        hands.shown = {name: found.keys for name, found in previews.items()}
        if earlier is not None:
            kept = journals.set_aside(journal, next(iter(earlier.plans.values()), ""))
            say(f"{journal} was the journal of earlier plans; it is kept as {kept.name}", Tone.ALARM)
        try:
            run.go()
        except GpolicyError as error:
            problem = error
    clusters = tuple(_rolled_out(run, members))
    return RolloutResult(clusters=clusters, previews=previews, agreed=agreed, error=problem)


def _rolled_out(run: rollout_run.RolloutRun, members: Mapping[str, ClusterPlan]) -> Iterator[RolledOut]:
    """Yield what came of each cluster, in the order of the waves."""
    stages = run.stages()
    labels = {name: wave.label for wave in run.waves for name in wave.clusters}
    for name, label in labels.items():
        yield RolledOut(
            name=name,
            labels=members[name].labels,
            wave=label,
            stage=stages[name],
            plan=str(members[name].request.plan),
            plan_digest=run.plans[name],
            journal=str(members[name].request.journal_file),
            outcome=run.outcomes.get(name),
            look=run.looks.get(name),
        )


def _refuse_other_journals(hands: SideBySide, history: RolloutHistory | None) -> None:
    """Raise if journals of clusters are not those of this roll-out, or are gone."""
    members = hands.members
    found = {name: member.read_journal() for name, member in members.items()}
    if hands.rollout.resume or hands.rollout.rollback:
        others = [name for name, item in found.items() if item and item.plan_digest != members[name].digest]
        if others:
            message = f"the plan that was begun is another one than is there now: {some(others)}"
            raise RequestError(message, hint="put the plan back, or make fresh plans of all clusters")
    if history is not None:
        ids = {name: item.id if item else None for name, item in found.items()}
        if lost := rollout_run.lost_journals(history, ids):
            message = f"the journals of these clusters are gone, or are others than the roll-out saw: {some(lost)}"
            raise InputError(message, hint="put them back, or look at the clusters and make fresh plans")


def _previews(hands: SideBySide, history: RolloutHistory | None) -> dict[str, Preview]:
    """Return what is to be done with each cluster with which anything is."""
    stages = {name: rollout_run.stage_of(member.read_history()) for name, member in hands.members.items()}
    if not hands.rollout.rollback:
        return hands.preview_each([name for name in stages if stages[name] not in rollout_run.COMPLETE], frozenset())
    begun = history.begun if history is not None else frozenset()
    untouched = frozenset(name for name in stages if stages[name] is PlanStage.UNTOUCHED and name in begun)
    left = [name for name in stages if stages[name] not in rollout_run.REVERTED]
    return hands.preview_each([*left, *untouched], untouched)


@dataclass(slots=True)
class SideBySide:
    """The hands of a roll-out. `shown` are the keys of the tasks that were consented to, by cluster."""

    rollout: RolloutRequest
    members: Mapping[str, ClusterPlan]
    stop: StopRequests
    shown: Mapping[str, AbstractSet[str]] = field(default_factory=dict)

    def read_history(self, cluster: str) -> journals.RunHistory | None:
        """Return what the journal of the cluster's plan says now."""
        return self.members[cluster].read_history()

    def preview_each(self, clusters: Sequence[str], untouched: AbstractSet[str]) -> dict[str, Preview]:
        """Return what is to be done with clusters; of the `untouched`, whether nothing was done indeed."""
        ways = [preview_untouched if name in untouched else preview_one for name in clusters]
        jobs = [partial(way, self.members[name], self.rollout) for way, name in zip(ways, clusters, strict=True)]
        found = {}
        for name, result in self._each(clusters, jobs, only_read=True):
            failed = RunResult(int(ExitCode.COULD_NOT_RUN), result.reason) if isinstance(result, Failed) else None
            found[name] = Preview(refusal=failed) if isinstance(result, Failed) else result
        return found

    def run_each(self, clusters: Sequence[str], may_begin: Callable[[str], bool]) -> Iterator[tuple[str, RunResult]]:
        """Run the plans of clusters, or take them back."""
        jobs = [
            partial(run_one, self.members[name], self.shown.get(name, frozenset()), self.stop, self.rollout)
            for name in clusters
        ]
        for name, result in self._each(clusters, jobs, may_begin, only_read=False):
            yield name, RunResult(int(ExitCode.FINDINGS), result.reason) if isinstance(result, Failed) else result

    def look_at_each(
        self, clusters: Sequence[str], told: Mapping[str, AbstractSet[int]]
    ) -> Iterator[tuple[str, LookResult]]:
        """Look at clusters."""
        jobs = [
            partial(look_at_one, self.members[name], told.get(name, frozenset()), self.rollout) for name in clusters
        ]
        for name, result in self._each(clusters, jobs, only_read=True):
            yield name, LookResult((f"cannot be looked at: {result.reason}",)) if isinstance(result, Failed) else result

    def _each(
        self,
        clusters: Sequence[str],
        jobs: Sequence[Callable[[], Result]],
        may_begin: Callable[[str], bool] = lambda _: True,
        *,
        only_read: bool,
    ) -> Iterator[tuple[str, Result | Failed]]:
        """Do a job for each cluster. Those that `only_read` have a time limit, and more of them run at once."""
        results = results_as_they_come(
            jobs,
            most=max(self.rollout.jobs, 4) if only_read else self.rollout.jobs,
            seconds=self.rollout.seconds if only_read else math.inf,
            watcher=self.rollout.watch(clusters),
            may_begin=lambda number: may_begin(clusters[number]),
            alone=True,  # a run changes signals and prints
        )
        for number, result in results:
            yield clusters[number], result
