"""The whole way over ssh: adopted, planned, applied and taken back, with the system's own ssh and a real sshd."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from carried_out import Way, write_policy
from live_cluster import MASTER_ADDRESS, LiveCluster, content, differing, gpolicy
from strategies import document

pytestmark = pytest.mark.e2e


@pytest.fixture
def master(fresh: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveCluster:
    """The cluster, and an ssh that has its key and knows its host, as an administrator's would."""
    keys = fresh.base / "ssh"
    kind, key, *_ = (keys / "ssh_host_rsa_key.pub").read_text().split()
    known, config, program = tmp_path / "known_hosts", tmp_path / "config", tmp_path / "bin" / "ssh"
    known.write_text(f"{MASTER_ADDRESS} {kind} {key}\n")
    config.write_text(f"IdentityFile {keys}/id\nUserKnownHostsFile {known}\nStrictHostKeyChecking yes\n")
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return fresh


def test_there_and_back_over_ssh(master: LiveCluster, tmp_path: Path) -> None:
    way, first = Way(master, "ssh"), content(master.config())
    assert gpolicy("adopt", "--state", way.address, "-o", tmp_path / "adopted").code == 0
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
    assert master.state().cluster.own["diskparams", "drbd", "net-custom"] == strange
    back = way.apply(plan, "--rollback")
    assert back.code == 0, back.err + back.out
    assert differing(first, content(master.config())) == []
