"""Time that passes only when somebody waits: hours in microseconds, in the same order each time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.strands import Strand

_Queue = list[tuple[float, int, Callable[[], object]]]
_START = 1_790_000_000.0  # a time of day in 2026


@dataclass
class Clock:
    """What is due is run when the time comes, in the order of its times.

    `world` counts all seconds, `monotonic` those that the machine of apply was awake for, `wall` is what its clock
    on the wall shows, which may jump. `strand` is the process beside the first one that runs now.
    """

    world: float = 0.0
    asleep: float = 0.0
    wall: float = _START
    strand: Strand | None = None
    _due: _Queue = field(default_factory=list)
    _wakes: _Queue = field(default_factory=list)
    _number: int = 0

    @property
    def monotonic(self) -> float:
        return 1000.0 + self.world - self.asleep

    def after(self, seconds: float, what: Callable[[], object]) -> None:
        """Have something happen later."""
        self._push(self._due, seconds, what)

    def wake(self, seconds: float, process: Callable[[], object]) -> None:
        """Have a process go on later, unless the machine sleeps then."""
        self._push(self._wakes, seconds, process)

    def _push(self, queue: _Queue, seconds: float, what: Callable[[], object]) -> None:
        self._number += 1
        heapq.heappush(queue, (self.world + max(seconds, 0.0), self._number, what))

    def advance(self, seconds: float) -> None:
        """Let time pass. If a strand asks for it, the others go on meanwhile."""
        if self.strand is not None:
            self.strand.sleep(seconds)
        else:
            self._pass(seconds, [self._due, self._wakes])

    def _pass(self, seconds: float, queues: list[_Queue]) -> None:
        until = self.world + max(seconds, 0.0)
        while (
            first := min((queue for queue in queues if queue), key=lambda queue: queue[0], default=None)
        ) is not None:
            if first[0][0] > until:
                break
            when, _, what = heapq.heappop(first)
            self._to(max(when, self.world))
            what()
        self._to(max(until, self.world))

    def next_due(self) -> float | None:
        """Return in how many seconds the next thing happens."""
        return max(self._due[0][0] - self.world, 0.0) if self._due else None

    def doze(self, seconds: float) -> None:
        """Let time pass that the machine does not count: it was suspended, with all its processes."""
        self._pass(seconds, [self._due])
        self.asleep += seconds

    def _to(self, when: float) -> None:
        self.wall += when - self.world
        self.world = when


class VirtualTime:
    """Stands in for the module `time` in the modules under test."""

    def __init__(self, clock: Callable[[], Clock], sleep: Callable[[float], None]) -> None:
        self._clock, self.sleep = clock, sleep

    def monotonic(self) -> float:
        return self._clock().monotonic

    def time(self) -> float:
        return self._clock().wall

    @staticmethod
    def strftime(form: str) -> str:
        return time.strftime(form)
