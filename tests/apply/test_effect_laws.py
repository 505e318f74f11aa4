"""Laws of the effects of steps, over generated clusters and policies, judged by the model of Ganeti's jobs.

Apply relies on the effects of a step: before its job none of them is there, after it all are, and nothing
else has changed; the same for what undoes it; and a plan says all this through its file unchanged.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given

from gpolicy.apply.work import (
    Sight,
    Task,
    backward,
    compare_contents,
    compare_objects,
    compare_plan,
    forward,
    judge_outcome,
)
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.commands import Command
from gpolicy.plan.effects import Effect, Progress, carried_out, contents, progress_of
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import read_plan
from tests.plan.ganeti_model import ModelCluster
from tests.plan.planned import plan_text
from tests.plan.test_plan_laws import cases, job_of, law, plan_of
from tests.strategies import GeneratedPolicy


def through_a_file(plan: Plan) -> Plan:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "plan.json")
        file.write_text(plan_text(plan), encoding="utf-8")
        return read_plan(file)


def check_job(model: ModelCluster, task: Task, so_far: list[Effect]) -> None:
    effects = task.command.effects
    before = contents(model.as_state())
    telling = [effect for effect in effects if effect.before != effect.after]
    assert not telling or progress_of(effects, before) is Progress.NOT_BEGUN, task
    model.run(job_of(Command(task.command.argv, task.command.rapi)))
    after = contents(model.as_state())
    assert progress_of(effects, after) is Progress.DONE, task
    expected = carried_out(effects, before)
    assert expected.keys() == after.keys(), task
    so_far += effects
    assert compare_contents(expected, expected, after, (), so_far) == [], task


@law
@given(cases())
def test_effects_match_the_cluster(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    state, generated = case
    made = plan_of(generated, state)
    if not made.safe:
        return
    plan = through_a_file(made)
    assert [(item.object, item.path, item.action, item.before, item.after) for item in plan.changes] == [
        (item.object, item.path, item.action, item.before, item.after) for item in made.changes
    ]
    assert [(step.command.argv, step.command.rapi) for step in plan.steps] == [
        (step.command.argv, step.command.rapi) for step in made.steps
    ]
    model = ModelCluster(state)
    assert compare_plan(plan, Sight.of(state), (), {})[0] == []
    so_far: list[Effect] = []
    for task in forward(plan):
        check_job(model, task, so_far)
        assert compare_objects(plan, Sight.of(model.as_state()), so_far) == []
    assert judge_outcome(plan.outcome, Sight.of(model.as_state())).differences == ()
    for task in backward(plan, {step.id for step in plan.steps}):
        check_job(model, task, so_far)
