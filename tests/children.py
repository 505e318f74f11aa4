"""Work on seeds in child processes, so that a crash is told with its seed and does not end the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

TESTS = Path(__file__).resolve().parent

SANITIZER = 99  # exit code of a process in which a sanitizer saw something (tests/sanitizers.py)


class Died(str):
    """How a child process ended at a seed: what it wrote to stderr, and its exit code or signal."""

    __slots__ = ()


def in_children(arguments: list[str], first: int, count: int, seconds: float) -> Iterator[tuple[int, str]]:
    """Run `python ARGUMENTS FIRST COUNT`, which prints a line for each seed, and yield (seed, line).

    Where a signal or a sanitizer ends a child, or a seed takes it more than `seconds`, yield how (`Died`) and go on
    with the next seed. Raises RuntimeError where it ends otherwise before all is done.
    """
    seed, end = first, first + count
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent), "PYTHONFAULTHANDLER": "1"}
    while seed < end:
        command = [sys.executable, *arguments, str(seed), str(end - seed)]
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            assert child.stdout is not None
            with child, _Watch(child, seconds) as watch:
                for line in child.stdout:
                    yield seed, line.rstrip("\n")
                    seed += 1
                    watch.again()
            if seed < end:
                errors.seek(0)
                said = errors.read().decode(errors="replace")
                if child.returncode >= 0 and child.returncode != SANITIZER:  # no crash, but a mistake of the module
                    raise RuntimeError(f"exit code {child.returncode} at {seed}: {said[-3000:]}")
                why = f"needs more than {seconds} s" if watch.bitten else f"exit code {child.returncode}"
                yield seed, Died(f"{why}: {said[:3000]}")
                seed += 1


class _Watch:
    """Kills a child without output for so many seconds."""

    def __init__(self, child: subprocess.Popen[str], seconds: float) -> None:
        self.bitten = False
        self._child, self._seconds = child, seconds
        self._sign, self._over = threading.Event(), False
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self.again()
        self._thread.join()

    def again(self) -> None:
        """Note that the child has written something."""
        self._sign.set()

    def _watch(self) -> None:
        while self._sign.wait(self._seconds):
            self._sign.clear()
            if self._over:
                return
        self.bitten = True
        self._child.send_signal(signal.SIGABRT)  # faulthandler writes where it was
