"""A remedy goes through the same journal as a plan: checks, kills at any point, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpolicy.apply.carrying import ApplyError, CarryingError
from gpolicy.apply.journals import Direction
from gpolicy.apply.plan_run import RefusedError, check_route, check_suppositions
from gpolicy.apply.work import Sight
from gpolicy.cli.checking import checked_policy
from gpolicy.cluster.rapi import CONFIGURATION_FIELDS, configuration_of
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError, InputError
from gpolicy.json_values import json_text
from gpolicy.plan.effects import Effect, contents
from gpolicy.plan.sides import planned_sides
from gpolicy.plan.step import Procedure
from gpolicy.remedy.remedy import RemedyReport, find_remedy
from gpolicy.remedy.saved_remedy import Supposed, read_procedure, save_moves
from gpolicy.report.remedy_answer import remedy_data
from tests.apply import pretend_rapi
from tests.apply.model_runner import (  # noqa: F401 (mortal is a fixture)
    Agreed,
    KilledError,
    ModelRunner,
    MortalJournal,
    Quiet,
    killed_run,
    mortal,
    run,
)
from tests.apply.pretend_ganeti import PretendGaneti, fails, gone, lies, then
from tests.apply.pretend_rapi import query
from tests.cli.command_line import ROOT
from tests.plan.ganeti_model import ModelCluster


@cache
def crowded() -> tuple[ClusterState, RemedyReport]:
    """Return a cluster under its new policy, and the moves that cure it, but for the one that RAPI has not."""
    state = read_snapshot(ROOT / "policies" / "two-groups.snapshot.json")
    state = planned_sides(checked_policy(ROOT / "policies" / "two-groups", state).policy, state).after
    report = find_remedy(state, PairNames(), rate=60)
    return state, replace(report, steps=tuple(step for step in report.steps if all(one.rapi for one in step.commands)))


def pretended() -> PretendGaneti:
    state = crowded()[0]
    return PretendGaneti(ModelCluster(state), uuid=state.cluster.identity.uuid or "")


def written(ganeti: PretendGaneti, supposed: Supposed | None = None) -> dict[str, Any]:
    report = crowded()[1]
    return remedy_data(report, save_moves(report.steps, ganeti.state(), supposed))


def read(data: dict[str, Any]) -> Procedure:
    with TemporaryDirectory() as directory:
        file = Path(directory, "remedy.json")
        file.write_text(json_text(data), encoding="utf-8")
        return read_procedure(file)


def remedy_for(ganeti: PretendGaneti, supposed: Supposed | None = None) -> Procedure:
    remedy = read(written(ganeti, supposed))
    assert len(remedy.steps) > 3
    assert {step.command.argv[1] for step in remedy.steps if step.command.argv} == {"migrate", "replace-disks"}
    return remedy


def places(ganeti: PretendGaneti) -> dict[str, list[str]]:
    items = ganeti.model.state.instances.values()
    return {item.name: [item.primary_node, *item.secondary_nodes] for item in items}


def check_done(ganeti: PretendGaneti, remedy: Procedure) -> None:
    assert [job.call for job in ganeti.jobs] == [step.command.rapi for step in remedy.steps]
    now = places(ganeti)
    for step in crowded()[1].steps:
        assert now[step.instance] == [*step.nodes_after]


@given(
    kills=st.lists(st.tuples(st.integers(1, 35), st.booleans()), max_size=4),
    back=st.lists(st.tuples(st.integers(1, 35), st.booleans()), max_size=4),
    archived=st.sets(st.integers(0, 12)),
)
def test_a_remedy_killed_after_any_event_goes_on_and_back(
    kills: list[tuple[int, bool]], back: list[tuple[int, bool]], archived: set[int]
) -> None:
    ganeti = pretended()
    before, remedy = ganeti.content(), remedy_for(ganeti)
    ganeti.mishaps = [gone if number in archived else None for number in range(13)]
    runner = ModelRunner(ganeti)
    with TemporaryDirectory() as directory:
        journal = Path(directory, "journal")
        for way, deaths in ((Direction.APPLY, kills), (Direction.ROLLBACK, back)):
            for left, torn in deaths:
                MortalJournal.left, MortalJournal.torn = left, torn
                killed_run(remedy, runner, journal, way)
            MortalJournal.torn = False
            assert not killed_run(remedy, runner, journal, way)
            if way is Direction.APPLY:
                check_done(ganeti, remedy)
    assert ganeti.content() == before
    assert len(ganeti.jobs) == 2 * len(remedy.steps)


@pytest.mark.parametrize("moment", ["before", "after", "known"])
def test_no_move_is_made_twice_after_a_kill_around_its_submission(tmp_path: Path, moment: str) -> None:
    for step in range(1, len(crowded()[1].steps) + 1):
        ganeti = pretended()
        remedy, seen = remedy_for(ganeti), list[str]()

        def kill(now: str, seen: list[str] = seen, step: int = step) -> None:
            seen.append(now)
            if now == moment and seen.count("before") == step:
                MortalJournal.left = 0
                raise KilledError

        runner, journal = ModelRunner(ganeti, lose=kill), tmp_path / f"{moment}-{step}"
        assert killed_run(remedy, runner, journal, Direction.APPLY)
        assert not killed_run(remedy, runner, journal, Direction.APPLY)
        check_done(ganeti, remedy)


def test_what_a_failed_move_has_not_done_is_taken_back_from_there(tmp_path: Path) -> None:
    ganeti = pretended()
    before, remedy, runner = ganeti.content(), remedy_for(ganeti), ModelRunner(ganeti)
    ganeti.mishaps = [None, None, fails("Can't replace disks")]
    with pytest.raises(CarryingError, match=r"step 3 \(set 2: mirror .* failed: OpExecError: Can't replace disks"):
        run(remedy, runner, tmp_path / "journal")
    said = Quiet()
    run(remedy, runner, tmp_path / "journal", direction=Direction.ROLLBACK, say=said)
    assert next(line for line in said.said if line.startswith("[")).startswith("[1/2] undo step 2: set 1: migrate ")
    assert ganeti.content() == before


def test_a_move_that_only_ganeti_calls_done_stops_the_run(tmp_path: Path) -> None:
    ganeti = pretended()
    ganeti.mishaps = [lies]
    with pytest.raises(CarryingError, match="reports success, but some of the changes are missing") as caught:
        run(remedy_for(ganeti), ModelRunner(ganeti), tmp_path / "journal")
    assert [item.path for item in caught.value.differences] == [("nodes",)]
    assert len(ganeti.jobs) == 1


def test_an_instance_that_somebody_else_moves_meanwhile_is_left_alone(tmp_path: Path) -> None:
    ganeti = pretended()
    remedy = remedy_for(ganeti)
    last = remedy.steps[-1].object.removeprefix("instance/")
    ganeti.mishaps = [then(lambda it: change(it, last, primary_node="node8.example.org"))]
    with pytest.raises(
        CarryingError, match="somebody else has changed objects that the remaining steps touch"
    ) as caught:
        run(remedy, ModelRunner(ganeti), tmp_path / "journal")
    assert [item.object for item in caught.value.differences] == [f"instance/{last}"]
    assert "make a fresh remedy" in (caught.value.hint or "")
    assert len(ganeti.jobs) == 1


def change(ganeti: PretendGaneti, name: str, **values: Any) -> None:
    state = ganeti.model.state
    instances = {**state.instances, name: replace(state.instances[name], **values)}
    ganeti.model.state = replace(state, instances=instances)


def newcomer(ganeti: PretendGaneti) -> None:
    state, node = ganeti.model.state, crowded()[1].steps[0].nodes_after[0]
    item = replace(next(iter(state.instances.values())), name="new.example.org", primary_node=node, secondary_nodes=())
    ganeti.model.state = replace(state, instances={**state.instances, item.name: item})


def first() -> str:
    return crowded()[1].steps[0].instance


@pytest.mark.parametrize(
    ("meanwhile", "found"),
    [
        (lambda it: change(it, first(), admin_state="down"), ("admin_state",)),
        (lambda it: change(it, first(), secondary_nodes=("node9.example.org",)), ("instances",)),
        (newcomer, ("instances",)),
        (lambda it: it.model.tags["node", crowded()[1].steps[0].nodes_after[0]].add("x"), ("tags", "x")),
    ],
)
def test_a_remedy_for_a_cluster_that_has_changed_is_refused(
    meanwhile: Callable[[PretendGaneti], None], found: tuple[str, ...], tmp_path: Path
) -> None:
    ganeti = pretended()
    remedy = remedy_for(ganeti)
    meanwhile(ganeti)
    with pytest.raises(
        RefusedError, match="the cluster has changed since the remedy was made; nothing was done"
    ) as caught:
        run(remedy, ModelRunner(ganeti), tmp_path / "journal")
    assert found in [item.path for item in caught.value.differences]
    assert ganeti.jobs == []


@pytest.mark.parametrize("died", [4, 9, 14])
def test_a_killed_remedy_does_not_go_on_beside_a_newcomer(died: int, tmp_path: Path) -> None:
    ganeti = pretended()
    remedy, runner, journal = remedy_for(ganeti), ModelRunner(ganeti), tmp_path / "journal"
    MortalJournal.left = died
    assert killed_run(remedy, runner, journal, Direction.APPLY)
    begun = len(ganeti.jobs)
    assert begun < len(remedy.steps)
    newcomer(ganeti)
    with pytest.raises(RefusedError, match="changed since the last run; no further step was begun") as caught:
        run(remedy, runner, journal)
    assert {item.path for item in caught.value.differences} == {("instances",)}
    assert len(ganeti.jobs) == begun


def test_nothing_moves_to_a_node_that_may_hold_nothing_any_more() -> None:
    ganeti = pretended()
    remedy, steps = remedy_for(ganeti), crowded()[1].steps
    joined = {name for step in steps for name in {*step.nodes_after} - {*step.nodes_before}}
    left = {name for step in steps for name in step.nodes_before} - joined
    assert joined
    assert left
    for name in sorted(joined | left):
        state = ganeti.state()
        state = replace(state, nodes={**state.nodes, name: replace(state.nodes[name], drained=True)})
        if name in left:
            assert check_suppositions(remedy, state, Sight.of(state, instances=True)) == ()
            continue
        with pytest.raises(RefusedError) as caught:
            check_suppositions(remedy, state, Sight.of(state, instances=True))
        assert [(item.object, item.found) for item in caught.value.differences] == [
            (f"node/{name}", "offline, drained or not vm_capable")
        ]


def test_an_instance_without_a_way_back_stays_and_is_named(tmp_path: Path) -> None:
    ganeti = pretended()
    before, data = places(ganeti), written(ganeti)
    data["steps"][0] |= {"back": [], "no_way_back": "nothing moves to node2, which may hold no instance"}
    remedy, runner, shown = read(data), ModelRunner(ganeti), Agreed()
    run(remedy, runner, tmp_path / "journal")
    run(remedy, runner, tmp_path / "journal", direction=Direction.ROLLBACK, agree=shown)
    step = data["steps"][0]
    assert places(ganeti) == {**before, step["instance"]: step["nodes_after"]}
    said = f"step 1: {step['instance']} stays where it is: nothing moves to node2, which may hold no instance"
    assert shown.shown[0].lost == (said,)


@pytest.mark.parametrize(("is_plan", "what"), [(True, "plan p.json makes it, and that plan"), (False, "policy p.json")])
def test_a_remedy_for_a_plan_waits_for_the_plan(tmp_path: Path, is_plan: bool, what: str) -> None:
    ganeti = pretended()
    effects = (Effect("cluster", ("tags", "htools:x"), None, True),)
    remedy = remedy_for(ganeti, Supposed("p.json", is_plan, effects))
    with pytest.raises(RefusedError, match=f"the remedy is for the cluster as {what}") as caught:
        run(remedy, ModelRunner(ganeti), tmp_path / "journal")
    assert "was not applied; nothing was done" in caught.value.message
    assert ganeti.jobs == []
    ganeti.model.tags["cluster", None].add("htools:x")
    run(remedy, ModelRunner(ganeti), tmp_path / "journal")
    check_done(ganeti, remedy)


def test_a_move_without_a_request_is_refused_before_the_first(tmp_path: Path) -> None:
    state = read_snapshot(ROOT / "policies" / "two-groups.snapshot.json")
    _, report = crowded()
    plain = next(item for item in state.instances.values() if item.disk_template == "plain")
    argv = ("gnt-instance", "move", "-f", "-n", "node2.example.org", plain.name)
    data = written(pretended())
    step = {**data["steps"][0], "instance": plain.name, "nodes_before": [plain.primary_node]}
    step |= {"nodes_after": ["node2.example.org"], "commands": [{"argv": [*argv], "rapi": None}]}
    step["back"] = [{"argv": [*argv[:4], plain.primary_node, plain.name], "rapi": None}]
    nodes = (plain.primary_node, "node2.example.org")
    data |= {"steps": [step], "observed": {}, "residents": {name: [] for name in nodes}}
    values = [{"keys": ["nodes"], "value": [plain.primary_node]}, {"keys": ["admin_state"], "value": "up"}]
    data["observed"] = {
        name: {"uuid": None, "serial_no": None, "values": values if name.startswith("instance/") else []}
        for name in (f"instance/{plain.name}", *(f"node/{node}" for node in nodes))
    }
    remedy = read(data)
    assert remedy.steps[0].title.endswith("; it is down while its disks are copied")
    with pytest.raises(GpolicyError, match="pretended: cannot carry step 1") as caught:
        check_route(remedy, ModelRunner(pretended()), Direction.APPLY, None)
    assert caught.value.hint == "apply the remedy through local: or ssh://"
    assert not isinstance(caught.value, ApplyError)
    assert report.steps
    assert not list(tmp_path.iterdir())


def test_the_remote_api_shows_where_instances_are_without_asking_a_node() -> None:
    ganeti = PretendGaneti.recorded()
    answers = pretend_rapi.info(ganeti), pretend_rapi.groups(ganeti), query(ganeti, [*CONFIGURATION_FIELDS])
    rows: list[Any] = []
    for item in ganeti.state().instances.values():
        beparams = {"minmem": 1, "maxmem": 1, "vcpus": 1, "spindle_use": 1, "auto_balance": True}
        own: list[Any] = [item.name, 7, "u", item.primary_node, [*item.secondary_nodes], item.admin_state]
        rows.append([[0, value] for value in (*own, item.disk_template, beparams, [])])
    planned: list[Any] = ["planned", 1, "u", None, [], "down", "drbd", {}, []]  # it is nowhere
    rows.append([[0, value] for value in planned])
    state = configuration_of(*answers, {"data": rows}, "rapi://cluster")
    seen = contents(state, instances=True)
    assert len(state.instances) == len(rows) - 1 > 0
    expected = contents(ganeti.state(), instances=True)
    assert {name: seen[name] for name in seen if name.startswith("instance/")} == {
        name: expected[name] for name in expected if name.startswith("instance/")
    }


def argv_of(data: dict[str, Any]) -> list[str]:
    argv: list[str] = data["steps"][0]["commands"][0]["argv"]
    return argv


@pytest.mark.parametrize(
    ("falsify", "said"),
    [
        (lambda data: argv_of(data).insert(2, "--debug"), "is no command by which a remedy moves"),
        (lambda data: argv_of(data).__setitem__(0, "rm"), "is no command by which a remedy moves"),
        (lambda data: argv_of(data).__setitem__(3, "node3.example.org"), "rapi.body.remote_node is"),
        (lambda data: data["steps"][0].update(nodes_after=["node3.example.org", "node4.example.org"]), "lead to"),
        (lambda data: data["steps"][0].update(nodes_before=["node3.example.org", "node4.example.org"]), "lead to"),
        (lambda data: data["steps"][0].update(nodes_before=["node3.example.org"]), "not for an instance on 1 nodes"),
        (lambda data: data["steps"][0].update(back=[]), "way back does not lead to where it began"),
        (lambda data: data["observed"].popitem(), "`observed` and `residents` are not of the instances"),
        (lambda data: data["steps"].append(data["steps"][0]), "then, not on"),
        (lambda data: data.update(what_if=["1 node lost"]), "for a supposed cluster"),
        (lambda data: data.update(format_version="1.0"), "its format is"),
        (lambda data: data.update(ganeti_version="9.9"), "there is no Ganeti release"),
        (lambda data: data.update(kind="gpolicy-snapshot"), "this is not a plan: its kind is"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(falsify: Callable[[dict[str, Any]], object], said: str) -> None:
    data = json.loads(json_text(written(pretended())))
    read(data)
    falsify(data)
    with pytest.raises(InputError, match=said):
        read(data)
