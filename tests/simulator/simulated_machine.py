"""The machine that apply runs on: its clock, disk, signals, child processes and connections, all simulated.

`under_simulation` puts stand-ins into the modules under test, in the place of the modules of the standard library that
they reach the world with. Their own code stays as it is.
"""

from __future__ import annotations

import datetime
import errno
import importlib
import os
import pkgutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol

from simulated_programs import Program
from virtual_time import Clock, VirtualTime

import gpolicy.apply
from gpolicy.cli import applying as cli_applying
from gpolicy.cluster import https, json_input, master, process, rapi, rapi_client
from gpolicy.plan import contents as plan_contents
from gpolicy.plan import plan_file as cli_reading

_FIRST_PIPE: Final = 1_000_000
_TICK: Final = 1e-4  # seconds that the shortest sleep takes


class KilledError(BaseException):
    """This process is no more: `kill -9`, or the machine went down."""


class World(Protocol):
    """What the machine asks: whether something happens now, and what is at the other end of its connections."""

    clock: Clock

    def point(self, where: str) -> None:
        """Let whatever is to happen here happen. It may raise KilledError."""

    def ask(self, request: https.Request, seconds: float) -> https.Answer:
        """Answer a request to the remote API."""

    def start(self, argv: Sequence[str]) -> Child:
        """Start a program."""

    def config_data(self, path: Path) -> bytes:
        """Read the file config.data of this machine."""

    def token(self) -> str:
        """Return a random word."""

    def began(self, line: bytes) -> None:
        """A line got into a journal."""


@dataclass
class Disk:
    """What is wrong with the disk, and for how many more operations."""

    wrong: str = ""  # full, read-only, broken
    left: int = 0

    def complain(self, *kinds: str) -> None:
        if self.wrong in kinds and self.left > 0:
            self.left -= 1
            number = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO}[self.wrong]
            raise OSError(number, os.strerror(number))


@dataclass
class ApplyProcess:
    """One process of apply: what it holds, what it was told, how it is to end."""

    number: int
    machine: str = "here"
    dead: bool = False
    torn: bool = False  # its next write is cut short, and the process with it
    descriptors: set[int] = field(default_factory=set)
    handlers: dict[int, Any] = field(default_factory=dict)
    stops: int = 0
    lock_lost: bool = False
    written: dict[int, int] = field(default_factory=dict)
    locks: list[LockChild] = field(default_factory=list)
    lines: dict[int, bytes] = field(default_factory=dict)  # that were begun and not ended yet, by descriptor

    def check(self) -> None:
        if self.dead:
            raise KilledError


class Pipe:
    """One end of a pipe from a child."""

    count = _FIRST_PIPE

    def __init__(self) -> None:
        Pipe.count += 1
        self.number, self.content, self.ended = Pipe.count, bytearray(), False

    def fileno(self) -> int:
        return self.number

    @property
    def ready(self) -> bool:
        return bool(self.content) or self.ended

    def take(self, most: int) -> bytes:
        taken = bytes(self.content[:most])
        del self.content[:most]
        return taken

    def close(self) -> None:
        self.ended = True

    def write(self, _text: bytes) -> None:
        """Nobody reads it."""

    def flush(self) -> None:
        """Nothing is kept back."""


class Child:
    """A program that was started: `program` goes on in virtual time, also when nobody watches it any more."""

    pid = 1

    def __init__(self, clock: Clock, program: Program | None) -> None:
        self.clock, self.program = clock, program
        self.stdout, self.stderr, self.stdin = Pipe(), Pipe(), Pipe()
        self.code: int | None = None
        self.finished = program is None
        if program is not None:
            clock.after(0.0, self._go)

    def _go(self) -> None:
        assert self.program is not None
        try:
            while isinstance(said := next(self.program), tuple):
                if self.code is None:
                    (self.stdout if said[0] == "out" else self.stderr).content += said[1]
        except StopIteration as end:
            self.finished = True
            self.end(end.value)
        else:
            self.clock.after(said, self._go)

    def end(self, code: int, complaint: bytes = b"") -> None:
        """End it, as far as the one who started it can see."""
        if self.code is None:
            self.code = code
            self.stderr.content += complaint
            self.stdout.ended = self.stderr.ended = True

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        until = self.clock.monotonic + (timeout if timeout is not None else 1e9)
        while self.code is None:
            left, due = until - self.clock.monotonic, self.clock.next_due()
            if left <= 0 or due is None:
                raise subprocess.TimeoutExpired("child", timeout or 0)
            self.clock.advance(min(left, due) + 1e-6)
        return self.code

    def kill(self) -> None:
        self.end(-9)


class LockChild(Child):
    """flock with tee on the master, behind a connection: it holds the lock until its input ends."""

    def __init__(self, clock: Clock, locks: dict[str, str], path: str) -> None:
        super().__init__(clock, None)
        self.locks, self.path, self.holds, self.answered = locks, path, False, False
        self.stdin = _Input(self)  # type: ignore[assignment]
        if path in locks:
            clock.after(0.1, lambda: self.end(75))
        else:
            self.holds = True
            locks[path] = ""

    def told(self, text: bytes) -> None:
        if self.holds:
            self.locks[self.path] = text.decode()
            self.clock.after(0.1, lambda: self._answer(text))

    def _answer(self, text: bytes) -> None:
        self.stdout.content += text
        self.answered = True

    def end(self, code: int, complaint: bytes = b"") -> None:
        if self.holds:
            self.holds = False
            self.locks.pop(self.path, None)
        super().end(code, complaint)


class _Input(Pipe):
    def __init__(self, child: LockChild) -> None:
        super().__init__()
        self.child = child

    def write(self, text: bytes) -> None:
        self.child.told(text)

    def close(self) -> None:
        self.child.end(0)


class Machine:
    """The stand-ins, and the process that runs on them now."""

    def __init__(self, world: World) -> None:
        self.world, self.disk = world, Disk()
        self.process = ApplyProcess(0)
        self.pipes: dict[int, Pipe] = {}

    # --- time --------------------------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        self.process.check()
        self.world.point("wait")
        self.world.clock.advance(max(seconds, _TICK))

    # --- files -------------------------------------------------------------------------------------------------------

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        self.process.check()
        self.world.point("open")
        if flags & (os.O_WRONLY | os.O_RDWR):
            self.disk.complain("read-only")
        if flags & os.O_CREAT and not os.path.lexists(path):
            self.disk.complain("full")
        descriptor = os.open(path, flags, mode)
        self.process.descriptors.add(descriptor)
        return descriptor

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        self.process.check()
        self.world.point("write")
        content = bytes(data)
        if self.process.torn and len(content) > 1:
            os.write(descriptor, content[: len(content) // 2])
            self.process.dead = True
            raise KilledError
        if self.disk.wrong == "short" and self.disk.left > 0 and len(content) > 1:
            self.disk.left -= 1
            content = content[: len(content) // 2]
        if self.disk.wrong == "full" and self.disk.left > 0 and len(content) > 8:
            os.write(descriptor, content[: len(content) % 7])  # as much as there was room for
        self.disk.complain("full", "read-only", "broken")
        count = os.write(descriptor, content)
        line = self.process.lines.pop(descriptor, b"") + content
        if line.endswith(b"\n"):
            self.world.began(line)
        else:
            self.process.lines[descriptor] = line
        self.world.point("written")
        return count

    def fsync(self, descriptor: int) -> None:
        self.process.check()
        self.disk.complain("broken")
        self.process.written[descriptor] = os.fstat(descriptor).st_size

    def read(self, descriptor: int, most: int) -> bytes:
        self.process.check()
        return self.pipes[descriptor].take(most) if descriptor >= _FIRST_PIPE else os.read(descriptor, most)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self.process.check()
        self.disk.complain("full", "read-only", "broken")
        return os.pwrite(descriptor, data, offset)

    def close(self, descriptor: int) -> None:
        self.process.check()
        self.process.descriptors.discard(descriptor)
        os.close(descriptor)

    def killpg(self, _pid: int, number: int) -> None:
        self.process.check()

    def bury(self, dead: ApplyProcess) -> None:
        """Do what the kernel does when a process has ended: close its files, end its connections."""
        for descriptor in dead.descriptors:
            with suppress(OSError):
                os.close(descriptor)
        for child in dead.locks:
            child.end(255)
        dead.descriptors.clear()

    # --- children ----------------------------------------------------------------------------------------------------

    def popen(self, argv: list[str], **_options: Any) -> Child:
        self.process.check()
        child = self.world.start(argv)
        self.process.check()
        for pipe in (child.stdout, child.stderr):
            self.pipes[pipe.number] = pipe
        if isinstance(child, LockChild):
            self.process.locks.append(child)
        return child

    # --- signals -----------------------------------------------------------------------------------------------------

    def handle(self, number: int, handler: Any) -> Any:
        before = self.process.handlers.get(number, signal.SIG_DFL)
        self.process.handlers[number] = handler
        return before

    def interrupt(self) -> None:
        """Have somebody press Ctrl-C."""
        handler = self.process.handlers.get(signal.SIGINT, signal.SIG_DFL)
        if not callable(handler):
            raise KeyboardInterrupt
        self.process.stops += 1
        handler(signal.SIGINT, None)


class _Selector:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.known = machine, dict[Any, SimpleNamespace]()

    def __enter__(self) -> _Selector:
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


def over_the_wire(request: https.Request, content: bytes, *, reset: bool, seconds: float) -> https.Answer:
    """Let gpolicy's own client read `content` from a connection."""
    kept = https._connect, https._cut_after
    https._connect = lambda *_: _Connection(content, reset=reset)  # type: ignore[assignment,return-value]
    https._cut_after = lambda *_: nullcontext()  # type: ignore[assignment]
    try:
        return https.ask(request, trust=_TRUST, seconds=seconds, limit=64 * 1024**2)
    finally:
        https._connect, https._cut_after = kept


_TRUST: Final = https.Trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


class _Instant(datetime.datetime):
    clock: Callable[[], Clock]

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _Instant:
        return cls.fromtimestamp(cls.clock().wall, tz)


def _modules() -> list[Any]:
    names = [item.name for item in pkgutil.iter_modules(gpolicy.apply.__path__, "gpolicy.apply.")]
    return [importlib.import_module(name) for name in names] + [
        process, rapi, rapi_client, master, https, importlib.import_module("gpolicy.cluster.private_file"),
    ]  # fmt: skip


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
    yield once(rapi, "_cluster_own", lambda info: (id(info.fields),))
    yield once(rapi, "_group", lambda record, own: (id(record.fields), id(own)))
    yield once(master, "parse_config", lambda data, **options: (data, *options.values()))
    yield once(plan_contents, "_leaves", lambda own, tags: (id(own), tags))
    yield once(cli_reading, "read_plan", lambda path: (path.read_bytes(),))


@contextmanager
def under_simulation(current: Callable[[], Machine], locks: Callable[[], Path]) -> Iterator[None]:
    """Have the modules under test live on the machine that `current` returns, for as long as this lasts."""

    def on(name: str) -> Callable[..., Any]:
        return lambda *arguments, **options: getattr(current(), name)(*arguments, **options)

    def holder() -> str:
        running = current().process
        return f"process {running.number} on {running.machine} since some time ago\n"

    _Instant.clock = lambda: current().world.clock
    stand_ins: dict[Any, Any] = {
        time: VirtualTime(lambda: current().world.clock, on("sleep")),
        os: _Overlay(
            os, **{name: on(name) for name in ("open", "write", "fsync", "read", "pwrite", "close", "killpg")}
        ),
        subprocess: _Overlay(subprocess, Popen=on("popen")),
        importlib.import_module("selectors"): SimpleNamespace(
            DefaultSelector=lambda: _Selector(current()), EVENT_READ=1, EVENT_WRITE=2
        ),
        importlib.import_module("secrets"): SimpleNamespace(token_hex=lambda _=0: current().world.token()),
        datetime.datetime: _Instant,
        socket: _Overlay(socket, gethostname=lambda: current().process.machine),
    }
    replaced: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, value: Any) -> None:
        replaced.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    for module in _modules():
        for name, value in list(vars(module).items()):
            known = isinstance(value, type(os) | type) and value in stand_ins
            if known and not (module is https and value is socket):
                put(module, name, stand_ins[value])
    lock = sys.modules["gpolicy.apply.lock"]
    journal_file = sys.modules["gpolicy.apply.journal_file"]
    put(lock, "lock_directory", lambda _: locks())
    put(lock, "_holder", holder)
    put(
        rapi_client,
        "https",
        _Overlay(
            https,
            ask=lambda request, *, trust, seconds, limit: current().world.ask(request, seconds),
            make_trust=lambda **_: _TRUST,
        ),
    )
    put(master, "read_bytes", lambda path, **_: current().world.config_data(path))
    put(
        cli_applying,
        "signal",
        _Overlay(
            signal,
            signal=on("handle"),
            getsignal=lambda number: current().process.handlers.get(number, signal.default_int_handler),
        ),
    )

    def read_bytes(path: Path, **options: Any) -> bytes:
        with suppress_as_input_error(path):
            current().disk.complain("broken")
        return json_input.read_bytes(path, **options)

    for module, name, function in _remembering():
        put(module, name, function)
    if hasattr(journal_file, "read_bytes"):
        put(journal_file, "read_bytes", read_bytes)
    try:
        yield
    finally:
        for module, name, value in reversed(replaced):
            setattr(module, name, value)


@contextmanager
def suppress_as_input_error(path: Path) -> Generator[None]:
    """Turn what the disk complains about into what reading a file raises."""
    from gpolicy.errors import InputError

    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


Environ = Mapping[str, str]
