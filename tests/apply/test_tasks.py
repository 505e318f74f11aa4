"""Which jobs may run twice, and which way a command can go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.apply.journals import Fate, StepAttempt
from gpolicy.apply.work import (
    LeafDifference,
    Sight,
    Task,
    _other_objects,
    backward,
    effects_missing,
    effects_there,
    filled_in,
    forward,
    is_done,
    judge_restored,
    left_of,
    may_run,
    path_text,
)
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState, Identity, Unreadable
from gpolicy.ganeti.commands import RapiCall, Route
from gpolicy.ganeti.vocabulary import Level, Path, Value
from gpolicy.plan.changes import NAME, TAGS
from gpolicy.plan.effects import Effect, carried_out
from gpolicy.plan.step import PlannedCommand
from tests.plan.planned import cluster, plan_for


def _task(argv: tuple[str, ...] | None, rapi: RapiCall | None = None) -> Task:
    return Task("1", "1", "title", PlannedCommand(argv=argv, rapi=rapi))


@pytest.mark.parametrize(
    ("argv", "repeatable"),
    [
        (("gnt-group", "modify", "a"), True),
        (("gnt-group", "add", "a"), False),
        (("gnt-group", "rename", "a", "b"), False),
        (("gnt-group", "remove", "a"), False),
        (("gnt-cluster", "remove-tags", "a"), False),
        (("gnt-cluster", "add-tags", "a"), True),
        (("gnt-instance", "migrate", "a"), False),
        (("gnt-node", "modify", "add"), True),
    ],
)
def test_a_command_that_may_run_twice(argv: tuple[str, ...], *, repeatable: bool) -> None:
    assert _task(argv).repeatable is repeatable


@pytest.mark.parametrize(
    ("method", "path", "repeatable"),
    [
        ("PUT", "/2/groups/a/modify", True),
        ("POST", "/2/nodes/a/modify", True),
        ("PUT", "/2/groups/a/rename", False),
        ("POST", "/2/groups", False),
        ("DELETE", "/2/groups/a", False),
        ("PUT", "/2/groups/a/tags?tag=x", True),
    ],
)
def test_a_request_that_may_be_sent_twice(method: str, path: str, *, repeatable: bool) -> None:
    assert _task(None, RapiCall(method, path, None)).repeatable is repeatable


def test_the_way_of_a_command() -> None:
    both = _task(("gnt-group", "modify"), RapiCall("PUT", "/2/x", None))
    assert both.carried_by(Route.ARGV)
    assert both.carried_by(Route.RAPI)
    assert not _task(("gnt-group", "modify")).carried_by(Route.RAPI)
    assert not _task(None, RapiCall("PUT", "/2/x", None)).carried_by(Route.ARGV)
    assert not _task(None).repeatable


@pytest.mark.parametrize(("fate", "left"), [(Fate.DONE, ["2"]), (Fate.BEGUN, ["1", "2"]), (Fate.FAILED, ["1", "2"])])
def test_what_the_journal_does_not_know_to_be_done_is_left(fate: Fate, left: list[str]) -> None:
    tasks = [Task(key, key, "title", PlannedCommand(argv=("true",))) for key in "12"]
    attempts = {"1": StepAttempt(mark="m", fate=fate)}
    assert [task.key for task in left_of(tasks, attempts)] == left


def test_what_undoes_steps_comes_in_their_turn_back() -> None:
    plan = plan_for(
        cluster(groups={"a": {}, "b": {}}), *(f"NodeGroup\nname: {name}\nalloc_policy: last_resort" for name in "ab")
    )
    assert [task.key for task in forward(plan)] == ["1", "2"]
    assert [task.key for task in backward(plan, {"1", "2"})] == ["2-undo-1", "1-undo-1"]
    (last,) = backward(plan, {"2"})
    assert (last.key, last.step, last.title) == ("2-undo-1", "2", f"undo step 2: {plan.steps[1].title}")


RATIO = ("ipolicy", "vcpu-ratio")
NODE_MEMORY, TOTAL = (("hv_state", "kvm", name) for name in ("mem_node", "mem_total"))


def _gold(uuid: str | None, ratio: float = 2.0) -> ClusterState:
    state = cluster(groups={"gold": {RATIO: ratio}})
    return replace(state, groups={"gold": replace(state.groups["gold"], identity=Identity(uuid=uuid, serial_no=3))})


def _plan_text(ratio: int) -> str:
    return f"NodeGroup\nname: gold\nipolicy: {{vcpu-ratio: {ratio}}}"


@pytest.mark.parametrize(("now", "differs"), [("u-1", False), ("u-2", True), (None, False)])
def test_an_object_of_the_same_name_may_be_another(now: str | None, *, differs: bool) -> None:
    plan = plan_for(_gold("u-1"), _plan_text(4))
    found = _other_objects(plan, Sight.of(_gold(now)), set())
    assert found == ([LeafDifference("group/gold", ("uuid",), "u-1", now)] if differs else [])
    assert _other_objects(plan, Sight.of(_gold(now)), {"group/gold"}) == []
    gone = replace(_gold(now), groups={})
    assert _other_objects(plan, Sight.of(gone), set()) == []


@pytest.mark.parametrize(
    ("name", "path", "expected", "found", "filled"),
    [
        ("cluster", NODE_MEMORY, None, 0, True),
        ("group/a", NODE_MEMORY, None, 0, False),
        ("cluster", NODE_MEMORY, 0, 0, False),
        ("cluster", NODE_MEMORY, None, 7, False),
        ("cluster", RATIO, None, 4.0, False),
    ],
)
def test_a_default_that_ganeti_fills_in(name: str, path: Path, expected: Value, found: Value, *, filled: bool) -> None:
    difference = LeafDifference(name, path, expected, found)
    assert filled_in(difference, [Effect("cluster", TOTAL, None, 5)]) is filled
    assert not filled_in(difference, [Effect("group/a", TOTAL, None, 5), Effect("cluster", RATIO, None, 5.0)])


def test_a_path_in_words() -> None:
    assert [path_text(path) for path in (RATIO, TAGS, (*TAGS, "a"))] == ["ipolicy.vcpu-ratio", "tags", "tags a"]


def test_what_cannot_be_seen_of_a_rollback_is_named() -> None:
    state = _gold("u-1")
    plan = plan_for(state, _plan_text(4))
    effects = [effect for step in plan.steps for effect in step.command.effects]
    assert judge_restored(plan, Sight.of(state), effects).unseen == ()
    hidden = replace(state, unreadable=(Unreadable(level=Level.GROUP, prefix=("ipolicy",)),))
    assert judge_restored(plan, Sight.of(hidden), effects).unseen == ("group/gold ipolicy.vcpu-ratio",)


MADE = Effect("group/gold", NAME, None, "gold")
HIDDEN = Effect("group/gold", ("disk_state", "plain", "xenvg", "disk_overhead"), None, 10)
STEP = (MADE, HIDDEN)


def seen(*effects: Effect) -> Sight:
    """Return what the remote API shows after these effects."""
    contents = carried_out(effects, {"cluster": {}})
    shown = {
        name: {path: value for path, value in values.items() if path[0] != "disk_state"}
        for name, values in contents.items()
    }
    return Sight(shown, {}, HIDDEN_BY_RAPI)


def test_what_cannot_be_seen_of_a_step_that_has_not_begun_is_not_there() -> None:
    """A refused attempt to make a group leaves nothing: no group is expected the next time."""
    assert effects_there(STEP, seen()) == []
    assert effects_missing(STEP, seen()) == [*STEP]
    assert carried_out(effects_there(STEP, seen()), {}) == {}


def test_what_cannot_be_seen_of_a_step_that_has_begun_is_taken_for_there() -> None:
    assert effects_there(STEP, seen(MADE)) == [*STEP]
    assert effects_there([HIDDEN], seen(MADE)) == [HIDDEN]


KEPT = Effect("cluster", RATIO, 2.0, 2.0)


@pytest.mark.parametrize(
    ("effects", "sight", "done", "believed"),
    [
        (STEP, seen(MADE), True, True),
        (STEP, seen(), False, False),
        ((HIDDEN,), seen(), False, True),  # only the job's own success says so
        ((MADE, KEPT), seen(MADE, KEPT), True, True),
        ((MADE, KEPT), seen(MADE, replace(KEPT, after=4.0)), False, False),  # somebody else has changed it
    ],
)
def test_a_step_is_done_when_the_look_misses_none_of_its_effects(
    effects: tuple[Effect, ...], sight: Sight, *, done: bool, believed: bool
) -> None:
    task = Task("1", "1", "title", PlannedCommand(argv=("gnt-group", "add", "gold"), effects=effects))
    assert is_done(task, sight) is done
    assert is_done(task, sight, succeeded=True) is believed


@pytest.mark.parametrize(("effects", "may"), [((MADE,), False), ((), True)])
def test_a_step_that_may_have_begun_runs_again_only_if_that_does_no_harm(
    effects: tuple[Effect, ...], *, may: bool
) -> None:
    command = PlannedCommand(argv=("gnt-group", "add", "gold"), effects=(MADE, KEPT))
    harmless = replace(command, argv=("gnt-group", "modify", "gold"))
    sight = seen(*effects)
    assert may_run(Task("1", "1", "title", command), sight) is may
    assert may_run(Task("1", "1", "title", harmless), sight)
