"""The whole way over ssh: adopted, planned, applied and taken back, with the system's own ssh and a real sshd."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gpolicy.apply.lock import lock_name
from tests.e2e.carried_out import Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy, gpolicy_process
from tests.strategies import document

SECONDS = 120
ELSEWHERE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh")
"""Start a program with a /run of its own: the lock of the machine that gpolicy runs on is not the master's then."""

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("ssh")]


def test_there_and_back_over_ssh(fresh: LiveCluster, tmp_path: Path) -> None:
    way, first = Way(fresh, "ssh"), content(fresh.config())
    assert gpolicy("adopt", "--state", way.address, "--save", tmp_path / "adopted").code == 0
    assert way.plan(tmp_path / "adopted").code == 0
    strange = "'; touch /tmp/x; ' $HOME"
    values = {("ipolicy", "vcpu-ratio"): 6, ("diskparams", "drbd", "net-custom"): strange}
    policy = write_policy(
        tmp_path / "policy.yaml",
        [document("Cluster", "cluster", values), document("NodeGroup", "a b", tags=["t:1"], nodes=["node5", "node4"])],
    )
    plan = tmp_path / "plan.json"
    assert way.plan(policy, plan).code == 2
    applied = way.apply(plan)
    assert applied.code == 0, applied.err + applied.out
    assert way.plan(policy).code == 0
    assert fresh.state().cluster.own["diskparams", "drbd", "net-custom"] == strange
    back = way.apply(plan, "--rollback")
    assert back.code == 0, back.err + back.out
    assert differing(first, content(fresh.config())) == []


@pytest.mark.parametrize("end", ["here", "on the master"])
def test_a_run_that_lost_its_lock_on_the_master_stops_and_can_go_on(
    fresh: LiveCluster, tmp_path: Path, end: str
) -> None:
    """The process that holds the lock ends in the middle of the first step."""
    way, state = Way(fresh, "ssh"), fresh.state()
    documents = [
        document("Cluster", "cluster", {("ipolicy", "vcpu-ratio"): 6}),
        document("NodeGroup", "new", tags=["t:1"]),
    ]
    policy, plan = write_policy(tmp_path / "policy.yaml", documents), tmp_path / "plan.json"
    journal = tmp_path / "plan.journal.jsonl"
    assert way.plan(policy, plan).code == 2
    lock = f"/run/{lock_name(state.name, state.cluster.identity.uuid)}"
    with gpolicy_process("apply", plan, "--to", way.address, "--yes", before=ELSEWHERE) as process:
        while not (journal.exists() and "step-job-submitted" in journal.read_text()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        (holder,) = (
            pid
            for pid, words in processes()
            if (words[:1] == ["tee"] if end == "on the master" else parent(pid) == process.pid) and lock in words[-1]
        )
        os.kill(holder, signal.SIGKILL)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, out
    assert "the lock on the master was lost" in err
    assert "--resume" in err
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["event"] for event in events].count("step-done") == 1
    assert events[-1]["outcome"] == "stopped"
    resumed = way.apply(plan, "--resume")
    assert resumed.code == 0, resumed.err
    way.expect_nothing_left(policy)


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield all processes, each with its arguments."""
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(directory.name), (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
