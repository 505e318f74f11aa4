"""Ctrl-C, SIGTERM and SIGHUP while a plan is carried out: they end no run between a step and its entry in a journal."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpolicy.cli.terminal import complain

if TYPE_CHECKING:
    from types import FrameType

    from gpolicy.apply.runner import StopRequests


@dataclass(slots=True)
class Signals:
    """Let signals stop the run after the present step; a second one does not wait. A `silent` one says nothing."""

    stop: StopRequests
    silent: bool = False
    before: dict[int, Any] = field(default_factory=dict)

    def catch(self) -> None:
        """Begin: from now on no signal ends the run."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays
                self.before[number] = signal.signal(number, self._asked)

    def release(self) -> None:
        """Restore the old handlers of signals."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before.clear()

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.stop.ask()
        if self.silent:
            return
        text = "stopping after the running step; interrupt again to stop waiting for it (its job goes on in Ganeti)"
        with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: in the middle of another line
            complain("stopping at once" if self.stop.at_once else text, None)
