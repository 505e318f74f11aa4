"""One apply at a time, on this machine and on the master."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpolicy.apply.lock import MastersLock, local_lock, lock_directory, lock_name, remote_lock
from gpolicy.cluster.master import parse_ssh_address
from gpolicy.errors import GpolicyError
from tests.cli.command_line import ROOT

NAME = lock_name("cluster", "uuid")


def test_clusters_of_one_name_are_told_apart() -> None:
    assert lock_name("c", "1") != lock_name("c", "2")
    assert "/" not in lock_name("../../etc/passwd\n", None)


def test_a_second_run_learns_who_holds_the_lock(tmp_path: Path) -> None:
    with local_lock(tmp_path, NAME, "cluster"):
        assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
        with (
            pytest.raises(GpolicyError, match=rf"cluster is under way: process {os.getpid()} on "),
            local_lock(tmp_path, NAME, "cluster"),
        ):
            pass
    with local_lock(tmp_path, NAME, "cluster"):
        pass


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from gpolicy.apply.lock import local_lock\n"
        "with local_lock(Path(sys.argv[1]), sys.argv[2], 'cluster'):\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), NAME], stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(GpolicyError, match=f"process {holder.pid}"), local_lock(tmp_path, NAME, "cluster"):
            pass
        holder.kill()
        holder.wait()
    with local_lock(tmp_path, NAME, "cluster"):
        pass


def test_a_foreign_lock_file_is_not_touched(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / NAME).symlink_to(target)
    with pytest.raises(GpolicyError, match="cannot be opened"), local_lock(tmp_path, NAME, "cluster"):
        pass
    assert target.read_text() == "precious"


def test_the_place_of_locks() -> None:
    directory = lock_directory({"XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/x"})
    assert directory == (Path("/run") if os.geteuid() == 0 else Path("/run/user/7"))


@pytest.mark.skipif(os.geteuid() != 0, reason="the lock on the master is in /run, which is root's")
def test_the_lock_on_the_master(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift 2\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    master = parse_ssh_address("ssh://master", environ)
    name = lock_name(f"of this test {os.getpid()}", None)
    before = os.environ["PATH"]
    os.environ["PATH"] = environ["PATH"]
    try:
        with remote_lock(master, name, "cluster") as lock:
            assert (lock.note, lock.is_lost()) == (None, False)
            while not Path("/run", name).read_text():  # `tee` answers before it writes
                time.sleep(0.01)
            with (
                pytest.raises(GpolicyError, match=f"process {os.getpid()} on "),
                local_lock(Path("/run"), name, "cluster"),
            ):
                pass
            Path("/run", name).write_text("process 1 on another machine\n")
            with pytest.raises(GpolicyError, match="process 1 on another"), remote_lock(master, name, "cluster"):
                pass
        with local_lock(Path("/run"), name, "cluster"), remote_lock(master, name, "cluster") as lock:
            assert lock.note is None  # the master is this machine: one lock, and it is ours
            assert not lock.is_lost()
        with remote_lock(master, name, "cluster") as lock:
            assert lock.holder is not None
            lock.holder.kill()
            lock.holder.wait()
            assert lock.is_lost()
            assert lock.is_lost()
        ssh.write_text("#!/bin/sh\nexit 127\n")
        with remote_lock(master, name, "cluster") as lock:
            assert lock.note is not None
            assert "no lock on the master" in lock.note
            assert not lock.is_lost()
    finally:
        os.environ["PATH"] = before
        Path("/run", name).unlink(missing_ok=True)


def test_a_lock_is_lost_when_its_holder_ends_not_when_it_speaks() -> None:
    assert not MastersLock("no lock on the master").is_lost()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        lock = MastersLock(holder=holder)
        assert not lock.is_lost()
        holder.stdin.write(b"x")
        holder.stdin.flush()
        select.select([holder.stdout], [], [], 5)
        assert not lock.is_lost()
        holder.stdin.close()
        select.select([holder.stdout], [], [], 5)
        assert lock.is_lost()
