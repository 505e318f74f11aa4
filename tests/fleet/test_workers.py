"""Work side by side: a job that fails, hangs or dies hides no other."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest

from gpolicy.fleet.workers import Failed, Watcher, results_as_they_come, work_side_by_side

NOBODY = Watcher(lambda _: None, lambda _, __: None, lambda: None)


def work(jobs: list[Callable[[], object]], *, most: int = 4, seconds: float = 30.0) -> list[object]:
    return list(work_side_by_side(jobs, most=most, seconds=seconds, watcher=NOBODY))


def test_results_are_in_the_order_of_the_jobs() -> None:
    def job(number: int) -> tuple[int, bool]:
        return number, os.getpid() != parent

    assert work([partial(job, number) for number in range(9)]) == [(number, True) for number in range(9)]


parent = os.getpid()


def hang() -> object:
    time.sleep(600)
    return None


def die() -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def leave() -> object:
    sys.exit(7)


def fill() -> object:
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    return len(bytes(2**40))


def test_one_that_hangs_one_that_dies_and_one_that_leaves() -> None:
    began = time.monotonic()
    hung, full, dead, left, well = work([hang, fill, die, leave, lambda: "well"], most=2, seconds=2)
    assert full == Failed("there is not enough memory for it")
    assert hung == Failed("did not end within 2 seconds")
    assert dead == Failed("its process ended without an answer (signal 9)")
    assert left == Failed("its process ended without an answer (exit code 7)")
    assert well == "well"
    assert time.monotonic() - began < 20


def test_jobs_after_one_that_dies_or_takes_much_memory_are_done_by_others() -> None:
    def fill_a_little() -> int:
        return len(b"x" * 100 * 2**20) and os.getpid()

    dead, first, second, third = work([die, os.getpid, fill_a_little, os.getpid], most=1)
    assert isinstance(dead, Failed)
    assert first == second != third


def test_processes_end_at_once_when_nothing_is_left_to_do() -> None:
    began = time.monotonic()
    work([partial(time.sleep, seconds) for seconds in (0.4, 0.1, 0.2)], most=3)
    jobs: list[Callable[[], object]] = [partial(time.sleep, 0.1), hang]
    alone = results_as_they_come(jobs, most=2, seconds=30, watcher=NOBODY, alone=True)
    assert next(alone) == (0, None)
    assert time.monotonic() - began < 2
    assert isinstance(alone, Generator)
    alone.close()


def test_a_process_that_dies_between_two_jobs_fails_none() -> None:
    found = []
    for _, process in results_as_they_come([os.getpid] * 3, most=1, seconds=30, watcher=NOBODY):
        assert isinstance(process, int)
        found.append(process)
        os.kill(process, signal.SIGKILL)
        time.sleep(0.1)
    assert len(set(found)) == 3


def test_an_error_of_a_job_is_no_end_of_the_jobs(capfd: pytest.CaptureFixture[str]) -> None:
    def end_early() -> object:
        raise EOFError("the file is too short")

    assert work([end_early]) == [Failed("its process ended without an answer (exit code 1)")]
    assert "the file is too short" in capfd.readouterr().err


def test_a_large_answer_passes() -> None:
    assert work([lambda: "x" * 10_000_000]) == ["x" * 10_000_000]


def test_no_more_at_once_than_asked(tmp_path: Path) -> None:
    def job(number: int) -> int:
        mark = tmp_path / str(number)
        mark.touch()
        time.sleep(0.2)
        there = len(list(tmp_path.iterdir()))
        mark.unlink()
        return there

    found = work([partial(job, number) for number in range(6)], most=2)
    assert max(number for number in found if isinstance(number, int)) <= 2


INTERRUPTED = """
import os, signal, sys, time
from gpolicy.fleet.workers import Watcher, work_side_by_side
def job():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)
signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
begun = []
def ticks():
    if len(begun) == 2: os.kill(os.getpid(), signal.SIGINT)
watcher = Watcher(begun.append, lambda _, __: None, ticks)
try:
    work_side_by_side([job, job], most=2, seconds=600, watcher=watcher)
except KeyboardInterrupt:
    sys.exit(42)
"""


def test_an_interrupt_ends_all() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 42
    for number in map(int, done.stdout.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
