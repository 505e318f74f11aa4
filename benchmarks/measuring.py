"""One process, and what it took. Processor time is what a busy machine falsifies least."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """What a process and those that it started took, start-up included: seconds of the processor and by the clock.

    `memory` is the most that it had (MiB), `output` its stdout; not `finished` if it was ended before its end.
    """

    processor: float
    clock: float
    memory: int
    output: str
    finished: bool = True


def run(
    command: list[str],
    folder: Path = ROOT,
    *,
    most: float | None = None,
    environ: Mapping[str, str] | None = None,
    codes: Collection[int] = (0,),
) -> Run:
    """Run a command of this checkout, for `most` seconds at most. It must end with one of `codes`."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=errors)
        watch = threading.Timer(most or threading.TIMEOUT_MAX, process.kill)
        watch.daemon = True
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        clock = time.perf_counter() - start
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        finished = most is None or process.returncode >= 0
        errors.seek(0)
        output.seek(0)
        told = errors.read().decode(errors="replace")
        assert process.returncode in codes or not finished, (command, told[-2000:])
        assert "Traceback" not in told, told[-2000:]
        return Run(used.ru_utime + used.ru_stime, clock, used.ru_maxrss // 1024, output.read().decode(), finished)
