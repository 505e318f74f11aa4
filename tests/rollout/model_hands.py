"""The hands of a roll-out in this process: pretended clusters, one after another, killed at any chosen point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gpolicy.apply.carrying import ApplyError
from gpolicy.apply.jobs import StopRequests
from gpolicy.apply.journals import Direction, RunHistory, read_journal
from gpolicy.errors import GpolicyError, InputError
from gpolicy.fleet.named_clusters import RolloutWave
from gpolicy.plan.plan import Plan
from gpolicy.rollout.rollout_run import (
    LookResult,
    RolloutHistory,
    RolloutRun,
    RunResult,
    look_at,
    lost_journals,
    read_rollout,
)
from tests.apply.model_runner import KilledError, ModelRunner, MortalJournal, history, run
from tests.apply.pretend_ganeti import PretendGaneti


@dataclass
class OneCluster:
    """A pretended cluster with its plan."""

    ganeti: PretendGaneti
    plan: Plan
    runner: ModelRunner


@dataclass
class Fleet:
    """Several clusters and a directory of journals. With `child_dies`, a kill hits the process of one cluster only."""

    directory: Path
    clusters: dict[str, OneCluster]
    waves: Sequence[RolloutWave]
    direction: Direction = Direction.APPLY
    child_dies: bool = False
    seconds: float = 0.0
    stop: StopRequests = field(default_factory=StopRequests)
    begun: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # the progress of the present roll-out
    between: Callable[[str], None] = lambda _: None  # called with the cluster before its look

    def journal(self, cluster: str) -> Path:
        return self.directory / f"{cluster}.journal"

    def read_history(self, cluster: str) -> RunHistory | None:
        with suppress(InputError):
            return history(self.journal(cluster))
        return None

    def run_each(self, clusters: Sequence[str], may_begin: Callable[[str], bool]) -> Iterator[tuple[str, RunResult]]:
        for name in clusters:
            if may_begin(name):
                self.begun.append(name)
                yield name, self._outcome(name)

    def _outcome(self, name: str) -> RunResult:
        one = self.clusters[name]
        try:
            look = run(one.plan, one.runner, self.journal(name), direction=self.direction, stop=self.stop)
        except ApplyError as error:
            return RunResult(int(error.exit_code), error.message)
        except GpolicyError as error:
            return RunResult(3, error.message)
        except KilledError:
            if not self.child_dies:
                raise
            MortalJournal.left = -1
            return RunResult(1, "its process ended without an answer (signal 9)")
        assert look is not None
        return RunResult(0 if look.good else 1, "" if look.good else "not as planned")

    def look_at_each(
        self, clusters: Sequence[str], told: Mapping[str, AbstractSet[int]]
    ) -> Iterator[tuple[str, LookResult]]:
        for name in clusters:
            self.between(name)
            one = self.clusters[name]
            state = one.ganeti.state()
            yield name, look_at(one.plan, one.runner, state, self.read_history(name), told.get(name, frozenset()))

    @property
    def whole(self) -> Path:
        return self.directory / "whole.journal"

    def whole_history(self) -> RolloutHistory | None:
        """Return what the journal of the whole says, None if no run has begun."""
        data = read_journal(self.whole)
        return None if data is None else read_rollout(data, str(self.whole))

    def roll(self, direction: Direction = Direction.APPLY) -> RolloutRun:
        """Run the roll-out once, the first time or further, as its journal says; return the run."""
        self.direction, self.said = direction, []
        known = self.whole_history()
        if known is not None:
            here = {name: self.read_history(name) for name in self.clusters}
            assert lost_journals(known, {name: item.id if item else None for name, item in here.items()}) == []
        made = RolloutRun(
            waves=self.waves,
            plans={name: one.plan.digest for name, one in self.clusters.items()},
            empty={name for name, one in self.clusters.items() if not one.plan.steps},
            hands=self,
            journal_file=self.whole,
            say=self.said.append,
            direction=direction,
            history=known,
            seconds=self.seconds,
            stop=self.stop,
        )
        made.go()
        return made
