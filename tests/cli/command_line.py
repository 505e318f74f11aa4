"""The real command line, run in this process or in one of its own."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias
from unittest import mock

from gpolicy.cli.running import run

Done: TypeAlias = subprocess.CompletedProcess[str]

ROOT = Path(__file__).parent.parent.parent
CONFIG = ROOT / "tests" / "data" / "clusters" / "full" / "config.data"
STATE = f"config:{CONFIG}"
GOOD = "gpolicy: v1\nkind: Cluster\nname: cluster\nganeti_version: '3.0'\n"
FOUR_STEPS = """gpolicy: v1
kind: Cluster
name: cluster
ganeti_version: '3.0'
ipolicy: {vcpu-ratio: 7}
---
gpolicy: v1
kind: NodeGroup
name: platinum
alloc_policy: last_resort
nodes: [node1]
---
gpolicy: v1
kind: NodeSet
name: n
nodes: [node2]
ndparams: {spindle_count: 9}
"""
"""A policy with a change of the cluster, a new group, a move and a change of a node."""
COMMAND = (sys.executable, "-m", "gpolicy")
HEEDING = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from gpolicy.__main__ import main; sys.exit(main())"
)
"""gpolicy that can be interrupted, also where the tests are a background job and interrupts are ignored."""


def gpolicy(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
) -> Done:
    """Run gpolicy in this process, as in a shell that has only the variables of `environment(env)`.

    Nothing of the run stays: variables, directory, streams and settings of Python are restored.
    """
    words = [str(argument) for argument in arguments]
    collect_after = gc.get_threshold()
    with _file() as given, _file() as out, _file() as err:  # files, since the processes that it starts write, too
        given.write(stdin)
        given.seek(0)
        err.reconfigure(line_buffering=True)
        try:
            with (
                mock.patch.dict(os.environ, environment(env), clear=True),
                mock.patch.object(sys, "stdin", given),
                redirect_stdout(out),
                redirect_stderr(err),
                chdir(cwd or "."),
            ):
                code = run(words)
        finally:
            gc.set_threshold(*collect_after)
        out.seek(0)
        err.seek(0)
        return _done(words, code, bytes(out.buffer.read()), bytes(err.buffer.read()))


def _file() -> io.TextIOWrapper:
    return TemporaryFile("w+", encoding="utf-8", newline="\n")


def gpolicy_child(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
) -> Done:
    """Run gpolicy in a process of its own, for what only a process shows; otherwise like `gpolicy`."""
    words = [str(argument) for argument in arguments]
    command = [*COMMAND, *words]
    done = subprocess.run(
        command, env=environment(env), cwd=cwd, input=stdin.encode(), capture_output=True, check=False, timeout=60
    )
    return _done(words, done.returncode, done.stdout, done.stderr)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables with which gpolicy runs: a search path, a home that does not exist, and `more`."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", **(more or {})}


def _done(words: list[str], code: int, *written: bytes) -> Done:
    """Return how a run ended; no run may show a traceback."""
    out, err = (data.decode("utf-8", "surrogateescape") for data in written)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(words, code, out, err)


def written_to(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a pseudo-terminal, until nobody is left who could write to it."""
    with suppress(OSError):  # how Linux says so
        while piece := os.read(terminal, 65536):
            yield piece


def policy(directory: Path, text: str = "", name: str = "policy.yaml") -> Path:
    file = directory / name
    file.write_text(GOOD + text, encoding="utf-8")
    return file
