"""A password of the remote API stands nowhere but where its owner put it; and nobody answers in Ganeti's place."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from tests.e2e.carried_out import Way, write_policy
from tests.e2e.live_cluster import MASTER_ADDRESS, LiveCluster, Run, gpolicy_process
from tests.e2e.raw_rapi import ask
from tests.strategies import document

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("ssh")]

SECRET = "hush-8c2f41"  # noqa: S105 (of this test alone)
SECONDS = 120


@dataclass
class Watcher:
    """Looks at the arguments of all processes, and at the environment of those that gpolicy starts, all the time."""

    seen: set[str] = field(default_factory=set)
    looks: int = 0
    ours: int = 0
    _end: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self._end.wait(0.02):
            self.looks += 1
            for directory in Path("/proc").glob("[0-9]*"):
                try:
                    words = (directory / "cmdline").read_bytes()
                    if SECRET.encode() in words:
                        self.seen.add(f"arguments: {words!r}")
                    if words.startswith((b"gnt-", b"ssh\0")) or re.match(rb"/usr/bin/python3\0.*/gnt-", words):
                        self.ours += 1
                        if SECRET.encode() in (directory / "environ").read_bytes():
                            self.seen.add(f"environment of {words!r}")
                except OSError:  # it has ended
                    continue

    def __enter__(self) -> Self:
        threading.Thread(target=self.watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()


@pytest.fixture
def keeper(fresh: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user of the remote API who has the secret, in the environment; the file of users."""
    users = fresh.root("node1") / "var/lib/ganeti/rapi/users"
    before = users.read_text()
    users.write_text(f"{before}keeper {SECRET} write\n")
    monkeypatch.setenv("GPOLICY_RAPI_USER", "keeper")
    monkeypatch.setenv("GPOLICY_RAPI_PASSWORD", SECRET)
    until = time.monotonic() + SECONDS
    while ask(fresh, "GET", "/2/query/node?fields=name", user=("keeper", SECRET))[0] != 200:
        assert time.monotonic() < until
        time.sleep(0.1)
    yield users
    users.write_text(before)


def ran(*arguments: str | Path) -> Run:
    with gpolicy_process(*arguments) as process:
        out, err = process.communicate(timeout=SECONDS)
    return Run(process.returncode, out, err)


def killed(journal: Path, *arguments: str | Path) -> Run:
    """Run gpolicy, and kill it when it has begun the first step."""
    with gpolicy_process(*arguments) as process:
        until = time.monotonic() + SECONDS
        while process.poll() is None and not (journal.exists() and b"step-started" in journal.read_bytes()):
            assert time.monotonic() < until
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=SECONDS)
    return Run(process.returncode, out, err)


def test_a_password_is_written_nowhere(
    fresh: LiveCluster, keeper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All verbs that use it, by all ways, and every way in which they fail."""
    work, files = tmp_path / "work", tmp_path / "credentials"
    work.mkdir()
    files.write_text(f"keeper\n{SECRET}\n")
    files.chmod(0o600)
    rapi, trust = fresh.rapi, ["--rapi-ca", str(fresh.certificate)]
    first = write_policy(work / "a.yaml", [document("Cluster", "cluster", {("ipolicy", "vcpu-ratio"): 6})])
    more = write_policy(work / "b.yaml", [document("NodeGroup", "new", nodes=["node5", "node4"], tags=["t:1"])])
    plans = {name: work / f"{name}.json" for name in ("a", "b", "c")}
    journal = work / "b.journal.jsonl"
    wrong = write_policy(work / "c.yaml", [document("Cluster", "cluster", {("master_netdev",): "xen-br0"})])
    script = fresh.root("node1") / "etc/ganeti/scripts/master-ip-setup"
    with monkeypatch.context() as without:  # the watcher may still see this program, which is not gpolicy's
        without.delenv("GPOLICY_RAPI_PASSWORD")
        fresh.ganeti("gnt-cluster", "modify", "--use-external-mip-script=yes")
    works = script.read_text()
    runs: list[tuple[Run, int]] = []

    def run(code: int, *arguments: str | Path) -> None:
        runs.append((ran(*arguments), code))

    with Watcher() as watcher:
        run(0, "adopt", "--state", rapi, "--save", work / "adopted", *trust)
        run(0, "snapshot", "--state", rapi, "--save", work / "snapshot.json", *trust)
        run(2, "drift", first, "--state", rapi, "--output", f"prometheus={work}/drift.prom", *trust)
        run(0, "plan", first, "--state", rapi, "--save", plans["a"], *trust)
        run(0, "plan", more, "--state", rapi, "--save", plans["b"], "--rapi-credentials", files, *trust)
        run(0, "apply", plans["a"], "--to", rapi, "--yes", *trust)
        runs.append((killed(journal, "apply", plans["b"], "--to", Way(fresh, "ssh").address, "--yes"), -9))
        run(0, "apply", plans["b"], "--to", rapi, "--yes", "--resume", *trust)
        run(0, "apply", plans["b"], "--to", "local:", "--yes", "--rollback")
        # failures: of the job, of the certificate, of the address, of the password
        run(0, "plan", wrong, "--state", rapi, "--save", plans["c"], "--allow", "master-network", *trust)
        script.write_text("#!/bin/sh\nexit 1\n")
        run(1, "apply", plans["c"], "--to", rapi, "--yes", *trust)
        script.write_text(works)
        run(3, "plan", first, "--state", rapi)
        run(3, "plan", first, "--state", f"rapi://{MASTER_ADDRESS}:9", *trust)
        run(3, "plan", first, "--state", f"rapi://keeper:{SECRET}@[nonsense", *trust)
        run(3, "apply", plans["a"], "--to", f"rapi://keeper:{SECRET}@{MASTER_ADDRESS}", "--yes", *trust)
        files.chmod(0o644)
        run(3, "plan", first, "--state", rapi, "--rapi-credentials", files, *trust)
        monkeypatch.setenv("GPOLICY_RAPI_PASSWORD", f"{SECRET}-not")
        run(3, "apply", plans["a"], "--to", rapi, "--yes", "--rollback", *trust)
    assert [(done.code, code, done.err) for done, code in runs if done.code != code] == []
    assert not any(SECRET in done.out + done.err or "Traceback" in done.err for done, _ in runs)
    given = [text for text in watcher.seen if "rapi://keeper:" not in text]  # two runs were given it as an argument
    assert given == []
    assert min(watcher.looks, watcher.ours) > 10
    for place in (work, fresh.root("node1") / "var", Path("/run")):
        assert [file for file in holding(place) if file != keeper] == []
    private = [*plans.values(), work / "snapshot.json", *work.glob("*.journal.jsonl")]
    assert len(private) == 7
    assert {file.stat().st_mode & 0o777 for file in private} == {0o600}


def holding(place: Path) -> Iterator[Path]:
    """Yield the ordinary files below a directory that hold the secret."""
    for parent, _, names in os.walk(place):
        for name in names:
            file = Path(parent, name)
            try:
                if file.is_file() and not file.is_symlink() and SECRET.encode() in file.read_bytes():
                    yield file
            except OSError:  # it is gone again
                continue


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_a_flag_says_otherwise(
    fresh: LiveCluster, tmp_path: Path
) -> None:
    policy = write_policy(tmp_path / "policy.yaml", [document("Cluster", "cluster", {("ipolicy", "vcpu-ratio"): 6})])
    refused = ran("plan", policy, "--state", fresh.rapi, "--save", tmp_path / "plan.json")
    assert refused.code == 3
    assert "certificate" in refused.err
    assert not (tmp_path / "plan.json").exists()
    insecure = ran("plan", policy, "--state", fresh.rapi, "--save", tmp_path / "plan.json", "--insecure-rapi")
    assert insecure.code == 0
    assert "certificate was not verified" in insecure.out + insecure.err
    refused = ran("apply", tmp_path / "plan.json", "--to", fresh.rapi, "--yes")
    assert refused.code == 3
    assert "certificate" in refused.err
    assert not (tmp_path / "plan.journal.jsonl").exists()
