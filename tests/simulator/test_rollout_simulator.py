"""Roll-outs on schedules drawn from seeds: the invariants hold, and a broken one is detected."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from functools import partial
from typing import Any, Final

import pytest

from gpolicy.apply import journals
from gpolicy.apply.jobs import SharedStopRequests
from gpolicy.apply.journals import ChainEnd, Direction, RunHistory
from gpolicy.cli import rolling_out
from gpolicy.cluster.record import Record
from gpolicy.fleet.named_clusters import RolloutWave
from gpolicy.json_values import Shape
from gpolicy.rollout import rollout_run
from gpolicy.rollout.rollout_run import (
    BEGUN,
    LookResult,
    PlanStage,
    RolledOut,
    RolloutAction,
    RolloutRun,
    next_back,
    next_forward,
    stage_of,
)
from gpolicy.use_cases import rolling_out as use_case
from tests.simulator.disturbances import modification
from tests.simulator.rollout_simulation import RolloutSimulation
from tests.simulator.simulation import seed_that_shows, simulate, violations

FIRST: Final = int(os.environ.get("GPOLICY_SEED") or 0)
FOUND: Final = {
    # seeds of schedules that showed a bug, and the bug
    "238": "stopped in the pause before the last look, the exit code was 0",
    "286": "a journal that could not be read ended the processes of other clusters in their steps",
    "464": "a journal that was cut short in its first line did so, too",
    "5000757": "when the plans were gone, those that were not taken back counted as taken back",
    "5002664": "none: the simulator had a signal to a process that had just begun end the roll-out",
    "10415": "a job that had failed between two attempts at the first step was not seen by the look",
}

roll_out = partial(simulate, of=RolloutSimulation)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, 4))])
def test_the_invariants_hold_on_every_schedule(part: int) -> None:
    """Each seed that fails is shown in full by `scripts/simulate --roll-out --seed SEED`."""
    assert violations(roll_out, range(FIRST + 25 * part, FIRST + 25 * part + 25)) == {}


@pytest.mark.full
@pytest.mark.parametrize("first", range(FIRST + 1_000_000, FIRST + 1_020_000, 200))
def test_the_invariants_hold_on_thousands_of_schedules(first: int) -> None:
    assert violations(roll_out, range(first, first + 200)) == {}


@pytest.mark.parametrize("seed", FOUND)
def test_schedules_that_once_failed_pass(seed: str) -> None:
    assert roll_out(seed).violations == []


def test_a_seed_is_always_the_same_schedule() -> None:
    for seed in range(40, 43):
        once, again, slowly = roll_out(str(seed)), roll_out(str(seed)), roll_out(str(seed), remembering=False)
        assert once.trace == again.trace == slowly.trace


# --- the simulator finds what is broken -------------------------------------------------------------------------------


def look_at_nothing(
    waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], _: AbstractSet[str]
) -> RolloutAction | None:
    """Begin a wave without a look at the one before."""
    return next_forward(waves, stages, {wave.label for wave in waves})


def first_wave_first(
    waves: Sequence[RolloutWave], stages: Mapping[str, PlanStage], tried: AbstractSet[str]
) -> RolloutAction | None:
    """Take back in the order of the roll-out."""
    return next_back(waves[::-1], stages, tried)


def all_is_well(*_: object) -> LookResult:
    """Find nothing wrong."""
    return LookResult()


def stop_alone(self: SharedStopRequests) -> bool:
    """Go on without the one that began it."""
    return bool(self._shared[0]) or self.requests > 0


def say_nothing(*_: object) -> Iterator[str]:
    """Show no step in the consent."""
    yield "some steps"


def forget_beginnings(self: RolloutRun, file: Any, event: Shape, value: Any) -> bool:
    """Begin clusters without a word in the journal."""
    return event is BEGUN or real_write(self, file, event, value)


def believe_every_line(data: bytes, where: str, _: object) -> tuple[list[Record], ChainEnd]:
    """Read what can be read of a journal."""
    events = []
    for line in data.splitlines():
        try:
            events.append(Record.of(json.loads(line), where))
        except ValueError:
            continue
    return events, ChainEnd()


def back_at_once(history: RunHistory | None, *, is_empty: bool = False) -> PlanStage:
    """Call a plan taken back as soon as that has begun."""
    begun = history is not None and history.direction is Direction.ROLLBACK
    return PlanStage.BACK if begun else stage_of(history, is_empty=is_empty)


def read_or_end(self: RolloutRun, cluster: str) -> tuple[PlanStage, str | None]:
    """End the roll-out when one journal cannot be read."""
    history = self.hands.read_history(cluster)
    return stage_of(history, is_empty=cluster in self.empty), None if history is None else history.id


real_write = RolloutRun._write
BROKEN: Final[dict[str, tuple[Any, str, Any, str, int]]] = {
    # what is broken, and how; what the simulator says, and a seed at which it does
    "waves": (rollout_run, "next_forward", look_at_nothing, "was looked at", 400),
    "looks": (rollout_run, "look_at", all_is_well, "finds nothing wrong, and", 670),
    "stops": (SharedStopRequests, "after_step", False, "after somebody had asked to stop", 445),
    "orphans": (SharedStopRequests, "after_step", property(stop_alone), "after the roll-out was killed", 411),
    "trouble": (RolloutRun, "has_trouble", False, "after trouble with another", 410),
    "way back": (rollout_run, "next_back", first_wave_first, "which is in a later wave", 404),
    "beginnings": (RolloutRun, "_write", forget_beginnings, "the journal of the whole does not say so", 403),
    "damage": (journals, "read_chain", believe_every_line, "the journal of the whole is damaged", 437),
    "stages": (rollout_run, "stage_of", back_at_once, "is taken back, it says", 438),
    "journals": (RolloutRun, "_standing", read_or_end, "which is at work", 552),
    "consent": (rolling_out, "_consent", say_nothing, "was not shown in the consent", 403),
    "exit code": (RolledOut, "is_finished", lambda *_, **__: True, "nobody has looked at", 789),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_simulator_finds_what_is_broken(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    place, name, broken, told, seed = BROKEN[what]
    monkeypatch.setattr(place, name, broken)
    assert seed_that_shows(told, roll_out, [seed, *range(400, 900)]) == seed


class Meddling(RolloutSimulation):
    """Nothing goes wrong but this: before each look somebody changes a value that the policy declares, not the plan."""

    def before(self, job: partial[Any]) -> None:
        name, ratio = job.args[0].name, ("ipolicy", "vcpu-ratio")
        self.site = self.sites[name]
        planned = {(change.object, change.path) for change in self.site.scenario.plan.changes}
        declared = [
            label for label, path in self.site.scenario.declared if path == ratio and (label, path) not in planned
        ]
        for label in declared if job.func.__name__ == "look_at_one" else ():
            self._foreign({**modification(label), "ipolicy": {"vcpu-ratio": 9.5}})


@pytest.mark.parametrize("compares", [True, False])
def test_a_look_compares_with_the_policy(monkeypatch: pytest.MonkeyPatch, compares: bool) -> None:
    if not compares:
        monkeypatch.setattr(use_case, "_with_drift", lambda *arguments: arguments[-1])
    report = simulate("14", of=Meddling, without=range(200))
    assert any("ipolicy.vcpu-ratio is not as the policy declares" in line for line in report.trace) is compares
    assert any("the policy declares another" in text for text in report.violations) is not compares
