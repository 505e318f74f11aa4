"""A limit on the processor time of a block."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class TooSlow(BaseException):
    """An input took too long. Not an Exception, so that no handler catches it."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in the block when it takes longer (of processor time: machines are shared)."""

    def ring(_: int, __: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)  # again: what it raised in a finalizer is lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
