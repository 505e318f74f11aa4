"""Stand-ins for the standard library in the modules under test, for a simulated machine.

`under_simulation` puts it there. Their own code stays as it is.
"""

from __future__ import annotations

import datetime as dt
import errno
import importlib
import os
import pkgutil
import secrets
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self

import gpolicy.apply
from gpolicy.cli import rolling_out
from gpolicy.cli.targets import rollout_near
from gpolicy.cluster import assembly, json_input, master, process, rapi, rapi_client
from gpolicy.fleet import workers
from gpolicy.plan import effects, plan_file
from gpolicy.provenance import Provenance
from gpolicy.rollout import rollout_run
from gpolicy.use_cases import carrying_out, rolling_out as use_case
from tests.simulator.scenarios import PLANS
from tests.simulator.simulated_children import Pipe
from tests.simulator.simulated_machine import Machine
from tests.simulator.virtual_time import Clock, VirtualTime


class _Selector:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.known = machine, dict[Any, SimpleNamespace]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def register(self, pipe: Pipe, _events: int) -> None:
        self.known[pipe] = SimpleNamespace(fileobj=pipe, fd=pipe.fileno())

    def unregister(self, pipe: Pipe) -> None:
        del self.known[pipe]

    def get_map(self) -> dict[Any, SimpleNamespace]:
        return self.known

    def select(self, timeout: float | None = None) -> list[tuple[SimpleNamespace, int]]:
        machine, clock = self.machine, self.machine.world.clock
        machine.process.check()
        left = 1e6 if timeout is None else max(timeout, 0.0)
        if left:
            machine.world.point("wait")
        while True:
            ready = [(key, 1) for pipe, key in self.known.items() if pipe.ready]
            if ready or left <= 0:
                return ready
            due = clock.next_due()
            step = left if due is None else min(left, due + 1e-9)
            clock.advance(step)
            left -= step


class _Overlay:
    """A module with some of its names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Connection:
    """A connection over which a server sends some bytes, and then ends it or resets it."""

    def __init__(self, content: bytes, *, reset: bool) -> None:
        self.content, self.reset = content, reset

    def sendall(self, _data: bytes) -> None:
        """Whatever is sent arrives."""

    def makefile(self, *_: Any) -> Any:
        return _Answering(self.content, reset=self.reset)

    def close(self) -> None:
        """There is nothing to close."""


class _Answering(BytesIO):
    def __init__(self, content: bytes, *, reset: bool) -> None:
        super().__init__(content)
        self.resets = reset

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        if not count and self.resets:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return count

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if not line and self.resets:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return line

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if self.resets and (size is None or len(found) < size):
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return found


def over_the_wire(
    request: rapi_client.HttpsRequest, content: bytes, *, reset: bool, seconds: float
) -> rapi_client.HttpsAnswer:
    """Let gpolicy's own client read `content` from a connection."""
    kept = rapi_client._connect, rapi_client._cut_after
    rapi_client._connect = lambda *_: _Connection(content, reset=reset)  # type: ignore[assignment]
    rapi_client._cut_after = lambda *_: nullcontext()
    try:
        return _REALLY_ASK(request, trust=_TRUST, seconds=seconds, limit=64 * 1024**2)
    finally:
        rapi_client._connect, rapi_client._cut_after = kept


_REALLY_ASK: Final = rapi_client.ask
_TRUST: Final = rapi_client.Trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


class _Instant(dt.datetime):
    clock: Callable[[], Clock]

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _Instant:
        return cls.fromtimestamp(cls.clock().wall, tz)


def _modules() -> list[Any]:
    names = [item.name for item in pkgutil.iter_modules(gpolicy.apply.__path__, "gpolicy.apply.")]
    return [*map(importlib.import_module, names), process, rapi, rapi_client, master, rollout_run, workers]


def _remembering() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Give what reads the same answers over and over, with a memory: these functions have no side effects.

    It makes a schedule three times as fast. What they return is never changed.
    """
    parsed: dict[tuple[bytes, str], Any] = {}
    values: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def once(module: Any, name: str, key: Callable[..., tuple[Any, ...]]) -> tuple[Any, str, Callable[..., Any]]:
        function = getattr(module, name)

        def remembering(*arguments: Any, **options: Any) -> Any:
            known = (name, *key(*arguments, **options))
            if known not in values:
                values[known] = (arguments, function(*arguments, **options))  # what is kept keeps its id
            return values[known][1]

        return module, name, remembering

    def parse(data: bytes, where: str) -> Any:
        if (data, where) not in parsed:
            parsed[data, where] = json_input.parse_json(data, where)
        return parsed[data, where]

    yield rapi_client, "parse_json", parse
    yield once(assembly, "cluster_values", lambda info, _: (id(info.fields),))
    yield once(rapi, "_group_from_rapi", lambda record, own: (id(record.fields), id(own)))
    yield once(master, "parse_config", lambda data, **options: (data, *options.values()))
    yield once(effects, "_leaves", lambda own, tags: (id(own), tags))
    yield plan_file, "read_procedure_file", _read_plan


def _read_plan(path: Path, *how: Any) -> Any:
    content = path.read_bytes() if path.is_file() else b""
    return PLANS.get(content) or _read_procedure_file(path, *how)


_read_procedure_file: Final = plan_file.read_procedure_file


def _on(current: Callable[[], Machine], name: str) -> Callable[..., Any]:
    """Return a method of the machine or of its world, looked up when it is called."""

    def now(*arguments: Any, **options: Any) -> Any:
        machine = current()
        return getattr(machine if hasattr(machine, name) else machine.world, name)(*arguments, **options)

    return now


def _library(current: Callable[[], Machine]) -> dict[Any, Any]:
    """Return what stands in for modules and classes of the standard library."""
    _Instant.clock = lambda: current().world.clock
    calls = ("open", "write", "fsync", "read", "pwrite", "close", "killpg", "getpid", "getppid")
    return {
        time: VirtualTime(lambda: current().world.clock, _on(current, "sleep")),
        os: _Overlay(os, **{name: _on(current, name) for name in calls}),
        subprocess: _Overlay(subprocess, Popen=_on(current, "popen")),
        selectors: SimpleNamespace(DefaultSelector=lambda: _Selector(current()), EVENT_READ=1, EVENT_WRITE=2),
        secrets: SimpleNamespace(token_hex=lambda _=0: current().world.token()),
        dt.datetime: _Instant,
        socket: _Overlay(socket, gethostname=lambda: current().process.machine),
        signal: _Overlay(
            signal,
            signal=_on(current, "handle"),
            getsignal=lambda number: current().process.handlers.get(number, signal.default_int_handler),
        ),
    }


def _single(current: Callable[[], Machine]) -> Iterator[tuple[Any, str, Any]]:
    """Give single functions to replace: module, name, and what takes their place."""

    def holder() -> str:
        running = current().process
        return f"process {running.number} on {running.machine} since some time ago\n"

    def locks(_: object) -> Path:
        return current().world.locks(current().process.machine)

    def ask(request: rapi_client.HttpsRequest, *, seconds: float, **_: Any) -> rapi_client.HttpsAnswer:
        return current().world.ask(request, seconds)

    journal_file, lock = sys.modules["gpolicy.apply.journals"], sys.modules["gpolicy.apply.lock"]
    read_below = journal_file.read_below

    def read_journal(*arguments: Any) -> Any:
        current().disk.complain("broken")
        return read_below(*arguments)

    yield journal_file, "read_below", read_journal
    yield carrying_out, "lock_directory", locks
    yield lock, "_holder", holder
    yield use_case, "lock_directory", locks
    yield rolling_out, "rollout_near", lambda _: rollout_near(current().world.directory)
    yield rolling_out, "provenance_of", lambda _: Provenance("now")
    yield workers, "_Worker", _on(current, "worker")
    yield workers, "wait", _on(current, "wait")
    yield rapi_client, "ask", ask
    yield rapi_client, "make_trust", lambda **_: _TRUST
    yield master, "read_bytes", lambda path, **_: current().world.config_data(path)


@contextmanager
def under_simulation(current: Callable[[], Machine], *, remembering: bool) -> Iterator[None]:
    """Have the modules under test live on the machine that `current` returns, for as long as this lasts."""
    library, replaced = _library(current), list[tuple[Any, str, Any]]()

    def put(module: Any, name: str, value: Any) -> None:
        replaced.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    for module in _modules():
        for name, value in list(vars(module).items()):
            known = isinstance(value, type(os) | type) and value in library
            if known and not (module is rapi_client and value is socket):
                put(module, name, library[value])
    for module, name, value in (*_single(current), *(_remembering() if remembering else ())):
        put(module, name, value)
    try:
        yield
    finally:
        for module, name, value in reversed(replaced):
            setattr(module, name, value)
