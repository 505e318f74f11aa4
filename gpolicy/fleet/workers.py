"""Work on many clusters side by side, each in a process of its own: none can hang, crash or fill the memory of another.

The processes are copies of this one, so that nothing is imported again. This one has no other thread while they begin.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Final, Generic, TypeVar

_Result = TypeVar("_Result")

_TICK: Final = 0.2
_GRACE: Final = 2.0  # seconds that a process has to end what it started


@dataclass(frozen=True, slots=True)
class Failed:
    """A job that gave no result, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told that a job (by its number) begins and ends, after how many seconds; and, often, what still runs."""

    begins: Callable[[int], None]
    ends: Callable[[int, float], None]
    ticks: Callable[[], None]


def work_side_by_side(
    jobs: Sequence[Callable[[], _Result]], *, most: int, seconds: float, watcher: Watcher
) -> list[_Result | Failed]:
    """Do the jobs, at most `most` at once and each within `seconds`; return their pickled results in order."""
    results = dict(results_as_they_come(jobs, most=most, seconds=seconds, watcher=watcher))
    return [results[number] for number in range(len(jobs))]


def results_as_they_come(
    jobs: Sequence[Callable[[], _Result]],
    *,
    most: int,
    seconds: float,
    watcher: Watcher,
    may_begin: Callable[[int], bool] = lambda _: True,
) -> Iterator[tuple[int, _Result | Failed]]:
    """Do the jobs in the same way; yield the number of each with its result. What is not to begin is left out.

    `may_begin` is asked right before each begins. Whoever takes the results may take time: nothing begins meanwhile.
    """
    waiting = list(range(len(jobs)))[::-1]
    running: dict[Connection, _Worker[_Result]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number = waiting.pop()
                if not may_begin(number):
                    continue
                worker = _Worker(number, jobs[number])
                running[worker.answers] = worker
                watcher.begins(number)
            ready = wait(list(running), timeout=_TICK)
            late = [item for item in running if item not in ready and running[item].age > seconds]
            for answers in [item for item in running if item in ready or item in late]:
                worker = running.pop(answers)
                result = Failed(f"did not end within {seconds:g} seconds") if answers in late else worker.result()
                worker.end(0.0 if answers in late else _GRACE)
                watcher.ends(worker.number, worker.age)
                yield worker.number, result
            watcher.ticks()
    finally:
        for worker in running.values():
            worker.end(0.0)


class _Worker(Generic[_Result]):
    """A process that does one job."""

    def __init__(self, number: int, job: Callable[[], _Result]) -> None:
        self.number = number
        self._began = time.monotonic()
        self.answers, own = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.get_context("fork").Process(target=_do, args=(job, own), daemon=False)
        self._process.start()
        own.close()

    @property
    def age(self) -> float:
        return time.monotonic() - self._began

    def result(self) -> _Result | Failed:
        """Return its answer, which is there, or how it ended without one."""
        try:
            answer: _Result | Failed = self.answers.recv()
        except (EOFError, OSError):
            self._process.join(_GRACE)
            code = self._process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failed(f"its process ended without an answer ({how})")
        return answer

    def end(self, grace: float) -> None:
        """End the process, if it has not ended itself after `grace` seconds."""
        self.answers.close()
        self._process.join(grace)
        for stop in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                stop()
                self._process.join(_GRACE)
        self._process.close()


def _do(job: Callable[[], object], answers: Connection) -> None:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it
        signal.signal(signal.SIGTERM, _interrupt)  # so that programs that it started are ended as well
        answers.send(job())
    except MemoryError:
        answers.send(Failed("there is not enough memory for it"))
    except KeyboardInterrupt:
        os._exit(1)
    answers.close()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
