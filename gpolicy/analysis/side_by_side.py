"""Running independent counts on all cores: the compiled engine works outside Python's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeVar

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.allocator.native.library import stop_engines
from gpolicy.analysis.counted_cluster import CountedCluster

Result = TypeVar("Result")

_LOOK_SECONDS: Final = 0.05
_PATIENCE_LOOKS: Final = 100


def side_by_side(jobs: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do the jobs, as many at once as there are cores, and return their results in their order.

    Jobs begin in their order, so the longest should come first. Raises the error of the first job that fails; no
    further job begins then. An interrupt (Ctrl-C) stops the engines; a job that does not end soon is abandoned.
    """
    cores = min(len(jobs), _cores())
    if cores < 2:
        return [job() for job in jobs]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    numbers, last = count(), count(1 - cores)
    # events: after an interrupted Thread.join, Python may take a running thread for an ended one
    over, ended = threading.Event(), threading.Event()

    def go_on() -> None:
        while not over.is_set() and (number := next(numbers)) < len(jobs):
            try:
                results[number] = jobs[number]()
            except BaseException as error:  # noqa: BLE001 (raised again below)
                errors[number] = error
                over.set()
        if next(last) == 0:
            ended.set()

    for number in range(cores):
        threading.Thread(target=go_on, name=f"count-{number}", daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        over.set()
        for _ in range(_PATIENCE_LOOKS):
            stop_engines()
            if ended.wait(_LOOK_SECONDS):
                break
        raise
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(jobs))]


def each_cluster(
    titles: Mapping[CountedCluster, str], count: Callable[[CountedCluster, str], Result]
) -> dict[CountedCluster, Result]:
    """Return the results of `count` for each cluster and its title, computed on all cores."""
    # N+1 takes longest for instances that are not mirrored
    longest_first = sorted(titles, key=lambda item: (item.template is DiskTemplate.DRBD, -len(item.data.nodes)))
    found = side_by_side([partial(count, item, titles[item]) for item in longest_first])
    return dict(zip(longest_first, found, strict=True))


def _cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
