"""Running other programs: without a shell or a terminal, with a time limit and a limit on the output; and git.

Only the user's own pager has the terminal, and no limits. Every program that gpolicy runs is started here, and gets
only the variables of the environment that are listed here: no passwords or tokens.

git is asked so that nothing in a work tree can make it start a program. It starts whatever the configuration of a
repository names: filters, helpers for other forms of text, hooks, monitors, transports. No option switches all of that
off. So git is given a directory of our own with a configuration of our own, which links to the objects, references and
the index of the repository, and nothing else of it. What only exists with the configuration does not count: a filter's
other form of a file, a branch's upstream, objects that a server still has.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpolicy.errors import UnreachableError
from gpolicy.opening import read_named

_PASSED_ON: Final = frozenset(
    {
        *("HOME", "LOGNAME", "USER", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE", "XDG_RUNTIME_DIR"),
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_SK_PROVIDER", "KRB5CCNAME", "KRB5_CONFIG"),  # how ssh logs in
        *("LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
        *("GANETI_ROOTDIR", "GANETI_HOSTNAME"),  # of a virtual cluster
        *("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"),
    }
)
_FOR_PAGERS: Final = frozenset({"LESS", "LESSCHARSET", "LESSKEY", "LV", "MORE", "COLUMNS", "LINES"})
_PAGER_DEFAULTS: Final = {"LESS": "FRX", "LV": "-c"}


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a program: exit code, standard output, and the end of its standard error as text."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def complaint(self) -> str:
        """The last thing that the program complained about, as one line; empty if it said nothing."""
        return next((line.strip() for line in reversed(self.stderr.splitlines()) if line.strip()), "")


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program that gpolicy starts.

    Relative directories of PATH are dropped, since they would depend on the current directory.
    """
    passed = {key: value for key, value in environ.items() if key in _PASSED_ON}
    directories = [part for part in environ.get("PATH", "").split(os.pathsep) if part.startswith("/")]
    return passed | ({"PATH": os.pathsep.join(directories)} if directories else {})


def start(
    argv: Sequence[str], environ: Mapping[str, str], *, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, so that Ctrl-C does not reach it, with `child_environment(environ)`.

    Raise UnreachableError if it cannot be started.
    """
    try:
        env, stdout = child_environment(environ), subprocess.PIPE
        return subprocess.Popen(list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=env, start_new_session=True)
    except (OSError, ValueError) as error:
        raise _cannot_be_run(argv[0], error) from None


def _cannot_be_run(name: str, error: OSError | ValueError) -> UnreachableError:
    reason = error.strerror if isinstance(error, OSError) else "not a command"
    return UnreachableError(f"{name}: cannot be run: {reason}")


def show_in_pager(argv: Sequence[str], data: bytes, environ: Mapping[str, str]) -> None:
    """Show `data` in a pager, which has the terminal, until the user leaves it, perhaps before the end.

    Raise UnreachableError if it cannot be started.
    """
    settings = {key: value for key, value in environ.items() if key in _FOR_PAGERS}
    env = _PAGER_DEFAULTS | settings | child_environment(environ)
    try:
        process = subprocess.Popen(list(argv), stdin=subprocess.PIPE, env=env)
    except (OSError, ValueError) as error:
        raise _cannot_be_run(argv[0], error) from None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        process.communicate(data)  # a pager that was left early is no error
    finally:
        signal.signal(signal.SIGINT, before)


def run(
    argv: Sequence[str], *, environ: Mapping[str, str], seconds: float, limit: int, stdin: int = subprocess.DEVNULL
) -> Output:
    """Run `argv` to its end. Raise UnreachableError if it cannot start, is too slow or prints over `limit` bytes."""
    process = start(argv, environ, stdin=stdin)
    until = time.monotonic() + seconds

    def left() -> float:
        if (seconds_left := until - time.monotonic()) <= 0:
            raise subprocess.TimeoutExpired(argv[0], seconds)
        return seconds_left

    taken = {True: bytearray(), False: bytearray()}
    try:
        for is_output, piece in pieces(process, left):
            taken[is_output] += piece
            if len(taken[is_output]) > limit:
                raise UnreachableError(f"{argv[0]}: prints more than {limit // 1024**2} MiB")
        code = process.wait(timeout=max(until - time.monotonic(), 0))
        return Output(code, bytes(taken[True]), taken[False].decode(errors="replace"))
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"{argv[0]}: did not end within {seconds:.0f} seconds") from None
    finally:
        end(process)


def pieces(process: subprocess.Popen[bytes], patience: Callable[[], float]) -> Iterator[tuple[bool, bytes]]:
    """Yield what a program prints, as it comes: whether on standard output, and the bytes; none at the end of each.

    `patience` returns how many seconds to wait for more; it may raise.
    """
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(patience()):
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fileobj)
                yield key.fileobj is process.stdout, piece


def end(process: subprocess.Popen[bytes], *, grace: float = 0) -> None:
    """End a program, and all that it has started, if it runs; with `grace` it has so many seconds to end itself."""
    for number in (signal.SIGTERM, signal.SIGKILL) if grace else (signal.SIGKILL,):
        if process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=grace if number == signal.SIGTERM else None)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):  # what was not read
                pipe.close()


@contextmanager
def after(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Call `act`, in another thread, if the block takes more than `seconds`; it has ended when the block is left."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


_CONFIGURED: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_SHARED: Final = ("objects", "refs", "packed-refs", "logs", "shallow")
"""What the work trees of a repository have in common."""
_MOST_BYTES: Final = 1024**2  # bytes of a file of the repository that is read here
_HASH: Final = re.compile(rb"^\s*objectformat\s*=\s*\"?(sha1|sha256)\"?\s*$", re.IGNORECASE | re.MULTILINE)


def ask_git(tree: Path, *words: str, seconds: float = 60.0, limit: int = 64 * 1024**2) -> Output:
    """Return what git answers to `words`, run at the top of the work tree `tree`.

    Raise UnreachableError if the repository cannot be read, or git cannot be run, is too slow or says too much.
    """
    with _own_directory(tree) as directory:
        command = ("git", "--no-optional-locks", f"--git-dir={directory}", f"--work-tree={tree}", "-C", str(tree))
        return run((*command, *words), environ={**os.environ, **_CONFIGURED}, seconds=seconds, limit=limit)


@contextmanager
def _own_directory(tree: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gpolicy-git-") as name:
        own = Path(name)
        try:
            entry = tree / ".git"  # a linked work tree, or a submodule, names its git directory in a file
            theirs = entry if entry.is_dir() else tree / _first_line(entry).removeprefix("gitdir: ")
            shared = theirs / _first_line(theirs / "commondir") if (theirs / "commondir").exists() else theirs
            (own / "HEAD").write_bytes(read_named(theirs / "HEAD", _MOST_BYTES))
            (own / "config").write_text(_configuration(shared / "config"), encoding="ascii")
            (own / "info").mkdir()
            for part in (*_SHARED, "info/exclude"):
                if (shared / part).exists():
                    (own / part).symlink_to(shared / part)
            if (theirs / "index").exists():
                (own / "index").symlink_to(theirs / "index")
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{tree}: its git repository cannot be read: {error}") from None
        yield own


def _first_line(file: Path) -> str:
    return os.fsdecode(read_named(file, _MOST_BYTES).split(b"\n", 1)[0])


def _configuration(theirs: Path) -> str:
    """Return our configuration: of theirs, only the hash function counts."""
    found = _HASH.search(read_named(theirs, _MOST_BYTES)) if theirs.exists() else None
    lines = ["[core]", "repositoryformatversion = 1", "bare = false", "[diff]", "ignoreSubmodules = all"]
    lines += ["[extensions]", "objectFormat = sha256"] if found and found[1].lower() == b"sha256" else []
    return "\n".join([*lines, ""])
