"""How long work tells what it does, and when it ends early: after some time, after some work, with Ctrl-C, or never.

The command line shows on a terminal what is told; for others nobody listens. The caller also says when to stop. A
search asks the `Stop` that it is given and reads no clock, so without a limit of time its answer is the same on every
machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

Tell = Callable[[str], None]
"""Takes the present activity, such as `group gold`."""

Working = Callable[[str], AbstractContextManager[Tell]]
"""Begins an activity, such as `counting what fits`, and gives what takes its parts."""


def silent(_: str) -> None:
    """Take an activity that nobody is told of."""


@contextmanager
def quietly(_: str) -> Iterator[Tell]:
    """Begin an activity that nobody is told of."""
    yield silent


class StoppedError(Exception):
    """The search is over; the best so far is the answer."""


class Stop:
    """When a search ends: after `seconds` from now, or after `steps` of its work.

    `spent` is the work so far; `ended`: it is over for good.
    """

    def __init__(self, seconds: float = math.inf, steps: float = math.inf) -> None:
        self._begun = time.monotonic() if seconds < math.inf else 0.0
        self._seconds, self._steps, self.spent, self.ended = seconds, steps, 0, False

    @property
    def patience(self) -> float:
        """How many times as much as usual a search may try: one for each minute that it is given, at least one."""
        return max(1.0, self._seconds / 60) if self._seconds < math.inf else 1.0

    def is_over(self, share: float = 1.0) -> bool:
        """Whether this share of the time, or of the work, is over."""
        late = self._seconds < math.inf and time.monotonic() > self._begun + share * self._seconds
        return self.ended or late or self.spent > share * self._steps

    def spend(self, work: int = 0, share: float = 1.0) -> None:
        """Count work. Raise StoppedError once a share of the time, or of the work, is over."""
        self.spent += work
        if self.is_over(share):
            raise StoppedError


def until_stopped() -> suppress:
    """Return a context that is left where a search is stopped, or with Ctrl-C."""
    return suppress(StoppedError, KeyboardInterrupt)


def after(seconds: float) -> Stop:
    """Return a stop after some time from now."""
    return Stop(seconds=seconds)


def after_work(steps: int) -> Stop:
    """Return a stop after some work, which the search counts."""
    return Stop(steps=steps)
