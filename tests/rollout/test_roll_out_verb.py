"""`gpolicy apply --all` as a user runs it, against servers that speak as Ganeti's remote API.

Where it gets signals it is a process of its own, with a process for each cluster, and the servers listen.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import gpolicy as gp
from tests.apply import pretend_rapi
from tests.apply.pretend_ganeti import fails
from tests.apply.pretend_rapi import PASSWORD, USER, Server
from tests.apply.same_process import gpolicy, reach_directly, wait_for, wait_for_nothing, work_in_turn
from tests.cli.command_line import FOUR_STEPS, HEEDING, ROOT

FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)
WAVES = 'waves = ["stage=canary", "name=*"]'
NAMES = ("ham", "ber", "cam")
SCHEMAS = ROOT / "schemas" / "output"


class Bench:
    """A repository with three clusters, of which ham is the canary, and their plans."""

    def __init__(self, directory: Path, servers: dict[str, Server], certificate: Path) -> None:
        self.directory, self.servers = directory, servers
        self.plans = directory / "plans"
        self.settings = directory / "gpolicy.toml"
        (directory / "ca.pem").write_bytes(certificate.read_bytes())
        (directory / "policy.yaml").write_text(FOUR_STEPS)
        self.write(WAVES)
        self.env = {
            "HOME": str(directory), "XDG_RUNTIME_DIR": str(directory), "GPOLICY_RAPI_HOSTS": "127.0.0.1",
            "GPOLICY_RAPI_USER": USER, "GPOLICY_RAPI_PASSWORD": PASSWORD,
        }  # fmt: skip
        done = self.run("plan", "--all", "--save", "plans")
        assert done.returncode == FINE, done.stderr

    def write(self, rollout: str) -> None:
        tables = [
            f'[clusters.{name}]\npolicy = "policy.yaml"\nstate = "{server.address}"\nca = "ca.pem"\n'
            f'credentials = "environment"\nlabels = {{stage = "{"canary" if name == "ham" else "prod"}"}}\n'
            for name, server in self.servers.items()
        ]
        self.settings.write_text("".join([*tables, f"[rollout]\n{rollout}\n" if rollout else ""]))

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return gpolicy(*words, env=self.env, cwd=self.directory)

    def apply(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.run("apply", "plans", "--yes", *(more if "--label" in more else ("--all", *more)))

    def report(self, *more: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code, and the reports by cluster, which the schemas describe."""
        done = self.apply("--format", "json", *more)
        found = json.loads(done.stdout)
        jsonschema.validate(found, json.loads((SCHEMAS / "fleet.json").read_text()))
        schema = json.loads((SCHEMAS / "apply.json").read_text())
        for item in found["clusters"]:
            jsonschema.validate(item["report"], schema)
        return done.returncode, {item["name"]: item["report"] for item in found["clusters"]}

    def start(self, *more: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.env}
        return subprocess.Popen(
            [sys.executable, "-c", HEEDING, "apply", "plans", "--all", "--yes", *more],
            env=environment, cwd=self.directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def journal(self, name: str) -> Path:
        return self.plans / f"{name}.journal.jsonl"

    def whole(self) -> list[dict[str, Any]]:
        text = (self.plans / "_rollout.journal.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def jobs(self) -> dict[str, int]:
        return {name: len(server.ganeti.jobs) for name, server in self.servers.items()}

    def expect_all_done(self) -> None:
        """Every job ran once, and nothing is left to plan."""
        assert self.jobs() == dict.fromkeys(NAMES, 4)
        done = self.run("plan", "--all", "--detailed-exitcode")
        assert done.returncode == FINE, done.stdout

    def slow(self, *names: str) -> None:
        """Let the jobs of clusters not end."""
        for name in names:
            self.servers[name].ganeti.seconds = 600.0

    def resume(self) -> None:
        """Go on with no job that takes long: every step was done once."""
        for server in self.servers.values():
            server.ganeti.seconds = 0.0
            for job in server.ganeti.jobs:
                job.ends = 0.0
        done = self.apply("--resume")
        assert done.returncode == FINE, done.stderr
        self.expect_all_done()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretend_rapi.make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def bench(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """All runs are in this process, and wait for nothing."""
    servers = {name: server_of(name) for name in NAMES}
    reach_directly(monkeypatch, [*servers.values()])
    wait_for_nothing(monkeypatch)
    work_in_turn(monkeypatch)
    yield Bench(tmp_path, servers, certificate)
    remove_locks()


@pytest.fixture
def served(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The servers listen, for processes that are started."""
    servers = {name: server_of(name) for name in NAMES}
    reach_directly(monkeypatch, [*servers.values()])
    work_in_turn(monkeypatch)
    with ExitStack() as stack:
        for server in servers.values():
            stack.enter_context(pretend_rapi.serve(certificate, server))
        yield Bench(tmp_path, servers, certificate)
        remove_locks()


def server_of(name: str) -> Server:
    server = Server(port=NAMES.index(name) + 1)
    server.ganeti.uuid = f"{server.ganeti.uuid}-{name}"
    return server


def remove_locks() -> None:
    for lock in Path("/run").glob("gpolicy-apply-*.lock"):
        if not lock.read_bytes():
            lock.unlink(missing_ok=True)


def begun(journal: Path, lines: int = 3) -> Callable[[], bool]:
    return lambda: journal.exists() and journal.read_bytes().count(b"\n") >= lines


def test_plans_are_rolled_out_in_waves_and_taken_back(bench: Bench) -> None:
    before = {name: server.ganeti.content() for name, server in bench.servers.items()}
    done = bench.apply("--jobs", "2")
    assert done.returncode == FINE, done.stderr
    assert "done: 3 done" in done.stdout
    shown = done.stderr.partition("\nwave 1 of 2 (stage=canary): ham\nham: [1/4]")[0]
    for name in NAMES:  # the consent has every change of every cluster
        assert f"{name}: 4 steps to change cluster cluster" in shown
    assert len(re.findall(r"cluster ipolicy.vcpu-ratio: [0-9.]+ → 7", shown)) == 3
    assert "ber: [4/4]" in done.stderr
    bench.expect_all_done()
    schema = json.loads((SCHEMAS / "rollout-journal.json").read_text())
    for event in bench.whole():
        jsonschema.validate(event, schema)
    events = [(event["event"], event.get("cluster")) for event in bench.whole()]
    assert events[:4] == [
        ("begin", None),
        ("cluster-begun", "ham"),
        ("cluster-ended", "ham"),
        ("cluster-looked", "ham"),
    ]
    assert set(events[4:6]) == {("cluster-begun", "ber"), ("cluster-begun", "cam")}
    assert bench.apply().returncode == COULD_NOT_RUN  # a second time
    code, reports = bench.report("--rollback")
    assert (code, {item["stage"] for item in reports.values()}) == (FINE, {"taken back"})
    assert {name: server.ganeti.content() for name, server in bench.servers.items()} == before
    assert "a rollback of this roll-out has begun" in bench.apply("--resume").stderr


def test_a_roll_out_from_python_asks_and_prints_nothing(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    options = gp.SourceOptions(environ=bench.env, rapi_ca=bench.directory / "ca.pem", login="environment")
    plans = [
        gp.ApplyRequest(plan=bench.plans / f"{name}.json", destination=server.address, options=options)
        for name, server in bench.servers.items()
    ]
    request = gp.RolloutRequest(
        directory=bench.plans,
        plans=tuple(gp.ClusterPlan(name=plan.plan.stem, request=plan) for plan in plans),
        waves=(gp.RolloutWave("canary", ("ham",)), gp.RolloutWave("rest", ("ber", "cam"))),
        today=date(2026, 11, 1),
    )
    asked: list[int] = []

    def agree(previews: Mapping[str, gp.Preview], _: object) -> bool:
        asked.extend(len(item.keys) for item in previews.values())
        return len(asked) > 3

    refused = gp.roll_out(request, agree=agree)
    assert (refused.agreed, asked, bench.jobs()) == (False, [4, 4, 4], dict.fromkeys(NAMES, 0))
    said: list[str] = []
    done = gp.roll_out(request, agree=agree, say=lambda line, _: said.append(line))
    assert {(item.stage, item.look is not None) for item in done.clusters} == {("done", True)}
    assert said[0] == "wave 1 of 2 (canary): ham"
    assert capfd.readouterr() == ("", "")
    bench.expect_all_done()
    with pytest.raises(gp.GpolicyError, match="has begun before"):
        gp.roll_out(request, agree=agree)
    with pytest.raises(gp.GpolicyError, match="must be in one wave"):
        gp.roll_out(replace(request, waves=request.waves[:1]), agree=agree)


def test_a_failure_in_the_second_wave_is_shown_resumed_and_all_is_done_once(bench: Bench) -> None:
    bench.servers["ber"].ganeti.mishaps = [None, fails("disk full")]
    done = bench.apply()
    assert done.returncode == FINDINGS
    assert "trouble with ber, 1 not begun, 1 partly done, 1 done" in done.stdout
    assert "disk full" in done.stdout
    assert "go on with `gpolicy apply plans --all --resume`" in done.stdout
    assert bench.jobs() == {"ham": 4, "ber": 2, "cam": 0}
    code, reports = bench.report("--resume")
    assert (code, {item["stage"] for item in reports.values()}) == (FINE, {"done"})
    assert bench.jobs() == {"ham": 4, "ber": 5, "cam": 4}
    again = bench.apply("--resume")
    assert again.returncode == FINE
    assert "3 done" in again.stdout


def test_nothing_begins_when_one_cluster_cannot_be_begun(bench: Bench) -> None:
    own = bench.servers["cam"].ganeti.model.own["ipolicy"]
    before, own["vcpu-ratio"] = own["vcpu-ratio"], 3.0
    code, reports = bench.report()
    assert code == FINDINGS
    assert "the cluster has changed since the plan was made" in reports["cam"]["run"]["message"]
    assert {item["stage"] for item in reports.values()} == {"not begun"}
    assert bench.jobs() == dict.fromkeys(NAMES, 0)
    assert not (bench.plans / "_rollout.journal.jsonl").exists()
    done = bench.apply()
    assert f"cam:   cluster ipolicy.vcpu-ratio: expected {before:g}, found 3" in done.stderr
    own["vcpu-ratio"] = before
    bench.env["GPOLICY_RAPI_PASSWORD"] = "wrong"  # noqa: S105
    code, reports = bench.report()
    assert code == COULD_NOT_RUN
    assert "password" in str(reports["ham"]["run"])
    assert PASSWORD not in str(reports)


def test_a_label_rolls_out_to_some_and_the_rest_follows(bench: Bench) -> None:
    done = bench.apply("--label", "stage=canary")
    assert (done.returncode, bench.jobs()) == (FINE, {"ham": 4, "ber": 0, "cam": 0})
    assert bench.apply().returncode == COULD_NOT_RUN
    done = bench.apply("--resume")
    assert done.returncode == FINE, done.stderr
    bench.expect_all_done()


def test_fresh_plans_begin_a_new_roll_out(bench: Bench) -> None:
    bench.servers["ber"].ganeti.mishaps = [fails("no")]
    assert bench.apply().returncode == FINDINGS
    first = bench.whole()
    time.sleep(1)  # a plan tells by the second when it was made
    assert bench.run("plan", "--all", "--save", "plans").returncode == FINE
    done = bench.apply()
    assert done.returncode == FINE, done.stderr
    assert "was the journal of earlier plans; it is kept as _rollout.journal." in done.stderr
    assert "ham: nothing to do" in done.stderr
    kept = next(bench.plans.glob("_rollout.journal.*.jsonl"))
    assert [json.loads(line) for line in kept.read_text().splitlines()] == first
    assert bench.run("plan", "--all", "--detailed-exitcode").returncode == FINE


def test_a_plan_that_was_replaced_after_it_had_begun_is_refused(bench: Bench) -> None:
    bench.servers["ber"].ganeti.mishaps = [None, fails("no")]
    assert bench.apply().returncode == FINDINGS
    assert bench.run("plan", "--label", "name=ber", "--save", "plans").returncode == FINE
    for option in ("--resume", "--rollback"):
        done = bench.apply(option)
        assert done.returncode == COULD_NOT_RUN
        assert "the plan that was begun is another one than is there now: ber" in done.stderr


def test_a_plan_that_had_not_begun_may_be_replaced(bench: Bench) -> None:
    bench.servers["ber"].ganeti.mishaps = [fails("no")]
    assert bench.apply().returncode == FINDINGS
    bench.servers["cam"].ganeti.model.own["ipolicy"]["vcpu-ratio"] = 3.0
    assert bench.apply("--resume").returncode == FINDINGS  # nothing was done
    assert bench.run("plan", "--label", "name=cam", "--save", "plans").returncode == FINE
    done = bench.apply("--resume")
    assert done.returncode == FINE, done.stderr
    assert bench.run("plan", "--all", "--detailed-exitcode").returncode == FINE


def test_a_lost_journal_is_noticed(bench: Bench) -> None:
    assert bench.apply().returncode == FINE
    bench.journal("ber").rename(bench.directory / "away")
    done = bench.apply("--rollback")
    assert done.returncode == COULD_NOT_RUN
    assert "the journals of these clusters are gone, or are others than the roll-out saw: ber" in done.stderr
    (bench.directory / "away").rename(bench.journal("ber"))
    assert bench.apply("--rollback").returncode == FINE


def test_a_journal_that_ends_within_its_first_line_stops_neither_resume_nor_rollback(bench: Bench) -> None:
    before = bench.servers["ham"].ganeti.content()
    bench.servers["ber"].ganeti.mishaps = [fails("no")]
    assert bench.apply().returncode == FINDINGS
    bench.journal("cam").write_text('{"event": "begin", "time": "2026-')
    done = bench.apply("--resume")
    assert done.returncode == FINE, done.stderr
    assert bench.jobs() == {"ham": 4, "ber": 5, "cam": 4}
    assert bench.apply("--rollback").returncode == FINE
    assert bench.servers["ham"].ganeti.content() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_running_steps_and_begins_no_other_cluster(served: Bench, number: signal.Signals) -> None:
    served.slow("ham")
    process = served.start()
    wait_for(begun(served.journal("ham")))
    process.send_signal(number)
    assert process.stderr is not None
    said = ""
    while "stopping after the running step" not in said:
        said += process.stderr.readline()
    served.servers["ham"].ganeti.jobs[0].ends = 0.0
    out, more = process.communicate(timeout=60)
    assert process.returncode == FINDINGS
    assert (said + more).count("stopping after the running step") == 1
    assert "1 partly done" in out
    assert served.jobs() == {"ham": 1, "ber": 0, "cam": 0}
    served.resume()


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_the_jobs(served: Bench) -> None:
    served.slow("ham")
    process = served.start()
    wait_for(begun(served.journal("ham")))
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    while "stopping after the running step" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert "job 1 goes on in Ganeti" in out
    served.resume()


@pytest.mark.slow
def test_the_roll_out_is_killed_and_its_clusters_end_their_step(served: Bench) -> None:
    """While they do, nobody else can go on with the roll-out; afterwards it goes on, and no job runs twice."""
    served.slow("ber", "cam")
    process = served.start("--jobs", "2")
    wait_for(begun(served.journal("ber")))
    wait_for(begun(served.journal("cam")))
    process.kill()
    early = served.apply("--resume")
    assert early.returncode == COULD_NOT_RUN
    assert "another roll-out of plans is under way" in early.stderr
    for name in ("ber", "cam"):
        (job,) = served.servers[name].ganeti.jobs
        job.ends = 0.0
    process.communicate(timeout=60)  # until the last of them has closed its output
    for name in ("ber", "cam"):
        last = json.loads(served.journal(name).read_text().splitlines()[-1])
        assert (last["event"], last["outcome"]) == ("end", "stopped")
    assert served.jobs() == {"ham": 4, "ber": 1, "cam": 1}
    served.resume()


@pytest.mark.slow
def test_the_process_of_one_cluster_is_killed(served: Bench) -> None:
    served.slow("ham")
    process = served.start()
    wait_for(begun(served.journal("ham")))
    pid = json.loads(served.journal("ham").read_text().splitlines()[0])["pid"]
    assert pid != process.pid
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == FINDINGS
    assert "its process ended without an answer (signal 9)" in out
    served.resume()


def test_who_goes_on_with_one_plan_alone_does_not_confuse_the_roll_out(bench: Bench) -> None:
    bench.servers["ber"].ganeti.mishaps = [None, fails("no")]
    assert bench.apply().returncode == FINDINGS
    alone = bench.run("apply", "plans/ber.json", "--to", "ber", "--yes", "--resume")
    assert alone.returncode == FINE, alone.stderr
    done = bench.apply("--resume")
    assert done.returncode == FINE, done.stderr
    assert bench.jobs() == {"ham": 4, "ber": 5, "cam": 4}


def test_options_that_make_no_sense(bench: Bench) -> None:
    for words, message in (
        (("plans", "--all", "--to", "ham"), "--to is for the plan of one cluster"),
        (("plans", "--all", "--journal", "j"), "--journal is for the plan of one cluster"),
        (("plans", "--all", "--resume", "--rollback"), "--resume and --rollback exclude one another"),
        (("plans/ham.json", "--to", "ham", "--resume", "--rollback"), "--resume and --rollback exclude one another"),
        (("plans", "--all", "--label", "stage=prod"), "--all and --label exclude one another"),
        (("plans/ham.json", "--all"), "plans/ham.json: not a directory of plans"),
        (("plans", "--label", "stage=pro"), "no cluster has stage=pro"),
        (("plans", "--all", "--resume"), "no journal of a run that has begun: there is nothing to resume"),
        (("plans", "--all", "--rapi-ca", "ca.pem"), "--rapi-ca is about one address"),
        (("plans", "--all", "--format", "html"), "--format html is not for a roll-out"),
        ((".", "--all"), "no plan of ham, ber, cam"),
        (("plans/ham.json",), "no --to is given"),
        (("plans/ham.json", "--to", "ham", "--format", "json"), "--format json is for several clusters"),
    ):
        done = bench.run("apply", *words, "--yes")
        assert done.returncode == COULD_NOT_RUN
        assert message in done.stderr


def test_the_settings_must_name_waves_for_all(bench: Bench) -> None:
    bench.write("")
    assert "says nothing of the waves of a roll-out" in bench.apply().stderr
    bench.settings.write_text("")
    done = bench.apply()
    assert (done.returncode, done.stdout) == (COULD_NOT_RUN, "")
    assert done.stderr.startswith("gpolicy: no settings file names clusters\n")
    bench.write('waves = ["stage=canary"]')
    done = bench.apply()
    assert done.returncode == COULD_NOT_RUN
    assert "gpolicy.toml:20: rollout.waves: has no label of: ber, cam" in done.stderr
    assert bench.jobs() == dict.fromkeys(NAMES, 0)
    bench.write('waves = ["stage=canari"]')
    said = "gpolicy.toml:20:1: error GP028 settings-mistake: rollout.waves: no cluster has the label 'stage=canari'"
    assert said in " ".join(bench.run("check", ".").stdout.split())


def test_the_journals_of_a_roll_out_are_shown(bench: Bench) -> None:
    assert bench.apply().returncode == FINE
    shown = bench.run("show", "plans/ham.journal.jsonl").stdout
    assert shown.splitlines()[1] == "1 run; its last run ended: done"
    rows = [line.split("  ") for line in shown.splitlines() if line.endswith("  done")]
    assert len(rows) == 4
    whole = bench.run("show", "plans/_rollout.journal.jsonl").stdout
    assert whole.splitlines()[:2] == ["Journal of a roll-out", "1 run; its last run ended: done"]
    assert {tuple(line.split()[-2:]) for line in whole.splitlines()} >= {(name, "ended") for name in NAMES}
    events = json.loads(bench.run("show", "plans/ham.journal.jsonl", "-f", "json").stdout)["events"]
    assert [event["event"] for event in events][:2] == ["begin", "step-started"]
    (bench.plans / "ham.journal.jsonl").write_text("{}")
    assert bench.run("show", "plans/ham.journal.jsonl").returncode == COULD_NOT_RUN


def test_a_cluster_without_a_plan_is_named(bench: Bench) -> None:
    (bench.plans / "cam.json").unlink()
    done = bench.apply()
    assert done.returncode == FINE
    assert "no plan in plans, left out: cam" in done.stdout
    assert bench.jobs() == {"ham": 4, "ber": 4, "cam": 0}


def test_without_a_terminal_and_without_yes_nothing_begins(bench: Bench) -> None:
    done = bench.run("apply", "plans", "--all")
    assert done.returncode == COULD_NOT_RUN
    assert "there is no terminal to ask on" in done.stderr
