"""One real cluster for each process that runs these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_cluster import MASTER_ADDRESS, LiveCluster, entered


def cannot_run() -> str:
    """Return why no cluster can be brought up here; empty if it can."""
    if os.geteuid() != 0:
        return "a real cluster needs root: its nodes are namespaces"
    if shutil.which("gnt-cluster") is None and not Path("/etc/debian_version").exists():
        return "a real cluster needs Debian's ganeti package, and this is no Debian"
    probe = ["unshare", "--net", "--mount", "--uts", "--propagation", "private", "mount", "-t", "sysfs", "none", "/sys"]
    if shutil.which("unshare") is None:
        return "a real cluster needs unshare (util-linux)"
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return f"no private namespaces here: {done.stderr.strip()}" if done.returncode else ""


@pytest.fixture(scope="session")
def cluster(worker_id: str) -> Iterator[LiveCluster]:
    """A five-node cluster with five instances, as rgn brings it up; the network and environment of its master.

    GPOLICY_E2E_BASE names a directory for it that is kept, cluster and all, when the tests have run.
    """
    reason = cannot_run()
    if reason:
        pytest.skip(reason)
    given = os.environ.get("GPOLICY_E2E_BASE")
    base = Path(given or f"/var/tmp/gpolicy-e2e-{os.getpid()}") / worker_id
    live = LiveCluster(base, Path("/run") / base.relative_to("/").as_posix().replace("/", "-"))
    try:
        bring_up(live)
        with entered(live):
            yield live
    finally:
        if given is None:
            live.rgn("down")
            shutil.rmtree(base.parent, ignore_errors=True)


def bring_up(live: LiveCluster) -> None:
    """Bring the cluster up with its instances, keep its first configuration, and restore that one."""
    live.rgn("up")
    if live.kept.exists():
        live.rewind()
    else:
        live.rgn("instances")
        live.rgn("keep", live.kept)
    pem = (live.root("node1") / "var/lib/ganeti/rapi.pem").read_text()
    begin = pem.index("-----BEGIN CERTIFICATE-----")
    live.certificate.write_text(pem[begin:])


@pytest.fixture
def fresh(cluster: LiveCluster) -> LiveCluster:
    """The cluster with its first configuration."""
    cluster.rewind()
    return cluster


@pytest.fixture
def ssh(cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up an ssh that has the cluster's key and knows its host, like that of an administrator."""
    directory, keys = tmp_path_factory.mktemp("ssh"), cluster.base / "ssh"
    kind, key, *_ = (keys / "ssh_host_rsa_key.pub").read_text().split()
    known, config, program = directory / "known_hosts", directory / "config", directory / "bin" / "ssh"
    known.write_text(f"{MASTER_ADDRESS} {kind} {key}\n")
    config.write_text(f"IdentityFile {keys}/id\nUserKnownHostsFile {known}\nStrictHostKeyChecking yes\n")
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
