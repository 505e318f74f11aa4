"""How much processor time something takes, whatever else this process and this machine do."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def takes(work: Callable[[], object]) -> float:
    """Return the processor seconds of the quickest of three runs, without the garbage of earlier tests."""
    gc.collect()
    gc.disable()
    try:
        return min(_once(work) for _ in range(3))
    finally:
        gc.enable()


def takes_less(seconds: float, work: Callable[[], object]) -> bool:
    """Return whether a run takes less: a second and a third one are tried only if the first does not."""
    return _once(work) < seconds or takes(work) < seconds


def _once(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
