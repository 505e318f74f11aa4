"""Which jobs may run twice, and which way a command can go."""

from __future__ import annotations

import pytest

from gpolicy.apply.journal import Fate, StepAttempt
from gpolicy.apply.tasks import Task, backward, forward, left_of, undo_key
from gpolicy.ganeti.commands import RapiCall, Route
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
    assert undo_key("3", 2) == "3-undo-2"


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
