"""Run a program as long as its job takes: read line by line, without a shell or a terminal, within a time limit."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gpolicy.apply.runner import StopRequests
from gpolicy.cluster.process import end, start

_LONGEST_LINE = 64 * 1024
_MOST_ERRORS = 64 * 1024
_TICK = 0.2


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended: its exit code, None if we stopped waiting; and the end of its standard error."""

    code: int | None
    errors: str


def run_lines(
    argv: Sequence[str], environ: Mapping[str, str], seconds: float, stop: StopRequests, line: Callable[[str], None]
) -> ProgramEnd:
    """Run `argv` and call `line` with each line of its output as it comes, its end included: one may be cut short.

    When the time is up, or `stop` says at once, the program is ended; the job that it watches goes on in Ganeti. Raise
    UnreachableError if it cannot be started.
    """
    process = start(argv, environ)
    try:
        errors = _pump(process, time.monotonic() + seconds, stop, line)
    finally:
        end(process, grace=2)
    return ProgramEnd(None if errors is None else process.poll(), errors or "")


def _pump(
    process: subprocess.Popen[bytes], until: float, stop: StopRequests, line: Callable[[str], None]
) -> str | None:
    """Hand out lines until the program has ended. Return standard error, or None if we stopped waiting before."""
    assert process.stdout is not None  # noqa: S101 (both are pipes)
    assert process.stderr is not None  # noqa: S101
    lines, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() or process.poll() is None:
            if stop.at_once or time.monotonic() >= until:
                return None
            if not selector.get_map():  # it has closed its outputs, and mostly ends right then
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK)
                continue
            for key, _ in selector.select(_TICK):
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                if key.fileobj is process.stdout:
                    lines += chunk
                    _hand_out(lines, line, rest=not chunk)
                else:
                    errors = (errors + chunk)[-_MOST_ERRORS:]
    return errors.decode(errors="replace")


def _hand_out(buffer: bytearray, line: Callable[[str], None], *, rest: bool) -> None:
    *whole, last = bytes(buffer).split(b"\n")
    for one in whole:
        if one:
            line(one.decode(errors="replace") + "\n")
    if last and (rest or len(last) > _LONGEST_LINE):
        line(last.decode(errors="replace"))
        last = b""
    buffer[:] = last
