"""Work on many clusters side by side, in other processes: none can hang, crash or fill the memory of another.

The processes are copies of this one, which has no other thread while they begin. Each does one job after another, so
that it imports and reads nothing again, until one fails in it or takes much memory.
"""

import gc
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Final, Generic, TypeVar

Result = TypeVar("Result")

_TICK: Final = 0.2
_GROWTH: Final = 32 * 1024  # KiB by which a process may grow that does another job
_GRACE: Final = 2.0  # seconds that a process has to end what it started


@dataclass(frozen=True, slots=True)
class Failed:
    """A job that gave no result, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told that a job (by its number) begins and ends, after how many seconds; often; and when all is over."""

    begins: Callable[[int], None] = lambda _: None
    ends: Callable[[int, float], None] = lambda _, __: None
    ticks: Callable[[], None] = lambda: None
    closes: Callable[[], None] = lambda: None


def work_side_by_side(
    jobs: Sequence[Callable[[], Result]], *, most: int, seconds: float, watcher: Watcher
) -> list[Result | Failed]:
    """Do the jobs, at most `most` at once and each within `seconds`; return their pickled results in order."""
    results = dict(results_as_they_come(jobs, most=most, seconds=seconds, watcher=watcher))
    return [results[number] for number in range(len(jobs))]


def results_as_they_come(
    jobs: Sequence[Callable[[], Result]],
    *,
    most: int,
    seconds: float,
    watcher: Watcher,
    may_begin: Callable[[int], bool] = lambda _: True,
    alone: bool = False,
) -> Iterator[tuple[int, Result | Failed]]:
    """Do the jobs in the same way; yield the number of each with its result. What is not to begin is left out.

    `may_begin` is asked right before each begins. Whoever takes the results may take time: nothing begins meanwhile.
    If jobs are to be `alone`, each has a process of its own, a copy of this one as it is when the job begins.
    """
    waiting = list(range(len(jobs)))[::-1]
    running: dict[Connection, _Worker[Result]] = {}
    idle: list[_Worker[Result]] = []
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number = waiting.pop()
                if not may_begin(number):
                    continue
                while idle and not idle[-1].lives:  # the system ends what it has no memory for
                    idle.pop().end()
                worker = idle.pop() if idle else _Worker(jobs, list(running))
                worker.begin(number)
                running[worker.pipe] = worker
                watcher.begins(number)
            ready = wait(list(running), timeout=_TICK)
            late = [item for item in running if item not in ready and running[item].age > seconds]
            for pipe in [item for item in running if item in ready or item in late]:
                worker = running.pop(pipe)
                result = Failed(f"did not end within {seconds:g} seconds") if pipe in late else worker.result()
                if not alone and worker.goes_on:
                    idle.append(worker)
                else:
                    worker.end(0.0 if pipe in late else _GRACE)
                watcher.ends(worker.number, worker.age)
                yield worker.number, result
            watcher.ticks()
    finally:
        watcher.closes()
        for worker in idle:
            worker.end()
        for worker in running.values():
            worker.end(0.0)


class _Worker(Generic[Result]):
    """A process that does one job after another, until one fails or takes much memory."""

    number: int
    goes_on: bool
    _began: float

    def __init__(self, jobs: Sequence[Callable[[], Result]], others: Iterable[Connection]) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        copies = (self.pipe, *others)
        self._process = multiprocessing.get_context("fork").Process(target=_serve, args=(jobs, theirs, copies))
        self._process.start()
        theirs.close()

    @property
    def lives(self) -> bool:
        return self._process.is_alive()

    def begin(self, number: int) -> None:
        """Let it do the job of this number."""
        self.number, self.goes_on, self._began = number, False, time.monotonic()
        self.pipe.send(number)

    @property
    def age(self) -> float:
        return time.monotonic() - self._began

    def result(self) -> Result | Failed:
        """Return its answer, which is there, or how it ended without one."""
        try:
            answer: Result | Failed
            answer, self.goes_on = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(_GRACE)
            code = self._process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failed(f"its process ended without an answer ({how})")
        return answer

    def end(self, grace: float = _GRACE) -> None:
        """End the process, if it has not ended itself after `grace` seconds."""
        self.pipe.close()
        self._process.join(grace)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(_GRACE)
        self._process.close()


def _serve(jobs: Sequence[Callable[[], object]], pipe: Connection, copies: Iterable[Connection]) -> None:
    """Do the jobs whose numbers come, until none comes any more, one fails or one takes much memory.

    `copies` are the ends of pipes that the first process has: a pipe ends when nobody holds its other end.
    """
    for copy in copies:
        copy.close()
    gc.freeze()  # a search for cycles would copy the memory that both processes share
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that programs that it started are ended as well
        most = _memory() + _GROWTH
        while _memory() < most:
            try:
                number = pipe.recv()
            except EOFError:
                break
            pipe.send((jobs[number](), _memory() < most))
    except MemoryError:
        pipe.send((Failed("there is not enough memory for it"), False))
    except KeyboardInterrupt:
        os._exit(1)
    pipe.close()


def _memory() -> int:
    """Return the most memory that this process had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
