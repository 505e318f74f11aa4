"""Requests to stop that reach the copies of a process as well, each of which carries one plan out."""

from __future__ import annotations

import mmap
import os

from gpolicy.apply.runner import StopRequests


class SharedStopRequests(StopRequests):
    """Requests to stop, kept in memory that copies of this process (forks) share.

    What a copy is asked itself counts once, for itself. A copy whose original is gone ends after its running step.
    """

    def __init__(self) -> None:
        super().__init__()
        self._shared = mmap.mmap(-1, 1)
        self._original = os.getpid()

    def ask(self) -> None:
        """Ask once more."""
        if self._is_original:
            self._shared[0] = min(self._shared[0] + 1, 255)
        else:
            self.requests = 1

    @property
    def after_step(self) -> bool:
        """Whether no further step is to begin."""
        orphaned = not self._is_original and os.getppid() != self._original
        return bool(self._shared[0]) or super().after_step or orphaned

    @property
    def at_once(self) -> bool:
        """Whether the job that runs is not to be waited for."""
        return self._shared[0] > 1

    @property
    def _is_original(self) -> bool:
        return os.getpid() == self._original
