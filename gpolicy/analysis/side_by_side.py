"""Running independent counts on all cores: the compiled engine works outside Python's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.native.library import stop_engines

if TYPE_CHECKING:
    from gpolicy.analysis.counted_cluster import CountedCluster

_Result = TypeVar("_Result")

_LOOK_SECONDS: Final = 0.05
_PATIENCE_LOOKS: Final = 100


def side_by_side(jobs: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Do the jobs, as many at once as there are cores, and return their results in their order.

    Jobs begin in their order, so the longest should come first. Raises the error of the first job that fails; no
    further job begins then. An interrupt (Ctrl-C) stops the engines; a job that does not end soon is abandoned.
    """
    cores = min(len(jobs), _cores())
    if cores < 2:
        return [job() for job in jobs]
    work = _Work(jobs, cores)
    for number in range(cores):
        threading.Thread(target=work.go_on, name=f"count-{number}", daemon=True).start()
    try:
        work.ended.wait()
    except BaseException:
        work.over = True
        _stop(work.ended)
        raise
    return work.all_results()


def each_cluster(
    titles: Mapping[CountedCluster, str], count: Callable[[CountedCluster, str], _Result]
) -> dict[CountedCluster, _Result]:
    """Return the results of `count` for each cluster and its title, computed on all cores."""
    # N+1 takes longest for instances that are not mirrored
    longest_first = sorted(titles, key=lambda item: (item.template is DiskTemplate.DRBD, -len(item.data.nodes)))
    found = side_by_side([partial(count, item, titles[item]) for item in longest_first])
    return dict(zip(longest_first, found, strict=True))


class _Work(Generic[_Result]):
    """The jobs, their results, whether no more may begin (`over`), and whether all workers have ended.

    An event tells the last: after an interrupted Thread.join, Python may take a running thread for an ended one.
    """

    def __init__(self, jobs: Sequence[Callable[[], _Result]], workers: int) -> None:
        self.over = False
        self.ended = threading.Event()
        self._jobs = jobs
        self._next = count()
        self._last = count(1 - workers)
        self._results: dict[int, _Result] = {}
        self._errors: dict[int, BaseException] = {}

    def go_on(self) -> None:
        """Do one job after the other until none is left, as a worker."""
        while not self.over and (number := next(self._next)) < len(self._jobs):
            try:
                self._results[number] = self._jobs[number]()
            except BaseException as error:  # noqa: BLE001 (raised again by all_results)
                self._errors[number] = error
                self.over = True
        if next(self._last) == 0:
            self.ended.set()

    def all_results(self) -> list[_Result]:
        """Return the results. Raises the error of the first job that failed."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[number] for number in range(len(self._jobs))]


def _stop(ended: threading.Event) -> None:
    """Stop the engines repeatedly until all workers have ended, for a limited time."""
    for _ in range(_PATIENCE_LOOKS):
        stop_engines()
        if ended.wait(_LOOK_SECONDS):
            return


def _cores() -> int:
    """Return how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
