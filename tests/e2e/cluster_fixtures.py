"""One real cluster for each process that runs these tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.live_cluster import MASTER_ADDRESS, RGN, LiveCluster, entered


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
    """A five-node cluster with five instances, as rgn brings it up; the network and environment of its master."""
    reason = cannot_run()
    if reason:
        pytest.skip(reason)
    base = Path(f"/var/tmp/gpolicy-e2e-{os.getpid()}") / worker_id
    live = LiveCluster(base, Path("/run") / base.relative_to("/").as_posix().replace("/", "-"))
    try:
        bring_up(live)
        with entered(live):
            yield live
    finally:
        live.rgn("down")
        shutil.rmtree(base.parent, ignore_errors=True)


ARCHIVES: Final = Path("/var/tmp/gpolicy-clusters")
"""Clusters as they were when they had been made: to unpack and start one takes a tenth of the time."""
WEEK: Final = 7 * 24 * 3600


def bring_up(live: LiveCluster) -> None:
    """Bring the cluster up, the usual one with instances, from an archive if there is one of the same packages."""
    ARCHIVES.mkdir(mode=0o700, exist_ok=True)
    with (ARCHIVES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in ARCHIVES.glob("*.tar"):
            if old.stat().st_mtime < time.time() - WEEK:
                old.unlink()
        archive = ARCHIVES / f"{made_of(live)}.tar"
        if archive.exists():
            archive.touch()
            live.rgn("restore", archive)
        else:
            live.rgn("up")
            if not live.settings:
                live.rgn("instances")
            live.rgn("keep", live.kept)
            live.rgn("save", archive)
    live.rgn("up")
    pem = (live.root("node1") / "var/lib/ganeti/rapi.pem").read_text()
    begin = pem.index("-----BEGIN CERTIFICATE-----")
    live.certificate.write_text(pem[begin:])


def made_of(live: LiveCluster) -> str:
    """Return a digest of all that a new cluster depends on: how it is made, and the versions of what makes it."""
    packages = ["dpkg-query", "--show", "ganeti*", "openssh-server", "openssl", "python3"]
    versions = subprocess.run(packages, capture_output=True, check=False).stdout
    files = b"".join(file.read_bytes() for file in sorted(RGN.parent.iterdir()) if file.is_file())
    return hashlib.sha256(repr((sorted(live.settings.items()), versions, files)).encode()).hexdigest()[:20]


@pytest.fixture
def fresh(cluster: LiveCluster) -> LiveCluster:
    """The cluster with its first configuration."""
    cluster.rewind()
    return cluster


@pytest.fixture(scope="session")
def second(cluster: LiveCluster) -> Iterator[LiveCluster]:
    """A smaller cluster beside the first, which reaches it; its volume group and certificate have other names."""
    base = cluster.base.with_name(f"{cluster.base.name}-second")
    settings = {"RGN_CLUSTER": "second", "RGN_PREFIX": "10.98.0", "RGN_NODES": "2"}
    settings |= {"RGN_VG": "fast", "RGN_CERTIFICATE": "ganeti"}
    live = LiveCluster(base, cluster.handles.with_name(f"{cluster.handles.name}-second"), settings, "10.98.0.11")
    try:
        bring_up(live)
        join(cluster, live)
        yield live
    finally:
        live.rgn("down")


def join(one: LiveCluster, other: LiveCluster) -> None:
    """Lay a cable between the networks of two clusters, so that what runs in that of `one` reaches `other`."""
    here, there = (f"/proc/{(item.handles / 'node1.pid').read_text().strip()}/ns/net" for item in (one, other))
    subprocess.run(["nsenter", f"--net={here}", "ip", "link", "del", "to-second"], capture_output=True, check=False)
    for network, words in (
        (here, "link add to-second type veth peer name to-first netns " + there),
        (here, "addr add 10.97.0.1/30 dev to-second"),
        (here, "link set to-second up"),
        (there, "addr add 10.97.0.2/30 dev to-first"),
        (there, "link set to-first up"),
        (here, "route add 10.98.0.0/24 via 10.97.0.2"),
    ):
        subprocess.run(["nsenter", f"--net={network}", "ip", *words.split()], check=True, capture_output=True)


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
