"""A plan or a remedy carried out on a real cluster: the one use case that changes clusters, and only with consent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gpolicy.apply.job_runners import CommandRunner, open_runner
from gpolicy.apply.jobs import Patience, Runner, StopRequests
from gpolicy.apply.journals import Direction, clear_away, history_for, journal_path
from gpolicy.apply.lock import local_lock, lock_directory, lock_name, remote_lock
from gpolicy.apply.plan_run import Intention, PlanRun, check_cluster, check_route
from gpolicy.apply.work import FinalLook
from gpolicy.cluster.master import SshMaster
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.impact.declared_guards import measures_nodes
from gpolicy.plan.plan import Plan, check_safe
from gpolicy.plan.step import Procedure
from gpolicy.plan.trust import Signers
from gpolicy.printable import Tone
from gpolicy.progress import Working, quietly, silent
from gpolicy.remedy.saved_remedy import read_procedure


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """The file of the plan or remedy to apply, its destination, and how to reach that.

    `destination` is `local:`, `ssh://HOST` or `rapi://HOST`. The `journal` is beside the file by default. `resume`
    continues a run that was interrupted, `rollback` takes back what was done. `job_timeout`, in seconds, is how long
    one job is waited for. With `signers` the file must be signed.
    """

    plan: Path
    destination: str
    options: SourceOptions = field(default_factory=SourceOptions)
    signers: Signers | None = None
    journal: Path | None = None
    resume: bool = False
    rollback: bool = False
    job_timeout: float = 3600.0

    @property
    def journal_file(self) -> Path:
        """The journal: the given one, or the one beside the file."""
        return self.journal or journal_path(self.plan)

    @property
    def direction(self) -> Direction:
        """Whether the steps are made or taken back."""
        return Direction.ROLLBACK if self.rollback else Direction.APPLY


def runner_for(request: ApplyRequest, stop: StopRequests) -> Runner:
    """Return what carries a plan out, without connecting. Raise RequestError for an invalid destination."""
    return open_runner(request.destination, request.options, _patience_of(request), stop)


def _patience_of(request: ApplyRequest) -> Patience:
    return Patience(job=request.job_timeout)


def check_guards(request: ApplyRequest, procedure: Procedure) -> None:
    """Raise GpolicyError if a guard of the plan's file stops it. None stops a remedy, or the way back."""
    if isinstance(procedure, Plan) and not request.rollback:
        check_safe(procedure)


def apply_plan(
    request: ApplyRequest,
    *,
    agree: Callable[[Intention], bool],
    plan: Procedure | None = None,
    say: Callable[[str, Tone], None] = lambda _, __: None,
    warn: Callable[[str], None] = silent,
    working: Working = quietly,
    stop: StopRequests | None = None,
    runner: Runner | None = None,
) -> FinalLook | None:
    """Carry out, resume or take back a plan or remedy, if `agree` says so; return what a look at the end shows.

    Return None for a plan without steps, and without consent. `say` gets lines of progress, `warn` what needs
    attention. `stop` may end the run after the running step. `plan` is what the file holds, and `runner` carries it
    out, where the caller has them. Raise ApplyError if a step fails or the cluster is not as the plan saw it,
    GpolicyError if a guard stops the plan or nothing can be reached.

    For example, `apply_plan(ApplyRequest(plan=Path("plan.json"), destination="local:"), agree=lambda shown: True)`.
    """
    stop = stop or StopRequests()
    procedure = plan or read_procedure(request.plan, request.signers)
    runner = runner or runner_for(request, stop)
    check_guards(request, procedure)
    journal = request.journal_file
    read_history = partial(history_for, procedure, journal, resume=request.resume, rollback=request.rollback)
    check_route(procedure, runner, request.direction, read_history())
    with working(f"reading {request.destination}"):
        first = runner.glance()
    check_cluster(procedure, first)
    if not procedure.steps:
        return None
    with _locks(request, runner, first, warn) as lock_is_lost:
        history = read_history()  # as it is under the lock
        if history is not None and history.plan_digest != procedure.digest:
            kept = clear_away(history, journal, runner, procedure.noun)
            warn(f"{journal} was the journal of an earlier {procedure.noun}; it is kept as {kept.name}")
            history = None
        with working(f"reading {request.destination}"):
            state = read_for(request, procedure, runner)
        for note in state.notes:
            say(f"  note: {note}", Tone.PLAIN)
        run = PlanRun(
            procedure=procedure,
            runner=runner,
            journal_file=journal,
            say=say,
            agree=agree,
            direction=request.direction,
            history=history,
            patience=_patience_of(request),
            stop=stop,
            lock_is_lost=lock_is_lost,
            judging=lambda: working("judging the guards on the cluster as it is now"),
        )
        return run.go(state)


def read_for(request: ApplyRequest, procedure: Procedure, runner: Runner) -> ClusterState:
    """Return the state of the cluster, with what its nodes measure if a guard needs that."""
    if isinstance(procedure, Plan) and measures_nodes(procedure):
        return read_state(request.destination, request.options)
    return runner.read()


@contextmanager
def _locks(
    request: ApplyRequest, runner: Runner, cluster: ClusterState, warn: Callable[[str], None]
) -> Iterator[Callable[[], bool]]:
    """Hold the locks; yield a function that tells whether one of them was lost."""
    name = lock_name(cluster.name, cluster.cluster.identity.uuid)
    with ExitStack() as stack:
        what = f"apply to cluster {cluster.name}"
        stack.enter_context(local_lock(lock_directory(request.options.environ), name, what))
        if isinstance(runner, CommandRunner) and isinstance(runner.master, SshMaster):
            lock = stack.enter_context(remote_lock(runner.master, name, what))
            if lock.note:
                warn(lock.note)
            yield lock.is_lost
        else:
            yield lambda: False  # the kernel keeps the lock on this machine until we end
