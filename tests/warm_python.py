"""A Python that has imported gpolicy already, and makes each run in a fork of itself.

For tests of scripts, shells and pages, which start gpolicy often: a run takes the time of a fork. It has the directory,
the variables and the streams of the one who asks, but gets no signals, and nothing but `-I -m MODULE …` is understood.
"""

from __future__ import annotations

import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

CLIENT = Path(__file__).with_name("warm_client.py")
POLICIES = Path(__file__).resolve().parents[1] / "policies"
_STARTS = "ready\n"


@contextmanager
def started() -> Iterator[Path]:
    """Start it; yield the program `python` that stands in for Python, until the end."""
    with TemporaryDirectory() as name:
        address, program = Path(name, "socket"), Path(name, "python")
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{CLIENT}" "{address}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        command = [sys.executable, "-I", __file__, str(address)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=name) as server:
            assert server.stdout is not None
            assert server.stdin is not None
            assert server.stdout.readline() == _STARTS
            yield program
            server.stdin.close()


def serve(address: str) -> None:
    """Make runs until standard input is closed."""
    import gpolicy
    from gpolicy.cli.running import run as run_gpolicy

    for module in pkgutil.walk_packages(gpolicy.__path__, "gpolicy."):
        if not module.name.endswith((".__main__", ".engine")):  # the engine is no module
            importlib.import_module(module.name)
    policy, snapshot = POLICIES / "two-groups", POLICIES / "two-groups.snapshot.json"
    for words in (["test", str(policy)], ["plan", str(policy), "-s", f"snapshot:{snapshot}"]):
        with redirect_stdout(io.StringIO()):
            run_gpolicy(words)  # keeps schemas, patterns and the like for the next
    assert threading.active_count() == 1
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write(_STARTS)
        sys.stdout.flush()
        runs = set[int]()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if (run := os.fork()) == 0:
                listener.close()
                _answer(connection)
            connection.close()
            runs.add(run)
            runs -= {done for done in runs if os.waitpid(done, os.WNOHANG)[0]}
    for run in runs:
        os.waitpid(run, 0)


def _answer(connection: socket.socket) -> None:
    """Make the run that is asked for, and end this process."""
    code = 70
    try:
        header, streams, _, _ = socket.recv_fds(connection, 8, 3)
        words, directory, environ = marshal.loads(_all_of(connection, struct.unpack("Q", header)[0]))  # noqa: S302 (ours)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout = open(0, encoding="utf-8", closefd=False), _writer(1)  # noqa: SIM115
        sys.stderr = _writer(2, errors="backslashreplace", buffering=1)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        code = _run(words)
    except BaseException:  # noqa: BLE001 (as Python ends)
        traceback.print_exc()
    finally:
        connection.send(bytes([code & 255]))
        os._exit(code)


def _run(words: list[str]) -> int:
    """Run `-I -m MODULE …` and return the exit code."""
    assert words[:2] == ["-I", "-m"], words
    sys.argv = words[2:]
    try:
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
        ended: object = 0
    except SystemExit as error:
        ended = error.code
    sys.stdout.flush()
    return ended if isinstance(ended, int) else 0 if ended is None else 1


def _all_of(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def _writer(number: int, **more: Any) -> Any:
    return open(number, "w", encoding="utf-8", closefd=False, **more)


if __name__ == "__main__":
    serve(sys.argv[1])
