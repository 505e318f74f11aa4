"""Processes beside the first one: their code runs in a thread of its own, but only when the clock says so.

One thread runs at any time, and virtual time alone decides which: a schedule stays the same each time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Semaphore, Thread

from tests.simulator.virtual_time import Clock


class Strand:
    """The running code of a process: `body`. `scene` puts its surroundings in place while it runs.

    `check` is called when it wakes, and raises if the process is dead.
    """

    def __init__(
        self,
        clock: Clock,
        body: Callable[[], object],
        check: Callable[[], None],
        scene: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.ended = False
        self._clock, self._body, self._check, self._scene = clock, body, check, scene
        self._thread = Thread(target=self._run, daemon=True)
        self._mine, self._theirs = Semaphore(0), Semaphore(0)
        self._error: BaseException | None = None
        self._thread.start()
        clock.wake(0.0, self.go_on)

    def go_on(self) -> None:
        """Let it run until it waits or ends. Raise what it did not catch."""
        if self.ended:
            return
        self._clock.strand = self
        try:
            with self._scene():
                self._mine.release()
                self._theirs.acquire()
        finally:
            self._clock.strand = None
        if self._error is not None:
            raise self._error

    def sleep(self, seconds: float) -> None:
        """Wait, called by its own code: the others go on."""
        self._clock.wake(seconds, self.go_on)
        self._theirs.release()
        self._mine.acquire()
        self._check()

    def _run(self) -> None:
        self._mine.acquire()
        try:
            self._body()
        except BaseException as error:  # noqa: BLE001 (the thread that let it run gets it)
            self._error = error
        self.ended = True
        self._theirs.release()
