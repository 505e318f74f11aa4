"""gpolicy and Ganeti's daemons killed at any point: nothing is lost, and a resumed run ends in an empty plan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy_process
from tests.strategies import Document, document

pytestmark = pytest.mark.e2e

SECONDS = 120
PARTS = 4
DAEMONS = ("luxid", "wconfd", "noded")
IN_CI = (("luxid", "rapi", 1), ("wconfd", "local", 1), ("noded", "local", 1))


def documents(number: int) -> list[Document]:
    """Return a policy of four steps of different kinds, another one for each number."""
    return [
        document("Cluster", "cluster", {("ipolicy", "vcpu-ratio"): 5 + number}),
        document("NodeGroup", f"new{number}", {("ipolicy", "spindle-ratio"): 5 + number}, nodes=["node4", "node5"]),
        document("NodeGroup", "default", tags=[f"t:{number}"]),
    ]


def lines(journal: Path) -> int:
    """Return the number of whole lines in a journal."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kill_when(way: Way, plan: Path, reached: Callable[[], bool]) -> bool:
    """Apply a plan, and kill gpolicy when `reached` says so; return whether it was still running then."""
    process = gpolicy_process("apply", plan, "--to", way.address, "--yes", *way.trust)
    with process:
        until = time.monotonic() + SECONDS
        while process.poll() is None and not reached() and time.monotonic() < until:
            time.sleep(0.002)
        running = process.poll() is None
        process.kill()
    return running


def resume(way: Way, plan: Path, policy: Path) -> None:
    """Go on after a run that was killed; see that all is done then."""
    resumed = way.apply(plan, "--resume")
    assert resumed.code == 0, resumed.err + resumed.out
    way.expect_nothing_left(policy)


@pytest.mark.parametrize("route", ROUTES)
def test_gpolicy_is_killed_at_some_points(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    """Every line of the journal is a point between two things that happen: job begun, job known, job ended, seen."""
    whole = lines_of_a_whole_run(Way(fresh, route), tmp_path)
    assert kill_after_lines(Way(fresh, route), tmp_path, range(1, whole + 1, whole // 3)) >= 2


@pytest.mark.full
@pytest.mark.parametrize("first", range(1, 1 + PARTS))
@pytest.mark.parametrize("route", [*ROUTES, "ssh"])
def test_gpolicy_is_killed_after_each_line_of_its_journal(
    fresh: LiveCluster, ssh: None, tmp_path: Path, route: str, first: int
) -> None:
    whole = lines_of_a_whole_run(Way(fresh, route), tmp_path)
    stops = range(first, whole + 1, PARTS)
    assert kill_after_lines(Way(fresh, route), tmp_path, stops) >= len(stops) - 2  # it may have ended before the kill


def kill_after_lines(way: Way, tmp_path: Path, stops: Sequence[int]) -> int:
    """Kill a run when its journal has so many lines, go on, and take it back; return how often it was killed."""
    killed, first = 0, content(way.cluster.config())
    for stop in stops:
        directory = tmp_path / str(stop)
        directory.mkdir()
        policy = write_policy(directory / "policy.yaml", documents(stop))
        plan, journal = directory / "plan.json", directory / "plan.journal.jsonl"
        assert way.plan(policy, plan, state=way.cluster.sources["config"]).code == 2
        killed += kill_when(way, plan, lambda journal=journal, stop=stop: lines(journal) >= stop)  # type: ignore[misc]
        resume(way, plan, policy)
        back = way.apply(plan, "--rollback")
        assert back.code == 0, back.err + back.out
        assert differing(first, content(way.cluster.config())) == []
    return killed


def lines_of_a_whole_run(way: Way, tmp_path: Path) -> int:
    policy, plan = write_policy(tmp_path / "whole.yaml", documents(0)), tmp_path / "whole.json"
    assert way.carry_out(policy, plan)
    count = lines(tmp_path / "whole.journal.jsonl")
    assert way.apply(plan, "--rollback").code == 0
    return count


@pytest.mark.parametrize(
    ("daemon", "route", "step"),
    [
        *IN_CI,
        *(
            pytest.param(daemon, route, step, marks=pytest.mark.full)
            for daemon in DAEMONS
            for route in (*ROUTES, "ssh")
            for step in (1, 3)
            if (daemon, route, step) not in IN_CI
        ),
    ],
)
def test_a_daemon_dies_in_mid_job(
    fresh: LiveCluster, ssh: None, tmp_path: Path, daemon: str, route: str, step: int
) -> None:
    """The run may fail or not; when the daemon is back, resuming it, or a new plan, ends where it should."""
    way = Way(fresh, route)
    policy = write_policy(tmp_path / "policy.yaml", documents(1))
    plan, journal = tmp_path / "plan.json", tmp_path / "plan.journal.jsonl"
    assert way.plan(policy, plan, state=fresh.sources["config"]).code == 2
    process = gpolicy_process("apply", plan, "--to", way.address, "--yes", "--job-timeout", "20", *way.trust)
    with process:
        until = time.monotonic() + SECONDS
        while process.poll() is None and submitted(journal) < step and time.monotonic() < until:
            time.sleep(0.002)
        assert process.poll() is None, process.communicate()
        kill_daemon(fresh, daemon)
        time.sleep(1)
        fresh.rgn("start")
        try:
            process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    if process.returncode == 0:
        way.expect_nothing_left(policy)
        return
    resumed = way.apply(plan, "--resume")
    if resumed.code != 0:  # Ganeti lost the job: a new plan asks for the rest
        way.carry_out(policy, tmp_path / "again.json")
    way.expect_nothing_left(policy)


def submitted(journal: Path) -> int:
    """Return how many jobs a journal knows of."""
    return journal.read_text(encoding="utf-8").count('"step-job-submitted"') if journal.exists() else 0


def kill_daemon(cluster: LiveCluster, daemon: str) -> None:
    """Kill one of the master's daemons as a crash would."""
    file = cluster.root("node1") / f"var/run/ganeti/ganeti-{daemon}.pid"
    os.kill(int("".join(filter(str.isdigit, file.read_text()))), signal.SIGKILL)


def test_two_runs_at_once_are_one(fresh: LiveCluster, tmp_path: Path) -> None:
    way = Way(fresh, "local")
    policy = write_policy(tmp_path / "policy.yaml", documents(1))
    plan, journal = tmp_path / "plan.json", tmp_path / "plan.journal.jsonl"
    assert way.plan(policy, plan).code == 2
    with gpolicy_process("apply", plan, "--to", way.address, "--yes") as process:
        until = time.monotonic() + SECONDS
        while process.poll() is None and lines(journal) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        second = way.apply(plan, "--journal", str(tmp_path / "other.jsonl"))
        assert second.code != 0
        process.wait(timeout=SECONDS)
    assert process.returncode == 0
    way.expect_nothing_left(policy)


def test_a_plan_is_refused_when_what_it_touches_has_changed(fresh: LiveCluster, tmp_path: Path) -> None:
    way = Way(fresh, "local")
    policy = write_policy(tmp_path / "policy.yaml", documents(1))
    plan = tmp_path / "plan.json"
    assert way.plan(policy, plan).code == 2
    fresh.ganeti("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=3")
    before = content(fresh.config())
    refused = way.apply(plan)
    assert refused.code == 1
    assert "has changed" in refused.err
    assert differing(before, content(fresh.config())) == []
    fresh.ganeti("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=4")
    assert json.loads(plan.read_text())["summary"]["steps"] >= 4
