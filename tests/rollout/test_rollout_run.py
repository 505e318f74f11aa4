"""A roll-out goes wave by wave, stops at trouble, goes on, and takes back; whatever kills it, no job runs twice."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from gpolicy.apply.journals import Direction, JournalError
from gpolicy.errors import InputError
from gpolicy.fleet.named_clusters import RolloutWave
from gpolicy.json_values import Shape
from gpolicy.rollout.rollout_run import (
    COMPLETE,
    REVERTED,
    ROLLOUT_DOCUMENT,
    PlanStage,
    lost_journals,
    next_back,
    next_forward,
    read_rollout,
)
from tests.apply.model_runner import (  # noqa: F401 (mortal is a fixture)
    KilledError,
    ModelRunner,
    MortalJournal,
    mortal,
    plan_of,
)
from tests.apply.pretend_ganeti import PretendGaneti, fails, then
from tests.apply.test_journal import expect_as_described
from tests.laws import examples
from tests.rollout.model_hands import Fleet, OneCluster

POLICIES = {
    "ham": (
        """
        Cluster
        name: cluster
        ipolicy: {vcpu-ratio: 7}
        """,
        """
        NodeGroup
        name: platinum
        nodes: [node1]
        """,
    ),
    "ber": (
        """
        Cluster
        name: cluster
        ipolicy: {vcpu-ratio: 8}
        """,
        """
        NodeSet
        name: n
        nodes: [node3]
        ndparams: {spindle_count: 5}
        """,
    ),
    "cam": (
        """
        NodeGroup
        name: gold
        ipolicy: {spindle-ratio: 9}
        """,
        """
        NodeSet
        name: n
        nodes: [node2]
        ndparams: {spindle_count: 9}
        """,
    ),
}
WAVES = (RolloutWave("stage=canary", ("ham",)), RolloutWave("name=*", ("ber", "cam")))


def one(name: str) -> OneCluster:
    ganeti = PretendGaneti.recorded()
    return OneCluster(ganeti, plan_of(*POLICIES[name]), ModelRunner(ganeti))


def fleet(directory: Path, *, child_dies: bool = False) -> Fleet:
    return Fleet(directory, {name: one(name) for name in POLICIES}, WAVES, child_dies=child_dies)


def jobs(made: Fleet) -> dict[str, list[object]]:
    return {name: [job.call for job in item.ganeti.jobs] for name, item in made.clusters.items()}


def steps(made: Fleet) -> dict[str, list[object]]:
    return {name: [step.command.rapi for step in item.plan.steps] for name, item in made.clusters.items()}


def test_waves_come_one_after_another_and_each_is_looked_at(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    run = made.roll()
    assert made.said == [
        "wave 1 of 2 (stage=canary): ham",
        "looking at wave 1 of 2 (stage=canary): ham",
        "ham: all is well",
        "wave 2 of 2 (name=*): ber, cam",
        "looking at wave 2 of 2 (name=*): ber, cam",
        "ber: all is well",
        "cam: all is well",
    ]
    assert jobs(made) == steps(made)
    assert set(run.stages().values()) == {PlanStage.DONE}
    assert not run.has_trouble
    whole = made.whole_history()
    assert whole is not None
    assert whole.ended == "done"
    assert whole.begun == {"ham", "ber", "cam"}


def test_a_failure_stops_the_roll_out_and_it_goes_on_later(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.clusters["ber"].ganeti.mishaps = [fails("disk full")]
    run = made.roll()
    assert run.stages() == {"ham": PlanStage.DONE, "ber": PlanStage.PARTLY, "cam": PlanStage.UNTOUCHED}
    assert "disk full" in run.outcomes["ber"].message
    assert made.begun == ["ham", "ber"]
    assert not made.clusters["cam"].ganeti.jobs
    again = made.roll()
    assert made.said[0] == "looking at wave 1 of 2 (stage=canary): ham"
    assert set(again.stages().values()) == {PlanStage.DONE}
    assert made.begun == ["ham", "ber", "ber", "cam"]


def test_what_a_look_finds_stops_the_roll_out(tmp_path: Path) -> None:
    """Somebody undoes the change after the run; the look before the next wave finds it, as often as it is there."""
    made = fleet(tmp_path)

    def undo(name: str) -> None:
        made.clusters[name].ganeti.model.own["ipolicy"]["vcpu-ratio"] = 4.0

    made.between = undo
    for _ in range(2):
        run = made.roll()
        assert "ipolicy.vcpu-ratio: expected 7, found 4" in run.looks["ham"].troubles[0]
        assert made.begun == ["ham"]
        assert not made.clusters["ber"].ganeti.jobs


def test_a_job_that_failed_since_stops_once(tmp_path: Path) -> None:
    """Who resumes has been told of it."""
    made = fleet(tmp_path)
    ham = made.clusters["ham"].ganeti

    def failing(name: str) -> None:
        if name == "ham" and len(ham.jobs) == len(made.clusters["ham"].plan.steps):
            ham.mishaps = [fails("no memory")]
            ham.submit(ham.jobs[-1].call, "somebody else")

    made.between = failing
    run = made.roll()
    (trouble,) = run.looks["ham"].troubles
    assert trouble == f"job {len(ham.jobs)} (OP) has failed since the plan began"
    again = made.roll()
    assert not again.has_trouble
    assert "an earlier look has told of it" in again.looks["ham"].notes[0]
    assert set(again.stages().values()) == {PlanStage.DONE}


def test_a_step_that_was_tried_twice_is_no_trouble(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.clusters["ham"].ganeti.mishaps = [None, fails("Configuration object updated since it has been read: 19 != 18")]
    run = made.roll()
    assert not run.has_trouble, (run.outcomes, run.looks)
    assert len(made.clusters["ham"].ganeti.jobs) == len(made.clusters["ham"].plan.steps) + 1


def test_a_rollback_takes_back_what_was_done_last_wave_first(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    before = {name: item.ganeti.content() for name, item in made.clusters.items()}
    made.clusters["ber"].ganeti.mishaps = [None, fails("no")]
    made.roll()
    back = made.roll(Direction.ROLLBACK)
    assert made.begun == ["ham", "ber", "ber", "ham"]
    assert back.stages() == {"ham": PlanStage.BACK, "ber": PlanStage.BACK, "cam": PlanStage.UNTOUCHED}
    assert {name: item.ganeti.content() for name, item in made.clusters.items()} == before


def test_trouble_with_one_cluster_does_not_hinder_the_rollback_of_others(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.roll()
    made.clusters["cam"].ganeti.mishaps = [fails("no")]
    back = made.roll(Direction.ROLLBACK)
    assert back.stages() == {"ham": PlanStage.BACK, "ber": PlanStage.BACK, "cam": PlanStage.PARTLY_BACK}
    assert back.has_trouble
    again = made.roll(Direction.ROLLBACK)
    assert set(again.stages().values()) == {PlanStage.BACK}


def test_a_request_to_stop_begins_no_other_cluster(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    ham = made.clusters["ham"]
    ham.ganeti.mishaps = [then(lambda _: made.stop.ask())]
    run = made.roll()
    assert run.stages()["ham"] is PlanStage.PARTLY
    made.stop.requests = 0
    made.between = lambda _: made.stop.ask()
    run = made.roll()
    assert (made.begun, run.stages()["ber"]) == (["ham", "ham"], PlanStage.UNTOUCHED)
    whole = made.whole_history()
    assert whole is not None
    assert whole.ended == "stopped"


def test_a_pause_ends_at_the_first_request_to_stop(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.seconds = 3600.0
    ham = made.clusters["ham"]
    ham.ganeti.mishaps = [*[None] * (len(ham.plan.steps) - 1), then(lambda _: made.stop.ask())]
    run = made.roll()
    assert run.stages()["ham"] is PlanStage.DONE
    assert not run.looks
    made.seconds, made.stop.requests = 0.01, 0
    for pauses in (2, 0):  # the one that was cut short, and that of the next wave; then all have been looked at
        run = made.roll()
        assert not run.has_trouble
        assert made.said.count("waiting 0.01 s before the look at this wave") == pauses


def test_no_cluster_begins_when_the_journal_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fleet(tmp_path)
    write = MortalJournal.write

    def full(self: MortalJournal, event: Shape, value: Any) -> None:
        if self.path == made.whole and event.name == "cluster-begun" and value["cluster"] == "ber":
            raise JournalError("disk full")
        write(self, event, value)

    monkeypatch.setattr(MortalJournal, "write", full)
    with pytest.raises(JournalError, match="disk full"):
        made.roll()
    assert made.begun == ["ham"]


def test_each_line_is_as_its_event_says(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.clusters["cam"].ganeti.mishaps = [fails("no")]
    made.roll()
    made.roll(Direction.ROLLBACK)
    events = expect_as_described(made.whole.read_text(), ROLLOUT_DOCUMENT, "rollout-journal")
    assert {name: " ".join(list(fields)[2:-1]) for name, fields in events.items()} == {
        "begin": "kind format_version gpolicy direction resumed plans waves pid host",
        "cluster-begun": "cluster",
        "cluster-ended": "cluster exit_code message journal",
        "cluster-looked": "cluster troubles failed_jobs",
        "end": "outcome",
    }
    assert events["begin"]["waves"] == [{"label": wave.label, "clusters": [*wave.clusters]} for wave in WAVES]
    whole = read_rollout(made.whole.read_bytes(), "j")
    assert whole.plans == events["begin"]["plans"]
    assert whole.begun == {"ham", "ber", "cam"}
    assert whole.ended == events["end"]["outcome"]


def test_a_journal_of_a_cluster_that_is_gone_is_noticed(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.roll()
    known = made.whole_history()
    assert known is not None
    here = {name: made.read_history(name) for name in made.clusters}
    ids = {name: item.id if item else None for name, item in here.items()}
    assert lost_journals(known, ids) == []
    assert lost_journals(known, {**ids, "ber": None}) == ["ber"]
    assert lost_journals(known, {**ids, "cam": "another"}) == ["cam"]


def test_a_cluster_whose_journal_goes_during_a_rollback_is_not_taken_back(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.roll()
    made.clusters["ber"].ganeti.mishaps = [then(lambda _: made.journal("ham").unlink())]
    run = made.roll(Direction.ROLLBACK)
    assert run.stages() == {"ham": PlanStage.UNKNOWN, "ber": PlanStage.BACK, "cam": PlanStage.BACK}
    assert run.has_trouble


@settings(max_examples=examples(12))
@given(
    kills=st.lists(st.tuples(st.integers(1, 60), st.booleans(), st.booleans()), max_size=4),
    back=st.lists(st.tuples(st.integers(1, 60), st.booleans(), st.booleans()), max_size=4),
)
def test_a_roll_out_killed_after_any_event_goes_on_and_rolls_back(
    kills: list[tuple[int, bool, bool]], back: list[tuple[int, bool, bool]]
) -> None:
    """Killed after, or within, any line of any journal: the whole, or the process of one cluster."""
    with TemporaryDirectory() as directory:
        made = fleet(Path(directory))
        before = {name: item.ganeti.content() for name, item in made.clusters.items()}
        for direction, deaths in ((Direction.APPLY, kills), (Direction.ROLLBACK, back)):
            for left, torn, child in deaths:
                MortalJournal.left, MortalJournal.torn, made.child_dies = left, torn, child
                try:
                    made.roll(direction)
                except KilledError:
                    pass
                finally:
                    MortalJournal.left, MortalJournal.torn = -1, False
            run = made.roll(direction)
            assert not run.has_trouble, (run.outcomes, run.looks)
            if direction is Direction.APPLY:
                assert jobs(made) == steps(made)
                assert set(run.stages().values()) == {PlanStage.DONE}
        assert set(run.stages().values()) == {PlanStage.BACK}
        assert {name: item.ganeti.content() for name, item in made.clusters.items()} == before
        undo = {
            name: sum(len(step.inverse.commands) for step in item.plan.steps) for name, item in made.clusters.items()
        }
        assert {name: len(found) - len(steps(made)[name]) for name, found in jobs(made).items()} == undo


@pytest.mark.parametrize("stride", [997, pytest.param(31, marks=pytest.mark.full)])
def test_a_roll_out_killed_within_any_line_goes_on(tmp_path: Path, stride: int) -> None:
    """`room` counts the bytes of all journals together."""
    killed, room = True, 0
    while killed:
        directory = tmp_path / f"{room}"
        directory.mkdir()
        made = fleet(directory)
        MortalJournal.room, killed = room, False
        try:
            made.roll()
        except KilledError:
            killed = True
        MortalJournal.room = -1
        run = made.roll()
        assert not run.has_trouble, (run.outcomes, run.looks)
        assert jobs(made) == steps(made)
        room += stride
    assert room > 5000


@pytest.mark.parametrize("name", ["_rollout", "ham", "ber"])
def test_journals_that_end_within_their_first_line_are_in_nobodys_way(tmp_path: Path, name: str) -> None:
    """As a full disk of another tool may leave one: nothing has begun, so all is begun."""
    made = fleet(tmp_path)
    path = made.whole if name == "_rollout" else made.journal(name)
    for text in ("", '{"event": "beg', '{"event": "begin", "time": "2026-'):
        path.write_text(text)
    made.roll()
    assert jobs(made) == steps(made)


def test_a_journal_cut_at_any_byte_keeps_its_complete_lines(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.roll()
    whole = made.whole.read_bytes()
    for cut in range(whole.index(b"\n"), len(whole)):
        ends = whole.rindex(b"\n", 0, cut) + 1 if b"\n" in whole[:cut] else 0
        complete = whole[: cut + 1] if whole[cut : cut + 1] == b"\n" else whole[:ends]
        found, known = read_rollout(whole[:cut], "j"), read_rollout(complete, "j")
        assert (found.begun, found.journal_ids, found.ended) == (known.begun, known.journal_ids, known.ended)
        assert found.end.checksum == known.end.checksum


def test_a_journal_that_lost_a_line_is_refused(tmp_path: Path) -> None:
    made = fleet(tmp_path)
    made.roll()
    lines = made.whole.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["event"] for line in lines][:3] == ["begin", "cluster-begun", "cluster-ended"]
    for number in range(1, len(lines) - 1):
        with pytest.raises(InputError, match="damaged"):
            read_rollout(b"".join(lines[:number] + lines[number + 1 :]), "j")


ABC = (RolloutWave("a", ("one",)), RolloutWave("b", ("two", "three")), RolloutWave("c", ("four",)))
NAMES = [name for wave in ABC for name in wave.clusters]
STAGES = st.fixed_dictionaries({name: st.sampled_from(PlanStage) for name in NAMES})
LABELS = st.sets(st.sampled_from([wave.label for wave in ABC]))


@given(STAGES, LABELS)
def test_no_wave_begins_before_those_before_it_are_done_and_looked_at(
    stages: dict[str, PlanStage], looked_at: set[str]
) -> None:
    action = next_forward(ABC, stages, looked_at)
    number = len(ABC) if action is None else ABC.index(action.wave)
    for wave in ABC[:number]:
        assert all(stages[name] in COMPLETE for name in wave.clusters)
        assert wave.label in looked_at
    if action is not None and action.is_look:
        assert action.clusters == action.wave.clusters
        assert all(stages[name] in COMPLETE for name in action.clusters)
        assert action.wave.label not in looked_at
    elif action is not None:
        assert action.clusters == tuple(name for name in action.wave.clusters if stages[name] not in COMPLETE) != ()


@given(STAGES, st.sets(st.sampled_from(NAMES)))
def test_what_is_left_to_take_back_comes_last_wave_first(stages: dict[str, PlanStage], tried: set[str]) -> None:
    left = [name for name in NAMES if stages[name] not in REVERTED and name not in tried]
    action = next_back(ABC, stages, tried)
    if action is None:
        assert not left
        return
    assert set(action.clusters) == set(left) & set(action.wave.clusters) != set()
    assert not any(set(wave.clusters) & set(left) for wave in ABC[ABC.index(action.wave) + 1 :])
