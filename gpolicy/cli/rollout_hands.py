"""The clusters of a roll-out side by side, each in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gpolicy.apply.journal import History
from gpolicy.apply.runner import StopRequests
from gpolicy.cli.many_clusters import ProgressLines
from gpolicy.cli.rollout_members import ClusterPlan, Preview, carry, look, preview, preview_untouched
from gpolicy.errors import ExitCode
from gpolicy.fleet.workers import Failed, results_as_they_come
from gpolicy.rollout.rollout_run import LookResult, RunResult

_Result = TypeVar("_Result")


@dataclass(slots=True)
class SideBySide:
    """The hands of a roll-out. `most` plans are carried out at once, `readers` clusters read, each within `seconds`.

    `shown` are the keys of the tasks that were consented to, by cluster.
    """

    members: Mapping[str, ClusterPlan]
    stop: StopRequests
    shown: Mapping[str, AbstractSet[str]]
    most: int
    readers: int
    seconds: float

    def history(self, cluster: str) -> History | None:
        """Return what the journal of the cluster's plan says."""
        return self.members[cluster].history()

    def previews(self, clusters: Sequence[str], untouched: AbstractSet[str]) -> dict[str, Preview]:
        """Return what is to be done with clusters; of the `untouched`, whether nothing was done indeed."""
        jobs = [partial(preview_untouched if name in untouched else preview, self.members[name]) for name in clusters]
        found = {}
        for name, result in self._each(clusters, jobs, most=self.readers, seconds=self.seconds):
            failed = RunResult(int(ExitCode.COULD_NOT_RUN), result.reason) if isinstance(result, Failed) else None
            found[name] = Preview(refusal=failed) if isinstance(result, Failed) else result
        return found

    def carry(self, clusters: Sequence[str], may_begin: Callable[[str], bool]) -> Iterator[tuple[str, RunResult]]:
        """Run the plans of clusters, or take them back."""
        jobs = [partial(carry, self.members[name], self.shown.get(name, frozenset()), self.stop) for name in clusters]
        for name, result in self._each(clusters, jobs, most=self.most, seconds=math.inf, may_begin=may_begin):
            yield name, RunResult(int(ExitCode.FINDINGS), result.reason) if isinstance(result, Failed) else result

    def look(self, clusters: Sequence[str], told: Mapping[str, AbstractSet[int]]) -> Iterator[tuple[str, LookResult]]:
        """LookResult at clusters."""
        jobs = [partial(look, self.members[name], told.get(name, frozenset())) for name in clusters]
        for name, result in self._each(clusters, jobs, most=self.readers, seconds=self.seconds):
            yield name, LookResult((f"cannot be looked at: {result.reason}",)) if isinstance(result, Failed) else result

    @staticmethod
    def _each(
        clusters: Sequence[str],
        jobs: Sequence[Callable[[], _Result]],
        *,
        most: int,
        seconds: float,
        may_begin: Callable[[str], bool] = lambda _: True,
    ) -> Iterator[tuple[str, _Result | Failed]]:
        progress = ProgressLines(clusters, quiet=True)
        results = results_as_they_come(
            jobs,
            most=most,
            seconds=seconds,
            watcher=progress.watcher,
            may_begin=lambda number: may_begin(clusters[number]),
        )
        try:
            for number, result in results:
                progress.close()
                yield clusters[number], result
        finally:
            progress.close()
