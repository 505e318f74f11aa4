"""Jobs through Ganeti's remote API (`rapi://`): submitted, then polled until they end.

The mark that finds a job again is the `reason` of the request; the job's log holds Ganeti's messages and warnings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from gpolicy.apply.runner import (
    FAILURE,
    FailedJob,
    JobOutcome,
    JobResult,
    MarkedJob,
    Patience,
    Poll,
    StopRequests,
    Watch,
    job_result,
    pause,
    told_if_slow,
)
from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.rapi import read_rapi, read_rapi_configuration
from gpolicy.cluster.rapi_client import Client, NoAnswerError, NotFoundError, netloc, reason
from gpolicy.cluster.record import JOB_RUNS, Record, job_number, kind_of
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError, UnreachableError
from gpolicy.ganeti.commands import Route
from gpolicy.ganeti.parameter import Value
from gpolicy.plan.step import PlannedCommand

_LONGEST_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class RapiRunner:
    """Asks the server behind `client`."""

    client: Client
    insecure: bool = False
    patience: Patience = field(default_factory=Patience)
    stop: StopRequests = field(default_factory=StopRequests)
    route: Route = Route.RAPI

    @property
    def destination(self) -> str:
        """The address."""
        return f"rapi://{netloc(self.client.host, self.client.port)}"

    def read(self) -> ClusterState:
        """Return the whole state of the cluster."""
        return read_rapi(self.client, insecure=self.insecure)

    def glance(self, *, instances: bool = False) -> ClusterState:
        """Return what the cluster is configured to be."""
        return read_rapi_configuration(self.client, instances=instances)

    def run(self, command: PlannedCommand, mark: str, watch: Watch) -> JobOutcome:
        """Submit a request and wait for the end of its job."""
        call = command.rapi
        assert call is not None  # noqa: S101 (said before the first step)
        path = f"{call.path}{'&' if '?' in call.path else '?'}reason={quote(mark, safe='')}"
        try:
            with told_if_slow(watch.note, self.destination):
                answer = self.client.send(call.method, path, call.body)
        except NoAnswerError as error:
            return JobOutcome(JobResult.UNKNOWN, error.message)
        except UnreachableError as error:
            return JobOutcome(JobResult.FAILED, error.message)
        if answer.status != 200:  # whatever it is: a proxy may say it of a request that Ganeti has taken
            return JobOutcome(JobResult.UNKNOWN, f"HTTP {answer.status}{reason(answer.body)}")
        try:
            job = job_number(parse_json(answer.body, call.path))
        except InputError:
            job = None
        if job is None:
            return JobOutcome(JobResult.UNKNOWN, "the answer is not a job number")
        watch.job(job)
        return self.follow(job, watch) or JobOutcome(JobResult.UNKNOWN, "Ganeti does not know the job any more", job)

    def marked_jobs(self, start: str) -> list[MarkedJob]:
        """Return the jobs whose marks begin with `start`."""
        found = []
        for job in self._listed():
            marks = (text for operation in job.items("ops") for text in _reasons(operation))
            mark = next((text for text in marks if isinstance(text, str) and text.startswith(start)), None)
            if mark is not None:
                if (number := job_number(job.fields.get("id"))) is None:
                    raise InputError(f"{job.where}: the job with the mark {mark} has no number")
                found.append(MarkedJob(number, mark, job.text_or_none("status") in JOB_RUNS))
        return sorted(found, key=lambda job: job.number)

    def failed_jobs(self, after: int) -> list[FailedJob]:
        """Return the jobs with a number above `after` that ended with an error."""
        found = []
        for job in self._listed():
            number = job_number(job.fields.get("id"))
            if number is not None and number > after and job.text_or_none("status") == FAILURE:
                found.append(FailedJob(number, ", ".join(job.texts("summary"))))
        return sorted(found, key=lambda job: job.number)

    def _listed(self) -> list[Record]:
        jobs = self.client.get("/2/jobs?bulk=1")
        if not isinstance(jobs, list):
            raise InputError(f"{self.destination}: /2/jobs: should be a list, but is {kind_of(jobs)}")
        return [Record.of(item, f"{self.destination}: /2/jobs") for item in jobs]

    def follow(self, job: int, watch: Watch) -> JobOutcome | None:
        """Wait for the end of a job, however long nobody answers in between, as far as patience goes."""
        until = time.monotonic() + self.patience.job
        lost_until: float | None = None
        poll = Poll(self.patience.first_poll, self.patience.longest_poll, self.stop)
        shown = -1
        while True:
            try:
                with told_if_slow(watch.note, self.destination):
                    found = self._job(job)
                if found is None:
                    return None
                status = job_result(found.text_or_none("status"))
                failure = _failure(found)
                shown = _tell(found, shown, watch)
            except (UnreachableError, InputError) as error:
                if lost_until is None:
                    watch.note(f"{error.message}; asking again for up to {self.patience.contact:.0f} s")
                    lost_until = time.monotonic() + self.patience.contact
                if time.monotonic() >= lost_until or self.stop.at_once:
                    return JobOutcome(JobResult.UNKNOWN, error.message, job, waiting=True)
                pause(self.patience.first_pause, self.stop)
                continue
            lost_until = None
            if status is None:
                return None
            if status is JobResult.SUCCESS:
                return JobOutcome(JobResult.SUCCESS, job=job)
            if status is JobResult.FAILED:
                return JobOutcome(JobResult.FAILED, failure, job)
            if time.monotonic() >= until or self.stop.at_once:
                return JobOutcome(JobResult.UNKNOWN, "", job, waiting=True)
            poll.wait()

    def _job(self, job: int) -> Record | None:
        """Return what Ganeti says of a job; None if it has none of this number, and does not list it either."""
        where = f"/2/jobs/{job}"
        try:
            found = Record.of(self.client.get(where), where)
        except NotFoundError as error:
            listed = self.client.get("/2/jobs")
            if not isinstance(listed, list) or any(
                job_number(Record.of(item, where).fields.get("id")) == job for item in listed
            ):
                raise UnreachableError(error.message) from None  # a server before Ganeti's says so
            return None
        if "status" not in found.fields or job_number(found.fields.get("id")) not in (job, None):
            raise InputError(f"{self.destination}: {where}: the answer is not about this job")
        return found


def _reasons(operation: Value) -> list[Value]:
    trail = operation.get("reason") if isinstance(operation, dict) else None
    return [item[1] for item in trail if isinstance(item, list) and len(item) > 1] if isinstance(trail, list) else []


def _tell(job: Record, shown: int, watch: Watch) -> int:
    """Pass on the entries of the log behind number `shown`; return the number of the last."""
    for log in job.items("oplog"):
        for entry in log if isinstance(log, list) else ():
            match entry:
                case [int() as number, _, str(), text] if number > shown:
                    shown = number
                    for line in str(text).splitlines():
                        watch.message(line)
    return shown


def _failure(job: Record) -> str:
    """Return why a job failed: Ganeti's error classes and their arguments, as far as they are text."""
    texts: list[str] = []
    for result in job.items("opresult"):
        match result:
            case [str() as kind, [*arguments]]:
                texts.append(f"{kind}: {', '.join(str(argument) for argument in arguments)}")
            case str() if result:
                texts.append(result)
    status = job.text_or_none("status")
    return ("; ".join(texts) or f"the job ended with status {status}")[:_LONGEST_TEXT]
