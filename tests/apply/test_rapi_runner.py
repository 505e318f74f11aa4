"""Following a job through the remote API, with answers by hand."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from gpolicy.apply import jobs
from gpolicy.apply.job_runners import RapiRunner
from gpolicy.apply.jobs import FailedJob, JobOutcome, JobResult, Patience, StopRequests, Watch, passes
from gpolicy.cluster.rapi_client import Client, NotFoundError
from gpolicy.errors import UnreachableError

QUICK = Patience(first_pause=0.001, first_poll=0.001, longest_poll=0.001, job=20, contact=20)


class _Answers:
    """Answers one after the other; the last one again and again."""

    host, port = "host", 5080

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def get(self, path: str) -> Any:
        if path == "/2/jobs":
            return [{"id": "9"}]
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def _job(status: str, *log: list[Any], result: list[Any] | None = None) -> dict[str, Any]:
    return {"id": 7, "status": status, "oplog": [list(log)], "opresult": result or []}


def _follow(*answers: Any, patience: Patience = QUICK, stop: StopRequests | None = None) -> tuple[Any, list[str]]:
    messages: list[str] = []
    client = cast(Client, _Answers(*answers))
    following = RapiRunner(client, patience=patience, stop=stop or StopRequests())
    return following.follow(
        7, Watch(lambda _: None, messages.append, lambda text: messages.append(f"note: {text}"))
    ), messages


def test_a_job_is_followed_to_its_end_and_each_message_told_once() -> None:
    one, two = [1, [0, 0], "message", "first\nsecond"], [2, [0, 0], "message", "third"]
    outcome, messages = _follow(_job("queued"), _job("running", one), _job("running", one), _job("success", one, two))
    assert outcome == JobOutcome(JobResult.SUCCESS, job=7)
    assert messages == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([["OpPrereqError", ["no", "why"]]], "OpPrereqError: no, why"),
        (["text", "", None, ["X", ["y"]]], "text; X: y"),
        ([], "the job ended with status error"),
        (["x" * 2000], "x" * 1000),
    ],
)
def test_a_job_that_fails_says_why(result: list[Any], text: str) -> None:
    outcome, _ = _follow(_job("running"), _job("error", result=result))
    assert outcome == JobOutcome(JobResult.FAILED, text, 7)


def test_a_server_that_is_lost_for_a_while_is_asked_again() -> None:
    lost = UnreachableError("gone")
    outcome, messages = _follow(lost, lost, _job("success"))
    assert outcome == JobOutcome(JobResult.SUCCESS, job=7)
    assert messages == ["note: gone; asking again for up to 20 s"]
    impatient = Patience(first_pause=0.001, contact=0, job=20)
    assert _follow(lost, patience=impatient)[0] == JobOutcome(JobResult.UNKNOWN, "gone", 7, waiting=True)


def test_a_server_that_does_not_answer_is_said_while_we_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_SILENCE", 0.01)
    notes: list[str] = []

    class Slow(_Answers):
        def get(self, path: str) -> Any:
            until = time.monotonic() + 10
            while not notes and time.monotonic() < until:
                time.sleep(0.01)
            return super().get(path)

    RapiRunner(cast(Client, Slow(_job("success"))), patience=QUICK).follow(
        7, Watch(lambda _: None, lambda _: None, notes.append)
    )
    assert notes == ["rapi://host:5080: no answer for 0 s, still waiting"]


def test_patience_ends() -> None:
    patience = Patience(first_poll=0.001, longest_poll=0.001, job=0.05)
    began = time.monotonic()
    assert _follow(_job("running"), patience=patience)[0] == JobOutcome(JobResult.UNKNOWN, "", 7, waiting=True)
    assert time.monotonic() - began >= 0.05
    stop = StopRequests()
    stop.ask()
    stop.ask()
    assert _follow(_job("running"), stop=stop)[0] == JobOutcome(JobResult.UNKNOWN, "", 7, waiting=True)


def test_a_job_that_ganeti_does_not_know_any_more() -> None:
    assert _follow(NotFoundError("no such job"))[0] is None
    other = {**_job("running"), "id": 8}
    outcome, _ = _follow(other, patience=Patience(first_pause=0.001, contact=0))
    assert outcome.result is JobResult.UNKNOWN
    assert "the answer is not about this job" in outcome.text


def test_jobs_are_found_by_their_marks() -> None:
    def listed(number: Any, *reasons: Any, status: str = "running") -> dict[str, Any]:
        return {"id": number, "status": status, "summary": ["OP", "B"], "ops": [{"reason": list(reasons)}, None]}

    mine = ["gnt:client", "gpolicy:a:1", 17]
    answer = [listed("12", ["x", "other"], mine, status="error"), listed(3, mine), listed(4, ["short"], "odd", [])]
    listing = RapiRunner(cast(Client, _Answers(answer)))
    found = [(job.number, job.mark, job.pending) for job in listing.marked_jobs("gpolicy:a")]
    assert found == [(3, "gpolicy:a:1", True), (12, "gpolicy:a:1", False)]
    assert listing.failed_jobs(3) == [FailedJob(12, "OP, B")]
    assert listing.failed_jobs(12) == []


def test_a_master_that_could_not_be_reached_is_tried_again() -> None:
    assert passes("host:5080: cannot be reached: no reply in 10 seconds")
