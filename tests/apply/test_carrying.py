"""Runs in which Ganeti refuses, does only half, lies, or another user changes the cluster at the same time."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpolicy.apply import journals
from gpolicy.apply.carrying import CarryingError, HaltedError
from gpolicy.apply.jobs import JobOutcome, JobResult, StopRequests, Watch, pause
from gpolicy.apply.journals import Direction
from gpolicy.apply.plan_run import RefusedError
from gpolicy.cluster.state import HIDDEN_BY_RAPI
from gpolicy.errors import ExitCode, RequestError
from gpolicy.plan.built_in_guards import GuardResult, judge
from gpolicy.plan.plan import Plan, UnsafePlanError, check_safe, sides_of_plan
from gpolicy.plan.step import PlannedCommand
from gpolicy.use_cases.carrying_out import ApplyRequest, apply_plan
from tests.apply.model_runner import QUICK, Agreed, ModelRunner, Quiet, plan_for, run
from tests.apply.pretend_ganeti import LOCKS_MOVED, UPDATED, Job, PretendGaneti, carry, fails, gone, half, lies, then
from tests.plan.planned import policy_of


@pytest.fixture
def ganeti() -> PretendGaneti:
    return PretendGaneti.recorded()


def events(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def names(journal: Path) -> list[str]:
    return [event["event"] for event in events(journal)]


def wanted(ganeti: PretendGaneti) -> Plan:
    return plan_for(ganeti)


def test_a_run_is_journalled_line_by_line(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert names(tmp_path / "journal") == [
        "begin", *["step-started", "step-job-submitted", "step-done"] * len(plan.steps), "end",
    ]  # fmt: skip
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600
    assert events(tmp_path / "journal")[-1]["outcome"] == "done"


def test_a_job_that_never_stops_talking_leaves_a_journal_that_can_be_read(
    ganeti: PretendGaneti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talks(ganeti: PretendGaneti, job: Job) -> None:
        carry(ganeti, job)
        job.log = ["WARNING: inst1 violates"] * 5000

    monkeypatch.setattr(journals, "_LARGEST", 64 * 1024)
    ganeti.mishaps = [talks, talks]
    plan, quiet, journal = wanted(ganeti), Quiet(), tmp_path / "journal"
    run(plan, ModelRunner(ganeti), journal, say=quiet)
    assert 10 < quiet.said.count("WARNING: inst1 violates") < 200
    assert quiet.said.count("the journal is too long for more messages") == 1
    assert names(journal).count("step-done") == len(plan.steps)
    run(plan, ModelRunner(ganeti), journal, direction=Direction.ROLLBACK)
    assert names(journal)[-1] == "end"


@pytest.mark.parametrize("text", [LOCKS_MOVED, UPDATED, "Queue drained"])
def test_t41_a_transient_refusal_is_retried(ganeti: PretendGaneti, tmp_path: Path, text: str) -> None:
    plan = wanted(ganeti)
    ganeti.mishaps = [None, fails(text), fails(text)]
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == len(plan.steps) + 2
    assert names(tmp_path / "journal").count("step-failed") == 2


def test_t41_retries_are_bounded(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.mishaps = [fails(LOCKS_MOVED)] * 100
    with pytest.raises(CarryingError, match="since locks were acquired") as raised:
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert raised.value.exit_code is ExitCode.FINDINGS
    assert len(ganeti.jobs) == QUICK.attempts
    assert events(tmp_path / "journal")[-1]["outcome"] == "failed"


def test_a_drained_queue_is_waited_for_within_bounds(ganeti: PretendGaneti, tmp_path: Path) -> None:
    ganeti.drained = 3
    verdict = run(wanted(ganeti), ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    ganeti.drained = 100


def test_another_refusal_stops_at_once_and_can_be_resumed(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.mishaps = [None, fails("Node group 'platinum' cannot be made", "OpPrereqError")]
    with pytest.raises(CarryingError, match=r"step 2 .* cannot be made"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert len(ganeti.jobs) == 2
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == len(plan.steps) + 1


def test_t57_a_step_that_was_accepted_in_part_is_reported_leaf_by_leaf(ganeti: PretendGaneti, tmp_path: Path) -> None:
    policy = policy_of("Cluster\nname: cluster\nipolicy: {vcpu-ratio: 7}\nmax_running_jobs: 33\n")
    before = ganeti.content()
    plan = plan_for(ganeti, policy)
    ganeti.mishaps = [half({"max_running_jobs"})]
    with pytest.raises(CarryingError) as raised:
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert [(item.object, item.path, item.expected) for item in raised.value.differences] == [
        ("cluster", ("ipolicy", "vcpu-ratio"), 7.0)
    ]
    failed = next(event for event in events(tmp_path / "journal") if event["event"] == "step-failed")
    assert (failed["done"], failed["missing"]) == (["cluster max_running_jobs"], ["cluster ipolicy.vcpu-ratio"])
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    assert verdict is not None
    assert verdict.good
    assert ganeti.content() == before


def test_t57_a_half_done_step_can_be_resumed(ganeti: PretendGaneti, tmp_path: Path) -> None:
    policy = policy_of("Cluster\nname: cluster\nipolicy: {vcpu-ratio: 7}\nmax_running_jobs: 33\n")
    plan = plan_for(ganeti, policy)
    ganeti.mishaps = [half({"max_running_jobs"})]
    with pytest.raises(CarryingError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good


def test_success_is_judged_by_the_cluster(ganeti: PretendGaneti, tmp_path: Path) -> None:
    ganeti.mishaps = [None, lies]
    with pytest.raises(CarryingError, match="Ganeti reports success, but") as raised:
        run(wanted(ganeti), ModelRunner(ganeti), tmp_path / "journal")
    assert ("group/platinum", ("name",)) in [(item.object, item.path) for item in raised.value.differences]


def test_a_job_that_failed_but_did_its_work_counts_as_done(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)

    def dies_late(there: PretendGaneti, job: Any) -> None:
        then(lambda _: None)(there, job)
        job.status, job.result = "error", ["ConfigurationError", ["something else"]]

    ganeti.mishaps = [dies_late]
    quiet = Quiet()
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert verdict is not None
    assert verdict.good
    assert any("its changes are there" in line for line in quiet.said)


def test_an_archived_job_is_judged_by_the_cluster(ganeti: PretendGaneti, tmp_path: Path) -> None:
    ganeti.mishaps = [gone] * 3
    verdict = run(wanted(ganeti), ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good


# --- others at work -----------------------------------------------------------------------------------------------


def test_a_stale_plan_is_refused_with_the_changes(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.model.own["ipolicy"]["vcpu-ratio"] = 5.5
    ganeti.model.nodes["node2"].setdefault("ndparams", {})["cpu_speed"] = 2.5
    with pytest.raises(RefusedError) as raised:
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert {(item.object, item.path, item.found) for item in raised.value.differences} == {
        ("cluster", ("ipolicy", "vcpu-ratio"), 5.5),
        ("node/node2", ("ndparams", "cpu_speed"), 2.5),
    }
    assert ganeti.jobs == []
    assert not (tmp_path / "journal").exists()


def test_an_existing_group_that_should_be_created_makes_the_plan_stale(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.model.groups["platinum"] = {"alloc_policy": "preferred"}
    ganeti.model.tags["nodegroup", "platinum"] = set()
    with pytest.raises(RefusedError) as raised:
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert [(item.object, item.found) for item in raised.value.differences] == [("group/platinum", "there")]


def test_t62_a_serial_number_alone_makes_no_plan_stale(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.touch("cluster", "node/node2", "node/node1")
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good


def test_the_serial_number_replaces_an_unreadable_value(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    runner = ModelRunner(ganeti, gaps=HIDDEN_BY_RAPI)
    ganeti.touch("cluster")
    with pytest.raises(RefusedError) as raised:
        run(plan, runner, tmp_path / "journal")
    assert [(item.object, item.path) for item in raised.value.differences] == [("cluster", ("serial_no",))]
    fresh = wanted(ganeti)
    agreed = Agreed()
    verdict = run(fresh, runner, tmp_path / "journal", agree=agreed)
    assert verdict is not None
    assert verdict.good
    assert verdict.unseen == ("cluster hv_state.fake.mem_node",)
    assert any("hv_state.fake.mem_node cannot be read this way" in note for note in agreed.shown[0].notes)


def test_changes_elsewhere_are_noted_and_stop_nothing(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    ganeti.model.nodes["node4"]["ndparams"] = {"cpu_speed": 2.0}
    agreed = Agreed()
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", agree=agreed)
    assert verdict is not None
    assert verdict.good
    assert agreed.shown[0].notes == (
        "the cluster has changed since the plan was made, but nothing that the plan touches",
    )


@pytest.mark.parametrize("source_gaps", [(), HIDDEN_BY_RAPI])
@pytest.mark.parametrize("gaps", [(), HIDDEN_BY_RAPI])
def test_an_unchanged_cluster_is_known_from_every_source(
    ganeti: PretendGaneti, tmp_path: Path, source_gaps: Any, gaps: Any
) -> None:
    policy = policy_of("NodeSet\nname: n\nnodes: [node2]\nndparams: {spindle_count: 9}\n")
    real = ganeti.state
    ganeti.state = lambda *_: real(*source_gaps)  # type: ignore[method-assign]
    plan = plan_for(ganeti, policy)
    ganeti.state = lambda *_: real(*gaps)  # type: ignore[method-assign]
    agreed = Agreed()
    run(plan, ModelRunner(ganeti, gaps=gaps), tmp_path / "journal", agree=agreed)
    assert agreed.shown[0].notes == ()


def test_a_change_between_two_steps_stops_the_run_before_the_next(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)

    def other(there: PretendGaneti) -> None:
        there.model.nodes["node2"]["ndparams"] = {"spindle_count": 5}

    ganeti.mishaps = [None, then(other)]
    with pytest.raises(CarryingError, match="somebody else has changed") as raised:
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert [(item.object, item.found) for item in raised.value.differences] == [("node/node2", 5)]
    assert len(ganeti.jobs) == 2
    with pytest.raises(RefusedError, match="since the last run"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert len(ganeti.jobs) == 2


def test_a_change_that_no_later_step_touches_is_noted(ganeti: PretendGaneti, tmp_path: Path) -> None:
    def other(there: PretendGaneti) -> None:
        there.model.nodes["node4"]["ndparams"] = {"spindle_count": 5}

    ganeti.mishaps = [then(other)]
    quiet = Quiet()
    verdict = run(wanted(ganeti), ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert verdict is not None
    assert verdict.good
    assert any(
        line.startswith("also changed, not by this plan: node/node4 ndparams.spindle_count, from")
        for line in quiet.said
    )


def test_a_plan_for_another_cluster_is_refused(ganeti: PretendGaneti, tmp_path: Path) -> None:
    from dataclasses import replace

    plan = replace(wanted(ganeti), cluster="another")
    with pytest.raises(RefusedError, match="another cluster answers: cluster instead of another"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")


def test_another_cluster_of_the_same_name_is_noticed_before_each_job(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    right = ganeti.uuid
    for steps in range(len(plan.steps)):
        journal, there = tmp_path / f"journal-{steps}", PretendGaneti.recorded()
        there.uuid = right
        there.mishaps = [None] * (steps - 1) + [then(become_another)] if steps else []
        if not steps:
            become_another(there)
        with pytest.raises((CarryingError, RefusedError), match="another cluster"):
            run(plan, ModelRunner(there), journal)
        assert len(there.jobs) == steps


NODES = (
    "Cluster\nname: cluster\nipolicy: {vcpu-ratio: 7}\n",
    "NodeSet\nname: a\nnodes: [node1]\nndparams: {spindle_count: 8}\n",
    "NodeSet\nname: b\nnodes: [node2]\nndparams: {spindle_count: 9}\n",
)


def become_another(ganeti: PretendGaneti) -> None:
    ganeti.uuid = "11111111-2222-3333-4444-555555555555"


def test_effects_of_others_are_not_ours_if_the_step_never_began(ganeti: PretendGaneti, tmp_path: Path) -> None:
    """Step 2 of 3 fails, somebody makes the change of step 3 by hand: it is neither taken back nor hidden."""
    before = ganeti.content()
    plan = plan_for(ganeti, policy_of(*NODES))
    assert [step.command.effects[0].object for step in plan.steps] == ["cluster", "node/node1", "node/node2"]
    ganeti.mishaps = [None, fails("no")]
    with pytest.raises(CarryingError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    ganeti.model.nodes["node2"]["ndparams"] = {"spindle_count": 9}
    with pytest.raises(RefusedError, match="since the last run; no further step was begun"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    quiet = Quiet()
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK, say=quiet)
    assert verdict is not None
    assert [(item.object, item.path, item.found) for item in verdict.differences] == [
        ("node/node2", ("ndparams", "spindle_count"), 9)
    ]
    assert any("changed by somebody else, and left alone: node/node2" in line for line in quiet.said)
    ganeti.model.nodes["node2"]["ndparams"] = {"spindle_count": 4}
    assert ganeti.content() == before


def test_effects_of_others_are_not_ours_if_the_step_failed(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = plan_for(ganeti, policy_of(*NODES))
    ganeti.mishaps = [None, None, fails("no")]
    with pytest.raises(CarryingError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    ganeti.model.nodes["node2"]["ndparams"] = {"spindle_count": 9}
    jobs = len(ganeti.jobs)
    with pytest.raises(RefusedError, match="since the last run; nothing was taken back"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    assert len(ganeti.jobs) == jobs


def test_a_late_request_is_recognized(ganeti: PretendGaneti, tmp_path: Path) -> None:
    """Its answer was lost, no job of it was found, the run ended; then the job came after all."""
    plan, before = wanted(ganeti), ganeti.content()
    held: list[tuple[Any, str]] = []

    class Slow(ModelRunner):
        def run(self, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
            if len(ganeti.jobs) < 1 or held:
                return super().run(command, mark, watch)
            held.append((command.rapi, mark))
            return JobOutcome(JobResult.UNKNOWN, "no answer")

    with pytest.raises(CarryingError, match="no answer"):
        run(plan, Slow(ganeti), tmp_path / "journal")
    ganeti.submit(*held[0])
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == len(plan.steps)
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    assert verdict is not None
    assert verdict.good
    assert ganeti.content() == before


def test_a_plan_for_another_release_of_ganeti_is_refused(ganeti: PretendGaneti, tmp_path: Path) -> None:
    from dataclasses import replace

    plan = wanted(ganeti)
    ganeti.model.state = replace(ganeti.model.state, software_version="3.1.0")
    with pytest.raises(RefusedError, match=r"runs Ganeti 3\.1 now, the commands of the plan are those of 3\.0"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert ganeti.jobs == []


def test_a_guard_that_fails_on_the_present_cluster_refuses_the_plan(ganeti: PretendGaneti, tmp_path: Path) -> None:
    from dataclasses import replace

    policy = policy_of("Cluster\nname: cluster\ndiskparams: {rbd: {pool: other}}\n")
    plan = plan_for(ganeti, policy)
    disks = [replace(item, disks=tuple(replace(disk, template="rbd") for disk in item.disks), disk_template="rbd")
             for item in ganeti.model.state.instances.values() if item.disks]  # fmt: skip
    ganeti.model.state = replace(ganeti.model.state, instances={item.name: item for item in disks})
    with pytest.raises(RefusedError, match="disks-stay"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    other = replace(plan, guards=(GuardResult("disks-stay", True, "was allowed", allowed=True),))
    with pytest.raises(
        RefusedError, match=r"was allowed when it said: was allowed; now it says: diskparams\.rbd\.pool"
    ):
        run(other, ModelRunner(ganeti), tmp_path / "journal")
    (said,) = judge(sides_of_plan(plan, ganeti.state()), frozenset())
    allowed = replace(plan, guards=(GuardResult("disks-stay", True, said.message, allowed=True),))
    verdict = run(allowed, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good


# --- stopping -------------------------------------------------------------------------------------------------------


def test_a_request_to_stop_ends_the_run_after_the_present_step(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    stop = StopRequests()

    def ask(_: PretendGaneti) -> None:
        stop.requests = 1

    ganeti.mishaps = [None, then(ask)]
    with pytest.raises(HaltedError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal", stop=stop)
    assert names(tmp_path / "journal")[-2:] == ["step-done", "end"]
    assert events(tmp_path / "journal")[-1]["outcome"] == "stopped"
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal")
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == len(plan.steps)


def test_nothing_is_done_without_consent(ganeti: PretendGaneti, tmp_path: Path) -> None:
    assert run(wanted(ganeti), ModelRunner(ganeti), tmp_path / "journal", agree=lambda _: False) is None
    assert ganeti.jobs == []
    assert not (tmp_path / "journal").exists()


def test_a_rolled_back_plan_is_not_resumed(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    run(plan, ModelRunner(ganeti), tmp_path / "journal")
    run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    with pytest.raises(RequestError, match="a rollback of this plan has begun"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    count = len(ganeti.jobs)
    verdict = run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == count


def test_an_unsafe_plan_is_refused_whoever_opened_the_way_to_the_cluster(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = wanted(ganeti)
    check_safe(plan)
    unsafe = replace(plan, guards=(GuardResult("disks-stay", False, "why"),))
    request = ApplyRequest(plan=tmp_path / "plan.json", destination="local:")
    with pytest.raises(UnsafePlanError, match="not safe: disks-stay: why"):
        apply_plan(request, agree=lambda _: True, plan=unsafe, runner=ModelRunner(ganeti))
    assert not ganeti.jobs


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_no_step_begins_without_the_lock_and_the_run_can_go_on(
    ganeti: PretendGaneti, tmp_path: Path, steps: int
) -> None:
    plan, journal, answers = wanted(ganeti), tmp_path / "journal", iter([False] * steps + [True])
    assert len(plan.steps) > 2
    with pytest.raises(HaltedError, match=r"the lock on the master was lost .*: step .* was not begun"):
        run(plan, ModelRunner(ganeti), journal, lock_is_lost=lambda: next(answers))
    assert names(journal).count("step-started") == len(ganeti.jobs) == steps
    assert events(journal)[-1]["outcome"] == "stopped"
    verdict = run(plan, ModelRunner(ganeti), journal)
    assert verdict is not None
    assert verdict.good
    assert len(ganeti.jobs) == len(plan.steps)


def test_there_is_no_retry_without_the_lock(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan, answers = wanted(ganeti), iter([False, True])
    ganeti.mishaps = [fails(LOCKS_MOVED)]
    with pytest.raises(HaltedError, match="was not tried again"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal", lock_is_lost=lambda: next(answers))
    assert len(ganeti.jobs) == 1


def test_a_group_that_a_step_renamed_is_ours_under_its_new_name(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan = plan_for(ganeti, policy_of("NodeGroup\nname: first\nrenamed_from: default"))
    run(plan, ModelRunner(ganeti), tmp_path / "journal")
    ganeti.model.groups["first"]["alloc_policy"] = "unallocable"
    with pytest.raises(RefusedError, match="since the last run; nothing was taken back"):
        run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)


def test_a_run_that_goes_on_counts_from_where_it_stopped(ganeti: PretendGaneti, tmp_path: Path) -> None:
    plan, quiet = plan_for(ganeti, policy_of(*NODES)), Quiet()
    ganeti.mishaps = [None, fails("no")]
    with pytest.raises(CarryingError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    run(plan, ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert [line.partition("]")[0] for line in quiet.said if line.startswith("[")] == ["[2/3", "[3/3"]
    assert all(event["time"].endswith("+00:00") for event in events(tmp_path / "journal"))


def test_a_wait_takes_its_time_and_a_step_tells_how_long_it_took(ganeti: PretendGaneti, tmp_path: Path) -> None:
    quiet, stop = Quiet(), StopRequests()
    run(plan_for(ganeti, policy_of(*NODES)), ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert sum(line.startswith("done (") for line in quiet.said) == 3
    began = time.monotonic()
    pause(0.03, stop)
    assert time.monotonic() - began >= 0.03
    stop.ask()
    stop.ask()
    pause(60, stop)
    assert time.monotonic() - began < 30


POOL = """
Cluster
name: cluster
candidate_pool_size: 3
"""


@pytest.mark.parametrize("jobs", [2, 3])
def test_t31_a_larger_candidate_pool_is_sent_again_until_it_is_full(
    ganeti: PretendGaneti, tmp_path: Path, jobs: int
) -> None:
    """The first job stores the size, and the second one promotes nodes, or dies of it."""
    ganeti.model.own["candidate_pool_size"] = 1
    ganeti.model.candidates = {"node1"}
    plan, quiet = plan_for(ganeti, policy_of(POOL)), Quiet()
    if jobs == 3:
        ganeti.mishaps = [None, fails(UPDATED)]
    assert run(plan, ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert len(ganeti.jobs) == jobs
    assert len(ganeti.model.candidates) == 3
    assert "the candidate pool lacks 2 nodes: sent again" in quiet.said
    assert names(tmp_path / "journal").count("step-done") == 1


def test_t31_a_candidate_pool_that_stays_too_small_is_named(ganeti: PretendGaneti, tmp_path: Path) -> None:
    ganeti.model.own["candidate_pool_size"] = 1
    ganeti.model.candidates = {"node1"}
    ganeti.mishaps = [None, fails(UPDATED), fails(UPDATED)]
    plan, quiet = plan_for(ganeti, policy_of(POOL)), Quiet()
    assert run(plan, ModelRunner(ganeti), tmp_path / "journal", say=quiet)
    assert (
        quiet.said[-2] == "the candidate pool still lacks 2 nodes: send gnt-cluster modify -C with its size once more"
    )
