"""gpolicy in this process, with clusters that are reached without a network and time that passes only when it waits."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gpolicy.apply import carrying, job_runners, jobs as queued
from gpolicy.cli.running import run
from gpolicy.cluster import rapi_client
from gpolicy.fleet import workers
from tests.apply import pretend_ganeti, pretend_rapi
from tests.apply.pretend_rapi import Server
from tests.simulator.virtual_time import Clock, VirtualTime


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def gpolicy(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, answer: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run gpolicy in this process and return what it did, as a process that was started for it would.

    With an `answer`, it has a terminal on which somebody writes that; stdout is all that the terminal shows.
    """
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})}
    out = io.StringIO() if answer is None else _Terminal()
    err = io.StringIO() if answer is None else out
    typed = io.StringIO() if answer is None else _Terminal(f"{answer}\n")
    with (
        patch.dict(os.environ, environ, clear=True),
        patch.object(sys, "stdin", typed),
        chdir(cwd or "."),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = run([str(word) for word in arguments])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so, at most a minute."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def reach_directly(monkeypatch: pytest.MonkeyPatch, servers: Sequence[Server]) -> None:
    """Have requests of this process answered by the pretended servers, which are told apart by their ports."""

    def ask(request: rapi_client.HttpsRequest, **_: object) -> rapi_client.HttpsAnswer:
        (server,) = (item for item in servers if item.port == request.port)
        body = json.loads(request.body) if request.body else None
        told = pretend_rapi.answer(server, request.method, request.path, body, request.headers.get("Authorization"))
        if told is None:
            raise rapi_client.NoAnswerError(f"{request.host}:{request.port}: connection reset by peer")
        return rapi_client.HttpsAnswer(told[0], json.dumps(told[1]).encode())

    monkeypatch.setattr(rapi_client, "ask", ask)


def wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have time pass for apply and for the pretended jobs when apply waits, and only then. No disk is waited for."""
    clock = Clock()
    virtual = VirtualTime(lambda: clock, clock.advance)
    for module in (carrying, job_runners, queued, pretend_ganeti):
        monkeypatch.setattr(module, "time", virtual)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def work_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have work on several clusters done in this process, one job after another."""
    monkeypatch.setattr(workers, "_Worker", _Worker)
    monkeypatch.setattr(workers, "wait", lambda running, **_: running)


class _Worker:
    """Stands in for a process that does jobs."""

    age = 0.0
    goes_on = lives = True

    def __init__(self, jobs: Sequence[Callable[[], Any]], _others: object) -> None:
        self._jobs, self.pipe = jobs, self

    def begin(self, number: int) -> None:
        self.number = number
        before = {item: signal.getsignal(item) for item in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        self._answer = pickle.dumps(self._jobs[number]())
        for item, handler in before.items():
            signal.signal(item, handler)

    def result(self) -> Any:
        return pickle.loads(self._answer)  # noqa: S301 (our own)

    def end(self, grace: float = 0.0) -> None:
        """It has ended."""
