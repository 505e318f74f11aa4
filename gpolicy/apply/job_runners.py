"""The two ways to Ganeti's queue: its own commands (`local:`, `ssh://`), and its remote API (`rapi://`).

Each command runs with `--print-jobid`, so that its job is known before it ends, and with a mark in `--reason`, by
which the job is found again when we did not live to see its number. It runs as long as its job takes, and is read line
by line, without a shell or a terminal. A request to the remote API is submitted, and its job polled until it ends; the
mark is the `reason` of the request, and the log of the job holds Ganeti's messages and warnings.
"""

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from gpolicy.apply import jobs
from gpolicy.cluster.json_input import decode_text, parse_json
from gpolicy.cluster.master import LocalMaster, SshMaster, read_master_configuration
from gpolicy.cluster.process import Output, end, pieces, run, start
from gpolicy.cluster.rapi import read_rapi, read_rapi_configuration
from gpolicy.cluster.rapi_client import Client, NoAnswerError, NotFoundError, netloc, reason
from gpolicy.cluster.record import JOB_RUNS, Record, job_number, kind_of, shown
from gpolicy.cluster.sources import DESTINATIONS, SourceOptions, destination_scheme, open_master, open_rapi
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError, RequestError, UnreachableError
from gpolicy.ganeti.commands import Route
from gpolicy.ganeti.vocabulary import Value
from gpolicy.guessing import closest
from gpolicy.plan.step import PlannedCommand

_LONGEST_LINE = 64 * 1024
_MOST_ERRORS = 64 * 1024
_TICK = 0.2


def run_lines(
    argv: Sequence[str],
    environ: Mapping[str, str],
    seconds: float,
    stop: jobs.StopRequests,
    line: Callable[[str], None],
) -> Output | None:
    """Run `argv` and call `line` with each line of its output as it comes, its end included: one may be cut short.

    Return its exit code and the end of its standard error. None if we stopped waiting: when the time is up, or `stop`
    says at once, it is ended, and the job that it watches goes on in Ganeti. Raise UnreachableError if it cannot be
    started.
    """
    process = start(argv, environ)
    until = time.monotonic() + seconds
    lines, errors = bytearray(), bytearray()

    def patience() -> float:
        if stop.at_once or time.monotonic() >= until:
            raise subprocess.TimeoutExpired(argv[0], seconds)
        return _TICK

    try:
        for is_output, piece in pieces(process, patience):
            if is_output:
                lines += piece
                _hand_out(lines, line, rest=not piece)
            else:
                errors = (errors + piece)[-_MOST_ERRORS:]
        while process.poll() is None:  # it has closed its outputs, and mostly ends right then
            tick = patience()
            with suppress(subprocess.TimeoutExpired):
                process.wait(tick)
        return Output(process.wait(), b"", errors.decode(errors="replace"))
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process, grace=2)


def _hand_out(buffer: bytearray, line: Callable[[str], None], *, rest: bool) -> None:
    *whole, last = bytes(buffer).split(b"\n")
    for one in whole:
        if one:
            line(one.decode(errors="replace") + "\n")
    if last and (rest or len(last) > _LONGEST_LINE):
        line(last.decode(errors="replace"))
        last = b""
    buffer[:] = last


_LARGEST_LIST: Final = 64 * 1024**2
_LONGEST_TEXT: Final = 1000
_SECONDS: Final = 60.0  # for a question that needs no job
_COLUMNS: Final = ("--no-headers", "--separator=|", "-o")
_USAGE: Final = 2  # exit code of a command that did not understand its arguments
_REFUSAL: Final = "error type: "  # with this a command says why it submits no job


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs `gnt-*` where `master` says."""

    master: LocalMaster | SshMaster
    patience: jobs.Patience = field(default_factory=jobs.Patience)
    stop: jobs.StopRequests = field(default_factory=jobs.StopRequests)
    route: Route = Route.ARGV

    @property
    def destination(self) -> str:
        """The address."""
        return self.master.source

    def read(self) -> ClusterState:
        """Return what config.data says: it has the instances, too."""
        return self.glance()

    def glance(self, *, instances: bool = False) -> ClusterState:  # noqa: ARG002 (they are always there)
        """Return what config.data says."""
        return read_master_configuration(self.master)

    def run(self, command: PlannedCommand, mark: str, watch: jobs.Watch) -> jobs.JobOutcome:
        """Run a command to the end of its job."""
        assert command.argv is not None  # noqa: S101 (said before the first step)
        program, verb, *rest = command.argv
        seen: list[int] = []

        def line(text: str) -> None:
            number = None if seen or not text.endswith("\n") else job_number(text.strip())  # half a number is another
            if number is not None:
                seen.append(number)
                watch.job(number)
            else:
                watch.message(text.rstrip("\n"))

        ended = self._run_on_master([program, verb, "--print-jobid", f"--reason={mark}", *rest], line)
        job = seen[0] if seen else None
        if ended is not None and ended.code == 0:
            return jobs.JobOutcome(jobs.JobResult.SUCCESS, job=job)
        if job is None:
            refused = ended is not None and (ended.code == _USAGE or _REFUSAL in ended.stderr)
            return jobs.JobOutcome(jobs.JobResult.FAILED if refused else jobs.JobResult.UNKNOWN, _complaint(ended))
        try:  # the job knows better than the command, which may have lost contact to it
            status = self._status(job)
        except (UnreachableError, InputError) as error:
            return jobs.JobOutcome(jobs.JobResult.UNKNOWN, error.message, job)
        if ended is None:
            return jobs.JobOutcome(jobs.JobResult.UNKNOWN, "", job, waiting=True)
        return jobs.JobOutcome(status or jobs.JobResult.FAILED, _complaint(ended), job)

    def marked_jobs(self, start: str) -> list[jobs.MarkedJob]:
        """Return the jobs whose marks begin with `start`."""
        mark = re.compile(re.escape(start) + "[A-Za-z0-9-]*")
        found = [
            jobs.MarkedJob(_read_job_number(id_), known[0], word in JOB_RUNS)
            for id_, word, operations in self._jobs("ops")
            if (known := mark.search(operations))
        ]
        return sorted(found, key=lambda job: job.number)

    def failed_jobs(self, after: int) -> list[jobs.FailedJob]:
        """Return the jobs with a number above `after` that ended with an error."""
        rows = self._jobs("summary")
        failed = (jobs.FailedJob(_read_job_number(id_), summary) for id_, word, summary in rows if word == jobs.FAILURE)
        return sorted((job for job in failed if job.number > after), key=lambda job: job.number)

    def _jobs(self, column: str) -> list[list[str]]:
        """Return the number and the status of each job, and a further column."""
        lines = self._ask(["gnt-job", "list", *_COLUMNS, f"id,status,{column}"]).splitlines()
        return [[*line.split("|", 2), "", ""][:3] for line in lines]

    def follow(self, job: int, watch: jobs.Watch) -> jobs.JobOutcome | None:
        """Wait for the end of a job."""
        until = time.monotonic() + self.patience.job
        text = ""
        while True:
            status = self._status(job)
            if status is None:
                return None
            if status is jobs.JobResult.SUCCESS:
                return jobs.JobOutcome(jobs.JobResult.SUCCESS, job=job)
            if status is jobs.JobResult.FAILED and text:
                return jobs.JobOutcome(jobs.JobResult.FAILED, text, job)
            if time.monotonic() >= until or self.stop.at_once:
                return jobs.JobOutcome(jobs.JobResult.UNKNOWN, "", job, waiting=True)
            ended = self._run_on_master(["gnt-job", "watch", str(job)], lambda text: watch.message(text.rstrip("\n")))
            text = _complaint(ended)

    def _status(self, job: int) -> jobs.JobResult | None:
        said = self._ask(["gnt-job", "list", *_COLUMNS, "id,status", str(job)])
        number, _, word = said.strip().partition("|")
        if number != str(job):
            raise InputError(f"gnt-job list: no answer about job {job}: {said[:80]!r}")
        return jobs.job_result(word)

    @property
    def _environ(self) -> Mapping[str, str]:
        return {**self.master.environ, "LC_ALL": "C.UTF-8"}

    def _run_on_master(self, argv: Sequence[str], line: Callable[[str], None]) -> Output | None:
        return run_lines(self.master.argv(argv), self._environ, self.patience.job, self.stop, line)

    def _ask(self, argv: Sequence[str]) -> str:
        """Return the output of a query. Raise UnreachableError without an answer: the master may be down."""
        output = run(self.master.argv(argv), environ=self._environ, seconds=_SECONDS, limit=_LARGEST_LIST)
        if output.code:
            raise UnreachableError(f"{argv[0]} {argv[1]} failed: {_complaint(output)}")
        return decode_text(output.stdout, f"{argv[0]} {argv[1]}")


def _read_job_number(text: str) -> int:
    number = job_number(text)
    if number is None:
        raise InputError(f"gnt-job list: {shown(text)} is not a job number")
    return number


def _complaint(ended: Output | None) -> str:
    """Return what a command complained about, in one line; its exit code if it said nothing."""
    if ended is None:
        return "we stopped waiting"
    lines = (line.strip() for line in ended.stderr.splitlines())
    return " ".join(filter(None, lines))[:_LONGEST_TEXT] or f"exit code {ended.code}"


@dataclass(frozen=True, slots=True)
class RapiRunner:
    """Asks the server behind `client`."""

    client: Client
    insecure: bool = False
    patience: jobs.Patience = field(default_factory=jobs.Patience)
    stop: jobs.StopRequests = field(default_factory=jobs.StopRequests)
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

    def run(self, command: PlannedCommand, mark: str, watch: jobs.Watch) -> jobs.JobOutcome:
        """Submit a request and wait for the end of its job."""
        call = command.rapi
        assert call is not None  # noqa: S101 (said before the first step)
        path = f"{call.path}{'&' if '?' in call.path else '?'}reason={quote(mark, safe='')}"
        try:
            with jobs.told_if_slow(watch.note, self.destination):
                answer = self.client.send(call.method, path, call.body)
        except NoAnswerError as error:
            return jobs.JobOutcome(jobs.JobResult.UNKNOWN, error.message)
        except UnreachableError as error:
            return jobs.JobOutcome(jobs.JobResult.FAILED, error.message)
        if answer.status != 200:  # whatever it is: a proxy may say it of a request that Ganeti has taken
            return jobs.JobOutcome(jobs.JobResult.UNKNOWN, f"HTTP {answer.status}{reason(answer.body)}")
        try:
            job = job_number(parse_json(answer.body, call.path))
        except InputError:
            job = None
        if job is None:
            return jobs.JobOutcome(jobs.JobResult.UNKNOWN, "the answer is not a job number")
        watch.job(job)
        unknown = jobs.JobOutcome(jobs.JobResult.UNKNOWN, "Ganeti does not know the job any more", job)
        return self.follow(job, watch) or unknown

    def marked_jobs(self, start: str) -> list[jobs.MarkedJob]:
        """Return the jobs whose marks begin with `start`."""
        found = []
        for job in self._listed():
            marks = (text for operation in job.items("ops") for text in _reasons(operation))
            mark = next((text for text in marks if isinstance(text, str) and text.startswith(start)), None)
            if mark is not None:
                if (number := job_number(job.fields.get("id"))) is None:
                    raise InputError(f"{job.where}: the job with the mark {mark} has no number")
                found.append(jobs.MarkedJob(number, mark, job.text_or_none("status") in JOB_RUNS))
        return sorted(found, key=lambda job: job.number)

    def failed_jobs(self, after: int) -> list[jobs.FailedJob]:
        """Return the jobs with a number above `after` that ended with an error."""
        found = []
        for job in self._listed():
            number = job_number(job.fields.get("id"))
            if number is not None and number > after and job.text_or_none("status") == jobs.FAILURE:
                found.append(jobs.FailedJob(number, ", ".join(job.texts("summary"))))
        return sorted(found, key=lambda job: job.number)

    def _listed(self) -> list[Record]:
        listed = self.client.get("/2/jobs?bulk=1")
        if not isinstance(listed, list):
            raise InputError(f"{self.destination}: /2/jobs: should be a list, but is {kind_of(listed)}")
        return [Record.of(item, f"{self.destination}: /2/jobs") for item in listed]

    def follow(self, job: int, watch: jobs.Watch) -> jobs.JobOutcome | None:
        """Wait for the end of a job, however long nobody answers in between, as far as patience goes."""
        until = time.monotonic() + self.patience.job
        lost_until: float | None = None
        poll = jobs.Poll(self.patience.first_poll, self.patience.longest_poll, self.stop)
        shown = -1
        while True:
            try:
                with jobs.told_if_slow(watch.note, self.destination):
                    found = self._job(job)
                if found is None:
                    return None
                status = jobs.job_result(found.text_or_none("status"))
                failure = _failure(found)
                shown = _tell(found, shown, watch)
            except (UnreachableError, InputError) as error:
                if lost_until is None:
                    watch.note(f"{error.message}; asking again for up to {self.patience.contact:.0f} s")
                    lost_until = time.monotonic() + self.patience.contact
                if time.monotonic() >= lost_until or self.stop.at_once:
                    return jobs.JobOutcome(jobs.JobResult.UNKNOWN, error.message, job, waiting=True)
                jobs.pause(self.patience.first_pause, self.stop)
                continue
            lost_until = None
            if status is None:
                return None
            if status is not jobs.JobResult.UNKNOWN:
                return jobs.JobOutcome(status, failure if status is jobs.JobResult.FAILED else "", job)
            if time.monotonic() >= until or self.stop.at_once:
                return jobs.JobOutcome(jobs.JobResult.UNKNOWN, "", job, waiting=True)
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


def _tell(job: Record, shown: int, watch: jobs.Watch) -> int:
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


def open_runner(
    destination: str, options: SourceOptions, patience: jobs.Patience, stop: jobs.StopRequests
) -> jobs.Runner:
    """Return the runner for `destination`, without connecting. Raise RequestError for an invalid destination."""
    match destination_scheme(destination):
        case "local" | "ssh":
            return CommandRunner(open_master(destination, options), patience, stop)
        case "rapi":
            return RapiRunner(open_rapi(destination, options), options.rapi_insecure, patience, stop)
    scheme = destination.partition(":")[0]
    shown = f"{scheme[:20]!r}" if scheme else "this"  # the rest of a wrong address may hold a password
    near = closest(scheme[:20], DESTINATIONS)
    known = DESTINATIONS[near] if near else f"one of: {'; '.join(map(str, DESTINATIONS.values()))}"
    raise RequestError(f"a plan cannot be applied to {shown}", hint=f"write {known}")
