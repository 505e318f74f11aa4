"""Two real clusters side by side: one roll-out over both, killed, stopped, resumed, taken back; a part of a plan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.carried_out import Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy, gpolicy_process
from tests.strategies import document

pytestmark = pytest.mark.e2e

SECONDS = 180
PARTS = 5
FINE, FINDINGS, CHANGES = range(3)


@dataclass
class Repository:
    """Two clusters with one policy each, the first one the canary, and their plans."""

    directory: Path
    clusters: dict[str, LiveCluster]

    @property
    def plans(self) -> Path:
        return self.directory / "plans"

    def write(self, number: int) -> None:
        """Write policies of four steps of different kinds, other ones for each number."""
        tables = []
        for name, live in self.clusters.items():
            nodes = ["node2"] if live.settings else ["node4", "node5"]  # these have a pair of DRBD disks
            documents = [
                document("Cluster", live.config()["cluster"]["cluster_name"], {("ipolicy", "vcpu-ratio"): 5 + number}),
                document("NodeGroup", f"new{number}", {("ipolicy", "spindle-ratio"): 5 + number}, nodes=nodes),
                document("NodeGroup", "default", tags=[f"t:{number}"]),
            ]
            write_policy(self.directory / f"{name}.yaml", documents)
            stage = "canary" if name == "first" else "prod"
            tables.append(
                f'[clusters.{name}]\npolicy = "{name}.yaml"\nstate = "{live.rapi}"\nca = "{live.certificate}"\n'
                f'credentials = "environment"\nlabels = {{stage = "{stage}"}}\n'
            )
        waves = '[rollout]\nwaves = ["stage=canary", "stage=prod"]\n'
        (self.directory / "gpolicy.toml").write_text("".join([*tables, waves]))

    def plan(self, number: int) -> None:
        self.write(number)
        planned = gpolicy("plan", "--all", "--allow", "takes-instances", "--save", "plans", "--detailed-exitcode")
        assert planned.code == CHANGES, planned.out + planned.err

    def start(self, *more: str) -> subprocess.Popen[str]:
        return gpolicy_process("apply", "plans", "--all", "--yes", *more, cwd=self.directory)

    def roll(self, *more: str) -> tuple[int, dict[str, Any], str]:
        """Roll out; return the exit code, the reports by cluster, and what was said."""
        run = gpolicy("apply", "plans", "--all", "--yes", "--format", "json", *more)
        reports = json.loads(run.out)["clusters"] if run.out else []
        return run.code, {item["name"]: item["report"] for item in reports}, run.err

    def lines(self) -> int:
        """Return the number of whole lines in all journals."""
        return sum(file.read_bytes().count(b"\n") for file in self.plans.glob("*.jsonl"))

    def steps(self, name: str) -> int:
        """Return how many steps of a plan are done."""
        file = self.plans / f"{name}.journal.jsonl"
        return file.read_text().count('"step-done"') if file.exists() else 0

    def kill_when(self, reached: Callable[[], bool], *more: str) -> bool:
        """Roll out, and kill the roll-out when `reached` says so; return whether it was still running then."""
        with self.start(*more) as process:
            wait_for(lambda: process.poll() is not None or reached())
            running = process.poll() is None
            process.kill()
            process.communicate()  # until its clusters have ended their steps, and closed its output
        return running

    def expect_nothing_left(self) -> None:
        again = gpolicy("plan", "--all", "--allow", "takes-instances", "--detailed-exitcode")
        assert again.code == FINE, again.out + again.err

    def contents(self) -> dict[str, Any]:
        return {name: content(live.config()) for name, live in self.clusters.items()}

    def expect_each_job_once(self) -> None:
        """Each step of each plan has one job that ended well, whatever was killed: Ganeti's queue says so."""
        for name, live in self.clusters.items():
            listed = live.rgn("run", "gnt-job", "list", "--no-headers", "--separator=|", "-o", "status,ops").stdout
            done = [line for line in listed.splitlines() if line.startswith("success|")]
            events = [json.loads(line) for line in (self.plans / f"{name}.journal.jsonl").read_text().splitlines()]
            digest, journal = events[0]["plan_digest"].removeprefix("sha256:")[:12], events[0]["journal"]
            for step in {event["step"] for event in events if "step" in event}:
                mark = f"gpolicy-plan-{digest}-{journal}-{step}-"
                assert sum(mark in line for line in done) == 1, (name, step, done)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.fixture
def repository(fresh: LiveCluster, second: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    second.rewind()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPOLICY_RAPI_HOSTS", f"{fresh.master},{second.master}")
    return Repository(tmp_path, {"first": fresh, "second": second})


def ganeti_of(cluster: LiveCluster, *command: str) -> None:
    cluster.rgn("run", *command)


def test_a_roll_out_is_killed_stopped_resumed_and_taken_back(repository: Repository) -> None:
    before = repository.contents()
    repository.plan(1)
    assert repository.kill_when(lambda: repository.steps("first") >= 1)
    assert repository.steps("second") == 0

    with repository.start("--resume") as process:  # somebody changes the second cluster under its plan
        wait_for(lambda: process.poll() is not None or repository.steps("second") >= 1)
        ganeti_of(repository.clusters["second"], "gnt-group", "add-tags", "default", "foreign")
        out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == FINDINGS, out + said
    assert "trouble with second" in out
    assert "first: all is well" in said
    assert 1 <= repository.steps("second") < 4

    code, reports, said = repository.roll("--resume")
    assert code == FINDINGS, said
    assert "the cluster has changed since the last run" in reports["second"]["run"]["message"]
    ganeti_of(repository.clusters["second"], "gnt-group", "remove-tags", "default", "foreign")
    code, reports, said = repository.roll("--resume")
    assert code == FINE, said
    assert {item["stage"] for item in reports.values()} == {"done"}
    repository.expect_each_job_once()
    repository.expect_nothing_left()

    code, reports, said = repository.roll("--rollback", "--jobs", "2")
    assert code == FINE, said
    assert {item["stage"] for item in reports.values()} == {"taken back"}
    assert differing(before, repository.contents()) == []


def test_a_job_that_fails_on_the_canary_spares_the_other(repository: Repository) -> None:
    """The look sees it: a job of somebody else that fails after the change."""
    repository.plan(2)
    with repository.start() as process:
        wait_for(lambda: process.poll() is not None or repository.steps("first") >= 1)
        repository.clusters["first"].rgn("run", "gnt-node", "modify", "-C", "no", "node1", check=False)
        out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == FINDINGS, out + said
    assert "(NODE_SET_PARAMS(node1)) has failed since the plan began" in said
    assert repository.steps("second") == 0
    code, reports, said = repository.roll("--resume")  # who goes on knows it now
    assert code == FINE, said
    assert "an earlier look has told of it" in reports["first"]["look"]["notes"][0]
    repository.expect_nothing_left()


def test_what_was_changed_by_hand_on_both_goes_into_their_policies(repository: Repository) -> None:
    """`drift --all --write` takes the values of each cluster into its own policy, and no plan has anything left."""
    repository.plan(3)
    assert repository.roll()[0] == FINE
    checked = gpolicy("check").out
    for number, cluster in enumerate(repository.clusters.values(), start=11):
        ganeti_of(cluster, "gnt-cluster", "modify", f"--ipolicy-vcpu-ratio={number}")
        ganeti_of(cluster, "gnt-group", "modify", f"--ipolicy-spindle-ratio={number}", "new3")
        ganeti_of(cluster, "gnt-group", "remove-tags", "default", "t:3")
    assert gpolicy("drift", "--all").code == CHANGES
    wrote = gpolicy("drift", "--all", "--write")
    assert wrote.code == FINE, wrote.out + wrote.err
    for number, name in enumerate(repository.clusters, start=11):
        text = (repository.directory / f"{name}.yaml").read_text()
        assert (text.count(str(number)), "t:3" in text) == (2, False), text
    repository.expect_nothing_left()
    assert gpolicy("drift", "--all").code == FINE
    assert gpolicy("check").out == checked


@pytest.mark.full
@pytest.mark.parametrize("first", range(1, 1 + PARTS))
def test_a_roll_out_is_killed_after_each_line_of_its_journals(repository: Repository, first: int) -> None:
    """One cluster after another, and both at once."""
    before = repository.contents()
    repository.plan(0)
    assert repository.roll()[0] == FINE
    whole = repository.lines()
    assert repository.roll("--rollback")[0] == FINE
    killed, stops = 0, range(first, whole + 1, PARTS)
    for stop in stops:
        for file in repository.plans.iterdir():
            file.unlink()
        repository.plan(stop)
        killed += repository.kill_when(lambda stop=stop: repository.lines() >= stop)  # type: ignore[misc]
        known = (repository.plans / "_rollout.journal.jsonl").exists()
        code, _, said = repository.roll(*(["--resume"] if known else []))
        assert code == FINE, said
        repository.expect_each_job_once()
        repository.expect_nothing_left()
        code, _, said = repository.roll("--rollback")
        assert code == FINE, said
        assert differing(before, repository.contents()) == []
    assert killed >= len(stops) - 2


@pytest.mark.full
def test_the_processes_of_clusters_are_killed(repository: Repository) -> None:
    before = repository.contents()
    repository.plan(3)
    kill_the_process_of(repository, "first")
    kill_the_process_of(repository, "second", "--resume")
    assert repository.roll("--resume")[0] == FINE
    repository.expect_each_job_once()
    repository.expect_nothing_left()
    assert repository.roll("--rollback")[0] == FINE
    assert differing(before, repository.contents()) == []


def kill_the_process_of(repository: Repository, name: str, *more: str) -> None:
    """Roll out, and kill the process of one cluster after its first step."""
    with repository.start(*more) as process:
        wait_for(lambda: process.poll() is not None or repository.steps(name) >= 1)
        events = [json.loads(line) for line in (repository.plans / f"{name}.journal.jsonl").read_text().splitlines()]
        os.kill(next(event["pid"] for event in reversed(events) if event["event"] == "begin"), signal.SIGKILL)
        out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == FINDINGS, out + said
    assert "its process ended without an answer (signal 9)" in out


def test_a_part_of_a_plan_is_applied_and_a_full_plan_has_the_rest(fresh: LiveCluster, tmp_path: Path) -> None:
    """`--only` takes along the group that a node moves to; `--exclude` leaves out one value."""
    way = Way(fresh, "local")
    documents = [
        document("Cluster", "cluster", {("ipolicy", "vcpu-ratio"): 5, ("ipolicy", "spindle-ratio"): 7}),
        document("NodeGroup", "part", {("ipolicy", "spindle-ratio"): 6}, nodes=["node4", "node5"]),
        document("NodeGroup", "default", tags=["t:1"]),
    ]
    policy = write_policy(tmp_path / "policy.yaml", documents)

    def part(name: str, *options: str) -> list[str]:
        """Plan and apply a part; return the objects that it changes and what it says."""
        file = tmp_path / f"{name}.json"
        planned = gpolicy("plan", policy, "--state", "local:", "--save", file, "--detailed-exitcode", *options)
        assert planned.code == CHANGES, planned.out + planned.err
        applied = way.apply(file)
        assert applied.code == FINE, applied.out + applied.err
        plan = json.loads(file.read_text())
        assert plan["left_out"]
        return sorted({f"{item['object']} {item['path']}" for item in plan["changes"]})

    refused = gpolicy("plan", policy, "--state", "local:", "--only", "node/node4", "--exclude", "group/part")
    assert refused.code == 3
    assert "group/part" in refused.err
    apart = gpolicy("plan", policy, "--state", "local:", "--only", "node/node4")
    assert apart.code == FINDINGS
    assert "pairs-together" in apart.out  # the guards are those of the part
    assert part("nodes", "--only", "node/*") == ["group/part name", "node/node4 group", "node/node5 group"]
    assert fresh.config()["cluster"]["ipolicy"]["vcpu-ratio"] == 4.0
    assert part("exclude", "--exclude", "cluster:ipolicy.spindle-ratio", "--exclude", "group/part") == [
        "cluster ipolicy.vcpu-ratio",
        "group/default tags",
    ]
    planned = way.plan(policy, tmp_path / "rest.json")
    rest = json.loads((tmp_path / "rest.json").read_text())
    assert planned.code == CHANGES
    assert {item["object"] for item in rest["changes"]} == {"cluster", "group/part"}
    assert way.apply(tmp_path / "rest.json").code == FINE
    way.expect_nothing_left(policy, ["config", "local", "rapi"])
