"""How a job reaches Ganeti, and its result: what all connections to a cluster have in common; one runner an address."""

import mmap
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from gpolicy.cluster.process import after
from gpolicy.cluster.record import JOB_RUNS
from gpolicy.cluster.state import ClusterState
from gpolicy.data import read_data
from gpolicy.ganeti.commands import Route
from gpolicy.plan.step import PlannedCommand


class JobResult(StrEnum):
    """What came of a job."""

    SUCCESS = "success"
    FAILED = "failed"  # refused, or run and failed; nothing of it is under way any more
    UNKNOWN = "unknown"  # it may be under way: contact was lost, or we stopped waiting


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A result, and what Ganeti said. `job` is None where none was submitted, or its number is not known.

    `waiting` tells of a job that we no longer wait for: the time was up, or we were told to stop waiting.
    """

    result: JobResult
    text: str = ""
    job: int | None = None
    waiting: bool = False


FAILURE: Final = "error"
"""Ganeti's word for a job that failed."""


def job_result(word: str | None) -> JobResult | None:
    """Return the result for Ganeti's own word for the status of a job; None for an archived one: nobody knows."""
    if word in JOB_RUNS:
        return JobResult.UNKNOWN
    if word == "success":
        return JobResult.SUCCESS
    return JobResult.FAILED if word in (FAILURE, "canceled") else None


@dataclass(frozen=True, slots=True)
class MarkedJob:
    """A job that carries a mark in its reason; it is `pending` until it has ended."""

    number: int
    mark: str
    pending: bool


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that ended with an error; `summary` is what Ganeti calls it."""

    number: int
    summary: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told while a job runs. `job` is called with its number as soon as that is known, `message` with lines.

    `note` hears of what comes between us and Ganeti.
    """

    job: Callable[[int], None]
    message: Callable[[str], None]
    note: Callable[[str], None] = lambda _: None


@dataclass(slots=True)
class StopRequests:
    """Requests to stop: the first lets the running step end, the second does not wait for it."""

    requests: int = 0

    def ask(self) -> None:
        """Ask once more."""
        self.requests += 1

    @property
    def after_step(self) -> bool:
        """Whether no further step is to begin."""
        return self.requests > 0

    @property
    def at_once(self) -> bool:
        """Whether the job that runs is not to be waited for."""
        return self.requests > 1


_SILENCE: Final = 10.0  # seconds that we say nothing while nobody answers


@dataclass(frozen=True, slots=True)
class Patience:
    """How long we wait, in seconds, and how often we try."""

    attempts: int = 6  # of one step, when Ganeti's refusal is one that passes
    first_pause: float = 1.0  # between them, twice as long each time
    longest_pause: float = 20.0
    first_poll: float = 0.1  # of a job's status, half as long again each time
    longest_poll: float = 5.0
    job: float = 3600.0  # for one job, which may wait behind other people's long ones
    contact: float = 120.0  # to reach a cluster again that was lost in the middle of a step
    look_again: float = 2.0  # for a job of a request whose answer was lost: it may still be on its way to the queue
    settle: float = 10.0  # until what a job has changed can be read

    def pauses(self) -> list[float]:
        """Return the pauses between the attempts at one step."""
        return [min(self.first_pause * 2**number, self.longest_pause) for number in range(self.attempts - 1)]


@dataclass(slots=True)
class Poll:
    """Waits between two looks at the same thing, longer each time; not at all after a request to stop at once."""

    first: float
    longest: float
    stop: StopRequests = field(default_factory=StopRequests)
    _next: float = 0.0

    def wait(self) -> None:
        """Wait before the next look."""
        self._next = min(self._next * 1.5 or self.first, self.longest)
        pause(self._next, self.stop)


def pause(seconds: float, stop: StopRequests) -> None:
    """Wait, but no longer than until we are to stop at once."""
    until = time.monotonic() + seconds
    while not stop.at_once and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))


def told_if_slow(note: Callable[[str], None], who: str) -> AbstractContextManager[None]:
    """Tell `note` once when an answer of `who` takes long."""
    return after(_SILENCE, lambda: note(f"{who}: no answer for {_SILENCE:.0f} s, still waiting"))


class Runner(Protocol):
    """A connection to a cluster. No answer raises UnreachableError, an answer without sense InputError."""

    @property
    def destination(self) -> str:
        """The address, as it can be shown."""

    @property
    def route(self) -> Route:
        """Which form of a command this way carries."""

    def read(self) -> ClusterState:
        """Return what a plan is held against before it begins: as it is configured, with its instances."""

    def glance(self, *, instances: bool = False) -> ClusterState:
        """Return what steps write, quickly, and with no node asked. Without `instances` they may be missing."""

    def run(self, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
        """Run a command to the end of its job, which carries `mark` in its reason."""

    def marked_jobs(self, start: str) -> list[MarkedJob]:
        """Return the jobs in Ganeti's queue whose marks begin with `start`, by number."""

    def failed_jobs(self, after: int) -> list[FailedJob]:
        """Return the jobs in Ganeti's queue with a number above `after` that ended with an error, by number."""

    def follow(self, job: int, watch: Watch) -> JobOutcome | None:
        """Wait for the end of a job that was submitted earlier. None if Ganeti does not know it any more."""


def passes(text: str) -> bool:
    """Return whether what Ganeti, ssh or the network said is a temporary refusal."""
    lowered = text.lower()
    return any(words in lowered for words in read_data("known_words.toml")["words"]["passing"])


class SharedStopRequests(StopRequests):
    """Requests to stop, kept in memory that copies of this process (forks) share.

    What a copy is asked itself counts once, for itself. A copy whose original is gone ends after its running step.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shared = mmap.mmap(-1, 1)
        self._original = os.getpid()

    def ask(self) -> None:
        """Ask once more."""
        if self._is_original:
            self._shared[0] = min(self._shared[0] + 1, 255)
        else:
            self.requests = 1

    @property
    def after_step(self) -> bool:
        """Whether no further step is to begin."""
        orphaned = not self._is_original and os.getppid() != self._original
        return bool(self._shared[0]) or super().after_step or orphaned

    @property
    def at_once(self) -> bool:
        """Whether the job that runs is not to be waited for."""
        return self._shared[0] > 1

    @property
    def _is_original(self) -> bool:
        return os.getpid() == self._original


@dataclass(slots=True)
class Signals:
    """Let signals stop the run after the present step; a second one does not wait. Each is `told` of."""

    stop: StopRequests
    told: Callable[[StopRequests], None] = lambda _: None
    before: dict[int, Any] = field(default_factory=dict)

    def catch(self) -> None:
        """Begin: from now on no signal ends the run."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays
                self.before[number] = signal.signal(number, self._ask_to_stop)

    def release(self) -> None:
        """Restore the old handlers of signals."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before.clear()

    def _ask_to_stop(self, _number: int, _frame: object) -> None:
        self.stop.ask()
        self.told(self.stop)
