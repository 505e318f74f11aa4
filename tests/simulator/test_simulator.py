"""apply on schedules drawn from seeds: the invariants hold, and a broken one is detected."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from gpolicy.apply import job_runners, work
from gpolicy.apply.carrying import Carrier
from gpolicy.apply.job_runners import RapiRunner
from gpolicy.apply.jobs import JobOutcome, JobResult, Watch
from gpolicy.apply.plan_run import Intention
from gpolicy.apply.work import ClusterIdentity, FinalLook
from gpolicy.cli import applying as cli_applying
from gpolicy.plan.step import PlannedCommand
from tests.plan.ganeti_model import ModelCluster
from tests.simulator.argument_lists import opcode_of
from tests.simulator.disturbances import opcode_for
from tests.simulator.mischief import APART
from tests.simulator.scenarios import scenario
from tests.simulator.simulation import seed_that_shows, simulate, violations

FIRST: Final = int(os.environ.get("GPOLICY_SEED") or 0)
FOUND: Final = {
    # seeds of schedules that showed a bug, and the bug
    "0": "a tag that somebody else had removed counted as a step that was begun; taken back, it said",
    "53": "a plan that renames a group could neither go on nor back when its first step had failed",
    "303": "a step was begun although Ctrl-C had come while the cluster was looked at",
    "387": "a tag that somebody else had removed was put back by a rollback, as if it had been ours",
    "1077": "a step was begun although the lock was lost while the cluster was looked at",
    "1710": "a second --resume between the reading of the journal and the lock: every step was done twice",
    "2220": "what a job had stored was not yet shown when Ctrl-C came twice: a done step was called failed",
    "10496": "a rollback could not be repeated when a step that failed had set a value of a group that was renamed",
    "10726": "a value that somebody else had set between two attempts at a step was overwritten without a word",
    "11269": "a job that was accepted and answered with HTTP 401 was not searched for",
    "1001629": "half of the number of a job, cut short by ssh, was taken for another job",
    "9201539": "a request came late while nothing could be read, and the last message did not name its step",
    "9103642": "the serial number behind somebody else's change was taken for that of a step that had no job",
    "2005321": "a wrong job number in an answer counted as an archived job, and the job ran later",
    "100887": "a job of which a proxy said 404 counted as archived, and ran later",
    "30001000": "a group whose removal had failed was made once more, since a look did not show one of its values",
    "20041844": "of a step that failed half-way, a value that RAPI cannot show was not taken back",
    "9319202": "a rollback asked for again tried a step that had not been needed, under a name that was gone",
    "102213": "a rollback overwrote what somebody else had set below hv_state or disk_state without a word",
}


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, 4))])
def test_the_invariants_hold_on_every_schedule(part: int) -> None:
    """Each seed that fails is shown in full by `scripts/simulate --seed SEED`."""
    assert violations(simulate, range(FIRST + 80 * part, FIRST + 80 * part + 80)) == {}


@pytest.mark.full
@pytest.mark.parametrize("first", range(FIRST + 1_000_000, FIRST + 1_200_000, 1000))
def test_the_invariants_hold_on_hundreds_of_thousands_of_schedules(first: int) -> None:
    assert violations(simulate, range(first, first + 1000)) == {}


@pytest.mark.parametrize("seed", FOUND)
def test_schedules_that_once_failed_pass(seed: str) -> None:
    assert simulate(seed, without=APART).violations == []


def test_a_seed_is_always_the_same_schedule() -> None:
    for seed in range(40, 46):
        once, again, slowly = simulate(str(seed)), simulate(str(seed)), simulate(str(seed), remembering=False)
        assert once.trace == again.trace == slowly.trace


def test_both_forms_of_a_command_ask_for_the_same() -> None:
    """What the programs read from their arguments is what the remote API reads from a request."""
    for number in range(60):
        chosen = scenario(number)
        one, other = ModelCluster(chosen.state), ModelCluster(chosen.state)
        for step in chosen.plan.steps:
            assert step.command.argv is not None
            one.run(opcode_for(step.command))
            other.run(opcode_of(step.command.argv))
            assert one.as_state() == other.as_state()


# --- the simulator finds what is broken -------------------------------------------------------------------------------


def refuse_nothing(*_: object, **__: object) -> None:
    """Stand in for a check."""


def believe_statuses(self: RapiRunner, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
    """Take every answer but 200 for a refusal."""
    outcome = real_run(self, command, mark, watch)
    lost = outcome.result is JobResult.UNKNOWN and outcome.text.startswith("HTTP")
    return replace(outcome, result=JobResult.FAILED) if lost else outcome


def ask_for_more(self: RapiRunner, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
    """Set one value more than the step says."""
    assert command.rapi is not None
    body = deepcopy(command.rapi.body)
    if isinstance(body, dict) and command.rapi.path.endswith("/modify"):
        body["ndparams"] = {"spindle_count": 77}
    return real_run(self, replace(command, rapi=replace(command.rapi, body=body)), mark, watch)


def send_twice(self: RapiRunner, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
    """Send each request a second time."""
    real_run(self, command, mark, watch)
    return real_run(self, command, mark, watch)


def say_nothing(_: object, __: object, intention: Intention) -> list[str]:
    """Show no step in the consent."""
    return [f"{len(intention.tasks)} steps"]


def all_is_well(*_: object) -> FinalLook:
    """Find no difference."""
    return FinalLook((), ())


real_run = RapiRunner.run
BROKEN: Final[dict[str, tuple[Any, str, Callable[..., Any], str, int]]] = {
    # what is broken, and how; what the simulator says, and a seed at which it does
    "stops": (Carrier, "_check_may_begin", refuse_nothing, "was begun after", 21),
    "looks": (Carrier, "_check_expected", refuse_nothing, "is begun although", 29),
    "identity": (ClusterIdentity, "other", refuse_nothing, "goes to another cluster", 79),
    "statuses": (job_runners.RapiRunner, "run", believe_statuses, "under way", 16),
    "requests": (job_runners.RapiRunner, "run", ask_for_more, "which it does not say", 0),
    "marks": (job_runners.RapiRunner, "run", send_twice, "a second time", 0),
    "consent": (cli_applying, "consent_lines", say_nothing, "was not shown in the consent", 0),
    "applied": (work, "judge_outcome", all_is_well, "exit code 0, and", 36),
    "restored": (work, "judge_restored", all_is_well, "taken back, and", 24),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_simulator_finds_what_is_broken(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    place, name, broken, told, seed = BROKEN[what]
    monkeypatch.setattr(place, name, broken)
    assert seed_that_shows(told, partial(simulate, route="rapi"), [seed, *range(600)]) == seed
