"""After a kill at any point, the next run ends like an undisturbed one, and no job runs twice."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from gpolicy.apply.journals import Direction
from gpolicy.cluster.state import HIDDEN_BY_RAPI
from gpolicy.errors import UnreachableError
from tests.apply.model_runner import (  # noqa: F401 (mortal is a fixture)
    POLICY,
    KilledError,
    ModelRunner,
    MortalJournal,
    killed_run,
    mortal,
    plan_of,
    run,
)
from tests.apply.pretend_ganeti import PretendGaneti, gone

MOVE = (
    """
    NodeGroup
    name: default
    hv_state: {kvm: {cpu_total: 175}}
    """,
    """
    NodeGroup
    name: gold
    hv_state: {kvm: {cpu_node: 4}}
    nodes: [node1, node4, node5]
    """,
)


@given(
    kills=st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=4),
    back=st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=4),
    archived=st.sets(st.integers(0, 8)),
    hidden=st.booleans(),
    policy=st.sampled_from([POLICY, MOVE]),
)
def test_a_run_killed_after_any_event_can_continue_and_roll_back(
    kills: list[tuple[int, bool]],
    back: list[tuple[int, bool]],
    archived: set[int],
    hidden: bool,
    policy: tuple[str, ...],
) -> None:
    """With `hidden`, as through RAPI, nobody sees hv_state, and serial numbers stand for it; no job is archived."""
    ganeti = PretendGaneti.recorded()
    before = ganeti.content()
    plan = plan_of(*policy)
    ganeti.mishaps = [gone if number in archived and not hidden else None for number in range(9)]
    runner = ModelRunner(ganeti, gaps=HIDDEN_BY_RAPI if hidden else ())
    with TemporaryDirectory() as directory:
        journal = Path(directory, "journal")
        for left, torn in kills:
            MortalJournal.left, MortalJournal.torn = left, torn
            killed_run(plan, runner, journal, Direction.APPLY)
        MortalJournal.torn = False
        assert not killed_run(plan, runner, journal, Direction.APPLY)
        assert [job.call for job in ganeti.jobs] == [step.command.rapi for step in plan.steps]
        for left, torn in back:
            MortalJournal.left, MortalJournal.torn = left, torn
            killed_run(plan, runner, journal, Direction.ROLLBACK)
        MortalJournal.torn = False
        assert not killed_run(plan, runner, journal, Direction.ROLLBACK)
        assert ganeti.content() == before
        assert len(ganeti.jobs) == len(plan.steps) + sum(len(step.inverse.commands) for step in plan.steps)


@pytest.mark.parametrize("stride", [397, pytest.param(13, marks=pytest.mark.full)])
@pytest.mark.parametrize("direction", Direction)
def test_a_run_killed_within_any_line_goes_on(tmp_path: Path, direction: Direction, stride: int) -> None:
    """Whatever the number of bytes that got into the journal, each step runs once and each is taken back once."""
    killed, room = True, 0
    while killed:
        ganeti = PretendGaneti.recorded()
        before, plan, journal = ganeti.content(), plan_of(*POLICY), tmp_path / f"{room}"
        runner = ModelRunner(ganeti)
        for way in Direction:
            if way is direction:
                MortalJournal.room = room
                killed = killed_run(plan, runner, journal, way)
                MortalJournal.room = -1
            assert not killed_run(plan, runner, journal, way)
            if way is Direction.APPLY:
                assert [job.call for job in ganeti.jobs] == [step.command.rapi for step in plan.steps]
        assert ganeti.content() == before
        assert len(ganeti.jobs) == len(plan.steps) + sum(len(step.inverse.commands) for step in plan.steps)
        room += stride
    assert room > 2000


@pytest.mark.parametrize("moment", ["before", "after", "known"])
@pytest.mark.parametrize("step", range(1, 6))
def test_no_job_runs_twice_after_a_kill_around_a_submission(tmp_path: Path, moment: str, step: int) -> None:
    ganeti = PretendGaneti.recorded()
    plan = plan_of(*POLICY)
    seen: list[str] = []

    def kill(now: str) -> None:
        seen.append(now)
        if now == moment and seen.count("before") == step:
            MortalJournal.left = 0
            raise KilledError

    runner = ModelRunner(ganeti, lose=kill)
    assert killed_run(plan, runner, tmp_path / "journal", Direction.APPLY)
    assert not killed_run(plan, runner, tmp_path / "journal", Direction.APPLY)
    assert [job.call for job in ganeti.jobs] == [step.command.rapi for step in plan.steps]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_no_job_runs_twice_after_lost_contact_around_a_submission(tmp_path: Path, moment: str) -> None:
    ganeti = PretendGaneti.recorded()
    plan = plan_of(*POLICY)

    def lose(now: str) -> None:
        if now == moment:
            raise UnreachableError("127.0.0.1:5080: connection reset by peer")

    lost = iter([lose] * 2)
    runner = ModelRunner(ganeti, lose=lambda now: next(lost, lambda _: None)(now) if now == moment else None)
    verdict = run(plan, runner, tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert [job.call for job in ganeti.jobs] == [step.command.rapi for step in plan.steps]
