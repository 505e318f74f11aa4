"""Child processes in virtual time: their pipes, how they end, and the one that holds the lock on the master."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Final

from tests.simulator.simulated_programs import Program
from tests.simulator.virtual_time import Clock

FIRST_PIPE: Final = 1_000_000  # numbers that no descriptor has


class Pipe:
    """One end of a pipe from a child."""

    count = FIRST_PIPE

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

    def __init__(self, clock: Clock, program: Program | None) -> None:
        self.clock, self.program = clock, program
        self.stdout, self.stderr, self.stdin = Pipe(), Pipe(), Pipe()
        self.pid = self.stdout.number
        self.code: int | None = None
        self.finished = program is None
        self.well_ended: Callable[[], None] = lambda: None
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
            if not code:
                self.well_ended()
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

    def communicate(self, timeout: float) -> None:
        """End its input, and wait for its end."""
        self.stdin.close()
        self.wait(timeout)


class LockChild(Child):
    """flock with tee on the master, behind a connection: it holds the lock until its input ends."""

    def __init__(self, clock: Clock, locks: dict[str, str], path: str) -> None:
        super().__init__(clock, None)
        self.locks, self.path, self.holds, self.answered = locks, path, False, False
        self.stdin = _Input(self)
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
