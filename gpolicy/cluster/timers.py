"""Something that happens after a time, unless a block of work ends before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def after(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Call `act`, in another thread, if the block takes more than `seconds`; it has ended when the block is left."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
