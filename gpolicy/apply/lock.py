"""One apply at a time: a lock on the machine that runs gpolicy, and one on the master where we can run commands there.

Both are `flock`s: they end with the process that holds them, however it ends. The remote API has no lock to offer;
there, what each step touches is looked at again right before it.
"""

import fcntl
import hashlib
import os
import selectors
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpolicy.cluster.master import SshMaster
from gpolicy.cluster.process import end, run, start
from gpolicy.errors import GpolicyError

_HELD = 75  # exit code of flock when somebody else has the lock
_SECONDS = 30.0
_LONGEST = 300


def lock_name(cluster: str, uuid: str | None) -> str:
    """Return the name of the lock file of a cluster: clusters may share a name, and a name may hold anything."""
    key = hashlib.sha256(f"{cluster}\n{uuid or ''}".encode()).hexdigest()[:20]
    return f"gpolicy-apply-{key}.lock"


def lock_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return where locks are on this machine: /run for root, else the user's own runtime or state directory."""
    environ = os.environ if environ is None else environ
    if os.geteuid() == 0:
        return Path("/run")
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute():
        return Path(runtime)
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".local" / "state")
    return Path(state) / "gpolicy"


@contextmanager
def local_lock(directory: Path, name: str, what: str) -> Iterator[None]:
    """Hold the lock on this machine for `what`. Raise GpolicyError, which names the process, if another has it."""
    path = directory / name
    try:
        if not directory.is_dir():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise GpolicyError(f"{path}: the lock cannot be opened: {reason}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise GpolicyError(f"{path}: is not our lock file", hint="look at it and remove it")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _locked(what, os.read(descriptor, _LONGEST).decode(errors="replace")) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _holder().encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@cache
def _holder() -> str:
    """Return who we are, the same for the whole run."""
    return f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n"


def _locked(what: str, holder: str) -> GpolicyError:
    who = " ".join(holder.split())[:_LONGEST] or "another process"
    return GpolicyError(f"another {what} is under way: {who}", hint="wait for its end")


@dataclass(frozen=True, slots=True)
class MastersLock:
    """The lock on the master, if it could be taken. `note` tells why not; `holder` is the process that holds it."""

    note: str | None = None
    holder: subprocess.Popen[bytes] | None = None

    def is_lost(self) -> bool:
        """Return whether we had the lock and have it no more: its connection, or what held it there, has ended."""
        if self.holder is None:
            return False
        return _said(self.holder, 0) == b"" or self.holder.poll() is not None


def _said(process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
    """Return what a program says within `seconds`, nothing after its end; None if it is silent."""
    assert process.stdout is not None  # noqa: S101 (is a pipe)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return os.read(process.stdout.fileno(), _LONGEST) if selector.select(seconds) else None


@contextmanager
def remote_lock(master: SshMaster, name: str, what: str) -> Iterator[MastersLock]:
    """Hold the lock on the master for `what`, over a connection of its own; what is yielded tells whether it is lost.

    `flock` holds it while `tee` runs, which notes who we are and ends when the connection does. Raise GpolicyError if
    another holds it.
    """
    path = f"/run/{name}"
    argv = master.argv(["flock", "-n", "-E", str(_HELD), path, "tee", "--", path])
    process = start(argv, master.environ, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield _acquired(master, process, path, what)
    finally:
        with suppress(OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=5)  # its input ends, and with that tee
        end(process)


def _acquired(master: SshMaster, process: subprocess.Popen[bytes], path: str, what: str) -> MastersLock:
    assert process.stdin is not None  # noqa: S101 (is a pipe)
    with suppress(OSError):
        process.stdin.write(_holder().encode())
        process.stdin.flush()
    if _said(process, _SECONDS):
        return MastersLock(holder=process)
    code = process.poll()
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=1)
    if code == _HELD:
        told = run(master.argv(["cat", "--", path]), environ=master.environ, seconds=_SECONDS, limit=1024**2)
        holder = told.stdout.decode(errors="replace")
        if holder == _holder():
            return MastersLock()  # the master is this very machine, and the lock is the one that we hold already
        raise _locked(what, holder)
    why = "flock could not be run there, or /run not be written"
    return MastersLock(f"no lock on the master ({why}): only this machine is locked")
