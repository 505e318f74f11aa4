"""The machine that apply runs on: its clock, disk, signals, child processes and connections, all simulated.

`under_simulation` puts stand-ins into the modules under test, in the place of the modules of the standard library that
they reach the world with. Their own code stays as it is.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TextIO, cast

from gpolicy.cluster.rapi_client import HttpsAnswer, HttpsRequest
from gpolicy.plan.effects import Contents
from tests.simulator.simulated_children import FIRST_PIPE, Child, LockChild, Pipe
from tests.simulator.virtual_time import Clock

_FIRST_PID: Final = 1000
_TICK: Final = 1e-4  # seconds that the shortest sleep takes


class KilledError(BaseException):
    """The process has ended: `kill -9`, or the machine went down."""


class Surroundings(Protocol):
    """The world of the machine: disturbances, and the other end of its connections."""

    clock: Clock
    directory: Path

    def point(self, where: str, /) -> None:
        """Let the disturbances of this point happen. It may raise KilledError."""

    def ask(self, request: HttpsRequest, seconds: float) -> HttpsAnswer:
        """Answer a request to the remote API."""

    def start(self, argv: Sequence[str]) -> Child:
        """Start a program."""

    def config_data(self, path: Path) -> bytes:
        """Read the file config.data of this machine."""

    def locks(self, machine: str) -> Path:
        """Return where locks are on a machine."""

    def token(self) -> str:
        """Return a random word."""

    def written(self, line: bytes) -> None:
        """A line got into a journal."""


@dataclass
class Disk:
    """The fault of the disk, and the number of operations that it lasts."""

    wrong: str = ""  # full, read-only, broken
    left: int = 0

    def complain(self, *kinds: str) -> None:
        if self.wrong in kinds and self.left > 0:
            self.left -= 1
            number = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO}[self.wrong]
            raise OSError(number, os.strerror(number))


@dataclass(eq=False)
class ApplyProcess:
    """One process of apply: its resources, its signals, its end; what it was shown of a cluster, and what it said.

    A roll-out has a process for each cluster, whose `parent` it is; `site` is the name of the cluster. `flags` are the
    options that it was started with, `begun` the time when it began.
    """

    number: int
    machine: str = "here"
    parent: ApplyProcess | None = None
    site: str = ""
    flags: tuple[str, ...] = ()
    begun: float = 0.0
    dead: bool = False
    torn: bool = False  # its next write is cut short, and the process with it
    descriptors: set[int] = field(default_factory=set)
    handlers: dict[int, Any] = field(default_factory=dict)
    stops: int = 0
    interrupted: bool = False  # by a signal that it does not catch
    lock_lost: bool = False
    written: dict[int, int] = field(default_factory=dict)
    locks: list[LockChild] = field(default_factory=list)
    lines: dict[int, bytes] = field(default_factory=dict)  # that were begun and not ended yet, by descriptor
    said: io.StringIO = field(default_factory=io.StringIO)
    seen: Contents = field(default_factory=dict)
    seen_identity: tuple[str, str] | None = None

    @property
    def root(self) -> ApplyProcess:
        """The process that somebody started."""
        return self.parent or self

    def check(self) -> None:
        if self.dead:
            raise KilledError
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt


class Machine:
    """The stand-ins, and the process that runs on them now."""

    def __init__(self, world: Surroundings) -> None:
        self.world, self.disk = world, Disk()
        self.process = ApplyProcess(0)
        self.alive: list[ApplyProcess] = []
        self.pipes: dict[int, Pipe] = {}
        self.children: dict[int, Child] = {}

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
            self.world.written(line)
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
        if descriptor >= FIRST_PIPE:
            return self.pipes[descriptor].take(most)
        self.disk.complain("broken")
        return os.read(descriptor, most)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self.process.check()
        self.disk.complain("full", "read-only", "broken")
        return os.pwrite(descriptor, data, offset)

    def close(self, descriptor: int) -> None:
        self.process.check()
        self.process.descriptors.discard(descriptor)
        os.close(descriptor)

    def killpg(self, pid: int, number: int) -> None:
        self.process.check()
        self.children[pid].end(-number)

    # --- processes ---------------------------------------------------------------------------------------------------

    def scene(self, process: ApplyProcess) -> Callable[[], AbstractContextManager[None]]:
        """Return what has a process run, with outputs of its own; each time as it was left the last time."""
        own = process, cast(TextIO, process.said), cast(TextIO, process.said)

        @contextmanager
        def set_up() -> Iterator[None]:
            nonlocal own
            kept = self.process, sys.stdout, sys.stderr
            self.process, sys.stdout, sys.stderr = own
            try:
                yield
            finally:
                own = self.process, sys.stdout, sys.stderr
                self.process, sys.stdout, sys.stderr = kept

        return set_up

    def fork(self, child: ApplyProcess) -> None:
        """Give a new process what it has of its parent: open files, locks among them, and Ctrl-C is not for it."""
        assert child.parent is not None
        child.descriptors = {os.dup(descriptor) for descriptor in child.parent.descriptors}
        child.flags = child.parent.flags
        child.handlers[signal.SIGINT] = signal.SIG_IGN
        self.alive.append(child)

    def bury(self, dead: ApplyProcess) -> None:
        """Do what the kernel does when a process has ended: close its files, end its connections."""
        for descriptor in dead.descriptors:
            with suppress(OSError):
                os.close(descriptor)
        for child in dead.locks:
            child.end(255)
        dead.descriptors.clear()
        dead.dead = True
        if dead in self.alive:
            self.alive.remove(dead)

    def getpid(self) -> int:
        return _FIRST_PID + self.process.number

    def getppid(self) -> int:
        parent = self.process.parent
        return 1 if parent is None or parent.dead else _FIRST_PID + parent.number

    # --- children ----------------------------------------------------------------------------------------------------

    def popen(self, argv: list[str], **_options: Any) -> Child:
        self.process.check()
        child = self.world.start(argv)
        self.process.check()
        self.children[child.pid] = child
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

    def signal(self, process: ApplyProcess, number: int) -> None:
        """Have somebody send a signal: Ctrl-C, or one that tells the process to end."""
        handler = process.handlers.get(number, signal.SIG_DFL)
        if not callable(handler):
            if process is self.process and handler is not signal.SIG_IGN:
                raise KeyboardInterrupt
            process.interrupted = handler is not signal.SIG_IGN
            return
        process.stops += 1
        with self.scene(process)():
            handler(number, None)
