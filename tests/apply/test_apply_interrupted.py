"""`gpolicy apply` that is killed, stopped, refused or cut off: nothing is lost, nothing is done twice."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from typing import Any

import pytest

from gpolicy.apply.journals import read_history
from tests.apply.bench import COULD_NOT_RUN, FINDINGS, FINE, Bench
from tests.apply.pretend_ganeti import fails
from tests.cli.command_line import FOUR_STEPS


def test_a_run_that_was_killed_in_its_first_line_is_in_nobodys_way(bench: Bench) -> None:
    bench.journal.write_text('{"event": "begin", "time": "2026-')
    for option, verb in (("--resume", "resume"), ("--rollback", "roll back")):
        done = bench.apply("--yes", option)
        assert done.returncode == COULD_NOT_RUN
        assert f"no journal of a run that has begun: there is nothing to {verb}" in done.stderr
    done = bench.apply("--yes")
    assert (done.returncode, len(bench.server.ganeti.jobs)) == (FINE, 4), done.stderr


def test_a_failed_step_names_the_reason_and_how_to_continue(bench: Bench) -> None:
    bench.server.ganeti.mishaps = [None, fails("Node group 'platinum' is cursed\x1b[2J", "OpPrereqError")]
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert "step 2 (create group platinum) failed: OpPrereqError: Node group 'platinum' is cursed" in done.stderr
    assert "--resume" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert bench.apply("--yes", "--resume").returncode == FINE


def test_after_a_lost_answer_the_job_is_found_and_does_not_run_twice(bench: Bench) -> None:
    bench.server.cut = ["POST", "PUT"]
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert len(bench.server.ganeti.jobs) == 4


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"code": 500, "message": "Queue drained", "explain": "Server got itself in trouble"}),
        (504, {"code": 504, "message": "Gateway Timeout", "explain": "no timely response"}),
    ],
)
def test_a_transient_refusal_is_retried(bench: Bench, answer: tuple[int, dict[str, Any]]) -> None:
    bench.server.answers = [answer]
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert "trying again" in done.stdout
    assert len(bench.server.ganeti.jobs) == 4


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 500, 502, 503, 504])
def test_a_job_that_was_accepted_and_answered_with_an_error_is_found(bench: Bench, status: int) -> None:
    bench.server.ganeti.seconds = 0.3
    bench.server.afterwards = [(status, {"code": status, "message": "no", "explain": "no"})] * 2
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert "trying again" not in done.stdout
    assert len(bench.server.ganeti.jobs) == 4


@pytest.mark.parametrize("answer", [10**30, "9" * 5000, -1, None, {"id": 1}])
def test_a_job_number_of_any_form_makes_no_journal_unreadable(bench: Bench, answer: Any) -> None:
    bench.server.afterwards = [(200, answer)]
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert len(bench.server.ganeti.jobs) == 4
    assert bench.apply("--yes", "--rollback").returncode == FINE


def test_a_full_disk_after_the_first_job_is_reported_with_how_to_continue(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.write, [2]

    def failing(descriptor: int, data: bytes) -> int:
        left[0] -= bytes(data).startswith(b"{")
        if left[0] < 0:
            write(descriptor, bytes(data)[:9])
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    with monkeypatch.context() as full:
        full.setattr(os, "write", failing)
        done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert "the journal cannot be written: No space left on device; step 1 (" in done.stderr
    assert "has begun, and its job goes on in Ganeti" in done.stderr
    assert "continue with --resume" in done.stderr
    bench.resume()


def test_a_running_job_of_the_plan_is_found_without_the_journal(served: Bench) -> None:
    process = served.start_long()
    process.kill()
    process.communicate(timeout=60)
    served.journal.write_bytes(b"")
    for _ in range(2):
        done = served.apply("--yes")
        assert done.returncode == FINDINGS
        assert "job 1 of this plan is under way; nothing was done" in done.stderr
        served.journal.unlink(missing_ok=True)
    assert len(served.server.ganeti.jobs) == 1


def test_a_refused_request_stops_the_run(bench: Bench) -> None:
    bench.server.answers = [(400, {"code": 400, "message": "Can&#x27;t do", "explain": "Bad request"})]
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS, done.stdout
    assert "HTTP 400: Can't do - Bad request" in done.stderr


@pytest.mark.parametrize(
    "event",
    [
        *(1, 3, 8),
        *(pytest.param(event, marks=pytest.mark.slow) for event in (5, 10, 14)),
        *(pytest.param(event, marks=pytest.mark.full) for event in (2, 4, 6, 7, 9, 11, 12, 13)),
    ],
)
def test_a_run_killed_after_any_event_is_resumed(served: Bench, event: int) -> None:
    served.server.ganeti.seconds = 0.02
    process = served.start()
    while process.poll() is None and (not served.journal.exists() or served.journal.read_bytes().count(b"\n") < event):
        time.sleep(0.001)
    process.kill()
    process.communicate(timeout=60)
    served.resume()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_the_present_step(served: Bench, number: signal.Signals) -> None:
    process = served.start_long()
    process.send_signal(number)
    served.server.ganeti.jobs[0].ends = 0.0
    _, said = process.communicate(timeout=60)
    assert process.returncode == FINDINGS
    assert "stopping after the running step" in said
    assert "continue with --resume" in said
    assert [event["event"] for event in served.events()] == [
        "begin", "step-started", "step-job-submitted", "step-done", "end",
    ]  # fmt: skip
    served.resume()


def test_a_second_signal_does_not_wait_for_the_job(served: Bench) -> None:
    process = served.start_long()
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert "stopping after the running step" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == FINDINGS
    assert "job 1 goes on in Ganeti" in said
    history = read_history(served.journal.read_bytes(), "journal")
    assert history.attempts["1"].job == 1
    served.server.ganeti.jobs[0].ends = 0.0
    served.resume()


def test_a_job_that_takes_too_long_continues(bench: Bench) -> None:
    bench.server.ganeti.seconds = 3.0
    done = bench.apply("--yes", "--job-timeout", "1")
    assert done.returncode == FINDINGS
    assert "we no longer wait for it" in done.stderr
    assert [event["event"] for event in bench.events()][-2:] == ["step-job-submitted", "end"]


def test_two_runs_at_once_are_refused(bench: Bench) -> None:
    with bench.lock().open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("process 4711 on there\n")
        held.flush()
        done = bench.apply("--yes")
    assert done.returncode == COULD_NOT_RUN
    assert "another apply to cluster cluster is under way: process 4711 on there" in done.stderr
    assert bench.server.ganeti.jobs == []
    assert bench.apply("--yes").returncode == FINE


def test_the_journal_of_an_earlier_plan_is_kept_under_another_name(bench: Bench) -> None:
    assert bench.apply("--yes").returncode == FINE
    bench.make_plan(FOUR_STEPS.replace("vcpu-ratio: 7", "vcpu-ratio: 8"))
    done = bench.apply("--yes")
    assert done.returncode == FINE
    kept = [path.name for path in bench.directory.glob("plan.journal.*.jsonl")]
    assert len(kept) == 1
    assert kept[0] in done.stderr
