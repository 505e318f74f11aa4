"""Jobs through commands: stand-ins for Ganeti's programs record how they are called."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpolicy.apply.job_runners import CommandRunner, run_lines
from gpolicy.apply.jobs import JobOutcome, JobResult, MarkedJob, Patience, StopRequests, Watch
from gpolicy.cluster.master import LocalMaster, parse_ssh_address
from gpolicy.errors import InputError, UnreachableError
from gpolicy.plan.step import PlannedCommand

QUICK = Patience(first_pause=0.01, first_poll=0.01, longest_poll=0.01, job=20, contact=1, settle=0.1, look_again=0)
HOSTILE = ["a b", "o'neil", '"', "$(touch pwned)", "`touch pwned`", "-x", "*", "\\", "a\nb", "#", ";", "ü", "%s", "~"]
SAYS_ALL = """#!/bin/sh
LOG=${0%/bin/*}/log
printf '%s\\0' "${0##*/}" "$@" >> "$LOG"; printf '\\n\\0' >> "$LOG"
env > "$LOG.env"
"""
JOB = SAYS_ALL + 'echo 17\necho "Fri Nov 20 10:00:00 2026  - WARNING: inst1 violates"\n'
SSH = """#!/bin/sh
LOG=${0%/bin/*}/log
printf '%s\\n' "$@" > "$LOG.ssh"
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$*"
"""


class Bench:
    """A directory of programs, and what they were called with."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.log = directory / "log"
        self.stop = StopRequests()
        self.environ = {"PATH": f"{self.bin}:{os.environ['PATH']}", "GPOLICY_RAPI_PASSWORD": "a secret"}
        self.jobs: list[int] = []
        self.messages: list[str] = []

    def program(self, name: str, text: str) -> None:
        file = self.bin / name
        file.write_text(text)
        file.chmod(0o755)

    def runner(self, patience: Patience = QUICK) -> CommandRunner:
        return CommandRunner(LocalMaster(self.environ), patience, self.stop)

    def run(self, *argv: str, runner: CommandRunner | None = None) -> JobOutcome:
        watch = Watch(self.jobs.append, self.messages.append)
        return (runner or self.runner()).run(PlannedCommand(argv=argv), "gpolicy-mark", watch)

    def calls(self) -> list[list[str]]:
        return [call.split("\0")[:-1] for call in self.log.read_bytes().decode().split("\n\0")[:-1]]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setenv("PATH", made.environ["PATH"])
    monkeypatch.chdir(tmp_path)
    return made


def test_t58_the_job_is_known_before_it_ends_and_its_log_is_shown(bench: Bench) -> None:
    bench.program("gnt-group", JOB)
    outcome = bench.run("gnt-group", "modify", "--alloc-policy=preferred", "gold")
    assert outcome == JobOutcome(JobResult.SUCCESS, job=17)
    assert bench.jobs == [17]
    assert bench.messages == ["Fri Nov 20 10:00:00 2026  - WARNING: inst1 violates"]
    assert bench.calls() == [
        ["gnt-group", "modify", "--print-jobid", "--reason=gpolicy-mark", "--alloc-policy=preferred", "gold"]
    ]


@pytest.mark.parametrize("way", ["local", "ssh"])
def test_hostile_names_arrive_unchanged_and_without_secrets(bench: Bench, way: str) -> None:
    bench.program("gnt-group", JOB)
    bench.program("ssh", SSH)
    runner = bench.runner()
    if way == "ssh":
        runner = CommandRunner(parse_ssh_address("ssh://root@master:22", bench.environ), QUICK, bench.stop)
    for name in HOSTILE:
        assert bench.run("gnt-group", "remove", "--", name, runner=runner).result is JobResult.SUCCESS
    assert [call[4:] for call in bench.calls()] == [["--", name] for name in HOSTILE]
    assert not (bench.directory / "pwned").exists()
    assert "a secret" not in bench.log.with_suffix(".env").read_text()
    if way == "ssh":
        words = bench.log.with_suffix(".ssh").read_text().splitlines()
        assert "BatchMode=yes" in words
        assert words[words.index("--") + 1] == "root@master"


def test_the_job_queue_overrides_the_commands_answer(bench: Bench) -> None:
    bench.program("gnt-group", JOB + "echo 'lost the daemon' >&2; exit 1\n")
    for word, result in (("success", JobResult.SUCCESS), ("error", JobResult.FAILED), ("running", JobResult.UNKNOWN)):
        bench.program("gnt-job", f"#!/bin/sh\necho '17|{word}'\n")
        outcome = bench.run("gnt-group", "modify", "gold")
        assert (outcome.result, outcome.job, outcome.text) == (result, 17, "lost the daemon")


@pytest.mark.parametrize(
    ("complaint", "code", "result"),
    [
        ("error type: wrong_input", 1, JobResult.FAILED),
        ("Timeout while talking to the master daemon. Jobs might have been submitted", 1, JobResult.UNKNOWN),
        ("ssh: connection closed", 255, JobResult.UNKNOWN),
        ("usage: no such option", 2, JobResult.FAILED),
        ("Error while connecting to luxi", 1, JobResult.UNKNOWN),
        ("", 3, JobResult.UNKNOWN),
    ],
)
def test_without_a_job_the_result_is_refused_or_unknown(
    bench: Bench, complaint: str, code: int, result: JobResult
) -> None:
    bench.program("gnt-group", f"#!/bin/sh\necho '{complaint}' >&2\nexit {code}\n")
    outcome = bench.run("gnt-group", "modify", "gold")
    assert (outcome.result, outcome.job) == (result, None)
    assert outcome.text == (complaint or f"exit code {code}")


def test_a_truncated_number_is_not_a_job(bench: Bench) -> None:
    bench.program("gnt-group", "#!/bin/sh\nprintf 1; exit 255\n")
    bench.program("gnt-job", "#!/bin/sh\necho '1|success'\n")
    outcome = bench.run("gnt-group", "modify", "gold")
    assert (outcome.result, outcome.job, bench.jobs) == (JobResult.UNKNOWN, None, [])


def test_a_job_is_found_by_its_mark(bench: Bench) -> None:
    bench.program(
        "gnt-job",
        """#!/bin/sh
echo "18|queued|[{'reason': [['gnt:user', 'mark-1-3', 5]]}]"
echo "16|error|[{'reason': []}]"; echo "17|success|[{'reason': [['gnt:user', 'mark-1-2', 5]]}]"
""",
    )
    assert bench.runner().marked_jobs("mark-1") == [
        MarkedJob(17, "mark-1-2", False),
        MarkedJob(18, "mark-1-3", True),
    ]
    assert bench.runner().marked_jobs("mark-1-3") == [MarkedJob(18, "mark-1-3", True)]
    assert bench.runner().marked_jobs("mark-2") == []
    bench.program("gnt-job", "#!/bin/sh\necho 'no master' >&2\nexit 1\n")
    with pytest.raises(UnreachableError, match="gnt-job list failed: no master"):
        bench.runner().marked_jobs("mark-1")
    bench.program("gnt-job", "#!/bin/sh\necho '99999999999999999999|queued|mark-1'\n")
    with pytest.raises(InputError, match="is not a job number"):
        bench.runner().marked_jobs("mark-1")


def test_a_job_is_followed_to_its_end(bench: Bench) -> None:
    bench.program(
        "gnt-job",
        """#!/bin/sh
if [ "$1" = watch ]; then touch ended; echo ' - WARNING: late'; echo 'Job 17 failed: no' >&2; exit 1; fi
if [ -e ended ]; then echo '17|error'; else echo '17|running'; fi
""",
    )
    watch = Watch(bench.jobs.append, bench.messages.append)
    assert bench.runner().follow(17, watch) == JobOutcome(JobResult.FAILED, "Job 17 failed: no", 17)
    assert bench.messages == [" - WARNING: late"]
    bench.program("gnt-job", "#!/bin/sh\necho '17|-'\n")
    assert bench.runner().follow(17, watch) is None


@pytest.mark.parametrize("closes", ["", "exec >&- 2>&-; "])
def test_the_time_is_bounded_and_the_job_continues(bench: Bench, closes: str) -> None:
    bench.program("gnt-group", f"{JOB}{closes}exec sleep 30\n")
    bench.program("gnt-job", "#!/bin/sh\necho '17|running'\n")
    begun = time.monotonic()
    outcome = bench.run("gnt-group", "modify", "gold", runner=bench.runner(Patience(job=0.5)))
    assert (outcome.result, outcome.job, outcome.waiting) == (JobResult.UNKNOWN, 17, True)
    assert time.monotonic() - begun < 10


def test_an_immediate_stop_does_not_wait(bench: Bench) -> None:
    bench.program("gnt-group", JOB + "exec sleep 30\n")
    bench.program("gnt-job", "#!/bin/sh\necho '17|running'\n")
    bench.stop.requests = 2
    begun = time.monotonic()
    assert bench.run("gnt-group", "modify", "gold").result is JobResult.UNKNOWN
    assert time.monotonic() - begun < 10


def test_lines_come_while_the_program_runs(tmp_path: Path) -> None:
    times: list[float] = []
    script = ["sh", "-c", "echo one; sleep 0.5; printf two"]
    seen: list[str] = []

    def line(text: str) -> None:
        seen.append(text)
        times.append(time.monotonic())

    ended = run_lines(script, dict(os.environ), 20, StopRequests(), line)
    assert ended is not None
    assert (ended.code, seen) == (0, ["one\n", "two"])
    assert times[1] - times[0] > 0.3


def test_a_missing_program(bench: Bench) -> None:
    with pytest.raises(UnreachableError, match="gnt-nothing: cannot be run"):
        bench.run("gnt-nothing", "modify")


def test_programs_speak_one_language(bench: Bench) -> None:
    bench.environ["LC_ALL"] = "de_DE.UTF-8"
    bench.program("gnt-group", JOB)
    bench.run("gnt-group", "modify", "gold")
    assert "LC_ALL=C.UTF-8" in bench.log.with_name("log.env").read_text().splitlines()
    bench.program("gnt-job", SAYS_ALL)
    bench.log.with_name("log.env").unlink()
    bench.runner().marked_jobs("gpolicy")
    assert "LC_ALL=C.UTF-8" in bench.log.with_name("log.env").read_text().splitlines()
