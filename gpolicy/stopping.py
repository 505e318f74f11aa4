"""When a search ends early: after some time, after some work, with Ctrl-C, or never.

The caller says which. A search asks the `Stop` that it is given and reads no clock, so without a limit of time its
answer is the same on every machine.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress


class StoppedError(Exception):
    """The search is over; the best so far is the answer."""


class Stop:
    """When a search ends: after `seconds` from now, or after `steps` of its work.

    `spent` is the work so far; `ended`: it is over for good.
    """

    def __init__(self, seconds: float = math.inf, steps: float = math.inf) -> None:
        self._begun, self._seconds, self._steps = time.monotonic(), seconds, steps
        self.spent = 0
        self.ended = False

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
