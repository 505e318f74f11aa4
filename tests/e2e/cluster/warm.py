"""Ganeti's Python programs without the third of a second that each needs to import Ganeti: warm.py SOCKET DIRECTORY.

This process has imported Ganeti as a node sees it, and forks what the `starter` beside it asks for: a command of the
administrator, or the process of a job. The code that runs is Ganeti's own. DIRECTORY is where Ganeti's modules are, and
`job.py` beside the socket is its module of job processes (which the starter covers).
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import marshal
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

JOB = "exec.py"


def programs(directory: Path, job: Path) -> dict[str, Callable[[], Any]]:
    """Import Ganeti; return the main function of each program by its name."""
    sys.path[0] = str(directory)
    found = {
        file.name: importlib.import_module(f"ganeti.client.{file.name.replace('-', '_')}").Main
        for file in directory.glob("gnt-*")
    }
    spec = importlib.util.spec_from_file_location("ganeti.jqueue.exec", job)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {**found, JOB: module.main}


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return one request of a starter, and its three open files."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "big"):
        more = connection.recv(1 << 20)
        if not more:
            raise EOFError
        data += more
    return marshal.loads(data[8:]), files  # noqa: S302 (from a program of this cluster)


def become(request: dict[str, Any], files: list[int]) -> None:
    """Take on what a process has from the one that starts it."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False, buffering=lines, encoding=was.encoding, errors=was.errors)  # noqa: SIM115
        for number, mode, lines, was in ((0, "r", -1, sys.stdin), (1, "w", -1, sys.stdout), (2, "w", 1, sys.stderr))
    )
    os.umask(request["umask"])
    os.chdir(request["directory"])
    os.environ.clear()
    os.environb.update(request["environment"])
    os.setgroups(request["groups"])
    os.setresgid(*[request["group"]] * 3)
    os.setresuid(*[request["user"]] * 3)
    sys.argv = [os.fsdecode(word) for word in request["words"]]


def run(main: Callable[[], Any]) -> int:
    """Run a program to its end; return its exit code."""
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 (as Python itself does at the end of a program)
        traceback.print_exc()
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)  # noqa: T201
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120
    return code or 0


class Server:
    """Forks a process for each request, and tells the starter how it ended; ends it when the starter is gone."""

    def __init__(self, listener: socket.socket, known: dict[str, Callable[[], Any]]) -> None:
        self._listener, self._known = listener, known
        self._children: dict[int, socket.socket] = {}
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        self._chosen = selectors.DefaultSelector()
        for ready in (listener, self._woken):
            self._chosen.register(ready, selectors.EVENT_READ)

    def serve(self) -> None:
        """Answer requests until somebody ends this process."""
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            for key, _ in self._chosen.select():
                if key.fileobj is self._listener:
                    self._begin()
                elif key.fileobj is self._woken:
                    self._woken.recv(4096)
                elif key.data in self._children:
                    os.kill(key.data, signal.SIGTERM)
                    self._chosen.unregister(key.fileobj)
            self._tell_ended()

    def _begin(self) -> None:
        connection, _ = self._listener.accept()
        try:
            request, files = receive(connection)
        except (EOFError, OSError):
            connection.close()
            return
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self._leave(connection)
                become(request, files)
                code = run(self._known[request["name"]])
            finally:
                os._exit(code)
        for file in files:
            os.close(file)
        self._children[child] = connection
        self._chosen.register(connection, selectors.EVENT_READ, child)

    def _leave(self, connection: socket.socket) -> None:
        """Let go of what only the server has, in a new process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._chosen.close()
        for other in (self._listener, self._wake, self._woken, connection, *self._children.values()):
            other.close()

    def _tell_ended(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            connection = self._children.pop(child)
            if connection in self._chosen.get_map():
                self._chosen.unregister(connection)
            with suppress(OSError):
                connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            connection.close()


def main() -> None:
    """Listen, import Ganeti, and serve in the background."""
    path, directory = Path(sys.argv[1]), Path(sys.argv[2])
    known = programs(directory, path.with_name("job.py"))
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(100)
    if os.fork():
        return
    os.setsid()
    gc.freeze()
    Server(listener, known).serve()


if __name__ == "__main__":
    main()
